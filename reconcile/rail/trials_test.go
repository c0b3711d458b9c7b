package rail_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/rail"
)

// A second authorization that shows up on the chain anyway is a transfer of its own, with
// its own nonce: the one to be given back can be named exactly.
func TestBC014_ASecondAuthorizationIsASecondTransfer(t *testing.T) {
	t.Parallel()
	w := start(t)
	first, submit := w.signed("n1")
	second, again := w.signed("n2")
	from := w.Head() + 1
	w.Send(w.Account(1), w.token, submit)
	w.Send(w.Account(2), w.token, again)
	w.Finalize()
	list, _ := w.all(w.on(), from)
	if len(list) != 2 || *list[0].Nonce != first.Nonce || *list[1].Nonce != second.Nonce || list[0].Reference() == list[1].Reference() {
		t.Fatalf("%+v", list)
	}
	for i, a := range []rail.Authorization{first, second} {
		if s := w.look(a); !s.Landed() || s.Transfer.Reference() != list[i].Reference() {
			t.Errorf("%s: %s is not %s", a.Nonce, s.Why, list[i].Reference())
		}
	}
}

// Two equal payments are never one, whatever they look like: here they are signed by one
// wallet for one shop, and stand in one block.
func TestBC029_EqualPaymentsAreTwoTransfers(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, first := w.signed("p-20")
	b, second := w.signed("p-21")
	from := w.Head() + 1
	w.Submit(w.Account(1), w.token, first)
	w.Submit(w.Account(2), w.token, second)
	w.Mine(1)
	w.Finalize()
	list, _ := w.all(w.on(), from)
	if len(list) != 2 || list[0].Block != list[1].Block || list[0].Reference() == list[1].Reference() {
		t.Fatalf("%+v", list)
	}
	sa, sb := w.look(a), w.look(b)
	if !sa.Landed() || !sb.Landed() || sa.Transfer.Reference() == sb.Transfer.Reference() {
		t.Errorf("%+v and %+v", sa.Transfer, sb.Transfer)
	}
}

// A value is compared to its last digit: these two are one number for a float.
func TestBC059_AValueOnTheChainIsComparedToItsLastDigit(t *testing.T) {
	t.Parallel()
	w := start(t)
	const value = 9007199254740993
	w.Mint(w.token, w.payer.Address, value)
	signed, s := w.Authorize(w.token, w.payer, w.shop, value, "n", w.begun.Add(time.Hour))
	w.Send(w.Account(1), w.token, chain.TransferCall(signed, s))
	w.Finalize()
	a, _ := w.signed("n")
	a.Value = big.NewInt(value)
	if got := w.look(a); !got.Landed() || got.Transfer.Value.String() != "9007199254740993" {
		t.Errorf("%s", got.Why)
	}
	a.Value = big.NewInt(value - 1)
	w.is(w.look(a), rail.Used, true, false)
}

// A settle that was sent and timed out: whatever is read until it is final, it is never
// taken for failed.
func TestBC069_ASettleThatTimedOutIsNeverTakenForFailed(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("p-61")
	failing := w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_call" {
			return chain.Answer{Status: 503}
		}
		return a
	})
	look := func(when string, want rail.State) {
		t.Helper()
		for _, s := range []rail.Sighting{w.look(a), w.look(a, failing)} {
			if s.Dead() || s.State != want && s.State != rail.Unseen {
				t.Errorf("%s: %s %s", when, s.State, s.Why)
			}
		}
	}
	look("before it is sent", rail.Open)
	w.Submit(w.Account(1), w.token, submit)
	look("sent, in no block", rail.Open)
	w.Mine(1)
	look("in a block", rail.Used)
	w.Finalize()
	look("final", rail.Used)
	if s := w.look(a); !s.Landed() {
		t.Errorf("it landed: %s", s.Why)
	}
}
