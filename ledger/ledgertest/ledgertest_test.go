package ledgertest_test

import (
	"testing"

	"quittance/ledger/ledgertest"
)

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	a, b := ledgertest.New(t), ledgertest.New(t)
	ctx := t.Context()
	have, want, err := a.SchemaVersion(ctx)
	if err != nil || have != want || want == 0 {
		t.Fatalf("schema version = %d, want %d, err %v", have, want, err)
	}
	if _, err := a.Pool().ExecContext(ctx, `CREATE TABLE only_here (id int)`); err != nil {
		t.Fatal(err)
	}
	var leaked bool
	if err := b.Get(ctx, &leaked, `SELECT to_regclass('only_here') IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	if leaked {
		t.Error("a table made in one test's database is seen by another")
	}
}

// A test may do no more than the real server can.
func TestTestsDoNotRunAsSuperuser(t *testing.T) {
	t.Parallel()
	var super bool
	if err := ledgertest.New(t).Get(t.Context(), &super, `SELECT rolsuper FROM pg_roles WHERE rolname = current_user`); err != nil {
		t.Fatal(err)
	}
	if super {
		t.Error("tests run as superuser")
	}
}

func TestPrivateServerKeepsCommittedRowsThroughKill(t *testing.T) {
	t.Parallel()
	p := ledgertest.Server(t)
	db := p.Open()
	ctx := t.Context()
	if _, err := db.Pool().ExecContext(ctx, `CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n`); err != nil {
		t.Fatal(err)
	}
	dsn := p.DSN()
	p.Kill()
	if err := db.Pool().PingContext(ctx); err == nil {
		t.Fatal("the server answers after Kill")
	}
	p.Start()
	if p.DSN() != dsn {
		t.Errorf("the DSN changed with the restart: %s, was %s", p.DSN(), dsn)
	}
	var n int
	if err := db.Get(ctx, &n, `SELECT count(*) FROM kept`); err != nil {
		t.Fatal(err)
	}
	if n != 1000 {
		t.Errorf("%d rows after the kill, want 1000", n)
	}
}
