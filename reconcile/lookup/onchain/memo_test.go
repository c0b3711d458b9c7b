package onchain_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
)

func (w *world) memos(by, more string) *lookup.Lookup {
	w.t.Helper()
	return w.load(fmt.Sprintf(`
business_key: "{order}"
lookup:
  memo:
    rpc: ["%s/?key=${env:KEY}"]
    chain_id: %d
    asset: "%s"
    recipient: "{arguments.to}"
    value: "{arguments.value}"
    %s
  allow_private: true
%s
`, w.asked, w.ID, w.memo, by, more))
}

func (w *world) pays(memo evm.Hash, value int64) chain.Receipt {
	w.t.Helper()
	return w.Send(w.Account(5), w.memo, evm.CallData("transferWithMemo(address,uint256,bytes32)", w.shop, big.NewInt(value), memo))
}

func TestAMemoIsJudged(t *testing.T) {
	t.Parallel()
	w := start(t)
	canary := w.pays(evm.Keccak([]byte("canary")), 1)
	w.Finalize()
	w.begun = w.Now()
	call := map[string]any{"order": "O-1", "to": w.shop.String(), "value": 5_000_000}
	byKey := w.memos(`memo: "{business_key}"`, "")
	// O-1 as wallets write text into a memo.
	var text evm.Hash
	copy(text[:], "O-1")
	is := func(what string, l *lookup.Lookup, v lookup.Verdict, r lookup.Reason, call map[string]any, earlier ...lookup.Read) lookup.Answer {
		t.Helper()
		got, seen := w.ask(l, call, earlier...)
		if got.Verdict != v || got.Reason != r {
			t.Errorf("%s: %q %s, want %q %s (%s, %s %s)", what, got.Verdict, got.Reason, v, r, got.Why, seen.Problem, seen.Detail)
		}
		return got
	}
	is("nothing, and nothing declared", byKey, lookup.Inconclusive, lookup.NotYet, call)

	// Absence, by the rules that hold for every source.
	declared := fmt.Sprintf("  absence_is_proof: true\n  kept_for: 90d\n  canary: \"%s\"", canary.Hash)
	proving := w.memos(`memo: "{business_key}"`, declared)
	is("too early", proving, lookup.Inconclusive, lookup.NotYet, call)
	nothing := w.Snapshot()
	w.At(w.begun.Add(5 * time.Minute)) // past the deadline and lands_within
	w.Mine(4)
	// Nobody sees the canary: a hash that is none, and a node that keeps no logs.
	stranger := w.memos(`memo: "{business_key}"`, fmt.Sprintf("  absence_is_proof: true\n  kept_for: 90d\n  canary: \"%s\"", evm.Hash{1}))
	w.asked = w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_getLogs" {
			return chain.Answer{Result: json.RawMessage(`[]`)}
		}
		return a
	})
	blind := w.memos(`memo: "{business_key}"`, declared)
	strangely, _ := w.ask(stranger, call)
	blindly, _ := w.ask(blind, call)
	first := is("once", proving, lookup.Inconclusive, lookup.NotYet, call)
	if first.Earliest.IsZero() {
		t.Error("and it is not known when absence can be proven")
	}
	w.At(w.begun.Add(6 * time.Minute))
	w.Mine(4)
	is("twice", proving, lookup.NotTaken, lookup.Absent, call, first.Read)
	is("twice, and nothing declared", byKey, lookup.Inconclusive, lookup.NotYet, call, first.Read)
	is("twice, and the canary not seen", stranger, lookup.Inconclusive, lookup.NotYet, call, strangely.Read)
	is("twice, by a node without logs", blind, lookup.Inconclusive, lookup.NotYet, call, blindly.Read)
	w.asked = w.URL
	w.Revert(nothing)

	w.pays(text, 5_000_000)
	seen := is("not final", proving, lookup.Inconclusive, lookup.NotFinal, call)
	w.Finalize()
	got := is("found", byKey, lookup.Taken, lookup.Matched, call)
	if got.Reference != seen.Hits[0].Reference || len(got.Result) == 0 {
		t.Errorf("%+v", got)
	}
	is("another value", byKey, lookup.Inconclusive, lookup.Mismatch, map[string]any{"order": "O-1", "to": w.shop.String(), "value": "5000001"})
	is("a part of the key", byKey, lookup.Inconclusive, lookup.NotYet, map[string]any{"order": "O-", "to": w.shop.String(), "value": "5000000"})
}

// Two transfers with one memo, both for the whole amount: a likely double, shown with both
// references, and never simply found.
func TestBC077_TwoTransfersWithOneMemoAreADouble(t *testing.T) {
	t.Parallel()
	w := start(t)
	var text evm.Hash
	copy(text[:], "O-31")
	first, second := w.pays(text, 145_000_000), w.pays(text, 145_000_000)
	w.Finalize()
	got, _ := w.ask(w.memos(`memo: "{business_key}"`, ""), map[string]any{"order": "O-31", "to": w.shop.String(), "value": "145000000"})
	if got.Verdict != lookup.Inconclusive || got.Reason != lookup.Multiple || len(got.Hits) != 2 ||
		got.Hits[0].Reference != first.Hash.String()+":0" || got.Hits[1].Reference != second.Hash.String()+":0" {
		t.Errorf("%q %s: %+v", got.Verdict, got.Reason, got.Hits)
	}
}

// A memo that is our own key, or the hash that the call names, is nobody else's.
func TestAMemoOfOurOwnKeyIsOurs(t *testing.T) {
	t.Parallel()
	w := start(t)
	call := map[string]any{"order": "O-1", "to": w.shop.String(), "value": 5_000_000}
	r := w.pays(evm.Keccak([]byte("qt_1")), 5_000_000)
	w.Finalize()
	call["tx"] = r.Hash.String()
	for by, ours := range map[string]bool{
		"memo: \"{vendor_key}\"\n    digest: true": true, `transaction: "{arguments.tx}"`: true, `memo: "` + evm.Keccak([]byte("qt_1")).String() + `"`: false,
	} {
		got, seen := w.ask(w.memos(by, ""), call)
		if got.Verdict != lookup.Taken || len(seen.Hits) != 1 || seen.Hits[0].Ours != ours {
			t.Errorf("%s: %s, %+v (%s %s)", by, got.Reason, seen.Hits, seen.Problem, seen.Detail)
		}
	}
	reverted := w.SendFailing(w.Account(6), w.memo, evm.CallData("transferWithMemo(address,uint256,bytes32)", w.shop, big.NewInt(5_000_000), evm.Hash{1}))
	w.Finalize()
	call["tx"] = reverted.Hash.String()
	if got, seen := w.ask(w.memos(`transaction: "{arguments.tx}"`, ""), call); got.Verdict != lookup.Inconclusive || len(seen.Hits) != 1 || !seen.Hits[0].Never {
		t.Errorf("reverted: %q %s %+v", got.Verdict, got.Reason, seen.Hits)
	}
}
