// Package ledgertest gives tests a real PostgreSQL: a database of their own, cloned
// from a migrated template, or a whole server of their own to kill.
//
// The server is the one QUITTANCE_TEST_DATABASE_URL names (a superuser's URL), or one
// that the first test process starts and all others share. It runs on after the
// tests for the next run; `make test` ends it.
package ledgertest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/peterldowns/pgtestdb"

	"quittance/ledger"
	"quittance/ledger/embedded"
	"quittance/migrations"
)

// urlVariable names the environment variable with the server to use.
const urlVariable = "QUITTANCE_TEST_DATABASE_URL"

// New returns a fresh, migrated database that is dropped when t ends, and kept for a
// look when t failed. It costs about 60 ms. Without a PostgreSQL the test fails: a
// skipped database test proves nothing.
func New(t testing.TB) *ledger.DB {
	t.Helper()
	return open(t, URL(t))
}

// URL is the connection string of a fresh database like [New]'s, for tests that need
// several pools on one database or hand it to another process.
func URL(t testing.TB) string {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatalf("couldn't get a PostgreSQL for the tests: %v\n(`make setup` installs it; or set %s to a superuser's URL)", err, urlVariable)
	}
	return pgtestdb.Custom(t, base, migrator{}).URL()
}

func open(t testing.TB, dsn string) *ledger.DB {
	t.Helper()
	db, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatalf("couldn't open the test database: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// server is the PostgreSQL that this test process uses, found once.
var server = sync.OnceValues(func() (pgtestdb.Config, error) {
	if given := os.Getenv(urlVariable); given != "" {
		return configOf(given)
	}
	in, err := shared()
	if err != nil {
		return pgtestdb.Config{}, err
	}
	c, err := configOf(in.AdminDSN())
	// The role of a real installation, so that tests may do no more than it can.
	c.TestRole = &pgtestdb.Role{Username: embedded.Role}
	return c, err
})

func configOf(dsn string) (pgtestdb.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return pgtestdb.Config{}, fmt.Errorf("couldn't read %s: it is not a postgres:// URL", urlVariable)
	}
	password, _ := u.User.Password()
	return pgtestdb.Config{
		DriverName: "postgres",
		Host:       u.Hostname(), Port: u.Port(),
		User: u.User.Username(), Password: url.QueryEscape(password),
		Database: strings.TrimPrefix(u.Path, "/"), Options: u.RawQuery,
		// A test that fails half-way leaves connections; they must not fail the drop too.
		ForceTerminateConnections: true,
	}, nil
}

// migrator makes the template with the migrations that a server would run.
type migrator struct{}

// Hash names the template: another set of migrations is another template.
func (migrator) Hash() (string, error) {
	h := sha256.New()
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range files {
		b, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(b))
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

func (migrator) Migrate(ctx context.Context, _ *sql.DB, c pgtestdb.Config) (err error) {
	db, err := ledger.Open(ctx, c.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Migrate(ctx)
}

// startPatience covers an initdb on a busy machine.
const startPatience = 90 * time.Second
