package rail_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/rail"
)

// Whatever a node does wrong, nothing is proven: each of these has used, cancelled or
// expired authorizations before it.
func TestANodeThatErrsProvesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	landed, submit := w.signed("landed")
	dead, _ := w.signed("dead")
	expired, _ := w.signed("expired")
	expired.ValidBefore = big.NewInt(w.Now().Unix())
	w.Send(w.Account(1), w.token, submit)
	w.Send(w.Account(1), w.token, w.CancelCall(w.token, w.payer, dead.Nonce))
	w.Finalize()
	w.is(w.look(landed), rail.Used, true, true)
	w.is(w.look(dead), rail.Cancelled, true, false)
	w.is(w.look(expired), rail.Expired, true, false)

	result := func(r string) chain.Answer { return chain.Answer{Result: json.RawMessage(r)} }
	member := func(a chain.Answer, name string, value any) chain.Answer {
		var m map[string]any
		if err := json.Unmarshal(a.Result, &m); err != nil {
			panic(err)
		}
		m[name] = value
		raw, _ := json.Marshal(m)
		return chain.Answer{Result: raw}
	}
	for _, c := range []struct {
		what, method string
		all          bool // spoils what is asked about every authorization
		edit         func(chain.Answer) chain.Answer
		problem      lookup.Problem
	}{
		{"another chain", "eth_chainId", true, func(chain.Answer) chain.Answer { return result(`"0x1"`) }, lookup.Unexpected},
		{"no number", "eth_chainId", true, func(chain.Answer) chain.Answer { return result(`31337`) }, lookup.Unreadable},
		{"stale", "eth_getBlockByNumber", true, func(a chain.Answer) chain.Answer {
			return member(a, "timestamp", fmt.Sprintf("0x%x", w.Now().Add(-31*time.Minute).Unix()))
		}, lookup.Unexpected},
		{"from the future", "eth_getBlockByNumber", true, func(a chain.Answer) chain.Answer {
			return member(a, "timestamp", fmt.Sprintf("0x%x", w.Now().Add(3*time.Minute).Unix()))
		}, lookup.Unexpected},
		{"no final block", "eth_getBlockByNumber", true, func(chain.Answer) chain.Answer { return result(`null`) }, lookup.Unexpected},
		{"no contract", "eth_call", true, func(chain.Answer) chain.Answer { return result(`"0x"`) }, lookup.Unexpected},
		{"31 bytes", "eth_call", true, func(chain.Answer) chain.Answer { return result(`"0x` + strings.Repeat("00", 31) + `"`) }, lookup.Unexpected},
		{"33 bytes", "eth_call", true, func(chain.Answer) chain.Answer { return result(`"0x` + strings.Repeat("00", 33) + `"`) }, lookup.Unexpected},
		{"neither true nor false", "eth_call", true, func(chain.Answer) chain.Answer { return result(`"0x` + strings.Repeat("00", 31) + `02"`) }, lookup.Unexpected},
		{"half a byte", "eth_call", true, func(chain.Answer) chain.Answer { return result(`"0x0"`) }, lookup.Unreadable},
		{"null", "eth_call", true, func(chain.Answer) chain.Answer { return result(`null`) }, lookup.Unreadable},
		{"an error", "eth_call", true, func(chain.Answer) chain.Answer {
			return chain.Answer{Body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found: zz91"}}`}
		}, lookup.Failing},
		{"result and error", "eth_call", true, func(a chain.Answer) chain.Answer {
			return chain.Answer{Body: strings.Replace(a.Body, `"id":1`, `"id":1,"error":{"code":1}`, 1)}
		}, lookup.Failing},
		{"another id", "eth_call", true, func(a chain.Answer) chain.Answer {
			return chain.Answer{Body: strings.Replace(a.Body, `"id":1`, `"id":2`, 1)}
		}, lookup.Unreadable},
		{"two results", "eth_call", true, func(a chain.Answer) chain.Answer {
			return chain.Answer{Body: strings.Replace(a.Body, `"id":1`, `"id":1,"result":"0x"`, 1)}
		}, lookup.Unreadable},
		{"too many questions", "eth_call", true, func(chain.Answer) chain.Answer {
			return chain.Answer{Status: 429, Body: "slow down", Header: http.Header{"Retry-After": {"7"}}}
		}, lookup.Throttled},
		{"too many, as an error", "eth_call", true, func(chain.Answer) chain.Answer {
			return chain.Answer{Body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit exceeded"}}`}
		}, lookup.Throttled},
		{"a redirect", "eth_call", true, func(chain.Answer) chain.Answer {
			return chain.Answer{Status: 307, Header: http.Header{"Location": {w.URL}}}
		}, lookup.Redirected},
		{"denied", "eth_call", true, func(chain.Answer) chain.Answer { return chain.Answer{Status: 401} }, lookup.Denied},
		{"failing", "eth_call", true, func(chain.Answer) chain.Answer { return chain.Answer{Status: 502, Body: "<html>"} }, lookup.Failing},
		{"HTML", "eth_call", true, func(chain.Answer) chain.Answer { return chain.Answer{Body: "<html>"} }, lookup.Unreadable},
		{"cut off", "eth_call", true, func(a chain.Answer) chain.Answer { return chain.Answer{Body: a.Body[:len(a.Body)-5]} }, lookup.Unreadable},
		{"too long", "eth_call", true, func(chain.Answer) chain.Answer { return chain.Answer{Body: strings.Repeat(" ", 2<<20)} }, lookup.TooLarge},
		{"another's log", "eth_getLogs", false, func(a chain.Answer) chain.Answer {
			return chain.Answer{Result: json.RawMessage(strings.ReplaceAll(string(a.Result), landed.Nonce.String()[2:], strings.Repeat("ab", 32)))}
		}, lookup.Unreadable},
		{"a removed log", "eth_getLogs", false, func(a chain.Answer) chain.Answer {
			return chain.Answer{Result: json.RawMessage(strings.ReplaceAll(string(a.Result), `"removed":false`, `"removed":true`))}
		}, lookup.Unreadable},
		{"no receipt", "eth_getTransactionReceipt", false, func(chain.Answer) chain.Answer { return result(`null`) }, lookup.Unexpected},
		{"a reverted receipt", "eth_getTransactionReceipt", false, func(a chain.Answer) chain.Answer { return member(a, "status", "0x0") }, lookup.Unexpected},
		{"a receipt without logs", "eth_getTransactionReceipt", false, func(a chain.Answer) chain.Answer { return member(a, "logs", []any{}) }, lookup.Unexpected},
		{"a block with another hash", "eth_getBlockByNumber", false, func(a chain.Answer) chain.Answer {
			return member(a, "hash", "0x"+strings.Repeat("ab", 32))
		}, lookup.Unexpected},
		{"the receipt of another block, whole", "eth_getTransactionReceipt", false, func(a chain.Answer) chain.Answer {
			var r struct{ BlockHash string }
			_ = json.Unmarshal(a.Result, &r)
			return result(strings.ReplaceAll(string(a.Result), r.BlockHash, "0x"+strings.Repeat("ab", 32)))
		}, lookup.Unexpected},
		{"a receipt of another block", "eth_getTransactionReceipt", false, func(a chain.Answer) chain.Answer {
			return member(a, "blockHash", "0x"+strings.Repeat("ab", 32))
		}, lookup.Unreadable},
	} {
		url := w.Behind(func(method string, params json.RawMessage, a chain.Answer) chain.Answer {
			if method == c.method {
				return c.edit(a)
			}
			return a
		})
		for name, a := range map[string]rail.Authorization{"landed": landed, "dead": dead, "expired": expired} {
			if !c.all && name != "landed" {
				continue
			}
			s := w.look(a, url)
			// That it was used is known before its log is asked for.
			want := rail.Unseen
			if !c.all {
				want = rail.Unlogged
			}
			if s.State != want || s.Trouble == nil || s.Trouble.Problem != c.problem || s.Landed() || s.Dead() {
				t.Errorf("%s, %s: %q %v", c.what, name, s.State, s.Trouble)
			}
			if s.Trouble != nil && strings.Contains(s.Trouble.Detail, "zz91") {
				t.Errorf("%s: the trouble repeats the answer: %s", c.what, s.Trouble.Detail)
			}
			if c.what == "too many questions" && s.Trouble.RetryAfter != 7*time.Second {
				t.Errorf("again after %s", s.Trouble.RetryAfter)
			}
		}
		// The next node is asked, and what it shows holds, but for "never".
		if s := w.look(landed, url, w.URL); !s.Landed() {
			t.Errorf("%s, and a node that works: %q %s", c.what, s.State, s.Why)
		}
		if c.all {
			if s := w.look(dead, url, w.URL); s.Dead() {
				t.Errorf("%s: one node of two proves that it can never be used", c.what)
			}
			if s := w.look(expired, w.URL, url); s.Dead() {
				t.Errorf("%s: one node of two proves that it expired", c.what)
			}
		}
	}
	// One node shows it cancelled, the other unused and past its end: one of them is wrong.
	unused := w.unusedAt()
	over := dead
	over.ValidBefore = expired.ValidBefore
	w.is(w.look(over, unused), rail.Expired, true, false)
	w.is(w.look(over, w.URL, unused), rail.Unseen, false, false)
	w.is(w.look(over, unused, w.URL), rail.Unseen, false, false)
	if s := w.look(dead, w.URL, w.URL); !s.Dead() {
		t.Errorf("two nodes that work: %s", s.Why)
	}
	for what, c := range map[string]*rail.Chain{"nobody": w.on("http://127.0.0.1:1"), "no node": {ID: w.ID}} {
		if s := c.Authorization(t.Context(), dead, w.Now()); s.State != rail.Unseen || s.Trouble == nil {
			t.Errorf("%s: %q", what, s.State)
		}
	}
}

// unusedAt is a node that takes every authorization for unused.
func (w *world) unusedAt() string {
	return w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_call" {
			return chain.Answer{Result: json.RawMessage(`"0x` + strings.Repeat("00", 32) + `"`)}
		}
		return a
	})
}

// A receipt with a hole, and a block that is not the one that was asked for: positions and
// times would be others'.
func TestANodeThatAnswersSomethingElseIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	_, first := w.signed("a")
	b, second := w.signed("b")
	w.Send(w.Account(1), batch, chain.BatchCall(w.token, first, second))
	w.Finalize()
	for what, edit := range map[string]func(method, params string, a chain.Answer) chain.Answer{
		"a hole": func(method, _ string, a chain.Answer) chain.Answer {
			if method == "eth_getTransactionReceipt" {
				var r map[string]json.RawMessage
				var logs []json.RawMessage
				_ = json.Unmarshal(a.Result, &r)
				_ = json.Unmarshal(r["logs"], &logs)
				r["logs"], _ = json.Marshal(append(logs[:1:1], logs[2:]...))
				a.Result, _ = json.Marshal(r)
			}
			return a
		},
		"another block": func(method, params string, a chain.Answer) chain.Answer {
			if method == "eth_getBlockByNumber" && strings.HasPrefix(params, `["0x`) {
				var r map[string]any
				_ = json.Unmarshal(a.Result, &r)
				r["number"] = "0x2"
				if strings.HasPrefix(params, `["0x2"`) {
					r["number"] = "0x1"
				}
				a.Result, _ = json.Marshal(r)
			}
			return a
		},
	} {
		url := w.Behind(func(method string, params json.RawMessage, a chain.Answer) chain.Answer {
			return edit(method, string(params), a)
		})
		if s := w.look(b, url); s.State != rail.Unlogged || s.Trouble == nil || s.Trouble.Problem != lookup.Unreadable {
			t.Errorf("%s: %s %s", what, s.State, s.Why)
		}
	}
	w.is(w.look(b), rail.Used, true, true)
}

// A pruned node shows no logs: that is never "not used", and another node may know.
func TestAUsedOneWithoutItsLogIsNeverNotUsed(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Send(w.Account(1), w.token, submit)
	w.Finalize()
	a.ValidBefore = big.NewInt(w.Now().Unix() - 5) // and its end is past besides
	pruned := w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_getLogs" {
			return chain.Answer{Result: json.RawMessage(`[]`)}
		}
		return a
	})
	w.is(w.look(a, pruned), rail.Unlogged, false, false)
	w.is(w.look(a, pruned, w.URL), rail.Used, true, true)
	down := "http://127.0.0.1:1"
	w.is(w.look(a, down, pruned), rail.Unlogged, false, false)
	w.is(w.look(a, pruned, down), rail.Unlogged, false, false)
	// A node that takes it for unused, and so for expired, does not make the others unheard.
	unused := w.unusedAt()
	w.is(w.look(a, unused), rail.Expired, true, false)
	for _, nodes := range [][]string{{unused, w.URL}, {unused, pruned}, {pruned, unused}} {
		w.is(w.look(a, nodes...), rail.Unlogged, false, false)
	}
	// Nor where it was used before the time from which we search.
	w.Mine(700)
	late := a
	late.Since = w.Now()
	w.is(w.look(late), rail.Unlogged, false, false)
}

// Providers answer for fewer than 2,000 blocks at a time.
func TestLogsAreReadInChunks(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Mine(2100)
	w.Send(w.Account(1), w.token, submit)
	w.Finalize()
	var mu sync.Mutex
	var spans []uint64
	limited := w.Behind(func(method string, params json.RawMessage, a chain.Answer) chain.Answer {
		if method != "eth_getLogs" {
			return a
		}
		var f []struct{ FromBlock, ToBlock string }
		if err := json.Unmarshal(params, &f); err != nil {
			t.Error(err)
		}
		var from, to uint64
		_, _ = fmt.Sscanf(f[0].FromBlock+" "+f[0].ToBlock, "0x%x 0x%x", &from, &to)
		mu.Lock()
		defer mu.Unlock()
		spans = append(spans, from, to)
		if to-from+1 >= 2000 {
			return chain.Answer{Body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"range too large"}}`}
		}
		return a
	})
	w.is(w.look(a, limited), rail.Used, true, true)
	if len(spans) != 4 || spans[2] != spans[1]+1 {
		t.Errorf("asked for %d", spans)
	}
	c := w.on(w.URL)
	c.Chunk = 100
	w.is(c.Authorization(t.Context(), a, w.Now()), rail.Used, true, true)
}

func TestWhatCannotBeAskedIsNotAsked(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, _ := w.signed("n")
	a.ValidBefore = big.NewInt(w.Now().Unix())
	w.Finalize()
	w.is(w.look(a), rail.Expired, true, false)
	for what, change := range map[string]func(*rail.Authorization){
		"another network": func(a *rail.Authorization) { a.Network = "eip155:1" },
		"no value":        func(a *rail.Authorization) { a.Value = nil },
		"negative value":  func(a *rail.Authorization) { a.Value = big.NewInt(-1) },
		"negative end":    func(a *rail.Authorization) { a.ValidBefore = big.NewInt(-1) },
		"nobody":          func(a *rail.Authorization) { a.Authorizer = evm.Address{} },
	} {
		other := a
		change(&other)
		if s := w.look(other); s.State != rail.Unseen || s.Trouble.Problem != lookup.Unaskable {
			t.Errorf("%s: %q %v", what, s.State, s.Trouble)
		}
	}
	if s := w.on().Authorization(t.Context(), a, time.Time{}); s.State != rail.Unseen {
		t.Errorf("without a time: %q", s.State)
	}
	// When it was signed is not on record: "unused" can be told all the same.
	gap := a
	gap.Since = time.Time{}
	w.is(w.look(gap), rail.Expired, true, false)
	used, submit := w.signed("used")
	w.Send(w.Account(1), w.token, submit)
	used.Since = time.Time{}
	w.is(w.look(used), rail.Used, false, true)
	w.Finalize()
	w.is(w.look(used), rail.Unlogged, false, false)
	// A token that is not there, and an account that is no contract.
	other := a
	other.Asset = w.shop
	w.is(w.look(other), rail.Unseen, false, false)
}
