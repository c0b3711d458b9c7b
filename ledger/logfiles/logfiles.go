// Package logfiles holds the statements about log files that agents keep: where reading
// stands, which line made what, and what is to be written back.
package logfiles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Log is a log file, by its path.
type Log struct {
	ID         int64  `db:"id"`
	Account    int64  `db:"account_id"`
	Path       string `db:"path"`
	Agent      string `db:"agent"`
	RunID      string `db:"run_id"` // the run of lines that name none
	Generation int    `db:"generation"`
	Alarm      int64  `db:"alarm"` // id of the open alarm; 0: none
}

const columns = `g.id, g.account_id, g.path, g.agent, g.run_id, g.generation,
	COALESCE((SELECT a.id FROM logfile_alarms a WHERE a.log_id = g.id AND a.acknowledged_at IS NULL), 0) AS alarm`

// Part is one of the files that a log has been.
type Part struct {
	ID         int64        `db:"id"`
	Log        int64        `db:"log_id"`
	Generation int          `db:"generation"`
	ReadTo     int64        `db:"read_to"`
	Lines      int64        `db:"lines"`
	Digest     ledger.Bytes `db:"digest"`
	Identity   string       `db:"identity"`
	Since      ledger.Time  `db:"since"` // rotated files from then on come before it; zero: not known
}

const partColumns = `p.id, p.log_id, p.generation, p.read_to, p.lines, p.digest, p.identity, p.since`

// Open finds the account's log at path, or adds it.
func Open(ctx context.Context, tx *ledger.Tx, account int64, path, agent, run string) (int64, error) {
	_, err := tx.Exec(ctx, `
		INSERT INTO logfiles (account_id, path, agent, run_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, account, path, agent, run)
	if err != nil {
		return 0, fmt.Errorf("couldn't add a log file: %w", err)
	}
	var id int64
	if err := tx.Get(ctx, &id, `SELECT id FROM logfiles WHERE account_id = $1 AND path = $2`, account, path); err != nil {
		return 0, fmt.Errorf("couldn't find a log file: %w", err)
	}
	return id, nil
}

// Find is the account's log at path; [ledger.ErrNotFound] when none was ever read.
func Find(ctx context.Context, r ledger.Reader, account int64, path string) (Log, error) {
	var g Log
	err := r.Get(ctx, &g, `SELECT `+columns+` FROM logfiles g WHERE g.account_id = $1 AND g.path = $2`, account, path)
	return g, err
}

// Get reads a log.
func Get(ctx context.Context, r ledger.Reader, id int64) (Log, error) {
	var g Log
	if err := r.Get(ctx, &g, `SELECT `+columns+` FROM logfiles g WHERE g.id = $1`, id); err != nil {
		return g, fmt.Errorf("couldn't read a log file: %w", err)
	}
	return g, nil
}

// Lock locks a log: whoever holds it reads the file, or acts for it, alone.
func Lock(ctx context.Context, tx *ledger.Tx, id int64) (Log, error) {
	if _, err := tx.Exec(ctx, `SELECT 1 FROM logfiles WHERE id = $1 FOR UPDATE`, id); err != nil {
		return Log{}, fmt.Errorf("couldn't lock a log file: %w", err)
	}
	return Get(ctx, tx, id)
}

// LastPart is the file that the log is now; ok is false before the first was opened in
// this generation.
func LastPart(ctx context.Context, r ledger.Reader, log int64) (p Part, ok bool, err error) {
	err = r.Get(ctx, &p, `
		SELECT `+partColumns+`
		FROM logfile_parts p JOIN logfiles g ON g.id = p.log_id AND g.generation = p.generation
		WHERE p.log_id = $1 ORDER BY p.id DESC LIMIT 1`, log)
	return found(p, err)
}

// PartsBefore are the files that the log was before a part, in the same generation, the
// last one first; at most n.
func PartsBefore(ctx context.Context, r ledger.Reader, part Part, n int) (list []Part, err error) {
	err = r.Select(ctx, &list, `
		SELECT `+partColumns+` FROM logfile_parts p
		WHERE p.log_id = $1 AND p.generation = $2 AND p.id < $3 ORDER BY p.id DESC LIMIT $4`, part.Log, part.Generation, part.ID, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read what a log file was before: %w", err)
	}
	return list, nil
}

// PartOf reads a part of the log's present generation; ok is false when it is not one.
func PartOf(ctx context.Context, r ledger.Reader, log, part int64) (p Part, ok bool, err error) {
	err = r.Get(ctx, &p, `
		SELECT `+partColumns+`
		FROM logfile_parts p JOIN logfiles g ON g.id = p.log_id AND g.generation = p.generation
		WHERE p.log_id = $1 AND p.id = $2`, log, part)
	return found(p, err)
}

func found(p Part, err error) (Part, bool, error) {
	if errors.Is(err, ledger.ErrNotFound) {
		return p, false, nil
	}
	if err != nil {
		return p, false, fmt.Errorf("couldn't read where a log file stands: %w", err)
	}
	return p, true, nil
}

// OtherPaths are the paths of all other logs.
func OtherPaths(ctx context.Context, r ledger.Reader, log int64) (paths []string, err error) {
	if err = r.Select(ctx, &paths, `SELECT DISTINCT path FROM logfiles WHERE id <> $1`, log); err != nil {
		return nil, fmt.Errorf("couldn't list the other log files: %w", err)
	}
	return paths, nil
}

// AddPart begins a file of which nothing has been read.
func AddPart(ctx context.Context, tx *ledger.Tx, log int64, generation int, digest []byte, since time.Time) (p Part, err error) {
	err = tx.Get(ctx, &p, `
		INSERT INTO logfile_parts AS p (log_id, generation, digest, since) VALUES ($1, $2, $3, $4)
		RETURNING `+partColumns, log, generation, digest, since)
	if err != nil {
		return p, fmt.Errorf("couldn't begin a log file: %w", err)
	}
	return p, nil
}

// ErrMoved says that somebody else has read on meanwhile.
var ErrMoved = errors.New("a log file was read by somebody else meanwhile")

// Advance moves reading on. [ErrMoved] when the part is not at from any more.
func Advance(ctx context.Context, tx *ledger.Tx, p Part, from int64) error {
	n, err := tx.Exec(ctx, `
		UPDATE logfile_parts SET read_to = $3, lines = $4, digest = $5, identity = $6 WHERE id = $1 AND read_to = $2`,
		p.ID, from, p.ReadTo, p.Lines, p.Digest, p.Identity)
	if err == nil && n == 1 {
		_, err = tx.Exec(ctx, `UPDATE logfiles SET read_at = clock_timestamp() WHERE id = $1`, p.Log)
	}
	if err != nil {
		return fmt.Errorf("couldn't note how far a log file was read: %w", err)
	}
	if n != 1 {
		return ErrMoved
	}
	return nil
}

// OfLogs tells which of the runs live in log files.
func OfLogs(ctx context.Context, r ledger.Reader, runs []int64) (map[int64]bool, error) {
	var ids []int64
	if err := r.Select(ctx, &ids, `SELECT DISTINCT run_id FROM logfile_runs WHERE run_id = ANY($1::bigint[])`, pq.Array(runs)); err != nil {
		return nil, fmt.Errorf("couldn't see which runs live in log files: %w", err)
	}
	m := make(map[int64]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m, nil
}

// Holder is the path of the log file that a run lives in; "" for none.
func Holder(ctx context.Context, r ledger.Reader, run int64) (string, error) {
	var path string
	err := r.Get(ctx, &path, `
		SELECT COALESCE((SELECT g.path FROM logfile_runs l JOIN logfiles g ON g.id = l.log_id WHERE l.run_id = $1 ORDER BY g.id LIMIT 1), '')`, run)
	if err != nil {
		return "", fmt.Errorf("couldn't see whether a run lives in a log file: %w", err)
	}
	return path, nil
}

// AddRuns notes that the runs live in the log.
func AddRuns(ctx context.Context, tx *ledger.Tx, log int64, runs []int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_runs (run_id, log_id) SELECT r, $1 FROM unnest($2::bigint[]) AS r ON CONFLICT DO NOTHING`, log, pq.Array(runs))
	if err != nil {
		return fmt.Errorf("couldn't note the runs of a log file: %w", err)
	}
	return nil
}

// Resting lists effects in flight of the log's runs, but for attempts that an appended
// line let run and that no intent line has begun; at most n.
func Resting(ctx context.Context, r ledger.Reader, log int64, n int) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT e.id FROM logfile_runs l JOIN effects e ON e.run_id = l.run_id
		WHERE l.log_id = $1 AND e.state = 'in_flight'
		AND (e.state IN ('in_flight','interrupted','held') OR NOT e.released OR e.contradictions > 0)
		AND NOT EXISTS (SELECT 1 FROM logfile_outbox o WHERE o.effect_id = e.id AND o.fence = e.fence
			AND o.begun_at IS NULL AND o.withdrawn_at IS NULL AND o.verdict = 'not_taken')
		LIMIT $2`, log, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what a log file left in flight: %w", err)
	}
	return ids, nil
}

// OpenOf lists the effects of the log's runs that a lost part of it may have changed: in
// flight, interrupted, held or cleared.
func OpenOf(ctx context.Context, r ledger.Reader, log int64) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT e.id FROM logfile_runs l JOIN effects e ON e.run_id = l.run_id
		WHERE l.log_id = $1 AND e.state IN ('in_flight','interrupted','held','cleared')`, log)
	if err != nil {
		return nil, fmt.Errorf("couldn't list the open effects of a log file: %w", err)
	}
	return ids, nil
}
