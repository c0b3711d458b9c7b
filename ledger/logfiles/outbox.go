package logfiles

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Resolved is a line to be appended to a log file.
type Resolved struct {
	ID      string      `db:"id"`
	Log     int64       `db:"log_id"`
	Effect  string      `db:"effect_id"`
	Verdict string      `db:"verdict"`
	Fence   int64       `db:"fence"`
	Line    string      `db:"line"`
	MadeAt  ledger.Time `db:"made_at"`
}

// Unused lists effects of the log whose decision is visible and has not been carried to
// the file, of runs that nothing pauses; at most n.
func Unused(ctx context.Context, r ledger.Reader, log int64, n int) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT e.id FROM effects e JOIN runs r ON r.id = e.run_id
		WHERE e.used_at IS NULL AND e.state IN ('cleared','taken','cancelled') AND e.released
		AND r.state NOT IN ('paused','finished','failed','cancelled')
		AND EXISTS (SELECT 1 FROM logfile_calls c WHERE c.effect_id = e.id AND c.log_id = $1)
		ORDER BY e.release_at, e.id LIMIT $2`, log, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list decisions for a log file: %w", err)
	}
	return ids, nil
}

// Post puts a line into the outbox.
func Post(ctx context.Context, tx *ledger.Tx, x Resolved) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_outbox (id, log_id, effect_id, verdict, fence, line, made_at)
		VALUES ($1::uuid, $2, $3::uuid, $4, $5, $6, $7)`, x.ID, x.Log, x.Effect, x.Verdict, x.Fence, x.Line, x.MadeAt)
	if err != nil {
		return fmt.Errorf("couldn't put a line into the outbox: %w", err)
	}
	return nil
}

// Pending lists the lines that have not been read back, in the order they were made; at
// most n.
func Pending(ctx context.Context, r ledger.Reader, log int64, n int) ([]Resolved, error) {
	var rows []Resolved
	err := r.Select(ctx, &rows, `
		SELECT id, log_id, effect_id, verdict, fence, line, made_at FROM logfile_outbox
		WHERE log_id = $1 AND appended_at IS NULL AND withdrawn_at IS NULL ORDER BY made_at, id LIMIT $2`, log, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the outbox of a log file: %w", err)
	}
	return rows, nil
}

// Appended notes the lines that were read back from the file, and tells which of the
// ids are of lines that were written from here at all.
func Appended(ctx context.Context, tx *ledger.Tx, log, part int64, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var known []string
	err := tx.Select(ctx, &known, `SELECT id FROM logfile_outbox WHERE id::text = ANY($1::text[])`, pq.Array(ids))
	if err == nil {
		_, err = tx.Exec(ctx, `
			UPDATE logfile_outbox SET appended_at = clock_timestamp(), part_id = $3
			WHERE id = ANY($1::uuid[]) AND log_id = $2 AND appended_at IS NULL`, pq.Array(known), log, part)
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't note appended lines: %w", err)
	}
	m := make(map[string]bool, len(known))
	for _, id := range known {
		m[id] = true
	}
	return m, nil
}

// HandedOut are attempts that a line lets run and that no intent line has begun: by
// effect, the attempt's fence.
func HandedOut(ctx context.Context, r ledger.Reader, effects []string) (map[string]int64, error) {
	var rows []struct {
		Effect string `db:"effect_id"`
		Fence  int64  `db:"fence"`
	}
	err := r.Select(ctx, &rows, `
		SELECT effect_id, max(fence) AS fence FROM logfile_outbox
		WHERE effect_id = ANY($1::uuid[]) AND verdict = 'not_taken' AND begun_at IS NULL AND withdrawn_at IS NULL
		GROUP BY effect_id`, pq.Array(effects))
	if err != nil {
		return nil, fmt.Errorf("couldn't read which attempts a log file lets run: %w", err)
	}
	m := make(map[string]int64, len(rows))
	for _, x := range rows {
		m[x.Effect] = x.Fence
	}
	return m, nil
}

// Begun notes of effects that an attempt which a line let run has begun.
func Begun(ctx context.Context, tx *ledger.Tx, effects []string) error {
	if len(effects) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE logfile_outbox SET begun_at = clock_timestamp()
		WHERE effect_id = ANY($1::uuid[]) AND verdict = 'not_taken' AND begun_at IS NULL AND withdrawn_at IS NULL`, pq.Array(effects))
	if err != nil {
		return fmt.Errorf("couldn't note that an attempt has begun: %w", err)
	}
	return nil
}

// Alarm keeps that the file does not hold what was read from it, unless that is known.
func Alarm(ctx context.Context, tx *ledger.Tx, log int64, kind, detail string) (bool, error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO logfile_alarms (log_id, kind, detail) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, log, kind, detail)
	if err != nil {
		return false, fmt.Errorf("couldn't record an alarm: %w", err)
	}
	return n == 1, nil
}

// Acknowledge ends the open alarm of a log; false when there is none. The file is read
// from its beginning from now on. Permissions that have not been begun are withdrawn;
// final lines that the file may have lost wait to be appended again.
func Acknowledge(ctx context.Context, tx *ledger.Tx, log, person int64, note string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE logfile_alarms SET acknowledged_at = clock_timestamp(), acknowledged_by = $2, note = $3
		WHERE log_id = $1 AND acknowledged_at IS NULL`, log, person, note)
	if err != nil || n == 0 {
		return false, err
	}
	for _, change := range []string{
		`UPDATE logfile_outbox SET withdrawn_at = clock_timestamp() WHERE log_id = $1 AND verdict = 'not_taken' AND begun_at IS NULL AND withdrawn_at IS NULL`,
		`UPDATE logfile_outbox SET appended_at = NULL, part_id = NULL WHERE verdict <> 'not_taken'
			AND part_id = (SELECT max(id) FROM logfile_parts WHERE log_id = $1)`,
		`UPDATE logfiles SET generation = generation + 1 WHERE id = $1`,
	} {
		if _, err := tx.Exec(ctx, change, log); err != nil {
			return false, fmt.Errorf("couldn't acknowledge an alarm: %w", err)
		}
	}
	return true, nil
}

// Alarmed tells whether a run lives in a log file with an open alarm.
func Alarmed(ctx context.Context, r ledger.Reader, run int64) (found bool, err error) {
	err = r.Get(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM logfile_runs l JOIN logfile_alarms a ON a.log_id = l.log_id
			WHERE l.run_id = $1 AND a.acknowledged_at IS NULL)`, run)
	if err != nil {
		return false, fmt.Errorf("couldn't look for an alarm of a run's log file: %w", err)
	}
	return found, nil
}

// AlarmedPaths are the paths of the logs with an open alarm.
func AlarmedPaths(ctx context.Context, r ledger.Reader) ([]string, error) {
	var paths []string
	err := r.Select(ctx, &paths, `
		SELECT g.path FROM logfile_alarms a JOIN logfiles g ON g.id = a.log_id WHERE a.acknowledged_at IS NULL ORDER BY a.id`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list the alarms of log files: %w", err)
	}
	return paths, nil
}
