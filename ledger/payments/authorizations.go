package payments

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
)

// Authorization is one that was offered under a payment id.
type Authorization struct {
	ID          int64       `db:"id"`
	Payment     int64       `db:"payment"`
	Network     string      `db:"network"`
	Asset       string      `db:"asset"`
	Payer       string      `db:"payer"`
	Nonce       string      `db:"nonce"`
	ValidBefore int64       `db:"valid_before"` // Unix seconds of block time
	Signed      bool        `db:"signed"`       // the payer's signature over it was checked
	OfferedAt   ledger.Time `db:"offered_at"`
	TakenUpAt   ledger.Time `db:"taken_up_at"`
	DeadWhy     string      `db:"dead_why"` // "" while it is not proven dead
	DeadAt      ledger.Time `db:"dead_at"`
	DeadBlock   int64       `db:"dead_block"`
	Seen        string      `db:"seen"` // what the rail last said
}

const authorizationColumns = `a.id, a.payment, a.network, a.asset, a.payer, a.nonce, a.valid_before, a.signed, a.offered_at, a.taken_up_at,
	COALESCE(a.dead_why, '') AS dead_why, a.dead_at, COALESCE(a.dead_block, 0) AS dead_block, COALESCE(a.seen, '') AS seen`

// Authorizations are all that were offered under a payment, first to last.
func Authorizations(ctx context.Context, r ledger.Reader, payment int64) (list []Authorization, err error) {
	err = r.Select(ctx, &list, `SELECT `+authorizationColumns+` FROM authorizations a WHERE a.payment = $1 ORDER BY a.id`, payment)
	if err != nil {
		return nil, fmt.Errorf("couldn't read authorizations: %w", err)
	}
	return list, nil
}

// Offer stores an authorization under a payment. False when it stands under another. One
// that was on the gateway's word alone becomes what its payer signed, and of several
// signatures with one nonce the one that ends last counts.
func Offer(ctx context.Context, tx *ledger.Tx, a Authorization, takenUp bool) (bool, error) {
	var owner int64
	err := tx.Get(ctx, &owner, `
		WITH mine AS (
			INSERT INTO authorizations (payment, network, asset, payer, nonce, valid_before, signed, offered_at, taken_up_at)
			VALUES ($1, $2, $3, $4, $5, $6, $8, clock_timestamp(), CASE WHEN $7 THEN clock_timestamp() END)
			ON CONFLICT ON CONSTRAINT authorizations_once DO NOTHING RETURNING payment
		)
		SELECT payment FROM mine
		UNION ALL SELECT payment FROM authorizations WHERE network = $2 AND asset = $3 AND payer = $4 AND nonce = $5 LIMIT 1`,
		a.Payment, a.Network, a.Asset, a.Payer, a.Nonce, a.ValidBefore, takenUp, a.Signed)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil // somebody committed it just now, after this statement's snapshot
	}
	if err != nil {
		return false, fmt.Errorf("couldn't store an authorization: %w", err)
	}
	if owner != a.Payment {
		return false, nil
	}
	if a.Signed {
		_, err = tx.Exec(ctx, `UPDATE authorizations SET valid_before = CASE WHEN signed THEN greatest(valid_before, $5) ELSE $5 END, signed = true
			WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4 AND (NOT signed OR valid_before < $5) AND dead_why IS NULL`,
			a.Network, a.Asset, a.Payer, a.Nonce, a.ValidBefore)
		if err != nil {
			return false, fmt.Errorf("couldn't store a signed authorization: %w", err)
		}
	}
	if !takenUp {
		return true, nil
	}
	_, err = tx.Exec(ctx, `UPDATE authorizations SET taken_up_at = clock_timestamp() WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4 AND payment = $5`,
		a.Network, a.Asset, a.Payer, a.Nonce, a.Payment)
	if err != nil {
		return false, fmt.Errorf("couldn't take an authorization up: %w", err)
	}
	return true, nil
}

// Dead records the proof that an authorization can never move money any more.
func Dead(ctx context.Context, tx *ledger.Tx, id int64, why string, block int64, seen string) error {
	_, err := tx.Exec(ctx, `
		UPDATE authorizations SET dead_why = $2, dead_at = clock_timestamp(), dead_block = $3, seen = $4 WHERE id = $1 AND dead_why IS NULL`, id, why, block, seen)
	if err != nil {
		return fmt.Errorf("couldn't record that an authorization is dead: %w", err)
	}
	return nil
}

// Saw records what the rail said of an authorization, where that proves nothing.
func Saw(ctx context.Context, tx *ledger.Tx, id int64, seen string) error {
	if _, err := tx.Exec(ctx, `UPDATE authorizations SET seen = $2 WHERE id = $1`, id, seen); err != nil {
		return fmt.Errorf("couldn't record what was seen of an authorization: %w", err)
	}
	return nil
}
