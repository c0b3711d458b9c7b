package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/lib/pq"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
)

func TestSafeSettingsPass(t *testing.T) {
	t.Parallel()
	if err := ledgertest.New(t).CheckSafety(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The setting is made after the pool was opened: what counts is the next connection.
func TestUnsafeSettingsOfRoleAndDatabaseAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"off", "local"} {
		for name, c := range map[string]struct{ set, remedy string }{
			"database":         {"ALTER DATABASE {db} SET synchronous_commit = ", "ALTER DATABASE {db} RESET synchronous_commit"},
			"role in database": {"ALTER ROLE {role} IN DATABASE {db} SET synchronous_commit = ", "ALTER ROLE {role} IN DATABASE {db} RESET synchronous_commit"},
		} {
			t.Run(name+" "+value, func(t *testing.T) {
				t.Parallel()
				db := ledgertest.New(t)
				var database, role string
				if err := db.Pool().QueryRowContext(t.Context(), `SELECT current_database(), current_user`).Scan(&database, &role); err != nil {
					t.Fatal(err)
				}
				fill := strings.NewReplacer("{db}", pq.QuoteIdentifier(database), "{role}", pq.QuoteIdentifier(role)).Replace
				run(t, db.Pool(), fill(c.set)+value)
				refused(t, db, "synchronous_commit is "+value, fill(c.remedy))
				run(t, db.Pool(), fill(c.remedy))
				if err := db.CheckSafety(t.Context()); err != nil {
					t.Errorf("the remedy named in the error does not help: %v", err)
				}
			})
		}
	}
}

func TestAnUnsafeConnectionStringIsRefused(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("options", "-c synchronous_commit=off")
	u.RawQuery = q.Encode()
	db, err := ledger.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	refused(t, db, "synchronous_commit is off", "DATABASE_URL")
}

func TestUnsafeServersAreRefusedAndAllIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	p := ledgertest.Server(t)
	admin, err := sql.Open("postgres", p.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	names := []string{"fsync", "full_page_writes", "synchronous_commit"}
	for _, name := range names {
		run(t, admin, `ALTER SYSTEM SET `+name+` = off`)
	}
	run(t, admin, `SELECT pg_reload_conf()`)
	db := p.Open()
	eventually(t, func(ctx context.Context) bool { return db.CheckSafety(ctx) != nil })
	for _, name := range names {
		refused(t, db, name+" is off", "ALTER SYSTEM SET "+name+" = on")
	}
}

func refused(t *testing.T, db *ledger.DB, says ...string) {
	t.Helper()
	err := db.CheckSafety(t.Context())
	if !errors.Is(err, ledger.ErrUnsafe) {
		t.Fatalf("CheckSafety = %v, want ErrUnsafe", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the refusal %q does not say %q", err, s)
		}
	}
}

func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
