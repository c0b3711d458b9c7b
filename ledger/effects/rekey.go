package effects

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
)

// LastID is the highest id of a stored effect; "" when there is none.
func LastID(ctx context.Context, r ledger.Reader) (id string, err error) {
	err = r.Get(ctx, &id, `SELECT id FROM effects ORDER BY id DESC LIMIT 1`)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("couldn't find the last effect: %w", err)
	}
	return id, nil
}

// Stored is an effect met on a pass over all of them.
type Stored struct {
	ID        string `db:"id"`
	Mine      bool   `db:"mine"`      // it is of the tool that was asked for
	Arguments string `db:"arguments"` // only when Mine
}

// pageBytes bounds the arguments that one page holds, whose rows may have 1 MiB each.
const pageBytes = 8 << 20

// Page reads up to n effects, of whatever tool, after one id ("" from the start) up to
// another, in the order of ids: a pass needs no index of its own and can go on where
// it stopped. Fewer than n are the last, or hold many arguments.
func Page(ctx context.Context, r ledger.Reader, tool, after, upto string, n int) (list []Stored, err error) {
	if after == "" {
		after = "00000000-0000-0000-0000-000000000000"
	}
	err = r.Select(ctx, &list, `
		SELECT id, mine, CASE WHEN mine THEN arguments ELSE '' END AS arguments
		FROM (
			SELECT id, mine, arguments, sum(CASE WHEN mine THEN octet_length(arguments) ELSE 0 END) OVER (ORDER BY id
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM (
				SELECT id, tool = $1 AS mine, arguments FROM effects WHERE id > $2::uuid AND id <= $3::uuid ORDER BY id LIMIT $4
			) AS page
		) AS sized
		WHERE COALESCE(before, 0) < $5 ORDER BY id`, tool, after, upto, n, pageBytes)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a page of effects: %w", err)
	}
	return list, nil
}

var claimsOfFields = parseFields(`id uuid, business_key text, claim bytea, claim_was bytea, call_claim boolean`)

var rekey = `
	UPDATE effects e SET business_key = x.business_key, claim = x.claim, claim_was = x.claim_was, call_claim = x.call_claim
	FROM ` + claimsOfFields.unnest(1) + ` WHERE e.id = x.id`

// Rekey writes what effects claim. That follows from the stored arguments and the
// template alone, so it raises no version and is not in the effects log. The caller
// holds the lock on their runs' rows.
func Rekey(ctx context.Context, tx *ledger.Tx, list []*Row) error {
	if len(list) == 0 {
		return nil
	}
	rows := newArrays(claimsOfFields)
	for _, v := range list {
		rows.text("id", v.ID)
		rows.text("business_key", v.BusinessKey)
		rows.bytes("claim", v.Claim)
		rows.bytes("claim_was", v.ClaimWas)
		rows.yes("call_claim", v.CallClaim)
		rows.end()
	}
	n, err := tx.Exec(ctx, rekey, rows.params(nil)...)
	if err != nil {
		return fmt.Errorf("couldn't re-key effects: %w", err)
	}
	if n != int64(len(list)) {
		return ErrChanged
	}
	return nil
}
