package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
)

// ErrUnsafe means that the database may lose what it has acknowledged. Every promise
// of ours rests on a recorded intent still being there after a crash.
var ErrUnsafe = errors.New("the database's settings are not safe")

// CheckSafety fails with [ErrUnsafe] when a new connection would run with a setting
// that lets an acknowledged commit be lost: fsync or full_page_writes off, or
// synchronous_commit off or local, be it set in the server's file, for the database,
// for the role or in the connection string. The error names each setting and the
// command that puts it right.
//
// synchronous_commit = local is refused because it differs from on only where there
// is a synchronous standby, and there it loses commits in a failover.
func (d *DB) CheckSafety(ctx context.Context) error {
	// A connection of its own: those in the pool may be older than the setting.
	fresh, err := sql.Open("postgres", d.dsn)
	if err != nil {
		return fmt.Errorf("couldn't check the database's settings: %w", err)
	}
	defer fresh.Close()
	rows, err := fresh.QueryContext(ctx, `
		SELECT name, setting, source, coalesce(sourcefile, ''), current_user, current_database()
		FROM pg_settings
		WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
		  AND setting IN ('off', 'local')
		ORDER BY name`)
	if err != nil {
		return fmt.Errorf("couldn't check the database's settings: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var s unsafeSetting
		if err := rows.Scan(&s.name, &s.value, &s.source, &s.file, &s.role, &s.database); err != nil {
			return fmt.Errorf("couldn't check the database's settings: %w", err)
		}
		found = append(found, fmt.Sprintf("%s is %s (set %s)", s.name, s.value, s.remedy()))
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("couldn't check the database's settings: %w", err)
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s", ErrUnsafe, strings.Join(found, "; "))
	}
	return nil
}

type unsafeSetting struct{ name, value, source, file, role, database string }

// remedy says where the value comes from and how to put it right.
func (s unsafeSetting) remedy() string {
	role, database := pq.QuoteIdentifier(s.role), pq.QuoteIdentifier(s.database)
	switch s.source {
	case "database":
		return fmt.Sprintf("for this database; put it right with: ALTER DATABASE %s RESET %s", database, s.name)
	case "user":
		return fmt.Sprintf("for this role; put it right with: ALTER ROLE %s RESET %s", role, s.name)
	case "database user":
		return fmt.Sprintf("for this role in this database; put it right with: ALTER ROLE %s IN DATABASE %s RESET %s", role, database, s.name)
	case "client":
		return "by the connection; take it out of DATABASE_URL and PGOPTIONS"
	}
	where := "by the server"
	if s.file != "" { // shown to superusers only
		where = "in " + s.file
	}
	return fmt.Sprintf("%s; put it right with: ALTER SYSTEM SET %s = on; SELECT pg_reload_conf()", where, s.name)
}
