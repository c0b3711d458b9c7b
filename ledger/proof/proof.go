// Package proof holds what the torture's checker reads: the record as it is stored, past
// every rule of the program under test.
package proof

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// Effect is an effect as the record has it.
type Effect struct {
	ID          string    `db:"id"`
	Run         string    `db:"run_id"`
	Tool        string    `db:"tool"`
	BusinessKey string    `db:"business_key"`
	State       string    `db:"state"`
	Reference   string    `db:"reference"`
	Attempts    int       `db:"attempts"`
	DecidedBy   string    `db:"decided_by"`
	Opened      time.Time `db:"opened_at"`
	// Suspected counts the contradictions that say, or said until a person knew better,
	// that money left twice.
	Suspected int `db:"suspected"`
}

// Effects reads every effect of these runs.
func Effects(ctx context.Context, r ledger.Reader, runIDs []string) (list []Effect, err error) {
	err = r.Select(ctx, &list, `
		SELECT e.id::text, r.run_id, e.tool, COALESCE(e.business_key, '') AS business_key, e.state, COALESCE(e.reference, '') AS reference,
			e.attempts, COALESCE(e.decided_by, '') AS decided_by, e.opened_at,
			(SELECT count(*) FROM contradictions c WHERE c.effect_id = e.id AND c.recovery <> 'no') AS suspected
		FROM effects e JOIN runs r ON r.id = e.run_id
		WHERE r.run_id = ANY($1)
		ORDER BY e.opened_at, e.id`, pq.Array(runIDs))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the effects: %w", err)
	}
	return list, nil
}

// Run is a run and what it waits for.
type Run struct {
	ID      string `db:"run_id"`
	State   string `db:"state"`
	Waiting int    `db:"waiting"` // effects that a person or a look-up has to decide
}

// Runs reads these runs.
func Runs(ctx context.Context, r ledger.Reader, runIDs []string) (list []Run, err error) {
	err = r.Select(ctx, &list, `
		SELECT r.run_id, r.state,
			(SELECT count(*) FROM effects e WHERE e.run_id = r.id AND (e.state IN ('interrupted', 'held')
				OR e.release_at IS NOT NULL AND NOT e.released
				OR EXISTS (SELECT FROM contradictions c WHERE c.effect_id = e.id AND c.acknowledged_at IS NULL))) AS waiting
		FROM runs r WHERE r.run_id = ANY($1)
		ORDER BY r.run_id`, pq.Array(runIDs))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the runs: %w", err)
	}
	return list, nil
}

// Stale reads the effects of these runs that were in flight and that a finish moved which
// carried the fence of an earlier attempt.
func Stale(ctx context.Context, r ledger.Reader, runIDs []string) (ids []string, err error) {
	err = r.Select(ctx, &ids, `
		SELECT v.effect_id::text
		FROM effect_events v
		JOIN runs r ON r.id = v.run_id
		JOIN effect_events b ON b.effect_id = v.effect_id AND b.version = v.version - 1
		WHERE r.run_id = ANY($1) AND v.kind = 'finish'
			AND b.data::jsonb ->> 'state' = 'in_flight' AND v.data::jsonb ->> 'state' <> 'in_flight'
			AND (v.data::jsonb #>> '{cause,fence}')::bigint BETWEEN 1 AND (v.data::jsonb ->> 'fence')::bigint - 1`, pq.Array(runIDs))
	if err != nil {
		return nil, fmt.Errorf("couldn't read who moved the effects: %w", err)
	}
	return ids, nil
}

// DropReferences takes away the index that keeps one record of a bank from proving two
// effects. It is the torture's, to see that its checker notices.
func DropReferences(ctx context.Context, db *ledger.DB) error {
	return db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := tx.Exec(ctx, `DROP INDEX effects_reference`); err != nil {
			return fmt.Errorf("couldn't drop the index: %w", err)
		}
		return nil
	})
}
