package seal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
)

// Damage is something that was found missing or changed.
type Damage struct {
	Block   int64       `db:"block"` // 0: it concerns the chain as a whole
	What    string      `db:"what"`
	FoundAt ledger.Time `db:"found_at"`
	// Before is when what it concerns was sealed: a gap that was acknowledged after that
	// covers it. Zero: no gap covers it.
	Before time.Time `db:"-"`
}

// Digest names the damage.
func (d Damage) Digest() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", d.Block, d.What))
	return sum[:]
}

// Note keeps damage and tells whether it is new.
func Note(ctx context.Context, tx *ledger.Tx, d Damage) (bool, error) {
	n, err := tx.Exec(ctx, `INSERT INTO seal_damage (block, digest, what) VALUES (NULLIF($1, 0), $2, $3) ON CONFLICT DO NOTHING`, d.Block, d.Digest(), d.What)
	if err != nil {
		return false, fmt.Errorf("couldn't keep what was found damaged: %w", err)
	}
	return n == 1, nil
}

// Damages lists what was found, newest first, at most n.
func Damages(ctx context.Context, r ledger.Reader, n int) (list []Damage, err error) {
	err = r.Select(ctx, &list, `SELECT COALESCE(block, 0) AS block, what, found_at FROM seal_damage ORDER BY id DESC LIMIT $1`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read what was found damaged: %w", err)
	}
	return list, nil
}

// Known tells whether the same damage was found before.
func Known(ctx context.Context, r ledger.Reader, d Damage) (known bool, err error) {
	if err = r.Get(ctx, &known, `SELECT EXISTS (SELECT 1 FROM seal_damage WHERE digest = $1)`, d.Digest()); err != nil {
		return false, fmt.Errorf("couldn't read what was found damaged: %w", err)
	}
	return known, nil
}

// End is the last sealed row of a stream as it should be and as it is.
type End struct {
	Stream Stream
	Block  int64        `db:"block"`
	Last   int64        `db:"last"`
	Want   ledger.Bytes `db:"want"`
	Have   ledger.Bytes `db:"have"` // nil: the row is gone
	Next   int64        `db:"next"` // last number that the sequence gave out
}

// Ends looks at the last sealed row of each stream that has one: a truncated table, or
// one that was put back to an older state, is seen here within a second.
func Ends(ctx context.Context, r ledger.Reader) ([]End, error) {
	var out []End
	for _, s := range Streams {
		e := End{Stream: s}
		err := r.Get(ctx, &e, ends[s.Table], s.Table)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("couldn't look at the end of %s: %w", s.Table, err)
		}
		out = append(out, e)
	}
	return out, nil
}

var ends = func() map[string]string {
	m := map[string]string{}
	for _, s := range Streams {
		// The row is found by its key alone, or a large table would be scanned.
		m[s.Table] = strings.NewReplacer("{table}", s.Table, "{id}", s.id, "{sum}", s.sum).Replace(`
			SELECT number AS block, last_id AS last, last_digest AS want,
				(SELECT {sum} FROM {table} WHERE {id} = b.last_id) AS have,
				COALESCE(pg_sequence_last_value(pg_get_serial_sequence('{table}', '{id}')::regclass), 0) AS next
			FROM (SELECT number, last_id, last_digest FROM seal_blocks WHERE stream = $1 ORDER BY last_id DESC LIMIT 1) AS b`)
	}
	return m
}()

// Skip moves a stream's sequence behind what is sealed: after TRUNCATE ... RESTART
// IDENTITY new rows would be numbered below it, where nothing is sealed any more.
func Skip(ctx context.Context, tx *ledger.Tx, s Stream, last int64) error {
	var next int64
	if err := tx.Get(ctx, &next, `SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)`, s.Table, s.id, last); err != nil {
		return fmt.Errorf("couldn't move the numbers of %s forward: %w", s.Table, err)
	}
	return nil
}
