package runs

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
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

// Refuse counts refusals and keeps the first of each run, in their order.
func Refuse(ctx context.Context, tx *ledger.Tx, list []Refusal) error {
	if len(list) == 0 {
		return nil
	}
	runs, at := make([]int64, len(list)), make([]string, len(list))
	texts := make([][]string, 7)
	for i, r := range list {
		runs[i], at[i] = r.Run, r.At.UTC().Format(time.RFC3339Nano)
		for k, text := range []string{r.Call, r.Reason, r.Worker, r.AttemptID, r.Tool, r.Arguments, r.Effect} {
			texts[k] = append(texts[k], text)
		}
	}
	args := []any{keptRefusals, pq.Array(runs), pq.Array(at)}
	for _, column := range texts {
		args = append(args, pq.Array(column))
	}
	_, err := tx.Exec(ctx, `
		WITH refused AS (
			SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY n) AS nth
			FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
				$9::text[], $10::text[]) WITH ORDINALITY
				AS x(run_id, at, call, reason, worker, attempt_id, tool, arguments, effect_id, n)
		), counted AS (
			UPDATE runs SET refused = refused + c.many
			FROM (SELECT run_id, count(*) AS many FROM refused GROUP BY run_id) AS c
			WHERE runs.id = c.run_id
			RETURNING runs.id, runs.refused - c.many AS before
		)
		INSERT INTO refusals (run_id, at, call, reason, worker, attempt_id, tool, arguments, effect_id)
		SELECT r.run_id, r.at, r.call, r.reason, NULLIF(r.worker, ''), NULLIF(r.attempt_id, ''), NULLIF(r.tool, ''),
			NULLIF(r.arguments, ''), NULLIF(r.effect_id, '')::uuid
		FROM refused r JOIN counted c ON c.id = r.run_id
		WHERE c.before + r.nth <= $1
		ORDER BY r.n`, args...)
	if err != nil {
		return fmt.Errorf("couldn't keep refusals: %w", err)
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
