package runs

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
)

// keptRefusals is how many refused starts and begins of one run are kept with
// their details; the rest are only counted.
const keptRefusals = 100

// Refusal is a start or begin that was refused.
type Refusal struct {
	Run       int64       `db:"run_id"`
	At        ledger.Time `db:"at"`
	Call      string      `db:"call"` // "start" | "begin"
	Reason    string      `db:"reason"`
	Worker    string      `db:"worker"`
	AttemptID string      `db:"attempt_id"`
	Tool      string      `db:"tool"`
	Arguments string      `db:"arguments"`
	Effect    string      `db:"effect_id"`
}

// Refuse counts a refusal and keeps the first of them.
func Refuse(ctx context.Context, tx *ledger.Tx, r Refusal) error {
	_, err := tx.Exec(ctx, `
		WITH counted AS (
			UPDATE runs SET refused = refused + 1 WHERE id = $1 RETURNING refused
		)
		INSERT INTO refusals (run_id, at, call, reason, worker, attempt_id, tool, arguments, effect_id)
		SELECT $1, $2, $3, $4, NULLIF($5, ''), NULLIF($6, ''), NULLIF($7, ''), NULLIF($8, ''), NULLIF($9, '')::uuid
		FROM counted WHERE refused <= $10`,
		r.Run, r.At.Time, r.Call, r.Reason, r.Worker, r.AttemptID, r.Tool, r.Arguments, r.Effect, keptRefusals)
	if err != nil {
		return fmt.Errorf("couldn't keep a refusal: %w", err)
	}
	return nil
}

// Refusals lists what was kept of a run's refusals since a time, oldest first.
func Refusals(ctx context.Context, r ledger.Reader, run int64, since time.Time) ([]Refusal, error) {
	var rows []Refusal
	err := r.Select(ctx, &rows, `
		SELECT run_id, at, call, reason, COALESCE(worker, '') AS worker, COALESCE(attempt_id, '') AS attempt_id,
			COALESCE(tool, '') AS tool, COALESCE(arguments, '') AS arguments, COALESCE(effect_id::text, '') AS effect_id
		FROM refusals WHERE run_id = $1 AND at >= $2 ORDER BY id`, run, since)
	if err != nil {
		return nil, fmt.Errorf("couldn't read refusals: %w", err)
	}
	return rows, nil
}
