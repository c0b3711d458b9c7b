package payments_test

import (
	"errors"
	"fmt"
	"strings"

	rows "quittance/ledger/payments"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// asEffect is the code of a refusal of the effects' engine; "" where it is none.
func (k *walk) asEffect(err error) string {
	if r, ok := errors.AsType[*effects.Refusal](err); ok {
		return string(r.Code)
	}
	return ""
}

// props are what must hold after every step, of the database and of the real world. Their
// numbers are the model's.
func (k *walk) props() {
	k.t.Helper()
	k.equation() // Q4
	for _, id := range k.ids {
		if k.performed[id] > 1 {
			k.wrong("Q1: the work of %s was done %d times", id, k.performed[id])
		}
		p := k.known(id)
		if p == nil {
			continue
		}
		if p.Fence < k.fences[id] {
			k.wrong("the fence of %s fell", id)
		}
		k.fences[id] = p.Fence
		k.offers(p)
		k.money(p)
		k.outcome(p)
	}
}

// offers: what was offered is stored, and its transfer is not left unplaced.
func (k *walk) offers(p *payments.Payment) {
	for i := range k.offered[p.PaymentID] {
		row, err := rows.ByNonce(k.t.Context(), k.db, network, token, p.Payer, nonce(k.sigs[i].n))
		if err != nil || row == nil || row.ID != p.ID {
			k.wrong("authorization %d was offered under %s and is not stored there (%v)", i, p.PaymentID, err)
		}
		t, err := rows.TransferAt(k.t.Context(), k.db, network, k.moved(i).Tx, 0)
		if err != nil || t != nil && t.Class == payments.Unmatched && !t.Reverted() {
			k.wrong("Q2: the transfer of %d is unmatched, and it was offered under %s (%v)", i, p.PaymentID, err)
		}
	}
}

// money: one authorization pays an order, and what is settled was done or is owed back.
func (k *walk) money(p *payments.Payment) {
	applied, back := 0, false
	for i := range p.Transfers {
		t := &p.Transfers[i]
		switch {
		case t.Reverted():
		case t.Class == payments.Applied:
			applied++
		case t.Class == payments.Late, t.Class == payments.Duplicate, t.Class == payments.FailedCall:
			back = true
		}
	}
	if applied > 1 {
		k.wrong("Q2: %d authorizations pay %s", applied, p.PaymentID)
	}
	working := false
	for _, x := range k.procs {
		working = working || x.id == p.PaymentID && x.fence == p.Fence
	}
	settled := p.State == string(payments.Settled) || p.PrunedFrom == string(payments.Settled)
	if settled && applied == 1 && k.performed[p.PaymentID] == 0 && !working && !back {
		k.wrong("Q9: %s is settled and paid, its work was never done, and nothing is owed", p.PaymentID)
	}
	if settled && p.Digest != nil && p.Order != nil && p.Order.State != "paid" && p.Order.State != "paying" && p.Order.State != "created" {
		k.wrong("Q9: %s is settled and answered, and its order is %s", p.PaymentID, p.Order.State)
	}
}

// outcome: what agents are told of a payment, upon which they may pay again.
func (k *walk) outcome(p *payments.Payment) {
	o, err := rows.Outcome(k.t.Context(), k.db, "acme", k.gateway, p.PaymentID)
	if err != nil || o == nil {
		k.wrong("the outcome of %s: %v", p.PaymentID, err)
	}
	for i := range k.offered[p.PaymentID] {
		if s := k.sigs[i]; o.NeverPaid && (s.mined || s.sent && !s.dead || k.mayLand(i)) {
			k.wrong("Q8: %s was never paid, agents are told, and %d may land", p.PaymentID, i)
		}
	}
	if o.PaidFinally && p.Order.State != "paid" {
		k.wrong("Q8: paid finally, and the order is %s", p.Order.State)
	}
}

// toTheEnd leaves the trouble out: every id must come to a final answer (Q6).
func (k *walk) toTheEnd() {
	k.procs = nil
	k.tell("from here on all goes well")
	for range 12 {
		open := 0
		for _, id := range k.ids {
			p := k.known(id)
			if p == nil || p.State != "in_flight" && p.State != "unknown" {
				continue
			}
			open++
			for i, s := range k.sigs {
				switch {
				case s.sent && !s.dead && !s.mined:
					s.mined, s.final = true, true
				case s.mined:
					s.final = true
				case s.signed && k.seen(i):
					s.dead = true
				}
				k.reconcile(i)
			}
			k.ageing(id)
			k.decide(id)
			k.check(false)
			k.props()
			k.ask(id, k.owner[id], k.best(id))
			for len(k.procs) > 0 {
				p := k.procs[0]
				if p.at == "sent" && p.auth >= 0 {
					k.sigs[p.auth].mined = k.sigs[p.auth].mined || k.sigs[p.auth].sent
				}
				k.act(p, false)
				k.props()
			}
		}
		if open == 0 {
			return
		}
	}
	for _, id := range k.ids {
		p := k.known(id)
		if p == nil || p.State != "in_flight" && p.State != "unknown" {
			continue
		}
		if k.best(id) >= 0 { // or else there is nothing left that it could be paid with
			k.wrong("Q6: %s comes to no final answer", id)
		}
	}
}

// best is the last authorization that an id's payer can still bring: -1 where it has none.
func (k *walk) best(id string) int {
	best := -1
	for i, s := range k.sigs {
		mine := s.signed && (i == signatures) == (k.owner[id] == bob) && !s.dead
		for _, other := range k.ids {
			_, there := k.offered[other][i]
			mine = mine && (other == id || !there)
		}
		if mine {
			best = i
		}
	}
	return best
}

// stored is what the database holds, for whoever reads a failure.
func (k *walk) stored() string {
	var b strings.Builder
	for _, id := range k.ids {
		p := k.known(id)
		if p == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: %s, fence %d, broadcast %v, work done %v\n", id, p.State, p.Fence, !p.BroadcastAt.IsZero(), p.WorkDone)
		if p.Order != nil {
			fmt.Fprintf(&b, "  order %s\n", p.Order.State)
		}
		if p.Work != nil {
			fmt.Fprintf(&b, "  work %+v\n", *p.Work)
		}
		for _, a := range p.Authorizations {
			fmt.Fprintf(&b, "  authorization %s taken up %v, dead %q\n", a.Nonce[60:], !a.TakenUpAt.IsZero(), a.DeadWhy)
		}
		for _, t := range p.Transfers {
			fmt.Fprintf(&b, "  transfer %s of %s, reverted %v\n", t.Class, t.Nonce[60:], t.Reverted())
		}
	}
	return b.String()
}
