package backup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"quittance/ledger"
)

// ErrNotEmpty means that the database has tables: a restore never goes over another.
var ErrNotEmpty = errors.New("the database is not empty")

// Restore puts the dump of a backup into an empty database, all of it or nothing. Whoever
// connects owns what is made.
func Restore(ctx context.Context, db *ledger.DB, c Connection, dir string) error {
	var tables int
	if err := db.Get(ctx, &tables, `SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`); err != nil {
		return fmt.Errorf("couldn't look into the database: %w", err)
	}
	if tables > 0 {
		return fmt.Errorf("%w: it has %d tables", ErrNotEmpty, tables)
	}
	major, err := majorOf(ctx, db)
	if err != nil {
		return err
	}
	return run(ctx, c, "pg_restore", major, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--no-password",
		"--dbname="+c.url, filepath.Join(dir, DumpName))
}
