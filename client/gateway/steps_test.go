package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"quittance/client"
	"quittance/client/x402"
)

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(b []byte) (int, error) { return len(b), nil }

func jsonBody(s string) io.Reader { return strings.NewReader(s) }

func signing(t *testing.T) client.Sign {
	n := 100
	return func(_ context.Context, offered x402.Required) (x402.Requirements, json.RawMessage, error) {
		n++
		raw, err := json.Marshal(x402.Exact{Authorization: x402.Authorization{
			From: alice, To: payee, Value: offered.Accepts[0].Amount, ValidAfter: "0", ValidBefore: "4102444800", Nonce: nonce(n),
		}})
		return offered.Accepts[0], raw, err
	}
}

// steps are the calls to Quittance in a gateway's order of work.
var steps = map[string]string{
	"claim":         "POST /v1/payments",
	"order":         "POST /v1/payments/*/order",
	"work":          "POST /v1/payments/*/work",
	"what work did": "POST /v1/effects/*/finish",
	"broadcast":     "POST /v1/payments/*/broadcast",
	"finish":        "POST /v1/payments/*/finish",
}

// Each call to Quittance fails once, having happened or not: the gateway asks again, and
// all is as if nothing had been.
func TestEachStepMayFailOnce(t *testing.T) {
	t.Parallel()
	for name, on := range steps {
		for _, kind := range []string{"did_not_happen", "happened"} {
			for _, settles := range []string{"shop", "bank"} {
				if settles == "bank" && kind == "did_not_happen" { // the order differs, the asking again does not
					continue
				}
				t.Run(name+" "+kind+" "+settles, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.restart(settles)
					w.gate.fail(on, kind, 1)
					got := w.send(buy(anID, 1)).is(t, 201, "settled")
					if w.gate.faults() != 1 || got.body != "page 1" || w.rail.settled != 1 || w.work.times() != 1 {
						t.Errorf("%d faults, %q, %d settled, %d done", w.gate.faults(), got.body, w.rail.settled, w.work.times())
					}
					w.restart(settles)
					if again := w.send(buy(anID, 1)).is(t, 201, "settled"); again.body != got.body || w.rail.settled != 1 {
						t.Errorf("%q, %d settled", again.body, w.rail.settled)
					}
				})
			}
		}
	}
}

// Quittance stays away at a step: the payer is told 503 or to wait, never 402, or gets
// what it paid for; and when Quittance is back the id is answered, the money moved at most
// once and the work done at most once.
func TestEachStepMayFailForLong(t *testing.T) {
	t.Parallel()
	for name, on := range steps {
		for _, kind := range []string{"did_not_happen", "happened"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.gate.fail(on, kind, 1000)
				got := w.send(buy(anID, 1))
				sent := w.rail.settled
				switch {
				case name == "finish" || name == "what work did": // paid and done: it is told, and recorded later
					got.is(t, 201, "settled")
				default:
					got.is(t, 503, client.CodeUnavailable)
					if got.header.Get("Retry-After") == "" || sent != 0 {
						t.Fatalf("%v; %d settled", got.header, sent)
					}
				}
				w.gate.fail("", "", 0)
				w.restart("shop") // what it remembered is gone
				again := w.send(buy(anID, 1))
				if again.status == 402 {
					t.Fatalf("402: %s", again.body)
				}
				if again.header.Get(x402.OutcomeHeader) == "" {
					w.old(anID)
					w.tick()
					w.tick()
					again = w.send(buy(anID, 1))
				}
				if w.rail.settled > 1 || w.work.times() > 1 || again.status == 402 || again.status >= 500 {
					t.Errorf("%d settled, %d done: %d %s", w.rail.settled, w.work.times(), again.status, again.body)
				}
				if sent == 1 && (again.header.Get(x402.OutcomeHeader) != x402.Settled || again.body != "page 1") {
					t.Errorf("paid and done, and told %d %s", again.status, again.body)
				}
				if sent == 0 && w.rail.settled == 0 && again.problem.Code != client.CodePaymentInFlight {
					t.Errorf("%d %s", again.status, again.body)
				}
				w.equation()
			})
		}
	}
}

// A try that gave up before anything was begun goes on when the payer comes back, without
// waiting until it is old.
func TestATryThatGaveUpEarlyGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rail.change(func(r *rail) {
		r.verify = func() (x402.Verification, error) { return x402.Verification{}, errors.New("no answer") }
	})
	w.send(buy(anID, 1)).is(t, 503, client.CodeUnavailable)
	w.rail.change(func(r *rail) { r.verify = nil })
	w.send(buy(anID, 1)).is(t, 201, "settled")
	if w.rail.settled != 1 || w.work.times() != 1 {
		t.Errorf("%d settled, %d done", w.rail.settled, w.work.times())
	}
}

// The facilitator fails at its two calls, having sent the payment or not. What is not a
// plain success is unknown: the payer waits, and the rail is asked.
func TestASettleThatFailedIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settle func(land func() string) (x402.Settlement, error)
		landed bool
	}{
		"no answer, and nothing was sent": {func(func() string) (x402.Settlement, error) { return x402.Settlement{}, errors.New("broken") }, false},
		"no answer, and it was sent": {func(land func() string) (x402.Settlement, error) {
			land()
			return x402.Settlement{}, errors.New("broken")
		}, true},
		"no success": {func(func() string) (x402.Settlement, error) {
			return x402.Settlement{ErrorReason: "invalid_transaction_state"}, nil
		}, false},
		"no success, with a hash, and it was sent": {func(land func() string) (x402.Settlement, error) {
			return x402.Settlement{ErrorReason: "invalid_transaction_state", Transaction: land()}, nil
		}, true},
		"pending": {func(land func() string) (x402.Settlement, error) {
			return x402.Settlement{ErrorReason: "settlement_pending", Transaction: land()}, nil
		}, true},
		"success without a hash": {func(land func() string) (x402.Settlement, error) { land(); return x402.Settlement{Success: true}, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rail.change(func(r *rail) { r.settle = c.settle })
			for range 2 {
				got := w.send(buy(anID, 1)).is(t, 409, client.CodePaymentInFlight)
				if got.problem.Final || got.header.Get("Retry-After") == "" {
					t.Errorf("%+v", got.problem)
				}
			}
			if s := w.state(anID).State; s != "unknown" {
				t.Fatalf("the payment is %s", s)
			}
			w.old(anID)
			w.tick() // asks the rail
			w.tick() // heals
			got := w.send(buy(anID, 1))
			if c.landed {
				// The work kept its answer: nothing that was bought is lost.
				if got.is(t, 201, "settled"); got.body != "page 1" || got.header.Get(x402.ReplayedHeader) != "true" {
					t.Errorf("%+v", got)
				}
			} else {
				got.is(t, 409, client.CodePaymentInFlight)
			}
			if w.rail.settled != 1 || w.work.times() != 1 {
				t.Errorf("%d settled, %d done", w.rail.settled, w.work.times())
			}
			w.equation()
		})
	}
}

// BC-069: what a settle broadcast before it timed out is stored, the payer waits, and only
// the rail closes it.
func TestBC069_ASettleThatTimedOutIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rail.change(func(r *rail) {
		r.settle = func(func() string) (x402.Settlement, error) { // sent, and not yet in a block
			return x402.Settlement{ErrorReason: "settlement_pending", Transaction: nonce(0x9f)}, context.DeadlineExceeded
		}
	})
	r := buy("pay_61_0123456789abc", 61)
	w.send(r).is(t, 409, client.CodePaymentInFlight)
	var tx string
	must(t, w.db.Get(t.Context(), &tx, `SELECT tx FROM payments`))
	if tx != nonce(0x9f) {
		t.Errorf("the transaction %q is on record", tx)
	}
	w.old(r.id)
	w.tick()
	if got := w.send(r).is(t, 409, client.CodePaymentInFlight); got.problem.Poll != "shop.order.get" || got.problem.State != "unknown" {
		t.Errorf("%+v", got.problem)
	}
}

// A verification says refused only where it speaks of what was signed; whatever may mean
// that the authorization is used or pending is unknown.
func TestAVerificationThatFails(t *testing.T) {
	t.Parallel()
	for reason, word := range map[string]string{
		"invalid_exact_evm_signature":                          "refused",
		"invalid_exact_evm_insufficient_balance":               "refused",
		"invalid_exact_evm_nonce_already_used":                 "",
		"invalid_exact_evm_transaction_simulation_failed":      "",
		"invalid_exact_evm_payload_authorization_valid_before": "",
		"settlement_pending":                                   "",
		"a word that nobody knows":                             "",
		"":                                                     "",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rail.change(func(r *rail) {
				r.verify = func() (x402.Verification, error) { return x402.Verification{InvalidReason: reason}, nil }
			})
			for range 2 {
				got := w.send(buy(anID, 1))
				switch {
				case word == "refused" && (got.status != 402 || got.header.Get(x402.OutcomeHeader) != x402.Refused || got.header.Get(x402.RequiredHeader) == ""):
					t.Errorf("%d %v %s", got.status, got.header, got.body)
				case word == "" && (got.status != 409 || got.problem.Code != client.CodePaymentInFlight):
					t.Errorf("%d %s", got.status, got.body)
				}
				w.rail.change(func(r *rail) { r.verify = nil }) // the answer stays
			}
			if w.rail.settled != 0 || w.work.times() != 0 {
				t.Errorf("%d settled, %d done", w.rail.settled, w.work.times())
			}
		})
	}
}

// Only when every authorization is dead is a payer asked to sign again, under the same id
// and for the same money; then it is paid once.
func TestSignAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rail.change(func(r *rail) {
		r.settle = func(func() string) (x402.Settlement, error) { return x402.Settlement{}, errors.New("broken") }
	})
	w.send(buy(anID, 1)).is(t, 409, client.CodePaymentInFlight)
	w.old(anID)
	w.rail.change(func(r *rail) { r.dead, r.settle = map[string]string{nonce(1): "expired"}, nil })
	w.tick()
	got := w.send(buy(anID, 1)).is(t, 402, client.CodeSignAgain)
	offer, err := x402.Decode[x402.Required](got.header.Get(x402.RequiredHeader))
	if err != nil || len(offer.Accepts) != 1 || !offer.Accepts[0].Same(price) {
		t.Errorf("%+v, %v", offer, err)
	}
	paid := w.send(buy(anID, 2)).is(t, 201, "settled")
	if paid.body != "page 1" || w.work.times() != 1 || w.rail.movements() != 1 {
		t.Errorf("%q; %d done, %d moved", paid.body, w.work.times(), w.rail.movements())
	}
}

// Of sixteen at once with one id, one is paid and done, the others are told to wait or get
// its answer.
func TestSixteenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make(chan reply, 16)
	for range 16 {
		go func() { answers <- w.send(buy(anID, 1)) }()
	}
	for range 16 {
		got := <-answers
		if got.status != 201 && (got.status != 409 || got.problem.Code != client.CodePaymentInFlight) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if w.rail.settled != 1 || w.work.times() != 1 {
		t.Errorf("%d settled, %d done", w.rail.settled, w.work.times())
	}
}

// A gateway whose policy has it settle before the work gives back what it took for work
// that was refused.
func TestMoneyFirstGivesBackWhatWasNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restart("bank")
	w.work.status = 422
	w.work.before = func() { must(t, post(w, 1)) }
	w.send(buy(anID, 1)).is(t, 422, "refused")
	p, err := w.q.Payment(t.Context(), "bank", anID)
	if err != nil || p.State != "refused" || p.Refund == nil || p.Refund.Amount != price.Amount || w.rail.settled != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	w.equation()
}
