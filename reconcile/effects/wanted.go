package effects

import (
	"bytes"
	"context"
	"slices"

	store "quittance/ledger/effects"
)

// claimsFor takes the claims of the batch's new effects and locks those that its
// other operations have to know about.
func (w *work) claimsFor(ctx context.Context, ops []*prepared, calls []call) error {
	var want wanted
	var late []rekeyed
	for i, p := range ops {
		if !p.open() {
			continue
		}
		p.newID = ""
		if b := p.Begin; b != nil {
			r, c := w.names[runName{b.Account, b.RunID}], calls[i]
			switch x := w.keys[runKey{r.ID, string(c.key[:])}]; {
			case x != nil && x.State == Cleared:
				want.look = append(want.look, digests(x.claims())...)
				if c.late(x) {
					late = append(late, rekeyed{x, c.claims[0]})
				}
			case x == nil && c.tool.Guarded() && w.mayBegin(r, p.lease) == nil:
				p.newID = newID()
				w.wantNew(&want, c.claims, r.Account, b.Tool, p.newID)
			}
			continue
		}
		if x := w.finished(p, calls[i]); x != nil {
			w.wantKnown(&want, x)
		}
	}
	if err := w.lookAt(ctx, want); err != nil {
		return err
	}
	// A permission that was given before its tool's template changed begins only when
	// nobody stands against it under the new one either.
	if err := w.rekey(ctx, late); err != nil {
		return err
	}
	return w.takeOrLook(ctx, want.take)
}

// wanted is what a transaction has to do about claims before it decides: take those of
// effects that are new, and know who holds those of effects that are on record.
type wanted struct {
	take   []store.Claim
	look   [][]byte // to be locked
	owners []string // to be read without their lock
	taken  map[string]bool
}

// wantNew adds the claims of a new effect; of two effects the first one takes.
func (w *work) wantNew(want *wanted, list []claim, account int64, tool, id string) {
	if want.taken == nil {
		want.taken = map[string]bool{}
	}
	for _, c := range list {
		if !want.taken[string(c.digest)] {
			want.taken[string(c.digest)] = true
			want.take = append(want.take, w.claimRow(c, account, tool, id))
		}
	}
}

// wantKnown adds those of an effect that is told something.
func (w *work) wantKnown(want *wanted, x *effect) {
	if x.State != InFlight {
		want.look = append(want.look, digests(x.claims())...)
		return
	}
	// While it is in flight nobody may be allowed over it: a look is enough.
	for _, owner := range []string{x.ClaimOwner, x.ClaimWasOwner} {
		if owner != "" && owner != x.ID && w.effects[owner] == nil {
			want.owners = append(want.owners, owner)
		}
	}
}

// lookAt reads and locks what is wanted of claims that are held.
func (w *work) lookAt(ctx context.Context, want wanted) error {
	if err := w.readOnly(ctx, want.owners); err != nil {
		return err
	}
	return w.lockClaims(ctx, want.look...)
}

// takeOrLook takes claims, or locks those that somebody holds. A holder may let go
// between the two: then it is tried again, since an effect that neither has its claim
// nor knows who has must not begin.
func (w *work) takeOrLook(ctx context.Context, take []store.Claim) error {
	for len(take) > 0 {
		got, err := store.TakeClaims(ctx, w.tx, take)
		if err != nil {
			return err
		}
		var others [][]byte
		for _, c := range take {
			if got[string(c.Digest)] {
				w.claims[string(c.Digest)] = c.Effect
				w.fresh = append(w.fresh, claimOf{claim{digest: c.Digest, key: c.BusinessKey, call: c.BusinessKey == ""}, c.Effect})
			} else {
				others = append(others, c.Digest)
			}
		}
		if err := w.lockClaims(ctx, others...); err != nil {
			return err
		}
		take = slices.DeleteFunc(take, func(c store.Claim) bool { return w.claims[string(c.Digest)] != "" })
		for _, c := range take {
			delete(w.claims, string(c.Digest))
		}
	}
	return nil
}

// adopt gives a begin those of its claims that this batch took for an earlier begin
// which was then refused.
func (w *work) adopt(ctx context.Context, list []claim, id string) error {
	for i := range w.fresh {
		f := &w.fresh[i]
		if f.effect == id || w.effects[f.effect] != nil || !slices.ContainsFunc(list, func(c claim) bool { return bytes.Equal(c.digest, f.digest) }) {
			continue
		}
		if err := store.MoveClaim(ctx, w.tx, f.digest, f.effect, id); err != nil {
			return err
		}
		f.effect, w.claims[string(f.digest)] = id, id
	}
	return nil
}

// dropUnused gives back claims that were taken for begins which were then refused.
func (w *work) dropUnused() {
	for _, c := range w.fresh {
		if w.effects[c.effect] == nil {
			w.drop(c.claim, c.effect)
		}
	}
	w.fresh = nil
}
