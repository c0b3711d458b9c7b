package gateway_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

const anID = "pay_0123456789abcdef"

// An unpaid request is told how to pay, and a paid one is answered once: every repeat gets
// the same, also of a gateway that was started anew.
func TestBC046_ARepeatGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.send(request{method: http.MethodPost, path: "/write", body: `{"page":"a"}`}).is(t, 402, "payment_required")
	offer, err := x402.Decode[x402.Required](asked.header.Get(x402.RequiredHeader))
	if err != nil || len(offer.Accepts) != 1 || !offer.Accepts[0].Same(price) || offer.Extensions[x402.PaymentIdentifier] == nil || asked.header.Get(x402.QuoteHeader) == "" {
		t.Fatalf("%+v, %v", offer, err)
	}
	first := w.send(buy(anID, 1)).is(t, 201, "settled")
	if first.body != "page 1" || first.header.Get(x402.ReplayedHeader) != "false" || first.header.Get(x402.ReceiptHeader) == "" || first.header.Get(x402.OrderHeader) == "" {
		t.Errorf("%+v", first)
	}
	s, err := x402.Decode[x402.Settlement](first.header.Get(x402.ResponseHeader))
	if err != nil || !s.Success || s.Transaction == "" {
		t.Errorf("%+v, %v", s, err)
	}
	w.restart("shop")
	for _, nonce := range []int{1, 2} { // the same authorization, and another for the same id
		again := w.send(buy(anID, nonce)).is(t, 201, "settled")
		if again.body != first.body || again.header.Get(x402.ReplayedHeader) != "true" || again.header.Get(x402.ReceiptHeader) != first.header.Get(x402.ReceiptHeader) ||
			again.header.Get(x402.ResponseHeader) != first.header.Get(x402.ResponseHeader) || again.header.Get("Content-Type") != "text/plain" {
			t.Errorf("%+v", again)
		}
	}
	if w.work.times() != 1 || w.rail.settled != 1 || w.rail.movements() != 1 {
		t.Errorf("%d done, %d settled", w.work.times(), w.rail.settled)
	}
}

// Where nothing was ever begun for it, a payment by an old price is asked for anew; where
// something was, its answer is found.
func TestAnOldPriceIsAskedForAnewOnlyIfNothingWasBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cheap := func(p *x402.Payload) {
		p.Accepted.Amount = "1"
		var x x402.Exact
		must(t, json.Unmarshal(p.Payload, &x))
		x.Authorization.Value = "1"
		raw, err := json.Marshal(x)
		must(t, err)
		p.Payload = raw
	}
	r := buy(anID, 1)
	r.change = cheap
	w.send(r).is(t, 402, "payment_required")
	w.send(buy(anID, 2)).is(t, 201, "settled")
	w.send(r).is(t, 409, client.CodePaymentConflict)
	if w.rail.settled != 1 {
		t.Errorf("%d settled", w.rail.settled)
	}
}

// What cannot be read is refused before anything is asked or recorded.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, r := range map[string]request{
		"an id that is too short": buy("short", 1),
		"an id with a slash":      buy("pay_0123456789abc/def", 1),
		"two ids": {change: func(p *x402.Payload) {
			must(t, p.Identify(map[string]json.RawMessage{x402.PaymentIdentifier: x402.OfferIdentifier(false)}, "pay_another_one_123"))
		}},
		"version 1":                  {change: func(p *x402.Payload) { p.X402Version = 1 }},
		"another scheme":             {change: func(p *x402.Payload) { p.Accepted.Scheme = "upto" }},
		"no authorization":           {change: func(p *x402.Payload) { p.Payload = json.RawMessage(`{}`) }},
		"another recipient":          {change: func(p *x402.Payload) { p.Accepted.PayTo = bob }},
		"another amount than signed": {change: func(p *x402.Payload) { p.Accepted.Amount = "1" }},
	} {
		if r.id == "" {
			change := r.change
			r = buy(anID, 1)
			r.change = change
		}
		if got := w.send(r); got.status != 400 || got.problem.Code != client.CodeMalformed {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if len(w.gate.seen) != 0 {
		t.Errorf("asked: %q", w.gate.seen)
	}
}

// Without an id of its own a payer is known by its authorization: a resend meets what it
// began.
func TestAnAuthorizationStandsForAnID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send(buy("", 1)).is(t, 201, "settled")
	again := w.send(buy("", 1)).is(t, 201, "settled")
	if again.body != first.body || w.rail.settled != 1 || again.header.Get(x402.ReplayedHeader) != "true" {
		t.Errorf("%+v; %d settled", again, w.rail.settled)
	}
}

func TestBC029_TwoIDsAreTwoPurchases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.send(buy("pay_20_0123456789abc", 20)).is(t, 201, "settled")
	b := w.send(buy("pay_21_0123456789abc", 21)).is(t, 201, "settled")
	if a.header.Get(x402.OrderHeader) == b.header.Get(x402.OrderHeader) || w.rail.movements() != 2 || w.work.times() != 2 {
		t.Errorf("orders %q and %q, %d payments", a.header.Get(x402.OrderHeader), b.header.Get(x402.OrderHeader), w.rail.movements())
	}
}

// The same thing is sold to two payers at once, and to one again while nobody knows what
// became of its first purchase: none waits for the other.
func TestBC029_EqualPurchasesAtOnceAreTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work.before = func() {
		w.work.before = nil
		r := buy("pay_21_0123456789abc", 21)
		r.payer = bob
		w.send(r).is(t, 201, "settled")
	}
	w.send(buy("pay_20_0123456789abc", 20)).is(t, 201, "settled")
	w.work.status = 504
	w.send(buy("pay_22_0123456789abc", 22)).is(t, 409, client.CodePaymentInFlight)
	w.work.status = 201
	w.send(buy("pay_23_0123456789abc", 23)).is(t, 201, "settled")
	if w.rail.movements() != 3 || w.work.times() != 4 {
		t.Errorf("%d paid, %d done", w.rail.movements(), w.work.times())
	}
}

// BC-013: while a quote is being paid under one id, another one for it is refused and given
// the first; nothing is stored under the second.
func TestBC013_AQuoteIsPaidUnderOneID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := buy("pay_1_0123456789abcd", 1), buy("pay_2_0123456789abcd", 2)
	first.quote, second.quote = "q-88", "q-88"
	w.work.before = func() {
		w.work.before = nil
		got := w.send(second).is(t, 409, client.CodePaymentInFlight)
		if got.problem.PaymentID != first.id || got.problem.RetryAfter != 5 || got.problem.Poll != "shop.order.get" || got.header.Get("Retry-After") != "5" || got.problem.Final {
			t.Errorf("%+v", got.problem)
		}
	}
	w.send(first).is(t, 201, "settled")
	if _, err := w.q.Payment(t.Context(), "shop", second.id); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("the second id: %v", err)
	}
	w.send(second).is(t, 409, client.CodePaymentConflict)
	if w.rail.settled != 1 {
		t.Errorf("%d settled", w.rail.settled)
	}
}

// BC-014: a settled id brought with another authorization is answered from its order; the
// other one is never submitted, and is owed back if it lands all the same.
func TestBC014_ANewAuthorizationOfASettledIDIsNeverSubmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(buy(anID, 1)).is(t, 201, "settled")
	must(t, post(w, 1))
	got := w.send(buy(anID, 2)).is(t, 201, "settled")
	if got.header.Get(x402.ReplayedHeader) != "true" || w.rail.settled != 1 {
		t.Errorf("%+v; %d settled", got, w.rail.settled)
	}
	// Somebody submits it nevertheless.
	answer, err := w.q.PostTransfer(t.Context(), client.Transfer{
		Network: network, Tx: nonce(999), Asset: token, From: alice, To: payee, Amount: price.Amount, Nonce: nonce(2), Gateway: "shop", PaymentID: anID,
	})
	if err != nil || answer.Class != "duplicate" || answer.Refund == nil || answer.Refund.Amount != price.Amount {
		t.Errorf("%+v, %v", answer, err)
	}
	w.equation()
}

// post tells of the transfer of a nonce, as the rail has it.
func post(w *world, n int) error {
	w.rail.mu.Lock()
	tx := w.rail.landed[nonce(n)]
	w.rail.mu.Unlock()
	_, err := w.q.PostTransfer(w.t.Context(), client.Transfer{
		Network: network, Tx: tx, Asset: token, From: alice, To: payee, Amount: price.Amount, Nonce: nonce(n),
	})
	return err
}

// BC-053 and BC-038: arguments that only look the same are another request, but for fields
// that the policy calls volatile.
func TestBC053_ArgumentsThatLookAlikeAreAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := buy("pay_50_0123456789abc", 50)
	r.body = `{"amount":"0.02","network":"polygon"}`
	first := w.send(r).is(t, 201, "settled")
	for _, body := range []string{`{"amount":"0.020","network":"polygon"}`, `{"amount":"0.02","chain":137}`} {
		r.body = body
		got := w.send(r).is(t, 409, client.CodePaymentConflict)
		if got.problem.Reason != "request" || got.problem.OrderID != first.header.Get(x402.OrderHeader) || !got.problem.Final {
			t.Errorf("%+v", got.problem)
		}
	}
	if w.rail.settled != 1 || w.work.times() != 1 {
		t.Errorf("%d settled", w.rail.settled)
	}
}

func TestBC038_AnAddedFieldIsAConflictUnlessItIsVolatile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := buy("pay_40_0123456789abc", 40)
	r.body = `{"amount":"18.40","note":"order 8"}`
	first := w.send(r).is(t, 201, "settled")
	r.body = `{"amount":"18.40","note":"order 8","metadata":{"attempt":2}}`
	if got := w.send(r).is(t, 409, client.CodePaymentConflict); got.problem.Reason != "request" || got.problem.OrderID != first.header.Get(x402.OrderHeader) {
		t.Errorf("%+v", got.problem)
	}
	r.body = `{"amount":"18.40","note":"order 8","request_time":"now"}`
	if got := w.send(r).is(t, 201, "settled"); got.header.Get(x402.ReplayedHeader) != "true" {
		t.Errorf("%+v", got)
	}
}

func TestBC044_AnIDIsNotReplayedForAnotherOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := buy("pay_43_0123456789abc", 43)
	w.send(r).is(t, 201, "settled")
	r.path = "/cancel"
	if got := w.send(r).is(t, 409, client.CodePaymentConflict); got.problem.Reason != "request" {
		t.Errorf("%+v", got.problem)
	}
}

// BC-042, the payer's side: another payer's id says nothing of whose it is.
func TestBC042_AnotherPayerIsToldNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send(buy(anID, 1)).is(t, 201, "settled")
	r := buy(anID, 2)
	r.payer, r.body = bob, `{"page":"b"}`
	got := w.send(r).is(t, 409, client.CodePaymentConflict)
	order := first.header.Get(x402.OrderHeader)
	if got.problem.Reason != "payer" || got.problem.OrderID != "" || got.header.Get(x402.OrderHeader) == order || got.header.Get(x402.ReceiptHeader) != "" {
		t.Errorf("%+v %v", got.problem, got.header)
	}
}

// BC-036: a definite refusal is replayed, and what nobody knows stays open. Neither is run
// again.
func TestBC036_ARefusalIsReplayedAndTheUnclearStaysOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work.status = 409 // out of stock
	for range 2 {
		got := w.send(buy("pay_35_0123456789abc", 35)).is(t, 409, "refused")
		if got.body != "page 1" {
			t.Errorf("%+v", got)
		}
	}
	w.work.status = 504
	for range 2 {
		w.send(buy("pay_36_0123456789abc", 36)).is(t, 409, client.CodePaymentInFlight)
	}
	w.old("pay_36_0123456789abc")
	w.send(buy("pay_36_0123456789abc", 36)).is(t, 409, client.CodePaymentInFlight)
	if w.work.times() != 2 || w.rail.settled != 0 {
		t.Errorf("%d done, %d settled", w.work.times(), w.rail.settled)
	}
}

// BC-040 and BC-039: machine fields say what to do, in body and header alike.
func TestBC040_InFlightSaysThatItIsNotFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := buy("pay_41_0123456789abc", 41)
	var got reply
	w.work.before = func() {
		w.work.before = nil
		w.restart("shop") // another process is asked
		got = w.send(r)
	}
	first := w.send(r).is(t, 201, "settled")
	got.is(t, 409, client.CodePaymentInFlight)
	p := got.problem
	if p.RetryAfter != 5 || got.header.Get("Retry-After") != "5" || p.Poll != "shop.order.get" || p.OrderID != first.header.Get(x402.OrderHeader) || p.Final || !p.Retryable || p.RetryAction != client.RetryPoll {
		t.Errorf("%+v", p)
	}
}

// A read is charged once in two minutes, to the same payer only.
func TestARepeatedReadIsNotCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read := func(id string, n int, payer, path string) request {
		return request{method: http.MethodGet, path: path, id: id, nonce: n, payer: payer}
	}
	first := w.send(read("read_1_0123456789ab", 1, alice, "/read?page=a")).is(t, 201, "settled")
	got := w.send(read("read_2_0123456789ab", 2, alice, "/read?page=a"))
	if got.status != 201 || got.header.Get(x402.ChargedHeader) != "false" || got.body != first.body || got.header.Get(x402.ReceiptHeader) != first.header.Get(x402.ReceiptHeader) || got.header.Get(x402.ResponseHeader) != "" {
		t.Errorf("%+v", got)
	}
	w.send(read("read_3_0123456789ab", 3, bob, "/read?page=a")).is(t, 201, "settled")
	w.send(read("read_4_0123456789ab", 4, alice, "/read?page=b")).is(t, 201, "settled")
	// Who does not prove to be the payer is shown nothing.
	w.rail.change(func(r *rail) {
		r.verify = func() (x402.Verification, error) {
			return x402.Verification{InvalidReason: "invalid_exact_evm_signature"}, nil
		}
	})
	if got := w.send(read("read_5_0123456789ab", 5, alice, "/read?page=a")).is(t, 402, "payment_required"); got.header.Get(x402.OutcomeHeader) != x402.Refused {
		t.Errorf("%+v", got)
	}
	if w.rail.settled != 3 {
		t.Errorf("%d settled", w.rail.settled)
	}
}

// The payer and the gateway together, with answers that are lost between them.
func TestAPayerAndAGatewayFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := signing(t)
	lost := 2
	inner := w.at
	w.at = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get(x402.SignatureHeader) != "" && lost > 0 {
			lost--
			inner.ServeHTTP(discard{}, r)
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(rw, r)
	})
	p := client.NewPayer(t.TempDir(), s, client.PayPatience(20*time.Second))
	req, err := http.NewRequest(http.MethodPost, w.shop.URL+"/write", jsonBody(`{"page":"a"}`))
	must(t, err)
	paid, err := p.Pay(t.Context(), "order-8", req)
	if err != nil || string(paid.Body) != "page 1" || paid.Outcome != x402.Settled || !paid.Replayed || paid.Receipt == "" {
		t.Fatalf("%+v, %v", paid, err)
	}
	if w.rail.settled != 1 || w.work.times() != 1 {
		t.Errorf("%d settled, %d done", w.rail.settled, w.work.times())
	}
}
