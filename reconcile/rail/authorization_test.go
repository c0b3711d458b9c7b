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
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/rail"
)

// world is a chain with a token on it, a payer with money, and a shop.
type world struct {
	*chain.Chain
	t     *testing.T
	token evm.Address
	payer chain.Wallet
	shop  evm.Address
	begun time.Time
}

func start(t *testing.T) *world {
	t.Helper()
	c := chain.StartWith(t, chain.Options{Time: time.Now().Add(-time.Minute)})
	w := &world{Chain: c, t: t, token: c.Deploy(chain.Dollar), payer: chain.NewWallet("payer"), shop: chain.NewWallet("shop").Address}
	w.Mint(w.token, w.payer.Address, 1_000_000_000)
	w.begun = c.Now()
	w.Finalize()
	return w
}

// on is the chain as the code under test knows it, asked at these nodes; its own if none.
func (w *world) on(urls ...string) *rail.Chain {
	c := &rail.Chain{ID: w.ID}
	if len(urls) == 0 {
		urls = []string{w.URL}
	}
	for _, u := range urls {
		c.Nodes = append(c.Nodes, node.New(u, outbound.Options{AllowPrivate: true}))
	}
	return c
}

// signed is an authorization of 5 for the shop that is valid for an hour, and how the
// chain is asked about it.
func (w *world) signed(nonce string) (rail.Authorization, []byte) {
	w.t.Helper()
	a, s := w.Authorize(w.token, w.payer, w.shop, 5_000_000, nonce, w.begun.Add(time.Hour))
	return rail.Authorization{Network: w.on().Network(), Asset: w.token, Authorizer: a.From, Nonce: a.Nonce, ValidBefore: a.ValidBefore,
		PayTo: a.To, Value: a.Value, Since: w.begun}, chain.TransferCall(a, s)
}

func (w *world) look(a rail.Authorization, urls ...string) rail.Sighting {
	w.t.Helper()
	return w.on(urls...).Authorization(w.t.Context(), a, w.Now())
}

func (w *world) is(s rail.Sighting, state rail.State, final, match bool) {
	w.t.Helper()
	if s.State != state || s.Final != final || s.Match != match || state != rail.Unlogged && (s.Trouble != nil) != (state == rail.Unseen) || s.Why == "" {
		w.t.Errorf("%q final %v match %v, want %q %v %v: %s (%v)", s.State, s.Final, s.Match, state, final, match, s.Why, s.Trouble)
	}
	if s.Landed() != (state == rail.Used && final && match) || s.Dead() != (final && (state == rail.Cancelled || state == rail.Expired)) {
		w.t.Errorf("%q: landed %v, dead %v", state, s.Landed(), s.Dead())
	}
}

func TestAnAuthorizationThatWasUsed(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	s := w.look(a)
	w.is(s, rail.Open, false, false)
	r := w.Send(w.Account(1), w.token, submit)
	s = w.look(a)
	w.is(s, rail.Used, false, true)
	if !strings.Contains(s.Why, "waits for finality") {
		t.Error(s.Why)
	}
	w.Finalize()
	s = w.look(a)
	w.is(s, rail.Used, true, true)
	if x := s.Transfer; x == nil || x.Transaction != r.Hash || x.Position != 1 || x.Block != r.Block || x.Value.Int64() != 5_000_000 || x.Reference() != r.Hash.String()+":1" {
		t.Errorf("%+v", s.Transfer)
	}

	// What it was signed for is another matter: none of these is what was looked for.
	for what, change := range map[string]func(*rail.Authorization){
		"value":     func(a *rail.Authorization) { a.Value = big.NewInt(5_000_001) },
		"recipient": func(a *rail.Authorization) { a.PayTo = w.payer.Address },
	} {
		other := a
		change(&other)
		s := w.look(other)
		w.is(s, rail.Used, true, false)
		if !strings.Contains(s.Why, ", not ") {
			t.Errorf("another %s: %s", what, s.Why)
		}
	}
	// Another's authorization with the same nonce is another.
	other := a
	other.Authorizer = w.shop
	w.is(w.look(other), rail.Open, false, false)
}

func TestAnAuthorizationThatWasCancelled(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Send(w.Account(1), w.token, w.CancelCall(w.token, w.payer, a.Nonce))
	w.is(w.look(a), rail.Cancelled, false, false)
	w.Finalize()
	w.is(w.look(a), rail.Cancelled, true, false)
	if why := w.Refuses(w.Account(1), w.token, submit); why == "" {
		t.Error("and it can be used all the same")
	}
}

// The end is compared with the time of a final block, to the second.
func TestAnAuthorizationExpiresAtAFinalBlock(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	end := time.Unix(a.ValidBefore.Int64(), 0)
	w.until(end.Add(-time.Second))
	w.Mine(1) // at the end, not final
	w.is(w.look(a), rail.Open, false, false)
	w.Mine(1)
	w.is(w.look(a), rail.Open, false, false) // the block of one second before the end is final
	w.Mine(1)
	s := w.look(a)
	w.is(s, rail.Expired, true, false)
	if !s.FinalAt.Equal(end) {
		t.Errorf("by a block of %s", s.FinalAt)
	}
	nobody := a
	nobody.ValidBefore = nil // nobody knows
	w.is(w.look(nobody), rail.Open, false, false)
	w.SendFailing(w.Account(1), w.token, submit)
}

// until mines to a time in steps that no node would be stale in.
func (w *world) until(at time.Time) {
	w.t.Helper()
	for next := w.Now().Add(10 * time.Minute); next.Before(at); next = next.Add(10 * time.Minute) {
		w.At(next)
		w.Mine(1)
	}
	w.At(at)
	w.Mine(1)
}

// Anybody may submit it in the last second: open says that, by the chain's own rule.
func TestAnAuthorizationIsOpenToItsLastSecond(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.is(w.look(a), rail.Open, false, false)
	w.until(time.Unix(a.ValidBefore.Int64()-2, 0))
	w.Send(w.Account(4), w.token, submit)
	w.Finalize()
	w.Mine(10)
	w.is(w.look(a), rail.Used, true, true)
}

func TestTwoTransfersInOneTransactionHaveTwoPositions(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	a, first := w.signed("a")
	b, second := w.signed("b")
	w.Send(w.Account(1), batch, chain.BatchCall(w.token, second, first))
	w.Finalize()
	sa, sb := w.look(a), w.look(b)
	w.is(sa, rail.Used, true, true)
	w.is(sb, rail.Used, true, true)
	if sa.Transfer.Position != 3 || sb.Transfer.Position != 1 || sa.Transfer.Transaction != sb.Transfer.Transaction {
		t.Errorf("%s and %s", sa.Transfer.Reference(), sb.Transfer.Reference())
	}
}

// A reorganisation takes the transfer away; mined again it has the same name, and another
// place in its block.
func TestAReorganisation(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	before := w.Snapshot()
	first := w.Send(w.Account(1), w.token, submit)
	seen := w.look(a)
	w.is(seen, rail.Used, false, true)
	raw := w.Raw(first.Hash)
	w.Revert(before)
	w.Mine(3)
	w.is(w.look(a), rail.Open, false, false)
	if r := w.Receipt(first.Hash); r != nil {
		t.Fatal("the transaction was not reorganised away")
	}
	// Behind another transaction in the same block: its logs have other indexes there.
	w.Submit(w.Account(2), w.token, evm.CallData("mint(address,uint256)", w.shop, uint64(1)))
	w.SubmitRaw(raw)
	w.Mine(1)
	w.Finalize()
	again := w.look(a)
	w.is(again, rail.Used, true, true)
	if again.Transfer.Reference() != seen.Transfer.Reference() || again.Transfer.BlockHash == seen.Transfer.BlockHash {
		t.Errorf("%+v, and before %+v", again.Transfer, seen.Transfer)
	}
}

// Gone for good: another wallet's cancellation came first in the chain that won.
func TestAReorganisationInWhichItIsCancelled(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Mine(1)
	w.Send(w.Account(1), w.token, submit)
	w.is(w.look(a), rail.Used, false, true)
	w.Reorg(1, chain.Placed{Transaction: map[string]any{"from": w.Account(2), "to": w.token, "gas": "0x7a120",
		"data": fmt.Sprintf("0x%x", w.CancelCall(w.token, w.payer, a.Nonce))}})
	w.is(w.look(a), rail.Cancelled, false, false)
	w.Finalize()
	w.is(w.look(a), rail.Cancelled, true, false)
}

func TestAFakeOfTheSameSymbolProvesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	fake := w.Deploy(chain.Fake)
	a, _ := w.signed("n")
	w.Send(w.Account(1), fake, evm.CallData("pretend(address,address,uint256,bytes32)", a.Authorizer, a.PayTo, a.Value, a.Nonce))
	w.Finalize()
	w.is(w.look(a), rail.Open, false, false)
	// Where its logs stand beside a real use in one transaction, they are not that one's.
	batch := w.Deploy(chain.Batch)
	short, call := w.Authorize(w.token, w.payer, w.shop, 1, "short", w.begun.Add(time.Hour))
	pretend := evm.CallData("pretend(address,address,uint256,bytes32)", a.Authorizer, a.PayTo, a.Value, short.Nonce)
	w.Send(w.Account(1), batch, twoContracts(w.token, chain.TransferCall(short, call), fake, pretend))
	w.Finalize()
	asked := a
	asked.Nonce = short.Nonce
	s := w.look(asked)
	w.is(s, rail.Used, true, false)
	if s.Transfer.Value.Int64() != 1 || s.Transfer.Asset != w.token {
		t.Errorf("%+v", s.Transfer)
	}
}

func twoContracts(a evm.Address, first []byte, b evm.Address, second []byte) []byte {
	both := chain.BatchCall(a, first, second)
	// The second target stands behind the selector, two offsets, the length and the first.
	copy(both[4+4*32:], evm.Words(b))
	return both
}

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
	if s := w.look(dead, w.URL, w.URL); !s.Dead() {
		t.Errorf("two nodes that work: %s", s.Why)
	}
	for what, c := range map[string]*rail.Chain{"nobody": w.on("http://127.0.0.1:1"), "no node": {ID: w.ID}} {
		if s := c.Authorization(t.Context(), dead, w.Now()); s.State != rail.Unseen || s.Trouble == nil {
			t.Errorf("%s: %q", what, s.State)
		}
	}
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
