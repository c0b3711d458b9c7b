package effects

import (
	"context"
	"fmt"

	store "quittance/ledger/effects"
)

// rekeyed is a stored effect with the claim that its tool's present template makes.
type rekeyed struct {
	x   *effect
	now claim
}

// late tells that a stored effect has no claim under its tool's present template yet.
func (c call) late(x *effect) bool {
	return len(c.claims) > 1 && x.ClaimWas == nil && string(x.Claim) != string(c.claims[0].digest)
}

// rekey gives effects of locked runs their claims under a new template, beside those
// that they have. Where several now share one, it belongs to whoever [effect.outranks]
// the others; it falls back to them as any claim does, so that none is without its
// protection. Nobody's state changes: a permission finds out when it begins.
func (w *work) rekey(ctx context.Context, list []rekeyed) error {
	rows := make([]*store.Row, 0, len(list))
	best := map[string]*effect{}
	for _, k := range list {
		x := k.x
		x.ClaimWas, x.ClaimWasOwner = x.Claim, x.ClaimOwner
		x.Claim, x.BusinessKey, x.CallClaim, x.ClaimOwner = k.now.digest, k.now.key, k.now.call, ""
		rows = append(rows, x.Row)
		if d := string(x.Claim); HoldsClaim(x.facts(), x.CallClaim) && (best[d] == nil || x.outranks(best[d])) {
			best[d] = x
		}
	}
	if err := store.Rekey(ctx, w.tx, rows); err != nil {
		return err
	}
	take := make([]store.Claim, 0, len(best))
	for _, x := range best {
		take = append(take, w.claimRow(x.claims()[0], x.Account, x.Tool, x.ID))
	}
	if err := w.takeOrLook(ctx, take); err != nil {
		return err
	}
	for d, x := range best {
		holder := w.effects[w.claims[d]]
		if holder == nil || holder.ID == x.ID || !x.outranks(holder) {
			continue
		}
		if err := store.MoveClaim(ctx, w.tx, x.Claim, holder.ID, x.ID); err != nil {
			return err
		}
		w.claims[d] = x.ID
	}
	return nil
}

// outranks orders effects that come to share a business key only afterwards, by their
// states; of equals the latest comes first. An allow does not count: the person who gave it knew
// nothing of the others.
func (x *effect) outranks(y *effect) bool {
	if a, b := claimRank(x.State), claimRank(y.State); a != b {
		return a > b
	}
	if !x.OpenedAt.Equal(y.OpenedAt.Time) {
		return x.OpenedAt.After(y.OpenedAt.Time)
	}
	return x.ID > y.ID
}

// forgetEarlier takes from effects of locked runs their claims under the earlier
// template, which no begin is checked under any more.
func (w *work) forgetEarlier(ctx context.Context, list []*effect) error {
	rows := make([]*store.Row, 0, len(list))
	for _, x := range list {
		w.drop(x.claims()[1], x.ID)
		x.ClaimWas, x.ClaimWasOwner = nil, ""
		rows = append(rows, x.Row)
	}
	if err := store.Rekey(ctx, w.tx, rows); err != nil {
		return fmt.Errorf("couldn't forget earlier claims: %w", err)
	}
	return nil
}
