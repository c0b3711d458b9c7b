package payments_test

import (
	"testing"

	"quittance/reconcile/payments"
)

func TestAPaymentFromClaimToReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "payment-0000000001"
	a := w.claim(w.asked(id, 1))
	if a.Work != payments.NoWork || a.Paid || a.Fence == 0 || a.Payment.OrderID == "" {
		t.Fatalf("%+v", a)
	}
	if r := w.refused(w.asked(id, 1), payments.CodeInFlight); r.OrderID != a.Payment.OrderID || r.RetryAfter == 0 || r.Poll == "" {
		t.Errorf("%+v", r)
	}
	o := w.order(id, a.Fence)
	if o.Order.State != "created" || o.Order.ID != a.Payment.OrderID {
		t.Errorf("%+v", o.Order)
	}
	begun := done(w.Work(t.Context(), payments.NewWork{Step: w.step(id, a.Fence)}))(t)
	if begun.Do != "proceed" || begun.EffectID == "" {
		t.Fatalf("%+v", begun)
	}
	if got := w.broadcast(id, a.Fence); got.WorkKnown() != payments.Taken || got.Order.State != "paying" {
		t.Errorf("after the broadcast: work %s, order %s", got.WorkKnown(), got.Order.State)
	}
	w.post(w.transfer(1, 1, "4200000"), payments.Applied)
	if got := w.finish(id, a.Fence, "settled"); got.State != "settled" || got.Order.State != "paid" {
		t.Errorf("%s, order %s", got.State, got.Order.State)
	}
	again := done(w.Claim(t.Context(), w.asked(id, 1)))(t)
	if again.Do != payments.Replay || string(again.Payment.Body) != "page of "+id || again.Payment.Status != 200 {
		t.Errorf("%+v", again)
	}
	var state string
	w.get(&state, `SELECT state FROM runs WHERE run_id = $1`, payments.RunName("shop", id))
	if state != "finished" {
		t.Errorf("the run of the payment is %s", state)
	}
}
