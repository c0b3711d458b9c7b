package effects

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Claim is a row of business_claims: which effect may act for a business key.
type Claim struct {
	Digest      ledger.Bytes `db:"digest"`
	Account     int64        `db:"account_id"`
	Tool        string       `db:"tool"`
	BusinessKey string       `db:"business_key"`
	Effect      string       `db:"effect_id"`
	TakenAt     ledger.Time  `db:"taken_at"`
}

var claimFields = parseFields(`digest bytea, account_id bigint, tool text, business_key text, effect_id uuid, taken_at timestamptz`)

var takeClaims = `
	INSERT INTO business_claims (` + claimFields.list("") + `)
	SELECT ` + claimFields.list("") + ` FROM ` + claimFields.unnest(1) + `
	ORDER BY digest
	ON CONFLICT (digest) DO NOTHING
	RETURNING digest`

// TakeClaims inserts the claims that nobody holds and returns the digests it got.
// It waits for a transaction that is taking the same claim. The digests are taken
// in their order, so that two batches cannot wait for each other.
func TakeClaims(ctx context.Context, tx *ledger.Tx, claims []Claim) (map[string]bool, error) {
	rows := newArrays(claimFields)
	for i := range claims {
		c := &claims[i]
		rows.bytes("digest", c.Digest)
		rows.number("account_id", c.Account)
		rows.text("tool", c.Tool)
		rows.text("business_key", c.BusinessKey)
		rows.text("effect_id", c.Effect)
		rows.time("taken_at", c.TakenAt)
		rows.end()
	}
	var got []ledger.Bytes
	err := tx.Select(ctx, &got, takeClaims, rows.params(nil)...)
	if err != nil {
		return nil, fmt.Errorf("couldn't take claims: %w", err)
	}
	m := make(map[string]bool, len(got))
	for _, d := range got {
		m[string(d)] = true
	}
	return m, nil
}

// LockClaims locks the claims' rows and returns their holders by digest; a claim
// that nobody holds is absent. Claims, and an allow given over one, change only
// under this lock.
func LockClaims(ctx context.Context, tx *ledger.Tx, digests [][]byte) (map[string]string, error) {
	var rows []Claim
	err := tx.Select(ctx, &rows, `
		SELECT digest, account_id, tool, COALESCE(business_key, '') AS business_key, effect_id, taken_at
		FROM business_claims WHERE digest = ANY($1::bytea[]) ORDER BY digest FOR UPDATE`, pq.ByteaArray(digests))
	if err != nil {
		return nil, fmt.Errorf("couldn't lock claims: %w", err)
	}
	m := make(map[string]string, len(rows))
	for _, c := range rows {
		m[string(c.Digest)] = c.Effect
	}
	return m, nil
}

// MoveClaim gives a held claim to another effect. [ErrChanged] when from does not
// hold it.
func MoveClaim(ctx context.Context, tx *ledger.Tx, digest []byte, from, to string) error {
	n, err := tx.Exec(ctx, `
		UPDATE business_claims SET effect_id = $3::uuid, taken_at = clock_timestamp()
		WHERE digest = $1 AND effect_id = $2::uuid`, digest, from, to)
	if err != nil {
		return fmt.Errorf("couldn't move a claim: %w", err)
	}
	if n != 1 {
		return ErrChanged
	}
	return nil
}

// Dropped is a claim that an effect lets go of.
type Dropped struct {
	Digest []byte
	Effect string
	Call   bool // a claim on tool and arguments
}

// The condition on e is HoldsClaim of reconcile/effects in SQL.
const dropClaims = `
	WITH gone AS (
		SELECT DISTINCT g.digest, g.effect_id, g.call
		FROM unnest($1::bytea[], $2::uuid[], $3::boolean[]) AS g(digest, effect_id, call)
		JOIN business_claims c ON c.digest = g.digest AND c.effect_id = g.effect_id
	), holding AS (
		SELECT g.digest, g.effect_id, e.id, e.opened_at
		FROM gone g JOIN effects e ON (e.claim = g.digest OR e.claim_was = g.digest)
		WHERE e.state <> 'failed' AND NOT (e.state = 'cancelled' AND e.released) AND NOT (e.state = 'taken' AND g.call)
	), heir AS (
		SELECT DISTINCT ON (digest) digest, effect_id, id
		FROM holding WHERE id <> effect_id
		ORDER BY digest, opened_at DESC, id DESC
	), moved AS (
		UPDATE business_claims c SET effect_id = h.id, taken_at = clock_timestamp()
		FROM heir h WHERE c.digest = h.digest AND c.effect_id = h.effect_id
	)
	DELETE FROM business_claims c USING gone g
	WHERE c.digest = g.digest AND c.effect_id = g.effect_id
	AND NOT EXISTS (SELECT 1 FROM holding h WHERE h.digest = g.digest)`

// DropClaims lets go of claims: each falls back to the latest other effect that still
// holds the same business key. It is deleted only when there is none and the effect
// itself has no use for it either. Effects that hold nothing are passed over. The
// caller holds the claims' locks: an heir that was added under them must be in this
// statement's snapshot.
func DropClaims(ctx context.Context, tx *ledger.Tx, list []Dropped) error {
	digests, effects, calls := make([][]byte, len(list)), make([]string, len(list)), make([]bool, len(list))
	for i, d := range list {
		digests[i], effects[i], calls[i] = d.Digest, d.Effect, d.Call
	}
	_, err := tx.Exec(ctx, dropClaims,
		pq.ByteaArray(digests), pq.Array(effects), pq.Array(calls))
	if err != nil {
		return fmt.Errorf("couldn't let go of claims: %w", err)
	}
	return nil
}

// OpenOverlap tells whether any other effect with one of the claims may still take
// effect: one that is neither held itself, nor taken, failed, or cancelled and released.
func OpenOverlap(ctx context.Context, r ledger.Reader, digests [][]byte, but string) (open bool, err error) {
	err = r.Get(ctx, &open, `
		SELECT EXISTS (SELECT 1 FROM effects
			WHERE (claim = ANY($1::bytea[]) OR claim_was = ANY($1::bytea[])) AND id <> $2::uuid
			AND NOT (state IN ('held','taken','failed') OR (state = 'cancelled' AND released)))`, pq.ByteaArray(digests), but)
	if err != nil {
		return false, fmt.Errorf("couldn't look for open effects with the same business key: %w", err)
	}
	return open, nil
}

// Allowed is an effect that a person allowed over others and that has not begun.
type Allowed struct {
	ID  string `db:"id"`
	Run int64  `db:"run_id"`
}

// AllowedOver lists the other effects with the claim whose allow is not used yet.
func AllowedOver(ctx context.Context, r ledger.Reader, digest []byte, but string) ([]Allowed, error) {
	var rows []Allowed
	err := r.Select(ctx, &rows, `
		SELECT id, run_id FROM effects
		WHERE (claim = $1 OR claim_was = $1) AND id <> $2::uuid AND state = 'cleared' AND why = 'allowed' ORDER BY run_id, id`, digest, but)
	if err != nil {
		return nil, fmt.Errorf("couldn't find allowed effects with the same business key: %w", err)
	}
	return rows, nil
}
