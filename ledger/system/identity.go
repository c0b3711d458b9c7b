package system

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Identity is what tells one database from its copies.
type Identity struct {
	Environment      string `db:"environment"`
	SystemIdentifier string `db:"system_identifier"`
	Timeline         int64  `db:"timeline"`
	Outward          bool   `db:"outward"`
	Synchronous      bool   `db:"synchronous"` // each commit waits for a standby's disk
}

const stored = `
	SELECT COALESCE(environment, '') AS environment, COALESCE(system_identifier, '') AS system_identifier,
		COALESCE(timeline, 0) AS timeline, outward, synchronous
	FROM installation`

// Mark is the identity this database was last started with.
func Mark(ctx context.Context, r ledger.Reader) (Identity, error) {
	var i Identity
	if err := r.Get(ctx, &i, stored); err != nil {
		return i, fmt.Errorf("couldn't read the installation's mark: %w", err)
	}
	return i, nil
}

// Stored is the same, locked for a change.
func Stored(ctx context.Context, tx *ledger.Tx) (Identity, error) {
	var i Identity
	if err := tx.Get(ctx, &i, stored+` FOR UPDATE`); err != nil {
		return i, fmt.Errorf("couldn't read the installation's mark: %w", err)
	}
	return i, nil
}

// Live is the identity of the server that answers now, as far as PostgreSQL tells.
func Live(ctx context.Context, r ledger.Reader) (Identity, error) {
	var i Identity
	err := r.Get(ctx, &i, `
		SELECT '' AS environment, system_identifier::text AS system_identifier, true AS outward,
			-- remote_write would be a standby's memory, which its own crash loses.
			current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS synchronous,
			-- Of what is written now: a promoted standby keeps the old one in its control file until
			-- its next checkpoint.
			('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint AS timeline
		FROM pg_control_system()`)
	if err != nil {
		return i, fmt.Errorf("couldn't read the database's identity: %w", err)
	}
	return i, nil
}

// Store keeps the identity.
func Store(ctx context.Context, tx *ledger.Tx, i Identity) error {
	_, err := tx.Exec(ctx, `
		UPDATE installation SET environment = $1, system_identifier = $2, timeline = $3, outward = $4, synchronous = $5`,
		i.Environment, i.SystemIdentifier, i.Timeline, i.Outward, i.Synchronous)
	if err != nil {
		return fmt.Errorf("couldn't store the installation's mark: %w", err)
	}
	return nil
}
