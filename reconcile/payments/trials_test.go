package payments_test

import (
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

const p1, p2 = "payment-0000000001", "payment-0000000002"

// One live payment a quote.
func TestBC013_AQuoteHasOneLivePayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.asked(p1, 1)
	first.Quote = "q-88"
	a := w.claim(first)
	second := w.asked(p2, 2)
	second.Quote = "q-88"
	r := w.refused(second, payments.CodeInFlight)
	if r.PaymentID != p1 || r.OrderID != a.Payment.OrderID || r.RetryAfter == 0 || r.Poll == "" {
		t.Errorf("%+v", r)
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM payments`); n != 1 {
		t.Errorf("%d payment ids are stored for the quote", n)
	}
	// Somebody else's quote tells nothing of it.
	second.Payer = bob
	if r := w.refused(second, payments.CodeConflict); r.Reason != payments.ReasonPayer || r.OrderID != "" || r.PaymentID != "" {
		t.Errorf("%+v", r)
	}
}

// A re-signed authorization is the same purchase, and if it lands it is given back.
func TestBC014_AResignedAuthorizationIsTheSamePurchase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.sold(p1, 1)
	got := done(w.Claim(t.Context(), w.asked(p1, 2)))(t)
	if got.Do != payments.Replay || got.Payment.OrderID != a.Payment.OrderID {
		t.Errorf("%+v", got)
	}
	m := w.post(w.transfer(2, 2, "4200000"), payments.Duplicate)
	if m.Refund == nil || m.Refund.Amount.String() != "4200000" || m.Refund.Reason != "duplicate" {
		t.Errorf("%+v", m.Refund)
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM refunds`); n != 1 {
		t.Errorf("%d rows are owed", n)
	}
}

// Nothing merges two payment ids but the id.
func TestBC029_OnlyAnEqualIdMergesPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.claim(w.asked(p1, 1)), w.claim(w.asked(p2, 2))
	if a.Payment.OrderID == b.Payment.OrderID {
		t.Error("one order")
	}
}

func TestBC030_APaidPaymentHealsAfterItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.Gateway = "shop"
	c := w.claim(a)
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.post(w.transfer(1, 1, "4200000"), payments.Applied)
	for _, age := range []time.Duration{10 * time.Second, 179 * time.Second} {
		w.age(p1, age)
		if r := w.refused(a, payments.CodeInFlight); r.RetryAfter != 5*time.Second || r.OrderID == "" {
			t.Errorf("after %s: %+v", age, r)
		}
	}
	w.age(p1, 181*time.Second)
	got := done(w.Claim(t.Context(), a))(t)
	if got.Do != payments.Replay || !got.Payment.Healed || got.Payment.Digest != nil || got.Payment.OrderID != c.Payment.OrderID {
		t.Errorf("%+v", got)
	}
	// Whoever held it may still say once what it answered.
	f := payments.Finish{Step: w.step(p1, c.Fence), Outcome: "settled", Response: &payments.Response{Status: 200, Body: []byte("late")}}
	done(w.Finish(t.Context(), f))(t)
	f.Response.Body = []byte("another")
	_, err := w.Finish(t.Context(), f)
	refusal(t, nil, err, payments.CodeStaleFence)
	if got := done(w.Claim(t.Context(), a))(t); string(got.Payment.Body) != "late" || !got.Payment.Healed {
		t.Errorf("%q", got.Payment.Body)
	}
}

// The gateway's name for its order look-up stands in the place of our URL.
func TestBC030_ThePollIsTheGateways(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.Gateway = "named"
	w.claim(a)
	if r := w.refused(a, payments.CodeInFlight); r.Poll != "shop.order.get" {
		t.Errorf("poll is %q", r.Poll)
	}
}

// An age is told by the database's clock, and exactly 180 s are not old yet: the pure
// table's test holds the three to the tenth of a second.
func TestBC033_ExactlyTheHealingAgeIsNotOldYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, age := range []time.Duration{179 * time.Second, 181 * time.Second} {
		id := []string{p1, p2}[i]
		a := w.asked(id, 0)
		w.claim(a)
		w.age(id, age)
		if i == 0 {
			w.refused(a, payments.CodeInFlight)
		} else if got := w.claim(a); got.Fence != 2 {
			t.Errorf("taken over with fence %d", got.Fence)
		}
	}
	for age, want := range map[time.Duration]payments.Do{
		179_900 * time.Millisecond: payments.Wait, 180 * time.Second: payments.Wait, 180_100 * time.Millisecond: payments.Replay,
	} {
		d := payments.Decide(payments.Facts{State: payments.InFlight, Order: payments.Paid, Work: payments.Taken, Age: age}, payments.Caller{SamePayer: true, SameRequest: true})
		if d.Do != want || want == payments.Wait && d.Retry != 5*time.Second {
			t.Errorf("%s: %+v", age, d)
		}
	}
}

// A pruned payment is spent for ever, and never claimed again by whoever was slower.
func TestBC035_APrunedPaymentIsSpentForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.sold(p1, 1)
	if err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := done(w.Claim(t.Context(), w.asked(p1, 1)))(t); got.Do != payments.Replay {
		t.Error("pruned before the time that was promised")
	}
	w.exec(`UPDATE payments SET ended_at = ended_at - interval '31 days'`)
	if err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := w.refused(w.asked(p1, 1), payments.CodeSpent); r.OrderID != c.Payment.OrderID {
		t.Errorf("%+v", r)
	}
	other := w.asked(p1, 1)
	other.Amount = "1"
	if r := w.refused(other, payments.CodeConflict); r.Reason != payments.ReasonRequest || r.OrderID != c.Payment.OrderID {
		t.Errorf("%+v", r)
	}
	other.Payer = bob
	if r := w.refused(other, payments.CodeConflict); r.Reason != payments.ReasonPayer || r.OrderID != "" {
		t.Errorf("%+v", r)
	}
	// Its authorization is not free either.
	again := w.asked(p2, 1)
	w.refused(again, payments.CodeConflict)
}

// A definite refusal is replayed; an unclear answer stays open.
func TestBC036_ARefusalIsReplayedAndAnUnclearAnswerStaysOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.claim(w.asked(p1, 1)), w.claim(w.asked(p2, 2))
	w.order(p1, a.Fence)
	w.finish(p1, a.Fence, "refused")
	got := done(w.Claim(t.Context(), w.asked(p1, 1)))(t)
	if got.Do != payments.Replay || got.Payment.State != "refused" || string(got.Payment.Body) != "page of "+p1 || got.Payment.Order.State != "failed" {
		t.Errorf("%+v", got.Payment)
	}
	w.order(p2, b.Fence)
	w.broadcast(p2, b.Fence)
	w.finish(p2, b.Fence, "unknown")
	for range 2 {
		w.refused(w.asked(p2, 2), payments.CodeInFlight)
		w.age(p2, 48*time.Hour)
	}
}

// A finish that comes when the database is back closes the work late.
func TestBC037_TheWorkOfAPaymentIsFinishedLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	begun := done(w.Work(t.Context(), payments.NewWork{Step: w.step(p1, c.Fence)}))(t)
	w.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '12 minutes', moment = clock_timestamp() - interval '12 minutes'`)
	w.lapse(begun.EffectID)
	w.age(p1, 12*time.Minute)
	w.refused(w.asked(p1, 1), payments.CodeInFlight) // its work waits for a person: never freed
	answers, err := w.effects.Apply(t.Context(), []effects.Op{{Finish: &effects.Finish{Account: w.account, EffectID: begun.EffectID, Fence: begun.Fence, Outcome: "taken", Result: []byte(`{"page":1}`)}}})
	if err != nil || answers[0].Refusal != nil {
		t.Fatal(err, answers)
	}
	if got := w.payment(p1); got.WorkKnown() != payments.Taken {
		t.Errorf("work is %s", got.WorkKnown())
	}
	got := w.claim(w.asked(p1, 1))
	if got.Work != payments.Taken || got.WorkResult != `{"page":1}` {
		t.Errorf("%+v", got)
	}
}

// A field more is another request, unless the policy leaves it out.
func TestBC038_AFieldMoreIsAnotherRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.Arguments = []byte(`{"amount":"18.40","note":"order 8"}`)
	c := w.claim(a)
	more := a
	more.Arguments = []byte(`{"amount":"18.40","note":"order 8","request_time":7}`)
	if r := w.refused(more, payments.CodeConflict); r.Reason != payments.ReasonRequest || r.OrderID != c.Payment.OrderID {
		t.Errorf("%+v", r)
	}
	b := w.asked(p2, 2)
	b.Tool, b.Arguments = "fetch_page", []byte(`{"page":"a","request_time":1}`)
	w.claim(b)
	b.Arguments = []byte(`{"request_time":2,"page":"a"}`)
	w.refused(b, payments.CodeInFlight)
}

// Only conflicts alert.
func TestBC039_OnlyConflictsAlert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim(w.asked(p1, 1))
	alerts := func() (n int) { w.get(&n, `SELECT count(*) FROM payment_events WHERE alert`); return n }
	w.refused(w.asked(p1, 1), payments.CodeInFlight)
	if n := alerts(); n != 0 {
		t.Errorf("%d alerts of a plain repeat", n)
	}
	other := w.asked(p1, 1)
	other.Payer = bob
	for range 3 {
		if r := w.refused(other, payments.CodeConflict); r.Reason != payments.ReasonPayer {
			t.Errorf("%+v", r)
		}
	}
	if n := alerts(); n != 1 {
		t.Errorf("%d alerts of one conflict, tried three times", n)
	}
}

// Another payer is told nothing but that it is not theirs.
func TestBC042_AnotherPayerIsToldNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sold(p1, 1)
	a := w.asked(p1, 2)
	a.Payer, a.Amount = bob, "1"
	r := w.refused(a, payments.CodeConflict)
	if r.Reason != payments.ReasonPayer || r.OrderID+r.PaymentID+r.Poll+r.State != "" {
		t.Errorf("%+v", r)
	}
	// The same id in another account is another payment.
	w.exec(`INSERT INTO accounts (name) VALUES ('globex')`)
	var other int64
	w.get(&other, `SELECT id FROM accounts WHERE name = 'globex'`)
	b := w.asked(p1, 3)
	b.Account = other
	w.claim(b)
	// And so is its authorization somebody else's.
	b.PaymentID, b.Authorization.Nonce = p2, nonce(1)
	if r := w.refused(b, payments.CodeConflict); r.Reason != payments.ReasonPayer || r.OrderID != "" {
		t.Errorf("%+v", r)
	}
}

func TestBC044_AnotherToolIsAnotherRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sold(p1, 1)
	a := w.asked(p1, 1)
	a.Tool = "cancel_page"
	if r := w.refused(a, payments.CodeConflict); r.Reason != payments.ReasonRequest {
		t.Errorf("%+v", r)
	}
}

// The answer is replayed as it first went out.
func TestBC046_TheAnswerIsReplayedAsItWentOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	f := payments.Finish{Step: w.step(p1, c.Fence), Outcome: "settled", Response: &payments.Response{Status: 201, Headers: map[string]string{"X-Receipt": "r"}, Body: []byte{0, 255, 1}}}
	done(w.Finish(t.Context(), f))(t)
	got := done(w.Claim(t.Context(), w.asked(p1, 1)))(t)
	if got.Do != payments.Replay || got.Payment.Status != 201 || string(got.Payment.Body) != "\x00\xff\x01" || got.Payment.Headers != `{"X-Receipt":"r"}` {
		t.Errorf("%+v", got.Payment.Answer)
	}
	if w.ReceiptURL(got.Payment.Order) == "" || w.ReceiptURL(got.Payment.Order) != w.ReceiptURL(w.payment(p1).Order) {
		t.Error("another receipt")
	}
}

// A number spelt otherwise in the arguments is another request: the safe answer.
func TestBC053_ANumberSpeltOtherwiseIsAnotherRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.Arguments = []byte(`{"amount":"0.02","network":"polygon"}`)
	c := w.claim(a)
	for _, args := range []string{`{"amount":"0.020","network":"polygon"}`, `{"amount":"0.02","chain":137}`} {
		b := a
		b.Arguments = []byte(args)
		if r := w.refused(b, payments.CodeConflict); r.Reason != payments.ReasonRequest || r.OrderID != c.Payment.OrderID {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// A settle that gave no answer is unknown until the rail tells.
func TestBC069_ASettleWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	done(w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, c.Fence), Hash: nonce(9)}))(t)
	done(w.Finish(t.Context(), payments.Finish{Step: w.step(p1, c.Fence), Outcome: "unknown", Why: "time-out"}))(t)
	if got := w.payment(p1); got.BroadcastHash != nonce(9) || got.State != "unknown" {
		t.Errorf("%+v", got.Row)
	}
	for range 6 {
		w.refused(w.asked(p1, 1), payments.CodeInFlight)
		w.checkNow(p1)
		w.age(p1, old)
	}
	if w.rail.asked < 6 {
		t.Errorf("the rail was asked %d times", w.rail.asked)
	}
	w.rail.say(nonce(1), w.landed(1, 1, "4200000"))
	w.checkNow(p1)
	if got := done(w.Claim(t.Context(), w.asked(p1, 1)))(t); got.Do != payments.Replay || got.Payment.State != "settled" {
		t.Errorf("%+v", got.Payment.Row)
	}
}

// The gateway's word and the rail's of one movement are one transfer.
func TestBC098_OneMovementIsOneTransfer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	in := w.transfer(1, 1, "4200000")
	answers := each(16, func(int) (*payments.Moved, error) { return w.Post(t.Context(), in) })
	news := 0
	for _, a := range answers {
		if a.err != nil || a.v.Transfer.Class != payments.Applied || a.v.Refund != nil {
			t.Fatalf("%+v %v", a.v, a.err)
		}
		if a.v.New {
			news++
		}
	}
	if news != 1 {
		t.Errorf("recorded %d times", news)
	}
	w.equation()
}

// A failure that is told late moves no order.
func TestBC099_AFailureToldLateMovesNoOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 0))
	w.order(p1, c.Fence)
	w.age(p1, old)
	second := w.claim(w.asked(p1, 1))
	w.broadcast(p1, second.Fence)
	w.post(w.transfer(1, 1, "4200000"), payments.Applied)
	_, err := w.Finish(t.Context(), payments.Finish{Step: w.step(p1, c.Fence), Outcome: "refused", Why: "declined"})
	refusal(t, nil, err, payments.CodeStaleFence)
	if got := w.payment(p1); got.Order.State != "paid" {
		t.Errorf("order is %s", got.Order.State)
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM payment_events WHERE kind = 'late_finish'`); n != 1 {
		t.Errorf("kept %d times", n)
	}
}

// Told twice at once, and again later: one change, and every teller is answered.
func TestBC101_AMovementToldThreeTimesIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	in := w.transfer(1, 1, "4200000")
	for _, a := range each(2, func(int) (*payments.Moved, error) { return w.Post(t.Context(), in) }) {
		if a.err != nil {
			t.Fatal(a.err)
		}
	}
	upper := in
	upper.Tx, upper.From, upper.Asset = "0X"+upperHex(in.Tx), "0X"+upperHex(in.From), "0X"+upperHex(in.Asset)
	w.post(upper, payments.Applied)
	var n int
	if w.get(&n, `SELECT count(*) FROM transfers`); n != 1 {
		t.Errorf("%d transfers", n)
	}
}
