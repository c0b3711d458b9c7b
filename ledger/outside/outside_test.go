package outside_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/ledger/ledgertest"
	"quittance/ledger/outside"
)

func open(t *testing.T) *outside.DB {
	t.Helper()
	db, err := outside.Open(ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outside.Forget(db) })
	return db
}

func TestRowsAreExactJSON(t *testing.T) {
	t.Parallel()
	rows, more, err := open(t).Read(t.Context(), time.Second, 10, `
		SELECT $1::text AS key, 9007199254740993::bigint AS big, 12345678901234567890.10::numeric AS exact, 'NaN'::numeric AS nan,
		       true AS yes, NULL AS none, '{"a": 1.50}'::jsonb AS doc, '\x00ff'::bytea AS raw,
		       '2026-03-01 10:00:00.5+01'::timestamptz AS at, 'a "quoted" \'::text AS "odd ""name"""`, []any{"k"})
	if err != nil || more || len(rows) != 1 {
		t.Fatalf("%d rows, more %v, %v", len(rows), more, err)
	}
	want := `{"key":"k","big":9007199254740993,"exact":12345678901234567890.10,"nan":"NaN","yes":true,"none":null,"doc":{"a": 1.50},"raw":"00ff",` +
		`"at":"2026-03-01T09:00:00.5Z","odd \"name\"":"a \"quoted\" \\"}`
	if string(rows[0]) != want {
		t.Errorf("got  %s\nwant %s", rows[0], want)
	}
}

// Nothing that is read can write, whatever the statement says.
func TestNothingIsEverWritten(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, query := range []string{
		`WITH x AS (DELETE FROM accounts RETURNING 1) SELECT $1::text, count(*) FROM x`,
		`SELECT $1::text, set_config('transaction_read_only', 'off', false), nextval(pg_get_serial_sequence('accounts', 'id'))`,
		`SELECT $1::text; COMMIT; CREATE TABLE evil (x int)`,
		`CREATE TABLE evil AS SELECT $1::text`,
	} {
		if _, _, err := db.Read(t.Context(), time.Second, 10, query, []any{"k"}); err == nil {
			t.Errorf("%s was let through", query)
		}
	}
	rows, _, err := db.Read(t.Context(), time.Second, 10, `SELECT to_regclass($1)::text AS evil`, []any{"evil"})
	if err != nil || string(rows[0]) != `{"evil":null}` {
		t.Errorf("%s, %v", rows, err)
	}
}

func TestArgumentsAreBound(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{`' OR true --`, `$1`, `"; DROP TABLE accounts; --`, `\'`} {
		rows, _, err := open(t).Read(t.Context(), time.Second, 10, `SELECT 1 AS x WHERE 'k' = $1`, []any{evil})
		if err != nil || len(rows) != 0 {
			t.Errorf("%q: %d rows, %v", evil, len(rows), err)
		}
	}
}

func TestLimitsOfARead(t *testing.T) {
	t.Parallel()
	db := open(t)
	begun := time.Now()
	if _, _, err := db.Read(t.Context(), 100*time.Millisecond, 10, `SELECT $1::text, pg_sleep(30)`, []any{"k"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 10*time.Second {
		t.Errorf("a slow statement: %v after %s", err, time.Since(begun))
	}
	rows, more, err := db.Read(t.Context(), time.Second, 10, `SELECT n, $1::text AS k FROM generate_series(1, 11) AS n`, []any{"k"})
	if err != nil || !more || len(rows) != 10 {
		t.Errorf("eleven rows: %d, more %v, %v", len(rows), more, err)
	}
	rows, more, err = db.Read(t.Context(), time.Second, 10, `SELECT n, $1::text AS k FROM generate_series(1, 10) AS n`, []any{"k"})
	if err != nil || more || len(rows) != 10 {
		t.Errorf("ten rows: %d, more %v, %v", len(rows), more, err)
	}
	rows, more, err = db.Read(t.Context(), 5*time.Second, 100, `SELECT repeat($1::text, 900000) AS k FROM generate_series(1, 50)`, []any{"k"})
	if err != nil || !more || len(bytes.Join(rows, nil)) > 3<<20 {
		t.Errorf("45 MB: %d bytes, more %v, %v", len(bytes.Join(rows, nil)), more, err)
	}
}

func TestErrorsTellNoValues(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, query := range []string{`SELECT $1::text::int`, `SELECT 1 / length(replace($1::text, 'zz91', '')) `, `SELECT zz91 FROM nowhere WHERE $1 = 1`} {
		_, _, err := db.Read(t.Context(), time.Second, 10, query, []any{"zz91"})
		if err == nil || strings.Contains(err.Error(), "zz91") {
			t.Errorf("%s: %v", query, err)
		}
	}
	gone, err := outside.Open("postgres://u:zz91@127.0.0.1:1/d")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := gone.Read(t.Context(), time.Second, 10, `SELECT $1::text`, []any{"k"}); err == nil || strings.Contains(err.Error(), "zz91") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := outside.Open("postgres://u:zz91@h:port/d"); err == nil || strings.Contains(err.Error(), "zz91") {
		t.Errorf("no URL: %v", err)
	}
}

func TestOneConnectionStringIsOnePool(t *testing.T) {
	t.Parallel()
	a, err := outside.Open("postgres://u@127.0.0.1:1/one")
	b, err2 := outside.Open("postgres://u@127.0.0.1:1/one")
	c, err3 := outside.Open("postgres://u@127.0.0.1:1/two")
	if err != nil || err2 != nil || err3 != nil || a != b || a == c {
		t.Errorf("%p %p %p", a, b, c)
	}
}
