package lookups

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Answer is a row of lookups; "" and zero are NULL.
type Answer struct {
	ID         string      `db:"id"`
	Effect     string      `db:"effect_id"`
	Cause      Cause       `db:"cause"`
	AskedAt    ledger.Time `db:"asked_at"`
	AnsweredAt ledger.Time `db:"answered_at"`
	Tool       string      `db:"tool"`
	Kind       string      `db:"kind"`
	Source     string      `db:"source"`
	Request    string      `db:"request"`
	Status     int         `db:"status"`
	Latency    float64     `db:"latency"` // seconds
	Pages      int         `db:"pages"`
	BodyDigest string      `db:"body_digest"`
	Excerpt    string      `db:"excerpt"`
	Problem    string      `db:"problem"`
	Verdict    string      `db:"verdict"`
	Reason     string      `db:"reason"`
	Why        string      `db:"why"`
	Reference  string      `db:"reference"`
	Earliest   ledger.Time `db:"earliest"`
	Found      string      `db:"found"` // JSON
	Read       string      `db:"read"`  // JSON
}

// Record stores an answer.
func Record(ctx context.Context, tx *ledger.Tx, a Answer) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lookups (id, effect_id, cause, asked_at, answered_at, tool, kind, source, request, status, latency, pages,
			body_digest, excerpt, problem, verdict, reason, why, reference, earliest, found, read)
		VALUES ($1::uuid, $2::uuid, $3, $4, $5, $6, $7, $8, $9, NULLIF($10, 0), $11, $12, NULLIF($13, ''), NULLIF($14, ''), NULLIF($15, ''),
			$16, $17, $18, NULLIF($19, ''), $20, $21, $22)`,
		a.ID, a.Effect, a.Cause, a.AskedAt, a.AnsweredAt, a.Tool, a.Kind, a.Source, a.Request, a.Status, a.Latency, a.Pages,
		a.BodyDigest, a.Excerpt, a.Problem, a.Verdict, a.Reason, a.Why, a.Reference, a.Earliest, a.Found, a.Read)
	if err != nil {
		return fmt.Errorf("couldn't record an answer: %w", err)
	}
	return nil
}

// LastShown is what the last look at an effect's downstream showed that could look, as
// JSON; "" where none could.
func LastShown(ctx context.Context, r ledger.Reader, effect string) (found string, err error) {
	err = r.Get(ctx, &found, `
		SELECT COALESCE((SELECT found FROM lookups WHERE effect_id = $1::uuid
			AND reason NOT IN ('no_attempt','could_not','partial','wrong_world') ORDER BY asked_at DESC, id DESC LIMIT 1), '')`, effect)
	if err != nil {
		return "", fmt.Errorf("couldn't read what was found: %w", err)
	}
	return found, nil
}

// Of reads an effect's answers, the latest first, at most n.
func Of(ctx context.Context, r ledger.Reader, effect string, n int) ([]Answer, error) {
	var rows []Answer
	err := r.Select(ctx, &rows, `
		SELECT id, effect_id, cause, asked_at, answered_at, tool, kind, source, request, COALESCE(status, 0) AS status, latency, pages,
			COALESCE(body_digest, '') AS body_digest, COALESCE(excerpt, '') AS excerpt, COALESCE(problem, '') AS problem, verdict, reason,
			why, COALESCE(reference, '') AS reference, earliest, found, read
		FROM lookups WHERE effect_id = $1::uuid ORDER BY asked_at DESC, id DESC LIMIT $2`, effect, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read answers: %w", err)
	}
	return rows, nil
}
