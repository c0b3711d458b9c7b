package ledger_test

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"quittance/ledger/ledgertest"
	"quittance/migrations"
)

// Servers that start together on an empty database must not trip over each other.
func TestConcurrentMigrationsTakeTurns(t *testing.T) {
	t.Parallel()
	p := ledgertest.Server(t)
	ctx := t.Context()
	if have, want, err := p.Open().SchemaVersion(ctx); err != nil || have != 0 || want < 1 {
		t.Fatalf("before: version %d of %d, %v; want 0", have, want, err)
	}
	var wg sync.WaitGroup
	for range 4 {
		db := p.Open()
		wg.Go(func() {
			if err := db.Migrate(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if have, want, err := p.Open().SchemaVersion(ctx); err != nil || have != want {
		t.Errorf("after: version %d of %d, %v", have, want, err)
	}
}

// Looking must not create anything, or a mistyped DATABASE_URL gets our tables.
func TestSchemaVersionChangesNothing(t *testing.T) {
	t.Parallel()
	p := ledgertest.Server(t)
	db := p.Open()
	if _, _, err := db.SchemaVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	var tables int
	if err := db.Get(t.Context(), &tables, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`); err != nil {
		t.Fatal(err)
	}
	if tables != 0 {
		t.Errorf("%d tables after a look, want none", tables)
	}
}

// Migrations go one way and are numbered without gaps: two branches that took the same
// number must not both land.
func TestMigrationsAreNumberedAndForwardOnly(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^(\d{5})_[a-z0-9_]+\.sql$`)
	for i, f := range files {
		m := name.FindStringSubmatch(f)
		if m == nil {
			t.Errorf("%s is not named like 00001_core.sql", f)
			continue
		}
		if n := strings.TrimLeft(m[1], "0"); n != strconv.Itoa(i+1) {
			t.Errorf("%s stands at place %d", f, i+1)
		}
		b, err := fs.ReadFile(migrations.FS, f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "+goose Down") {
			t.Errorf("%s has a way back; a mistake is put right by the next migration", f)
		}
	}
}
