package rail_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/rail"
)

func withMemo(to evm.Address, value int64, memo evm.Hash) []byte {
	return evm.CallData("transferWithMemo(address,uint256,bytes32)", to, big.NewInt(value), memo)
}

// memos is a world whose token carries memos; account 5 pays.
func memos(t *testing.T) *world {
	t.Helper()
	w := start(t)
	w.token = w.Deploy(chain.Memo)
	w.Mint(w.token, w.Account(5), 1_000_000_000)
	w.Finalize()
	w.begun = w.Now()
	return w
}

func (w *world) expects(memo string) rail.Memo {
	m := evm.Keccak([]byte(memo))
	return rail.Memo{Network: w.on().Network(), Asset: w.token, Memo: &m, PayTo: w.shop, Value: big.NewInt(5_000_000), Since: w.begun}
}

func (w *world) found(m rail.Memo, urls ...string) rail.Found {
	w.t.Helper()
	return w.on(urls...).WithMemo(w.t.Context(), m, w.Now())
}

func TestATransferIsFoundByItsMemo(t *testing.T) {
	t.Parallel()
	w := memos(t)
	m := w.expects("O-1")
	if f := w.found(m); !f.Complete || len(f.Transfers) != 0 || f.Trouble != nil || f.FinalAt.IsZero() {
		t.Errorf("before: %+v", f)
	}
	r := w.Send(w.Account(5), w.token, withMemo(w.shop, 5_000_000, *m.Memo))
	one := func(what string, f rail.Found, match, final bool) rail.Carried {
		t.Helper()
		if !f.Complete || len(f.Transfers) != 1 || f.Transfers[0].Match != match || f.Transfers[0].Final != final || f.Transfers[0].Why == "" {
			t.Fatalf("%s: %+v (%v)", what, f, f.Trouble)
		}
		return f.Transfers[0]
	}
	one("not final", w.found(m), true, false)
	w.Send(w.Account(5), w.token, withMemo(w.shop, 5_000_000, evm.Keccak([]byte("O-2"))))
	w.Send(w.Account(5), w.token, evm.CallData("transfer(address,uint256)", w.shop, big.NewInt(5_000_000)))
	w.Finalize()
	got := one("final", w.found(m), true, true)
	if got.Transaction != r.Hash || got.Position != 0 || got.Memo == nil || *got.Memo != *m.Memo || got.From != w.Account(5) {
		t.Errorf("%+v", got)
	}
	byHash := m
	byHash.Memo, byHash.Transaction = nil, &r.Hash
	one("by its hash", w.found(byHash), true, true)
	both := m
	both.Transaction = &r.Hash
	one("by both", w.found(both), true, true)
	for what, change := range map[string]func(*rail.Memo){
		"value":     func(m *rail.Memo) { m.Value = big.NewInt(4_999_999) },
		"recipient": func(m *rail.Memo) { m.PayTo = w.Account(7) },
		"sender":    func(m *rail.Memo) { a := w.Account(6); m.From = &a },
	} {
		for name, m := range map[string]rail.Memo{"memo": m, "hash": byHash, "both": both} {
			change(&m)
			one("another "+what+" by "+name, w.found(m), false, true)
		}
	}
	// The hash of a transaction with another memo: both are shown, and neither matches.
	other := w.Send(w.Account(5), w.token, withMemo(w.shop, 5_000_000, evm.Keccak([]byte("O-3"))))
	w.Finalize()
	mixed := m
	mixed.Transaction = &other.Hash
	if f := w.found(mixed); len(f.Transfers) != 2 || f.Transfers[0].Match || f.Transfers[1].Match {
		t.Errorf("%+v", f)
	}
	// Somebody pays again, with our memo.
	w.Send(w.Account(5), w.token, withMemo(w.shop, 5_000_000, *m.Memo))
	if f := w.found(m); len(f.Transfers) != 2 || !f.Transfers[0].Match || !f.Transfers[1].Match || f.Transfers[1].Final {
		t.Errorf("%+v", f)
	}
}

func TestATransactionThatRevertedOrIsUnknownMovedNothing(t *testing.T) {
	t.Parallel()
	w := memos(t)
	m := w.expects("O-1")
	poor := w.SendFailing(w.Account(6), w.token, withMemo(w.shop, 5_000_000, *m.Memo))
	m.Transaction = &poor.Hash
	if f := w.found(m); !f.Complete || !f.Reverted || f.RevertedFinal || len(f.Transfers) != 0 {
		t.Errorf("%+v", f)
	}
	w.Finalize()
	if f := w.found(m); !f.Reverted || !f.RevertedFinal {
		t.Errorf("%+v", f)
	}
	pending := w.Submit(w.Account(5), w.token, withMemo(w.shop, 5_000_000, *m.Memo))
	m.Transaction = &pending
	if f := w.found(m); !f.Complete || f.Reverted || len(f.Transfers) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestAFakeTokensMemoIsNotSeen(t *testing.T) {
	t.Parallel()
	w := memos(t)
	m := w.expects("O-1")
	fake := w.Deploy(chain.Fake)
	r := w.Send(w.Account(1), fake, evm.CallData("pretend(address,address,uint256,bytes32)", w.Account(5), w.shop, m.Value, *m.Memo))
	w.Finalize()
	byHash := m
	byHash.Transaction = &r.Hash
	for _, m := range []rail.Memo{m, byHash} {
		if f := w.found(m); !f.Complete || len(f.Transfers) != 0 {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatANodeDoesNotShowWholeIsNotComplete(t *testing.T) {
	t.Parallel()
	w := memos(t)
	m := w.expects("O-1")
	r := w.Send(w.Account(5), w.token, withMemo(w.shop, 5_000_000, *m.Memo))
	w.Finalize()
	for what, method := range map[string]string{"logs": "eth_getLogs", "receipts": "eth_getTransactionReceipt", "blocks": "eth_getBlockByNumber"} {
		failing := w.Behind(func(asked string, _ json.RawMessage, a chain.Answer) chain.Answer {
			if asked == method {
				return chain.Answer{Body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`}
			}
			return a
		})
		if f := w.found(m, failing); f.Complete || f.Trouble == nil || len(f.Transfers) != 0 {
			t.Errorf("%s: %+v", what, f)
		}
		if f := w.found(m, failing, w.URL); !f.Complete || len(f.Transfers) != 1 {
			t.Errorf("%s, and a node that works: %+v (%v)", what, f, f.Trouble)
		}
	}
	// A node without logs: the canary tells it.
	blind := w.Behind(func(asked string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if asked == "eth_getLogs" {
			return chain.Answer{Result: json.RawMessage(`[]`)}
		}
		return a
	})
	if f := w.found(m, blind); !f.Complete || len(f.Transfers) != 0 {
		t.Errorf("%+v", f)
	}
	for url, want := range map[string]bool{w.URL: true, blind: false} {
		if seen, trouble := w.on(url).Canary(t.Context(), w.token, r.Hash, w.Now()); seen != want || trouble != nil {
			t.Errorf("canary %v, want %v (%v)", seen, want, trouble)
		}
	}
	plain := w.Send(w.Account(5), w.token, evm.CallData("transfer(address,uint256)", w.shop, big.NewInt(1)))
	w.Finalize()
	for _, hash := range []evm.Hash{plain.Hash, {1}} {
		if seen, trouble := w.on().Canary(t.Context(), w.token, hash, w.Now()); seen || trouble != nil {
			t.Errorf("%s is a canary (%v)", hash, trouble)
		}
	}
	for what, change := range map[string]func(*rail.Memo){
		"another network": func(m *rail.Memo) { m.Network = "eip155:1" },
		"an empty memo":   func(m *rail.Memo) { m.Memo = new(evm.Hash) },
		"neither":         func(m *rail.Memo) { m.Memo = nil },
		"no value":        func(m *rail.Memo) { m.Value = nil },
	} {
		other := m
		change(&other)
		if f := w.found(other); f.Trouble == nil || f.Trouble.Problem != lookup.Unaskable || f.Complete {
			t.Errorf("%s: %+v", what, f)
		}
	}
	flood := w.expects("flood")
	many := w.Deploy(chain.Batch)
	w.Mint(w.token, many, 1000)
	calls := make([][]byte, 51)
	for i := range calls {
		calls[i] = withMemo(w.shop, 1, *flood.Memo)
	}
	w.Send(w.Account(1), many, chain.BatchCall(w.token, calls...))
	if f := w.found(flood); f.Complete || f.Trouble == nil || !strings.Contains(f.Trouble.Detail, "more than 50") {
		t.Errorf("%+v (%v)", f, f.Trouble)
	}
}
