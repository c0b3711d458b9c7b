package payments

import (
	"bytes"

	"quittance/ledger/payments"
	"quittance/reconcile/policy"
)

// facts are what the table asks about a payment. brought is left out of what is stored
// while nobody was ever told to go on with it: one that was only offered does not stand in
// the way of the caller who brings it.
func (p *Payment) facts(g *policy.Gateway, brought *payments.Authorization) Facts {
	f := Facts{
		State: State(p.State), Age: p.Now.Sub(p.ClaimedAt), Work: p.work(), Broadcast: !p.BroadcastAt.IsZero(),
		BroadcastFollowsWork: !g.MoneyFirst,
	}
	if p.Order != nil {
		f.Order = standing(p.Order.State)
	}
	dead := true
	for i := range p.Authorizations {
		a := &p.Authorizations[i]
		// An order that is over is refused, not sold: whoever saw the one that is brought may
		// still send it, so it counts then.
		if brought != nil && a.Nonce == brought.Nonce && a.TakenUpAt.IsZero() && f.Order != Unpaid {
			continue
		}
		f.Authorizations = AllDead
		dead = dead && p.closed(a)
	}
	if f.Authorizations == AllDead && !dead {
		f.Authorizations = SomeUsable
	}
	return f
}

// standing is where an order stands, as far as the table asks.
func standing(state string) Order {
	switch state {
	case "paid":
		return Paid
	case "created", "paying":
		return NotFinal
	}
	return Unpaid
}

// work is what is known of what the payment pays for.
func (p *Payment) work() Work {
	if p.WorkDone {
		return Taken
	}
	if p.Work == nil {
		return NoWork
	}
	switch p.Work.State {
	case "taken":
		if p.Work.Released {
			return Taken
		}
	case "failed":
		return NotTaken
	case "cleared", "cancelled":
		if p.Work.Released {
			return NotTaken
		}
	}
	return Undecided
}

// sentAfterWork tells that the payment was sent at a gateway that sends only once the work
// is done.
func (p *Payment) sentAfterWork(g *policy.Gateway) bool {
	return !g.MoneyFirst && !p.BroadcastAt.IsZero()
}

// closed tells that an authorization can do nothing more: it is dead, or it landed and is
// owed back.
func (p *Payment) closed(a *payments.Authorization) bool {
	if a.DeadWhy != "" {
		return true
	}
	for i := range p.Transfers {
		t := &p.Transfers[i]
		if t.Nonce == a.Nonce && t.Sender == a.Payer && t.Asset == a.Asset && !t.Reverted() && owes(t.Class) {
			return true
		}
	}
	return false
}

// landed tells that what an authorization moved is on record for the payment's order.
func (p *Payment) landed(a *payments.Authorization) bool {
	for i := range p.Transfers {
		if t := &p.Transfers[i]; t.Nonce == a.Nonce && t.Sender == a.Payer && t.Asset == a.Asset && !t.Reverted() {
			return true
		}
	}
	return false
}

// owes tells that a transfer of this class is owed back whole.
func owes(class string) bool {
	switch class {
	case "late", "duplicate", "failed_call", "given_back":
		return true
	}
	return false
}

// takenUp is the authorization that a gateway was last told to go on with, or nil.
func (p *Payment) takenUp() *payments.Authorization {
	var last *payments.Authorization
	for i := range p.Authorizations {
		a := &p.Authorizations[i]
		if !a.TakenUpAt.IsZero() && (last == nil || last.TakenUpAt.Before(a.TakenUpAt.Time)) {
			last = a
		}
	}
	return last
}

// known is the stored form of an authorization, or nil.
func (p *Payment) known(a *payments.Authorization) *payments.Authorization {
	for i := range p.Authorizations {
		if a != nil && p.Authorizations[i].Nonce == a.Nonce && p.Authorizations[i].Payer == a.Payer {
			return &p.Authorizations[i]
		}
	}
	return nil
}

// caller is who asks, compared with what is stored.
func (p *Payment) caller(a asked) Caller {
	c := Caller{
		SamePayer: p.Payer == a.Payer, SameRequest: bytes.Equal(p.Fingerprint, a.Fingerprint),
		SameAttempt: a.attempt != "" && a.attempt == p.AttemptID,
	}
	if a.auth == nil {
		return c
	}
	stored, last := p.known(a.auth), p.takenUp()
	switch {
	case stored != nil && last != nil && stored.ID == last.ID:
		c.Brings = StoredOne
	case stored != nil && p.closed(stored):
		c.Brings = AnotherDead
	default:
		c.Brings = Another
	}
	return c
}
