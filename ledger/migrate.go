package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"quittance/migrations"
)

// versionTable records which migrations a database has seen.
const versionTable = "schema_migrations"

// Migrate brings the schema up to this program's version. Each step is a transaction
// of its own. Servers that start together take turns by an advisory lock; the ones
// that come later find nothing to do.
func (d *DB) Migrate(ctx context.Context) error {
	p, err := provider(d.Pool())
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("couldn't migrate the database: %w", err)
	}
	return nil
}

// SchemaVersion tells the version that the database has (0 when it is empty) and the
// one that this program was built with. It changes nothing. A database ahead of the
// program is fine: a migration never breaks the program before it.
func (d *DB) SchemaVersion(ctx context.Context) (have, want int64, err error) {
	p, err := provider(d.Pool())
	if err != nil {
		return 0, 0, err
	}
	sources := p.ListSources()
	want = sources[len(sources)-1].Version

	// Through the pool, not prepared: the table may come and go in tests.
	row := d.Pool().QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, versionTable)
	var exists bool
	if err := row.Scan(&exists); err != nil {
		return 0, 0, fmt.Errorf("couldn't read the schema version: %w", err)
	}
	if !exists {
		return 0, want, nil
	}
	row = d.Pool().QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`)
	if err := row.Scan(&have); err != nil {
		return 0, 0, fmt.Errorf("couldn't read the schema version: %w", err)
	}
	return have, want, nil
}

func provider(pool *sql.DB) (*goose.Provider, error) {
	// Tried each second for five minutes: the longest migration another server may run.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("couldn't prepare the migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, pool, migrations.FS,
		goose.WithTableName(versionTable), goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the migrations: %w", err)
	}
	return p, nil
}
