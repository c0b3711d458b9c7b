package effects

import (
	"bytes"
	"context"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/reconcile/policy"
)

// lockClaims locks claims and remembers their holders. Whatever gives a claim to
// somebody else, or asks who holds it before reopening an effect, does so under
// this lock.
func (w *work) lockClaims(ctx context.Context, digests ...[]byte) error {
	var missing [][]byte
	for _, d := range digests {
		if _, ok := w.claims[string(d)]; !ok {
			missing = append(missing, d)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	held, err := store.LockClaims(ctx, w.tx, missing)
	if err != nil {
		return err
	}
	var strangers []string
	for _, d := range missing {
		holder := held[string(d)]
		w.claims[string(d)] = holder
		if holder != "" && w.effects[holder] == nil {
			strangers = append(strangers, holder)
		}
	}
	return w.readOnly(ctx, strangers)
}

// readOnly loads effects of runs that are not locked, to look at but not to change.
func (w *work) readOnly(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := store.Load(ctx, w.tx, store.Wanted{IDs: ids})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if w.effects[r.ID] == nil {
			w.effects[r.ID] = &effect{Row: r, run: w.runs[r.Run], was: r.Version}
			if w.runs[r.Run] != nil {
				w.keys[runKey{r.Run, string(r.Key)}] = w.effects[r.ID]
			}
		}
	}
	return nil
}

// taken tells whether somebody else holds the effect's claim in a way that counts:
// a repeat in the same run counts only where the policy holds repeats.
func (w *work) claimTaken(tool *policy.Tool, digest []byte, run int64, id string) bool {
	holder := w.claims[string(digest)]
	if holder == "" || holder == id {
		return false
	}
	h := w.effects[holder]
	return h == nil || h.Run != run || tool.Repeat != policy.RepeatAllow
}

// claimLost is claimTaken for an effect that would be reopened; an allow that is
// not used yet does not count, since reopening withdraws it.
func (w *work) claimLost(x *effect) bool {
	if !w.claimTaken(w.tool(x), x.Claim, x.Run, x.ID) {
		return false
	}
	h := w.effects[w.claims[string(x.Claim)]]
	return h == nil || !(h.State == Cleared && h.Why == WhyAllowed)
}

// twoClaim tells whether another begun effect that is neither failed nor cancelled
// holds the effect's claim.
func (w *work) twoClaim(x *effect) bool {
	holder, known := w.claims[string(x.Claim)]
	if !known {
		holder = x.ClaimOwner
	}
	if holder == "" || holder == x.ID {
		return false
	}
	h := w.effects[holder]
	if h == nil {
		return false
	}
	if h.Run == x.Run && w.tool(x).Repeat == policy.RepeatAllow {
		return false
	}
	return h.Attempts > 0 && h.State != Failed && h.State != Cancelled
}

// takeAgain claims what an effect let go of, when nobody else holds it.
func (w *work) takeAgain(x *effect) error {
	got, err := store.TakeClaims(w.ctx, w.tx, []store.Claim{claimRow(x, w)})
	if err == nil && got[string(x.Claim)] {
		w.claims[string(x.Claim)] = x.ID
	}
	return err
}

func claimRow(x *effect, w *work) store.Claim {
	return store.Claim{Digest: x.Claim, Account: x.Account, Tool: x.Tool, BusinessKey: x.BusinessKey, Effect: x.ID, TakenAt: ledger.At(w.now)}
}

// letGo drops the claims of effects that hold them no longer.
func (w *work) letGo(ctx context.Context) error {
	if len(w.dropped) == 0 {
		return nil
	}
	digests, ids := make([][]byte, len(w.dropped)), make([]string, len(w.dropped))
	for i, d := range w.dropped {
		digests[i], ids[i] = d.digest, d.effect
		delete(w.claims, string(d.digest))
	}
	w.dropped = nil
	// Locked in a statement of its own: whoever looked at a claim before us and was
	// held because of it is then seen as its heir.
	if _, err := store.LockClaims(ctx, w.tx, digests); err != nil {
		return err
	}
	return store.DropClaims(ctx, w.tx, digests, ids)
}

// withdrawAllows takes back every unused allow that was given because an effect
// which has now been reopened or contradicted was closed. It may reach into other
// runs, whose rows it locks: two such reaches can meet, and the transaction is then
// run again.
func (w *work) withdrawAllows(ctx context.Context) error {
	list := w.withdraw
	w.withdraw = nil
	for _, c := range list {
		others, err := store.AllowedOver(ctx, w.tx, c.digest, c.effect)
		if err != nil {
			return err
		}
		for _, o := range others {
			if w.runs[o.Run] == nil {
				if err := w.lock(ctx, nil, nil, []int64{o.Run}); err != nil {
					return err
				}
			}
			delete(w.effects, o.ID) // it was read without the lock
			if err := w.load(ctx, store.Wanted{IDs: []string{o.ID}}); err != nil {
				return err
			}
			x := w.effects[o.ID]
			m, err := w.step(x, Event{Kind: KWithdraw}, "withdrawn", map[string]string{"reopened": c.effect}, nil)
			if err != nil {
				return err
			}
			w.hint(x.run)
			if m.To == Held { // it may have begun while its run was waited for
				w.dropped = append(w.dropped, claimOf{x.Claim, x.ID})
			}
		}
	}
	return nil
}

// claimsFor takes the claims of the batch's new effects and locks those that its
// other operations have to know about.
func (w *work) claimsFor(ctx context.Context, ops []*prepared, calls []call) error {
	var take []store.Claim
	var look [][]byte
	var owners []string
	wanted := map[string]bool{}
	for i, p := range ops {
		if !p.open() {
			continue
		}
		p.newID = ""
		if b := p.Begin; b != nil {
			r, c := w.names[runName{b.Account, b.RunID}], calls[i]
			switch x := w.keys[runKey{r.ID, string(c.key[:])}]; {
			case x != nil && x.State == Cleared:
				look = append(look, x.Claim)
			case x == nil && c.tool.Guarded() && w.mayBegin(r, p.lease) == nil && !wanted[string(c.claim[:])]:
				wanted[string(c.claim[:])] = true
				p.newID = newID()
				take = append(take, store.Claim{
					Digest: c.claim[:], Account: r.Account, Tool: b.Tool, BusinessKey: c.businessKey, Effect: p.newID, TakenAt: ledger.At(w.now),
				})
			}
			continue
		}
		switch x := w.finished(p, calls[i]); {
		case x == nil:
		case x.State != InFlight:
			look = append(look, x.Claim)
		case x.ClaimOwner != "" && x.ClaimOwner != x.ID && w.effects[x.ClaimOwner] == nil:
			// While it is in flight nobody may be allowed over it: a look is enough.
			owners = append(owners, x.ClaimOwner)
		}
	}
	if err := w.readOnly(ctx, owners); err != nil {
		return err
	}
	if err := w.lockClaims(ctx, look...); err != nil {
		return err
	}
	return w.takeOrLook(ctx, take)
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
				w.fresh = append(w.fresh, claimOf{c.Digest, c.Effect})
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

// unborn is the id for which this batch took a claim without an effect coming of it;
// "" for none.
func (w *work) unborn(claim []byte) string {
	for _, c := range w.fresh {
		if bytes.Equal(c.digest, claim) && w.effects[c.effect] == nil {
			return c.effect
		}
	}
	return ""
}

// dropUnused gives back claims that were taken for begins which were then refused.
func (w *work) dropUnused() {
	for _, c := range w.fresh {
		if w.effects[c.effect] == nil {
			w.dropped = append(w.dropped, c)
		}
	}
	w.fresh = nil
}
