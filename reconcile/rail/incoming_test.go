package rail_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/rail"
)

func (w *world) watch() rail.Watch { return rail.Watch{Asset: w.token, To: []evm.Address{w.shop}} }

// all reads to the last final block, page by page.
func (w *world) all(c *rail.Chain, from uint64) (list []rail.Transfer, next uint64) {
	w.t.Helper()
	for pages := 0; ; pages++ {
		page, err := c.Incoming(w.t.Context(), w.watch(), from, w.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		list, from = append(list, page.Transfers...), page.Next
		if page.Done {
			return list, from
		}
		if pages > 1000 {
			w.t.Fatal("the watcher never ends")
		}
	}
}

func TestIncomingTransfersAreReadOnceInOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	a, first := w.signed("a")
	b, second := w.signed("b")
	one := w.Send(w.Account(1), batch, chain.BatchCall(w.token, first, second))
	w.Mint(w.token, w.shop, 7)
	w.Mint(w.token, w.Account(9), 8)                                                                                                                // not ours
	w.Send(w.Account(1), w.token, evm.CallData("transfer(address,uint256)", w.shop, new(big.Int)))                                                  // nothing
	w.Send(w.Account(1), w.Deploy(chain.Fake), evm.CallData("pretend(address,address,uint256,bytes32)", w.payer.Address, w.shop, a.Value, a.Nonce)) // a fake
	early, _ := w.all(w.on(), 0)
	for _, x := range early {
		if x.Block > w.Head()-2 {
			t.Errorf("block %d is not final", x.Block)
		}
	}
	w.Finalize()
	final := w.Head()
	var want []string
	for _, chunk := range []uint64{0, 1, 2, 3, 50} {
		c := w.on()
		c.Chunk = chunk
		list, next := w.all(c, 0)
		var got []string
		for _, x := range list {
			nonce := ""
			if x.Nonce != nil {
				nonce = x.Nonce.String()
			}
			got = append(got, fmt.Sprint(x.Reference(), x.From, x.To, x.Value, nonce, x.Block, x.BlockHash, x.At.Unix()))
		}
		if want == nil {
			want = got
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != 3 {
			t.Errorf("in chunks of %d:\n%s\nnot\n%s", chunk, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if x, y := list[0], list[1]; x.Transaction != one.Hash || y.Transaction != one.Hash || x.Position != 1 || y.Position != 3 ||
			*x.Nonce != a.Nonce || *y.Nonce != b.Nonce || list[2].Nonce != nil || list[2].Value.Int64() != 7 || x.At.IsZero() {
			t.Errorf("%+v\n%+v\n%+v", x, y, list[2])
		}
		// Nothing twice: the next page begins behind the last final block.
		if again, same := w.all(c, next); len(again) != 0 || same != next || next > final {
			t.Errorf("again %d transfers, next %d after %d of %d", len(again), same, next, final)
		}
	}
	// What comes later is found by going on.
	_, next := w.all(w.on(), 0)
	w.Mint(w.token, w.shop, 9)
	w.Finalize()
	if list, _ := w.all(w.on(), next); len(list) != 1 || list[0].Value.Int64() != 9 {
		t.Errorf("%+v", list)
	}
}

func TestMemosStandAtTheirTransfers(t *testing.T) {
	t.Parallel()
	w := memos(t)
	batch := w.Deploy(chain.Batch)
	w.Mint(w.token, batch, 100)
	from := w.Head() + 1
	x, y := evm.Keccak([]byte("x")), evm.Keccak([]byte("y"))
	w.Send(w.Account(1), batch, chain.BatchCall(w.token, withMemo(w.shop, 1, x), evm.CallData("transfer(address,uint256)", w.shop, big.NewInt(1)),
		withMemo(w.Account(8), 1, evm.Keccak([]byte("other"))), withMemo(w.shop, 1, y)))
	w.Finalize()
	list, _ := w.all(w.on(), from)
	if len(list) != 3 || list[0].Memo == nil || *list[0].Memo != x || list[1].Memo != nil || list[2].Memo == nil || *list[2].Memo != y {
		t.Fatalf("%+v", list)
	}
	if list[0].Position != 0 || list[1].Position != 2 || list[2].Position != 5 {
		t.Errorf("positions %d, %d, %d", list[0].Position, list[1].Position, list[2].Position)
	}
}

// A nonce and a memo belong to one transfer, the next and the last, and to no other.
func TestWhatStandsBetweenTransfersBelongsToOne(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	w.token = w.Deploy(chain.Fake)
	from, thief := w.payer.Address, w.Account(6)
	move := evm.CallData("move(address,address,uint256)", from, w.shop, big.NewInt(1))
	n, x := evm.Keccak([]byte("n")), evm.Keccak([]byte("x"))
	carry := func(from evm.Address, value int64, memo evm.Hash) []byte {
		return evm.CallData("carry(address,address,uint256,bytes32)", from, w.shop, big.NewInt(value), memo)
	}
	use := func(who evm.Address) []byte { return evm.CallData("useUp(address,bytes32)", who, n) }
	first := w.Head() + 1
	w.Send(w.Account(1), batch, chain.BatchCall(w.token, use(from), move, move, use(thief), move,
		carry(from, 1, x), carry(from, 1, evm.Hash{9}), move, carry(thief, 1, x), move, carry(from, 2, x)))
	w.Finalize()
	list, _ := w.all(w.on(), first)
	var got []string
	for _, t := range list {
		got = append(got, fmt.Sprint(t.Position, t.Nonce != nil && *t.Nonce == n, t.Memo != nil && *t.Memo == x))
	}
	if want := "1 true false, 2 false false, 4 false true, 7 false false, 9 false false"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nnot\n%s", strings.Join(got, ", "), want)
	}
}

// A page that cannot be read whole is not read: nothing is passed over.
func TestAPageIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := start(t)
	for i := range 4 {
		w.Mint(w.token, w.shop, int64(1+i))
	}
	w.Finalize()
	asked := 0
	for what, edit := range map[string]func(string, chain.Answer) chain.Answer{
		"an error": func(method string, a chain.Answer) chain.Answer {
			if method == "eth_getLogs" {
				return chain.Answer{Status: 500}
			}
			return a
		},
		"no receipt": func(method string, a chain.Answer) chain.Answer {
			if method == "eth_getTransactionReceipt" {
				if asked++; asked > 2 {
					return chain.Answer{Result: json.RawMessage("null")}
				}
			}
			return a
		},
		"out of order": func(method string, a chain.Answer) chain.Answer {
			if method == "eth_getLogs" {
				var logs []json.RawMessage
				_ = json.Unmarshal(a.Result, &logs)
				slices.Reverse(logs)
				a.Result, _ = json.Marshal(logs)
			}
			return a
		},
		"stale": func(method string, a chain.Answer) chain.Answer {
			if method == "eth_getBlockByNumber" {
				var b map[string]any
				_ = json.Unmarshal(a.Result, &b)
				b["timestamp"] = "0x1"
				a.Result, _ = json.Marshal(b)
			}
			return a
		},
	} {
		url := w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer { return edit(method, a) })
		page, err := w.on(url).Incoming(t.Context(), w.watch(), 1, w.Now())
		if err == nil || len(page.Transfers) != 0 || page.Next != 1 || page.Done {
			t.Errorf("%s: %+v (%v)", what, page, err)
		}
	}
	if _, err := w.on().Incoming(t.Context(), rail.Watch{Asset: w.token}, 1, w.Now()); err == nil {
		t.Error("without an address all are watched")
	}
	// An answer that is too large is asked for in smaller stretches.
	large := w.Behind(func(method string, params json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_getLogs" && strings.Count(string(a.Result), "transactionHash") > 1 {
			return chain.Answer{Body: strings.Repeat(" ", 2<<20)}
		}
		return a
	})
	if list, _ := w.all(w.on(large), 0); len(list) != 4 {
		t.Errorf("%d transfers", len(list))
	}
}

// More than a page holds ends at a block, and the next page goes on behind it.
func TestABusyChainIsReadInPages(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	w.Mint(w.token, batch, 1000)
	calls := make([][]byte, 90)
	for i := range calls {
		calls[i] = evm.CallData("transfer(address,uint256)", w.shop, big.NewInt(1))
	}
	from := w.Head() + 1
	for range 4 {
		w.Send(w.Account(1), batch, chain.BatchCall(w.token, calls...))
	}
	w.Finalize()
	page, err := w.on().Incoming(t.Context(), w.watch(), from, w.Now())
	if err != nil || len(page.Transfers) != 270 || page.Done || page.Next != from+3 {
		t.Errorf("%d transfers, next %d of %d, done %v (%v)", len(page.Transfers), page.Next, from, page.Done, err)
	}
	list, _ := w.all(w.on(), from)
	names := map[string]bool{}
	for _, x := range list {
		names[x.Reference()] = true
	}
	if len(list) != 360 || len(names) != 360 {
		t.Errorf("%d transfers with %d names", len(list), len(names))
	}
}

// Reorganised away, back in another block, and gone for good.
func TestAKnownTransferIsThereOrGone(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, submit := w.signed("n")
	before := w.Snapshot()
	r := w.Send(w.Account(1), w.token, submit)
	a, _ := w.signed("n")
	known := *w.look(a).Transfer
	raw := w.Raw(r.Hash)
	is := func(what string, p rail.Presence, final bool) rail.Standing {
		t.Helper()
		s := w.on().Standing(t.Context(), known, w.Now())
		if s.Presence != p || s.Final != final || (s.Transfer != nil) != (p == rail.There) || (s.Trouble != nil) != (p == rail.Unsure) {
			t.Errorf("%s: %+v (%v)", what, s, s.Trouble)
		}
		return s
	}
	is("mined", rail.There, false)
	w.Revert(before)
	is("the node is behind its block", rail.Unsure, false)
	w.At(w.Now().Add(5 * time.Second))
	w.Mine(1)
	is("reorganised away", rail.Gone, false)
	told := known // by somebody who did not say where
	told.Block, told.BlockHash = 0, evm.Hash{}
	if s := w.on().Standing(t.Context(), told, w.Now()); s.Presence != rail.Unsure {
		t.Errorf("of a block that nobody named: %+v", s)
	}
	again := w.Snapshot()
	w.Submit(w.Account(2), w.token, evm.CallData("mint(address,uint256)", w.shop, uint64(1)))
	w.SubmitRaw(raw)
	w.Mine(1)
	if s := is("back", rail.There, false); s.Transfer != nil && (s.Transfer.Block == known.Block || s.Transfer.Reference() != known.Reference()) {
		t.Errorf("%+v", s.Transfer)
	}
	w.Finalize()
	is("back for good", rail.There, true)
	if s := w.on().Standing(t.Context(), told, w.Now()); s.Presence != rail.There || !s.Final || s.Transfer.BlockHash == (evm.Hash{}) {
		t.Errorf("of a block that nobody named, mined: %+v", s)
	}
	w.Revert(again)
	w.Mine(3)
	is("gone, and its block replaced by a final one", rail.Gone, true)

	// A node that forgot receipts does not say that a transfer is gone.
	w.Send(w.Account(1), w.token, submit)
	w.Finalize()
	known = *w.look(a).Transfer
	pruned := w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_getTransactionReceipt" {
			return chain.Answer{Result: json.RawMessage("null")}
		}
		return a
	})
	if s := w.on(pruned).Standing(t.Context(), known, w.Now()); s.Presence != rail.Unsure || s.Trouble.Problem != lookup.Unexpected {
		t.Errorf("pruned: %+v", s)
	}
	if s := w.on(pruned, w.URL).Standing(t.Context(), known, w.Now()); s.Presence != rail.There || !s.Final {
		t.Errorf("pruned, and a node that is not: %+v", s)
	}
	elsewhere := known
	elsewhere.Position = 0
	if s := w.on().Standing(t.Context(), elsewhere, w.Now()); s.Presence != rail.Unsure {
		t.Errorf("at another position: %+v", s)
	}
	other := known
	other.Network = "eip155:1"
	if s := w.on().Standing(t.Context(), other, w.Now()); s.Presence != rail.Unsure {
		t.Errorf("another network: %+v", s)
	}
}
