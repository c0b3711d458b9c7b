package effects

import (
	"bytes"
	"context"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/reconcile/canon"
	"quittance/reconcile/guards"
	"quittance/reconcile/policy"
)

// claim is what an effect, or a call, claims in business_claims. It has two of them
// while its tool's effects are re-keyed: one under each template.
type claim struct {
	digest []byte
	key    string // the business key; "" where only the digest is known
	call   bool   // on tool and arguments: let go also by taken
	owner  string // who held it when the effect was read
}

// claims are those of an effect, the one under its tool's present template first.
func (x *effect) claims() []claim {
	list := []claim{{x.Claim, x.BusinessKey, x.CallClaim, x.ClaimOwner}}
	if x.ClaimWas != nil {
		byCall := canon.CallClaim(accountText(x.Account), x.Tool, canon.Key(x.CallDigest))
		list = append(list, claim{x.ClaimWas, "", bytes.Equal(x.ClaimWas, byCall[:]), x.ClaimWasOwner})
	}
	return list
}

func digests(list []claim) [][]byte {
	out := make([][]byte, len(list))
	for i, c := range list {
		out[i] = c.digest
	}
	return out
}

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

// claimTaken tells whether somebody else holds one of the claims in a way that counts:
// a repeat in the same run counts only where the policy holds repeats.
func (w *work) claimTaken(tool *policy.Tool, list []claim, run int64, id string) bool {
	if guards.Off(guards.Overlap) {
		return false
	}
	for _, c := range list {
		holder := w.claims[string(c.digest)]
		if holder == "" || holder == id {
			continue
		}
		if h := w.effects[holder]; h == nil || h.Run != run || tool.Repeat != policy.RepeatAllow {
			return true
		}
	}
	return false
}

// claimLost is claimTaken for an effect that would be reopened; an allow that is
// not used yet does not count, since reopening withdraws it.
func (w *work) claimLost(x *effect) bool {
	return slices.ContainsFunc(x.claims(), func(c claim) bool {
		if !w.claimTaken(w.tool(x), []claim{c}, x.Run, x.ID) {
			return false
		}
		h := w.effects[w.claims[string(c.digest)]]
		return h == nil || !(h.State == Cleared && h.Why == WhyAllowed)
	})
}

// twoClaim tells whether another begun effect that is neither failed nor cancelled
// holds one of the effect's claims.
func (w *work) twoClaim(x *effect) bool {
	return slices.ContainsFunc(x.claims(), func(c claim) bool {
		holder, known := w.claims[string(c.digest)]
		if !known {
			holder = c.owner
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
	})
}

// moveClaims lets go of what an effect holds no longer, and takes again what it needs
// once more.
func (w *work) moveClaims(x *effect, before, after Facts) error {
	var again []claim
	for _, c := range x.claims() {
		switch had, has := HoldsClaim(before, c.call), HoldsClaim(after, c.call); {
		case had && !has:
			w.drop(c, x.ID)
		case !had && has && !x.isNew && w.claims[string(c.digest)] == "":
			// Lets the caller's ClaimLost stand: it looked under the claim's lock.
			again = append(again, c)
		}
	}
	return w.takeAgain(x, again)
}

// takeAgain claims what an effect let go of, when nobody else holds it.
func (w *work) takeAgain(x *effect, list []claim) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([]store.Claim, len(list))
	for i, c := range list {
		rows[i] = w.claimRow(c, x.Account, x.Tool, x.ID)
	}
	got, err := store.TakeClaims(w.ctx, w.tx, rows)
	for d := range got {
		w.claims[d] = x.ID
	}
	return err
}

func (w *work) claimRow(c claim, account int64, tool, effect string) store.Claim {
	return store.Claim{Digest: c.digest, Account: account, Tool: tool, BusinessKey: c.key, Effect: effect, TakenAt: ledger.At(w.now)}
}

// drop lets go of a claim, if the effect holds it, once everything is written.
func (w *work) drop(c claim, effect string) {
	w.dropped = append(w.dropped, store.Dropped{Digest: c.digest, Effect: effect, Call: c.call})
}

// letGo drops the claims of effects that hold them no longer.
func (w *work) letGo(ctx context.Context) error {
	if len(w.dropped) == 0 {
		return nil
	}
	list := w.dropped
	w.dropped = nil
	locked := make([][]byte, len(list))
	for i, d := range list {
		locked[i] = d.Digest
		delete(w.claims, string(d.Digest))
	}
	// Locked in a statement of its own: whoever looked at a claim before us and was
	// held because of it is then seen as its heir.
	if _, err := store.LockClaims(ctx, w.tx, locked); err != nil {
		return err
	}
	return store.DropClaims(ctx, w.tx, list)
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
				for _, claim := range x.claims() {
					w.drop(claim, x.ID)
				}
			}
		}
	}
	return nil
}

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
