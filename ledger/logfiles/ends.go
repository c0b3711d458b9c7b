package logfiles

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Closes notes that lines of the log say that the runs have ended so; "" takes that back,
// for every log that they live in.
func Closes(ctx context.Context, tx *ledger.Tx, log int64, runs []int64, outcome string) error {
	if len(runs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE logfile_runs SET closes = NULLIF($3, '')
		WHERE run_id = ANY($2::bigint[]) AND (log_id = $1 OR $3 = '') AND closes IS DISTINCT FROM NULLIF($3, '')`, log, pq.Array(runs), outcome)
	if err != nil {
		return fmt.Errorf("couldn't note that runs of a log file end: %w", err)
	}
	return nil
}

// Ending is a run whose file says that it has ended.
type Ending struct {
	Account int64  `db:"account_id"`
	RunID   string `db:"run_id"`
	Closes  string `db:"closes"`
}

// mayClose is what a run r that ends by its file's word waits for: every decision has been
// carried, and read back from the file, and none of its files was changed. What stands for a
// damaged place is no call of the file, and nothing is carried for it.
const mayClose = `r.state = 'ready'
	AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.run_id = r.id AND (e.state IN ('in_flight','interrupted','held') OR NOT e.released OR e.contradictions > 0))
	AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.run_id = r.id AND e.used_at IS NULL AND e.state IN ('cleared','taken','cancelled')
		AND EXISTS (SELECT 1 FROM logfile_calls c WHERE c.effect_id = e.id))
	AND NOT EXISTS (SELECT 1 FROM logfile_outbox o JOIN effects e ON e.id = o.effect_id WHERE e.run_id = r.id AND o.appended_at IS NULL AND o.withdrawn_at IS NULL)
	AND NOT EXISTS (SELECT 1 FROM logfile_runs f JOIN logfile_alarms a ON a.log_id = f.log_id WHERE f.run_id = r.id AND a.acknowledged_at IS NULL)`

// Closing lists runs that may be closed by their files' word, at most n.
func Closing(ctx context.Context, r ledger.Reader, n int) (list []Ending, err error) {
	err = r.Select(ctx, &list, `
		SELECT DISTINCT ON (r.id) r.account_id, r.run_id, l.closes FROM logfile_runs l JOIN runs r ON r.id = l.run_id
		WHERE l.closes IS NOT NULL AND `+mayClose+` ORDER BY r.id, l.log_id LIMIT $1`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list runs that end: %w", err)
	}
	return list, nil
}

// MayClose tells whether a run may be closed by its file's word, under its lock.
func MayClose(ctx context.Context, tx *ledger.Tx, run int64) (may bool, err error) {
	err = tx.Get(ctx, &may, `
		SELECT EXISTS (SELECT 1 FROM runs r WHERE r.id = $1 AND `+mayClose+`
			AND EXISTS (SELECT 1 FROM logfile_runs l WHERE l.run_id = r.id AND l.closes IS NOT NULL))`, run)
	if err != nil {
		return false, fmt.Errorf("couldn't see whether a run ends: %w", err)
	}
	return may, nil
}

// Known reads a log; nil where there is none.
func Known(ctx context.Context, r ledger.Reader, id int64) (*Log, error) {
	g, err := Get(ctx, r, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	return &g, err
}

// Observed says which observed call the lines about one call speak of at present.
type Observed struct {
	Run     int64        `db:"run_id"`
	Call    ledger.Bytes `db:"call"`
	Times   int          `db:"times"` // how often the call was made in the file
	Seen    string       `db:"seen"`  // the observed call
	Outcome string       `db:"outcome"`
}

// ObservedCalls reads observed calls by run and name; calls[i] belongs to runs[i].
func ObservedCalls(ctx context.Context, r ledger.Reader, runs []int64, calls [][]byte) (list []Observed, err error) {
	err = r.Select(ctx, &list, `
		SELECT DISTINCT c.run_id, c.call, c.times, c.seen, COALESCE(o.outcome, '') AS outcome
		FROM unnest($1::bigint[], $2::bytea[]) AS w(run_id, call)
		JOIN logfile_observed c ON c.run_id = w.run_id AND c.call = w.call JOIN observed_calls o ON o.id = c.seen`, pq.Array(runs), pq.ByteaArray(calls))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the observed calls of a log file: %w", err)
	}
	return list, nil
}

// Observe keeps which observed call the lines about a call speak of from now on.
func Observe(ctx context.Context, tx *ledger.Tx, o Observed) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_observed (run_id, call, times, seen) VALUES ($1, $2, $3, $4::uuid)
		ON CONFLICT (run_id, call) DO UPDATE SET times = excluded.times, seen = excluded.seen`, o.Run, []byte(o.Call), o.Times, o.Seen)
	if err != nil {
		return fmt.Errorf("couldn't keep an observed call of a log file: %w", err)
	}
	return nil
}
