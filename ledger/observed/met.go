package observed

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Met is an observed call that an enforced begin has to know of.
type Met struct {
	Call
	RunName string `db:"run_name"`
}

// Before finds the call that a begin of an enforced tool may repeat: the same call of
// the run, or one with the same claim that no effect has met since. Those of the run
// itself count for a claim only where sameRun says so, and with a claim on tool and
// arguments only those whose outcome is open. Nothing that began at since, or before,
// counts.
func Before(ctx context.Context, tx *ledger.Tx, run int64, key []byte, claims [][]byte, sameRun bool, since time.Time) (*Met, error) {
	var rows []Met
	err := tx.Select(ctx, &rows, `
		WITH met AS (
			SELECT o.id, 0 AS rank FROM observed_calls o WHERE o.run_id = $1 AND o.key = $2
			UNION ALL
			SELECT o.id, 1 FROM observed_calls o
			WHERE o.claim = ANY($3::bytea[]) AND (o.run_id <> $1 OR $4)
			AND NOT (o.call_claim AND COALESCE(o.outcome IN ('taken', 'failed'), false))
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.claim = o.claim AND e.opened_at > o.begun_at)
			AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.claim_was = o.claim AND e.opened_at > o.begun_at)
		)
		SELECT `+columns+`, r.run_id AS run_name FROM met JOIN observed_calls o ON o.id = met.id JOIN runs r ON r.id = o.run_id
		WHERE o.begun_at > $5
		ORDER BY met.rank, o.begun_at DESC LIMIT 1`, run, key, pq.ByteaArray(claims), sameRun, since)
	if err != nil {
		return nil, fmt.Errorf("couldn't look for observed calls: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// Since is like [Before] for a permission: calls of the same key or claim that began after
// it was given, at the time of the decision in force.
func Since(ctx context.Context, tx *ledger.Tx, effect string, claims [][]byte, sameRun bool) (*Met, error) {
	var rows []Met
	err := tx.Select(ctx, &rows, `
		SELECT `+columns+`, r.run_id AS run_name
		FROM effects x LEFT JOIN decisions d ON d.id = x.decision
		JOIN observed_calls o ON o.begun_at > COALESCE(d.at, x.opened_at) AND (o.run_id = x.run_id AND o.key = x.key OR o.claim = ANY($2::bytea[]) AND (o.run_id <> x.run_id OR $3)
			AND NOT (o.call_claim AND COALESCE(o.outcome IN ('taken', 'failed'), false)))
		JOIN runs r ON r.id = o.run_id
		WHERE x.id = $1::uuid ORDER BY o.begun_at DESC LIMIT 1`, effect, pq.ByteaArray(claims), sameRun)
	if err != nil {
		return nil, fmt.Errorf("couldn't look for observed calls: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// Holder is the effect that holds one of the claims; "" where none does. One of the run
// itself counts only where sameRun says so.
func Holder(ctx context.Context, r ledger.Reader, run int64, claims [][]byte, sameRun bool) (string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT e.id FROM business_claims c JOIN effects e ON e.id = c.effect_id
		WHERE c.digest = ANY($2::bytea[]) AND (e.run_id <> $1 OR $3) LIMIT 1`, run, pq.ByteaArray(claims), sameRun)
	if err != nil {
		return "", fmt.Errorf("couldn't see who holds a claim: %w", err)
	}
	if len(ids) == 0 {
		return "", nil
	}
	return ids[0], nil
}

// Keyed is what a claim is made of again.
type Keyed struct {
	ID         string       `db:"id"`
	Account    int64        `db:"account_id"`
	CallDigest ledger.Bytes `db:"call_digest"`
	Arguments  string       `db:"arguments"`
}

// Stale lists calls of a tool whose claim was made with another template, at most n, and
// locks them. Where there are none, which is nearly always, it costs two looks at an index.
func Stale(ctx context.Context, tx *ledger.Tx, tool, template string, n int) (list []Keyed, err error) {
	err = tx.Select(ctx, &list, `
		SELECT id, account_id, call_digest, arguments FROM observed_calls
		WHERE id = ANY (ARRAY(
			(SELECT id FROM observed_calls WHERE tool = $1 AND claimed_by < $2 LIMIT $3)
			UNION ALL (SELECT id FROM observed_calls WHERE tool = $1 AND claimed_by > $2 LIMIT $3)))
		ORDER BY id FOR UPDATE`, tool, template, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list observed calls: %w", err)
	}
	return list, nil
}

// Rekeyed is a call's claim under another template.
type Rekeyed struct {
	ID, BusinessKey string
	Claim           []byte
	Call            bool
}

// Rekey gives calls their claims under a template.
func Rekey(ctx context.Context, tx *ledger.Tx, template string, list []Rekeyed) error {
	ids, keys, claims, calls := make([]string, len(list)), make([]string, len(list)), make([][]byte, len(list)), make([]bool, len(list))
	for i, r := range list {
		ids[i], keys[i], claims[i], calls[i] = r.ID, r.BusinessKey, r.Claim, r.Call
	}
	_, err := tx.Exec(ctx, `
		UPDATE observed_calls o SET claim = x.claim, call_claim = x.call, business_key = NULLIF(x.key, ''), claimed_by = $1
		FROM unnest($2::uuid[], $3::text[], $4::bytea[], $5::boolean[]) AS x(id, key, claim, call) WHERE o.id = x.id`,
		template, pq.Array(ids), pq.Array(keys), pq.ByteaArray(claims), pq.Array(calls))
	if err != nil {
		return fmt.Errorf("couldn't re-key observed calls: %w", err)
	}
	return nil
}
