package logfiles

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Line is a record that was read. Repeat: the account has this line already.
type Line struct {
	Part       int64        `db:"part_id"`
	Start      int64        `db:"start"`
	Number     int64        `db:"number"`
	Log        int64        `db:"log_id"`
	Generation int          `db:"generation"`
	Account    int64        `db:"account_id"`
	Digest     ledger.Bytes `db:"digest"`
	Ordinal    int          `db:"ordinal"`
	Repeat     bool         `db:"repeat"`
	Effect     string       `db:"effect_id"`
}

type same struct {
	Digest ledger.Bytes `db:"digest"`
	N      int          `db:"n"`
}

// Before counts, by digest, how often lines of the same wording were read in this
// generation of the log.
func Before(ctx context.Context, r ledger.Reader, log int64, generation int, digests [][]byte) (map[string]int, error) {
	var rows []same
	err := r.Select(ctx, &rows, `
		SELECT w.digest, count(*) AS n FROM unnest($3::bytea[]) AS w(digest)
		JOIN logfile_lines l ON l.log_id = $1 AND l.generation = $2 AND l.digest = w.digest
		GROUP BY w.digest`, log, generation, pq.ByteaArray(digests))
	if err != nil {
		return nil, fmt.Errorf("couldn't count lines that were read: %w", err)
	}
	m := make(map[string]int, len(rows))
	for _, r := range rows {
		m[string(r.Digest)] = r.N
	}
	return m, nil
}

// Most gives, by digest, the highest ordinal that the account has.
func Most(ctx context.Context, r ledger.Reader, account int64, digests [][]byte) (map[string]int, error) {
	var rows []same
	err := r.Select(ctx, &rows, `
		SELECT w.digest, max(l.ordinal) AS n FROM unnest($2::bytea[]) AS w(digest)
		JOIN logfile_lines l ON l.account_id = $1 AND l.digest = w.digest AND NOT l.repeat
		GROUP BY w.digest`, account, pq.ByteaArray(digests))
	if err != nil {
		return nil, fmt.Errorf("couldn't look for lines that are known: %w", err)
	}
	m := make(map[string]int, len(rows))
	for _, r := range rows {
		m[string(r.Digest)] = r.N
	}
	return m, nil
}

// AddLines keeps that the lines were read.
func AddLines(ctx context.Context, tx *ledger.Tx, list []Line) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	starts, numbers, ordinals := make([]int64, n), make([]int64, n), make([]int64, n)
	digests, repeats, effects := make([][]byte, n), make([]bool, n), make([]string, n)
	for i, l := range list {
		starts[i], numbers[i], ordinals[i] = l.Start, l.Number, int64(l.Ordinal)
		digests[i], repeats[i], effects[i] = l.Digest, l.Repeat, l.Effect
	}
	l := list[0]
	_, err := tx.Exec(ctx, `
		INSERT INTO logfile_lines (part_id, log_id, generation, account_id, start, number, digest, ordinal, repeat, effect_id)
		SELECT $1, $2, $3, $4, s, n, d, o, r, NULLIF(e, '')::uuid
		FROM unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::bigint[], $9::boolean[], $10::text[]) AS w(s, n, d, o, r, e)`,
		l.Part, l.Log, l.Generation, l.Account, pq.Array(starts), pq.Array(numbers), pq.ByteaArray(digests), pq.Array(ordinals), pq.Array(repeats), pq.Array(effects))
	if err != nil {
		return fmt.Errorf("couldn't keep which lines were read: %w", err)
	}
	return nil
}

// Damage is a span of lines in quarantine.
type Damage struct {
	Part      int64        `db:"part_id"`
	Start     int64        `db:"start"`
	Size      int64        `db:"size"`
	FirstLine int64        `db:"first_line"`
	LastLine  int64        `db:"last_line"`
	Reason    string       `db:"reason"`
	Excerpt   string       `db:"excerpt"`
	Digest    ledger.Bytes `db:"digest"`
	Torn      bool         `db:"torn"`
	Healed    bool         `db:"healed"`
}

// AddDamage keeps a span, and tells whether it is news: a torn line that is as it was
// before is not.
func AddDamage(ctx context.Context, tx *ledger.Tx, d Damage) (bool, error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO logfile_damage (part_id, start, size, first_line, last_line, reason, excerpt, digest, torn)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (part_id, start) DO UPDATE SET size = excluded.size, last_line = excluded.last_line, reason = excluded.reason,
			excerpt = excluded.excerpt, digest = excluded.digest, torn = excluded.torn
		WHERE logfile_damage.digest <> excluded.digest OR logfile_damage.torn <> excluded.torn`,
		d.Part, d.Start, d.Size, d.FirstLine, d.LastLine, d.Reason, d.Excerpt, d.Digest, d.Torn)
	if err != nil {
		return false, fmt.Errorf("couldn't keep a damaged line: %w", err)
	}
	return n == 1, nil
}

// Heal notes that torn lines which began at these places could be read whole.
func Heal(ctx context.Context, tx *ledger.Tx, part int64, starts []int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE logfile_damage SET healed = true, torn = false WHERE part_id = $1 AND start = ANY($2::bigint[]) AND torn`, part, pq.Array(starts))
	if err != nil {
		return fmt.Errorf("couldn't note that a torn line is whole: %w", err)
	}
	return nil
}

// Damages lists what is in quarantine of a log, the first n.
func Damages(ctx context.Context, r ledger.Reader, log int64, n int) ([]Damage, error) {
	var rows []Damage
	err := r.Select(ctx, &rows, `
		SELECT d.part_id, d.start, d.size, d.first_line, d.last_line, d.reason, d.excerpt, d.digest, d.torn, d.healed
		FROM logfile_damage d JOIN logfile_parts p ON p.id = d.part_id
		WHERE p.log_id = $1 ORDER BY d.part_id, d.start LIMIT $2`, log, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read damaged lines: %w", err)
	}
	return rows, nil
}

// State is a log as people see it.
type State struct {
	Log
	Account    string      `db:"account"`
	Lines      int64       `db:"lines"`
	Damaged    int64       `db:"damaged"` // spans that were not healed
	Waiting    int64       `db:"waiting"` // outcomes without an intent
	Pending    int64       `db:"pending"` // lines to be appended
	ReadAt     ledger.Time `db:"read_at"`
	AlarmKind  string      `db:"alarm_kind"`
	AlarmText  string      `db:"alarm_text"`
	AlarmFound ledger.Time `db:"alarm_found"`
}

// States lists every log, those with an alarm first.
func States(ctx context.Context, r ledger.Reader) ([]State, error) {
	var rows []State
	err := r.Select(ctx, &rows, `
		SELECT g.id, g.account_id, g.path, g.agent, g.run_id, g.generation, c.name AS account, g.read_at,
			COALESCE((SELECT sum(p.lines) FROM logfile_parts p WHERE p.log_id = g.id AND p.generation = g.generation), 0)::bigint AS lines,
			(SELECT count(*) FROM logfile_damage d JOIN logfile_parts p ON p.id = d.part_id WHERE p.log_id = g.id AND NOT d.healed) AS damaged,
			(SELECT count(*) FROM logfile_waiting w JOIN logfile_parts p ON p.id = w.part_id WHERE p.log_id = g.id AND w.paired_at IS NULL) AS waiting,
			(SELECT count(*) FROM logfile_outbox o WHERE o.log_id = g.id AND o.appended_at IS NULL AND o.withdrawn_at IS NULL) AS pending,
			COALESCE(a.id, 0) AS alarm, COALESCE(a.kind, '') AS alarm_kind, COALESCE(a.detail, '') AS alarm_text, a.found_at AS alarm_found
		FROM logfiles g JOIN accounts c ON c.id = g.account_id
		LEFT JOIN logfile_alarms a ON a.log_id = g.id AND a.acknowledged_at IS NULL
		ORDER BY a.id IS NULL, g.path, g.id`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list log files: %w", err)
	}
	return rows, nil
}
