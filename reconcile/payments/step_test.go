package payments_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/payments"
)

// A late writer changes nothing, at no step, and what it brought is kept.
func TestALateWriterIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 0))
	w.age(p1, old)
	w.claim(w.asked(p1, 0))
	s := w.step(p1, c.Fence)
	_, err := w.Order(t.Context(), payments.NewOrder{Step: s})
	refusal(t, nil, err, payments.CodeStaleFence)
	_, err = w.Broadcast(t.Context(), payments.Sending{Step: s, Hash: nonce(3)})
	refusal(t, nil, err, payments.CodeStaleFence)
	_, err = w.Work(t.Context(), payments.NewWork{Step: s})
	refusal(t, nil, err, payments.CodeStaleFence)
	for _, outcome := range []string{"settled", "refused", "unknown"} {
		_, err = w.Finish(t.Context(), payments.Finish{Step: s, Outcome: outcome, Tx: nonce(4)})
		if r := refusal(t, nil, err, payments.CodeStaleFence); r.Fence != c.Fence+1 || r.State != "in_flight" {
			t.Errorf("%+v", r)
		}
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM payment_events WHERE kind LIKE 'late\_%'`); n != 6 {
		t.Errorf("%d were kept", n)
	}
}

// Nothing is done for an order that is over and not paid.
func TestAnOrderThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	done(w.Cancel(t.Context(), w.step(p1, 0).Name))(t)
	_, err := w.Work(t.Context(), payments.NewWork{Step: w.step(p1, c.Fence)})
	refusal(t, nil, err, payments.CodeOrderFinal)
	_, err = w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, c.Fence)})
	refusal(t, nil, err, payments.CodeOrderFinal)
	_, err = w.Finish(t.Context(), payments.Finish{Step: w.step(p1, c.Fence), Outcome: "settled"})
	refusal(t, nil, err, payments.CodeOrderFinal)
	if got := w.payment(p1); got.State != "in_flight" || got.Order.State != "cancelled" {
		t.Errorf("%s, %s", got.State, got.Order.State)
	}
	// What was sent for an order may land: it is not cancelled.
	c = w.claim(w.asked(p2, 2))
	w.order(p2, c.Fence)
	w.broadcast(p2, c.Fence)
	_, err = w.Cancel(t.Context(), w.step(p2, 0).Name)
	refusal(t, nil, err, payments.CodeInFlight)
}

// "Refused" of what was sent and may land proves nothing.
func TestARefusalAfterTheSendIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	got := done(w.Finish(t.Context(), payments.Finish{Step: w.step(p1, c.Fence), Outcome: "refused", Why: "success: false"}))(t)
	if got.State != "unknown" || got.Order.State != "paying" || got.CheckAt.IsZero() {
		t.Errorf("%s, order %s, check at %s", got.State, got.Order.State, got.CheckAt)
	}
}

// A take-over after the order was paid does the work and the finish, and sends nothing.
func TestWhatIsPaidIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.post(w.transfer(1, 1, "4200000"), payments.Applied)
	w.age(p1, old)
	got := w.claim(w.asked(p1, 1))
	if !got.Paid || got.Work != payments.NoWork {
		t.Errorf("%+v", got)
	}
	_, err := w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, got.Fence)})
	refusal(t, nil, err, payments.CodeOrderFinal)
	done(w.Work(t.Context(), payments.NewWork{Step: w.step(p1, got.Fence)}))(t)
	w.finish(p1, got.Fence, "settled")
}

// The answer is frozen: above the stored limit size and digest, and no cookies.
func TestTheFrozenAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	f := payments.Finish{Step: w.step(p1, c.Fence), Outcome: "settled", Response: &payments.Response{
		Status: 200, Headers: map[string]string{"Set-Cookie": "session=1", "X-A": "b"}, Body: bytes.Repeat([]byte("x"), payments.ResponseLimit+1),
	}}
	got := done(w.Finish(t.Context(), f))(t)
	if got.Body != nil || got.Size != int64(payments.ResponseLimit+1) || strings.Contains(got.Headers, "session") || len(got.Digest) != 32 {
		t.Errorf("%d bytes, size %d, %s", len(got.Body), got.Size, got.Headers)
	}
	if again := done(w.Finish(t.Context(), f))(t); again.State != "settled" {
		t.Errorf("%+v", again.Row)
	}
	if err := w.db.Once(t.Context(), new(int64), `UPDATE payments SET response_status = 500 RETURNING id`); err == nil {
		t.Error("the database lets a frozen answer change")
	}
}

func TestBadClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for pointer, change := range map[string]func(*payments.Asked){
		"/payment_id":                   func(a *payments.Asked) { a.PaymentID = "short" },
		"/payment_id ":                  func(a *payments.Asked) { a.PaymentID = "payment id with spaces" },
		"/amount":                       func(a *payments.Asked) { a.Amount = "-1" },
		"/amount ":                      func(a *payments.Asked) { a.Amount = "1e6" },
		"/amount  ":                     func(a *payments.Asked) { a.Amount = "٤٢" },
		"/amount   ":                    func(a *payments.Asked) { a.Amount = "4.2" },
		"/amount    ":                   func(a *payments.Asked) { a.Amount = "0" },
		"/amount     ":                  func(a *payments.Asked) { a.Amount = strings.Repeat("9", 39) },
		"/payer":                        func(a *payments.Asked) { a.Payer = "alice" },
		"/gateway":                      func(a *payments.Asked) { a.Gateway = "" },
		"/request":                      func(a *payments.Asked) { a.HasRequest = false },
		"/request_digest":               func(a *payments.Asked) { a.HasRequest, a.RequestDigest = false, "zz" },
		"/request/arguments":            func(a *payments.Asked) { a.Arguments = []byte(`"text"`) },
		"/authorization/nonce":          func(a *payments.Asked) { a.Authorization.Nonce = "0x1" },
		"/authorization/valid_before":   func(a *payments.Asked) { a.Authorization.ValidBefore = "-1" },
		"/authorization/valid_before  ": func(a *payments.Asked) { a.Authorization.ValidBefore = strings.Repeat("9", 30) },
	} {
		a := w.asked(p1, 1)
		change(&a)
		r := w.refused(a, payments.CodeInvalid)
		if len(r.Faults) != 1 || r.Faults[0].Pointer != strings.TrimSpace(pointer) {
			t.Errorf("%s: %+v", pointer, r.Faults)
		}
	}
	w.rail.signer = bob
	a := w.asked(p1, 1)
	a.Authorization.Signature = "0x00"
	if r := w.refused(a, payments.CodeInvalid); r.Faults[0].Pointer != "/authorization/signature" {
		t.Errorf("%+v", r.Faults)
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM payments`); n != 0 {
		t.Errorf("%d payments were stored", n)
	}
}

func TestBadTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sold(p1, 1)
	b := w.claim(w.asked(p2, 2))
	w.order(p2, b.Fence)
	in := w.transfer(1, 1, "4200000")

	other := in // the same movement under another id
	other.Gateway, other.PaymentID = "shop", p2
	_, err := w.Post(t.Context(), other)
	refusal(t, nil, err, payments.CodeConflict)
	other = in // and of another amount
	other.Amount = "4200001"
	_, err = w.Post(t.Context(), other)
	refusal(t, nil, err, payments.CodeConflict)
	other = w.transfer(7, 0, "1") // an order of another gateway
	other.Gateway, other.PaymentID = "bank", p1
	_, err = w.Post(t.Context(), other)
	refusal(t, nil, err, payments.CodeInvalid)
	for _, amount := range []string{"1.0", "-1", "1e3", "０１"} {
		other = w.transfer(8, 0, amount)
		_, err = w.Post(t.Context(), other)
		refusal(t, nil, err, payments.CodeInvalid)
	}
	w.exec(`INSERT INTO accounts (name) VALUES ('globex')`)
	other = in
	w.get(&other.Account, `SELECT id FROM accounts WHERE name = 'globex'`)
	_, err = w.Post(t.Context(), other)
	refusal(t, nil, err, payments.CodeConflict)
	other.Tx, other.OrderID = nonce(9), w.payment(p1).OrderID
	_, err = w.Post(t.Context(), other)
	refusal(t, nil, err, payments.CodeInvalid)
	var n int
	if w.get(&n, `SELECT count(*) FROM transfers`); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// A read that was paid for serves the same payer again for two minutes, and nobody else.
func TestRepeatedReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sold(p1, 1)
	ask := func(change func(*payments.Asked)) *payments.Reading {
		t.Helper()
		a := payments.Asked{Account: w.account, Gateway: "shop", Payer: alice, HasRequest: true, Method: "GET", Tool: "fetch_page", Arguments: []byte(`{"page":"a","request_time":1}`)}
		change(&a)
		return done(w.Read(t.Context(), a))(t)
	}
	same := func(*payments.Asked) {}
	failed := ask(same)
	if !failed.Charged {
		t.Fatal("the first read is not charged")
	}
	finish := func(r *payments.Reading, outcome, payment string) {
		t.Helper()
		err := w.FinishRead(t.Context(), payments.FinishRead{Account: w.account, ID: r.ID, Outcome: outcome, PaymentID: payment, Response: &payments.Response{Status: 200, Body: []byte("A")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	finish(failed, "failed", "")
	first := ask(same)
	if !first.Charged {
		t.Fatal("a failed read is used again")
	}
	finish(first, "taken", p1)
	again := ask(func(a *payments.Asked) { a.Arguments = []byte(`{"request_time":2,"page":"a"}`) })
	if again.Charged || string(again.Response.Body) != "A" || again.Payment.PaymentID != p1 {
		t.Errorf("%+v", again)
	}
	for what, change := range map[string]func(*payments.Asked){
		"another payer":         func(a *payments.Asked) { a.Payer = bob },
		"another read":          func(a *payments.Asked) { a.Arguments = []byte(`{"page":"b"}`) },
		"a write":               func(a *payments.Asked) { a.Tool = "write_page" },
		"a rail of money first": func(a *payments.Asked) { a.Gateway = "bank" },
	} {
		if !ask(change).Charged {
			t.Errorf("%s is not charged", what)
		}
	}
	w.exec(`UPDATE paid_reads SET asked_at = asked_at - interval '121 seconds'`)
	if !ask(same).Charged {
		t.Error("a read is used again after two minutes")
	}
}

// What a log gap may have lost is unknown, and no late writer of before it acts.
func TestPaymentsInALogGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	if err := w.effects.FindGap(t.Context(), "a restored database"); err != nil {
		t.Fatal(err)
	}
	w.refused(w.asked(p2, 2), payments.CodeLogBehind)
	_, err := w.Order(t.Context(), payments.NewOrder{Step: w.step(p1, c.Fence)})
	refusal(t, nil, err, payments.CodeLogBehind)
	_, err = w.Post(t.Context(), w.transfer(1, 1, "1"))
	refusal(t, nil, err, payments.CodeLogBehind)
	if err := w.effects.AcknowledgeGap(t.Context(), w.person, "restored by hand"); err != nil {
		t.Fatal(err)
	}
	if got := w.payment(p1); got.State != "unknown" || got.Fence < 1_000_000 || got.CheckAt.IsZero() {
		t.Errorf("%+v", got.Row)
	}
	_, err = w.Order(t.Context(), payments.NewOrder{Step: w.step(p1, c.Fence)})
	refusal(t, nil, err, payments.CodeStaleFence)
	// What would be new may have been claimed in what was lost.
	w.refused(w.asked(p2, 2), payments.CodeInFlight)
	if got := w.payment(p2); got.State != "unknown" || got.Fence < 1_000_000 {
		t.Errorf("%+v", got.Row)
	}
	if err := w.effects.EndGap(t.Context(), w.person, "done"); err != nil {
		t.Fatal(err)
	}
	if got := w.claim(w.asked("payment-0000000003", 3)); got.Fence < 1_000_000 {
		t.Errorf("fence %d", got.Fence)
	}
}

// The checks after a settle that gave no answer come at 15 s, 45 s, 2 min and 5 min, and
// then go on for ever.
func TestTheTargetedCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.finish(p1, c.Fence, "unknown")
	for _, want := range []time.Duration{15 * time.Second, 30 * time.Second, 75 * time.Second, 3 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		p := w.payment(p1)
		if wait := p.CheckAt.Sub(p.Now); wait > want || wait < want-5*time.Second {
			t.Errorf("asked in %s, want %s", wait, want)
		}
		w.checkNow(p1)
	}
	if w.rail.asked != 6 {
		t.Errorf("asked %d times", w.rail.asked)
	}
}
