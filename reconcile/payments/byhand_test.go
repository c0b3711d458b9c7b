package payments_test

import (
	"testing"

	"quittance/reconcile/access"
	"quittance/reconcile/payments"
)

func (w *world) byHand(transfer, order string) payments.ByHand {
	return payments.ByHand{By: access.MadeBy{Person: &access.Person{ID: w.person.ID, Name: w.person.Name}}, Transfer: transfer, Order: order, Note: "as the payer wrote"}
}

// A transfer that names nothing is matched to its order by a person, or given back, once.
func TestAPersonPlacesWhatNamesNoOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "payment-0000000001"
	a := w.claim(w.asked(id, 1))
	w.order(id, a.Fence)
	first := w.post(w.transfer(1, 0, "4200000"), payments.Unmatched)
	second := w.post(w.transfer(2, 0, "4200000"), payments.Unmatched)
	third := w.post(w.transfer(3, 0, "7"), payments.Unmatched)
	in := w.byHand(first.Transfer.ID, a.Payment.OrderID)
	in.Note = ""
	_, err := w.Match(t.Context(), in)
	refusal(t, nil, err, payments.CodeConflict)
	m := done(w.Match(t.Context(), w.byHand(first.Transfer.ID, a.Payment.OrderID)))(t)
	if m.Transfer.Class != payments.Applied || w.payment(id).Order.State != "paid" {
		t.Errorf("%+v, order %s", m.Transfer, w.payment(id).Order.State)
	}
	_, err = w.Match(t.Context(), w.byHand(first.Transfer.ID, a.Payment.OrderID))
	refusal(t, nil, err, payments.CodeConflict)
	m = done(w.Match(t.Context(), w.byHand(second.Transfer.ID, a.Payment.OrderID)))(t)
	if m.Transfer.Class != payments.Duplicate || m.Refund == nil || m.Refund.Amount.String() != "4200000" || m.Refund.OpenedBy != w.person.ID {
		t.Errorf("%+v %+v", m.Transfer, m.Refund)
	}
	m = done(w.GiveBack(t.Context(), w.byHand(third.Transfer.ID, "")))(t)
	if m.Transfer.Class != payments.GivenBack || m.Refund.Amount.String() != "7" || m.Refund.Payer != alice {
		t.Errorf("%+v %+v", m.Transfer, m.Refund)
	}
	_, err = w.GiveBack(t.Context(), w.byHand(third.Transfer.ID, ""))
	refusal(t, nil, err, payments.CodeConflict)
	_, err = w.Match(t.Context(), w.byHand(third.Transfer.ID, "00000000-0000-0000-0000-000000000000"))
	refusal(t, nil, err, payments.CodeConflict)
	w.equation()
}

// What was held for an order and topped up is reorganised away: where the rest still pays
// the order it stays paid, and less is over. It was held as if it paid nothing before, and
// the next transfer broke the table.
func TestAReorganisationLeavesWhatTheRestPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "payment-0000000001"
	a := w.claim(w.asked(id, 0))
	w.order(id, a.Fence)
	of := func(n int, amount string) payments.Incoming {
		in := w.transfer(n, 0, amount)
		in.OrderID = a.Payment.OrderID
		return in
	}
	held := of(1, "1000000")
	w.post(held, payments.Under)
	big := w.post(of(2, "5000000"), payments.Applied)
	if big.Refund == nil || big.Refund.Amount.String() != "1800000" {
		t.Fatalf("%+v", big.Refund)
	}
	held.Reverted = true
	w.post(held, payments.Applied)
	p := w.payment(id)
	if p.Order.State != "paid" || p.Refunds[0].Amount.String() != "800000" {
		t.Errorf("order %s, owed %s", p.Order.State, p.Refunds[0].Amount)
	}
	w.post(of(3, "10"), payments.Duplicate)
	held.Reverted = false
	w.post(held, payments.Duplicate)
}

// Money for an order that was over when it came is owed back whole, and moves no order.
func TestBC089_MoneyAfterTheOrderWasFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const paid, expired = "payment-0000000001", "payment-0000000002"
	a, b := w.claim(w.asked(paid, 1)), w.claim(w.asked(expired, 2))
	w.order(paid, a.Fence)
	w.order(expired, b.Fence)
	w.post(w.transfer(1, 1, "4200000"), payments.Applied)
	w.finish(paid, a.Fence, "settled")
	w.finish(expired, b.Fence, "refused")
	late := w.transfer(2, 0, "8000000")
	late.OrderID = a.Payment.OrderID
	w.post(late, payments.Duplicate)
	w.post(w.transfer(3, 2, "4200000"), payments.Late)
	for id, want := range map[string][2]string{paid: {"paid", "8000000"}, expired: {"failed", "4200000"}} {
		p := w.payment(id)
		state, amount, _ := payments.RefundState(p.Refunds)
		if p.Order.State != want[0] || state != "owed" || amount.String() != want[1] {
			t.Errorf("%s: order %s, %s %s; want %v", id, p.Order.State, state, amount, want)
		}
	}
}
