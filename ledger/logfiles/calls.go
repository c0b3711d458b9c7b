package logfiles

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Call says which effect the lines about one call speak of at present.
type Call struct {
	Run       int64        `db:"run_id"`
	Call      ledger.Bytes `db:"call"`
	Log       int64        `db:"log_id"`
	Times     int          `db:"times"` // how often the call was made in the file
	Effect    string       `db:"effect_id"`
	Begun     int64        `db:"begun"` // fence of the attempt whose intent was read last
	Permitted bool         `db:"permitted"`
	Possible  bool         `db:"possible"` // it stands for a damaged line
}

// Calls reads calls by run and name; calls[i] belongs to runs[i].
func Calls(ctx context.Context, r ledger.Reader, runs []int64, calls [][]byte) ([]Call, error) {
	var rows []Call
	err := r.Select(ctx, &rows, `
		SELECT DISTINCT c.run_id, c.call, c.log_id, c.times, c.effect_id, c.begun, c.permitted, c.possible
		FROM unnest($1::bigint[], $2::bytea[]) AS w(run_id, call)
		JOIN logfile_calls c ON c.run_id = w.run_id AND c.call = w.call`, pq.Array(runs), pq.ByteaArray(calls))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the calls of a log file: %w", err)
	}
	return rows, nil
}

// CallOf is the call that an effect is the present one of.
func CallOf(ctx context.Context, r ledger.Reader, effect string) (c Call, err error) {
	err = r.Get(ctx, &c, `
		SELECT run_id, call, log_id, times, effect_id, begun, permitted, possible FROM logfile_calls WHERE effect_id = $1::uuid LIMIT 1`, effect)
	return c, err
}

// SaveCalls writes calls as they now are.
func SaveCalls(ctx context.Context, tx *ledger.Tx, list []*Call) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	runs, logs, times, begun := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	calls, effects, permitted, possible := make([][]byte, n), make([]string, n), make([]bool, n), make([]bool, n)
	for i, c := range list {
		runs[i], logs[i], times[i], begun[i] = c.Run, c.Log, int64(c.Times), c.Begun
		calls[i], effects[i], permitted[i], possible[i] = c.Call, c.Effect, c.Permitted, c.Possible
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_calls (run_id, call, log_id, times, effect_id, begun, permitted, possible)
		SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::integer[], $5::uuid[], $6::bigint[], $7::boolean[], $8::boolean[])
		ON CONFLICT (run_id, call) DO UPDATE SET log_id = excluded.log_id, times = excluded.times, effect_id = excluded.effect_id,
			begun = excluded.begun, permitted = excluded.permitted, possible = excluded.possible`,
		pq.Array(runs), pq.ByteaArray(calls), pq.Array(logs), pq.Array(times), pq.Array(effects), pq.Array(begun), pq.Array(permitted), pq.Array(possible))
	if err != nil {
		return fmt.Errorf("couldn't keep the calls of a log file: %w", err)
	}
	return nil
}

// Waiting is an outcome whose intent has not been read.
type Waiting struct {
	ID     int64        `db:"id"`
	Run    int64        `db:"run_id"`
	Call   ledger.Bytes `db:"call"`
	Part   int64        `db:"part_id"`
	Number int64        `db:"number"`
	Body   string       `db:"body"`
}

// WaitingFor reads the outcomes that wait for the calls, in the order they were read.
func WaitingFor(ctx context.Context, r ledger.Reader, runs []int64, calls [][]byte) ([]Waiting, error) {
	var rows []Waiting
	err := r.Select(ctx, &rows, `
		SELECT DISTINCT x.id, x.run_id, x.call, x.part_id, x.number, x.body
		FROM unnest($1::bigint[], $2::bytea[]) AS w(run_id, call)
		JOIN logfile_waiting x ON x.run_id = w.run_id AND x.call = w.call AND x.paired_at IS NULL
		ORDER BY x.id`, pq.Array(runs), pq.ByteaArray(calls))
	if err != nil {
		return nil, fmt.Errorf("couldn't read outcomes without an intent: %w", err)
	}
	return rows, nil
}

// Wait keeps outcomes whose intent has not been read.
func Wait(ctx context.Context, tx *ledger.Tx, list []Waiting) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	runs, parts, numbers := make([]int64, n), make([]int64, n), make([]int64, n)
	calls, bodies := make([][]byte, n), make([]string, n)
	for i, x := range list {
		runs[i], parts[i], numbers[i], calls[i], bodies[i] = x.Run, x.Part, x.Number, x.Call, x.Body
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_waiting (run_id, call, part_id, number, body)
		SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], $5::text[])`,
		pq.Array(runs), pq.ByteaArray(calls), pq.Array(parts), pq.Array(numbers), pq.Array(bodies))
	if err != nil {
		return fmt.Errorf("couldn't keep outcomes without an intent: %w", err)
	}
	return nil
}

// Paired notes that the outcomes found their intents.
func Paired(ctx context.Context, tx *ledger.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE logfile_waiting SET paired_at = clock_timestamp() WHERE id = ANY($1::bigint[])`, pq.Array(ids)); err != nil {
		return fmt.Errorf("couldn't pair outcomes with their intents: %w", err)
	}
	return nil
}
