package system

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
)

// FindGap opens a log gap unless one is open.
func FindGap(ctx context.Context, tx *ledger.Tx, by string) error {
	_, err := tx.Exec(ctx, `INSERT INTO log_gaps (found_by) VALUES ($1) ON CONFLICT DO NOTHING`, by)
	if err != nil {
		return fmt.Errorf("couldn't record a log gap: %w", err)
	}
	return nil
}

// LoseMore opens a log gap for a loss that no acknowledgement of before since covers, which
// is any when since is zero: an open gap that was acknowledged before it has to be
// acknowledged again. What that person said stays in the audit trail.
func LoseMore(ctx context.Context, tx *ledger.Tx, by string, since time.Time) error {
	_, err := tx.Exec(ctx, `
		WITH again AS (
			UPDATE log_gaps SET acknowledged_at = NULL, acknowledged_by = NULL, note = NULL, found_by = left(found_by || '; and again: ' || $1, 4000)
			WHERE ended_at IS NULL AND acknowledged_at IS NOT NULL AND ($2::timestamptz IS NULL OR acknowledged_at < $2)
			RETURNING 1
		)
		INSERT INTO log_gaps (found_by) SELECT left($1, 4000) WHERE NOT EXISTS (SELECT 1 FROM again) ON CONFLICT DO NOTHING`, by, ledger.At(since))
	if err != nil {
		return fmt.Errorf("couldn't record a log gap: %w", err)
	}
	return nil
}

// fenceJump is how far fences and epochs jump with an acknowledged gap: past any
// number that a lost attempt can have had.
const fenceJump = 1_000_000

// AcknowledgeGap marks the open gap as acknowledged and raises the fence base.
// False when there is none to acknowledge.
func AcknowledgeGap(ctx context.Context, tx *ledger.Tx, person int64, note string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE log_gaps SET acknowledged_at = clock_timestamp(), acknowledged_by = $1, note = $2
		WHERE ended_at IS NULL AND acknowledged_at IS NULL`, person, note)
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := tx.Exec(ctx, `UPDATE installation SET fence_base = fence_base + $1`, fenceJump); err != nil {
		return false, fmt.Errorf("couldn't raise the fences: %w", err)
	}
	return true, nil
}

// EndGap ends an acknowledged gap; false when there is none.
func EndGap(ctx context.Context, tx *ledger.Tx, person int64, note string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE log_gaps SET ended_at = clock_timestamp(), ended_by = $1, end_note = $2
		WHERE ended_at IS NULL AND acknowledged_at IS NOT NULL`, person, note)
	return n == 1, err
}
