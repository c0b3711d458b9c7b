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
