package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"quittance/client"
	"quittance/client/gateway"
	"quittance/client/x402"
)

var byMemo = x402.Requirements{Scheme: x402.SchemeMemo, Network: network, Asset: token, Amount: "4200000", PayTo: payee, MaxTimeoutSeconds: 600}

// node is what a gateway reads transactions from.
type node map[string]client.Transfer

func (n node) transfers(_ context.Context, _, tx string) ([]client.Transfer, error) {
	t, ok := n[tx]
	if !ok {
		return nil, errors.New("no such transaction")
	}
	return []client.Transfer{t}, nil
}

// sendsByMemo starts the gateway anew with a page that is paid by memo.
func (w *world) sendsByMemo(n node, final bool) {
	g := gateway.New(gateway.Options{Quittance: w.q, Name: "shop", Transfers: n.transfers})
	route := gateway.Route{Tool: "write_page", Accepts: []x402.Requirements{byMemo}, MemoFinal: final, MemoPayer: func(r *http.Request) (string, error) {
		return r.Header.Get("Test-Payer"), nil
	}}
	mux := http.NewServeMux()
	mux.Handle("POST /write", g.Paid(route, w.work))
	route.MemoPayer = nil
	mux.Handle("POST /signed", g.Paid(route, w.work))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = mux
}

func memoRequest(id, tx string) request {
	return request{method: http.MethodPost, path: "/write", body: `{"page":"a"}`, id: id, payer: alice, nonce: 1, change: func(p *x402.Payload) {
		raw, _ := json.Marshal(x402.Carried{Transaction: tx})
		p.Accepted, p.Payload = byMemo, raw
	}}
}

func carrying(memo, tx string, final bool) client.Transfer {
	return client.Transfer{
		Network: network, Tx: tx, Asset: token, From: alice, To: payee, Amount: byMemo.Amount, Memo: memo, Block: 7, BlockHash: nonce(7), Final: final,
	}
}

// A purchase is paid by one transfer with the memo that the gateway names: it names it once
// with a 402, and to whoever asks again with a 409, who may have sent the transfer.
func TestAMemoPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := node{}
	w.sendsByMemo(n, false)

	asked := w.send(memoRequest(anID, "")).is(t, 402, "payment_required")
	memo := asked.header.Get(x402.MemoHeader)
	offer, err := x402.Decode[x402.Required](asked.header.Get(x402.RequiredHeader))
	if err != nil || len(memo) != 66 || offer.Accepts[0].Extra["memo"] != memo || !offer.Accepts[0].Same(byMemo) {
		t.Fatalf("%+v, %v", asked, err)
	}
	again := w.send(memoRequest(anID, "")).is(t, 409, client.CodePaymentInFlight)
	if again.header.Get(x402.MemoHeader) != memo {
		t.Errorf("%+v", again.header)
	}
	w.send(memoRequest(anID, nonce(0x77))).is(t, 409, client.CodePaymentInFlight) // one that does not exist
	n[nonce(1)] = carrying(nonce(1), nonce(1), true)
	w.send(memoRequest(anID, nonce(1))).is(t, 409, client.CodePaymentInFlight) // one with another memo
	if w.work.times() != 0 {
		t.Fatal("it was done unpaid")
	}
	n[nonce(2)] = carrying(memo, nonce(2), true)
	first := w.send(memoRequest(anID, nonce(2))).is(t, 201, "settled")
	w.sendsByMemo(n, false)
	for _, tx := range []string{"", nonce(2)} {
		if got := w.send(memoRequest(anID, tx)).is(t, 201, "settled"); got.body != first.body || got.header.Get(x402.ReplayedHeader) != "true" {
			t.Errorf("%+v", got)
		}
	}
	if w.work.times() != 1 {
		t.Errorf("%d done", w.work.times())
	}
	if p := w.state(anID); p.Order.Memo != memo || p.Order.State != "paid" || len(p.Order.Transfers) != 1 {
		t.Errorf("%+v", p.Order)
	}
	w.equation()
}

// A payer that lost everything but the id, and pays again, has it owed back.
func TestASecondTransferWithAMemoIsOwedBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendsByMemo(node{}, false)
	memo := w.send(memoRequest(anID, "")).is(t, 402, "payment_required").header.Get(x402.MemoHeader)
	for i, class := range []string{"applied", "duplicate"} {
		moved, err := w.q.PostTransfer(t.Context(), carrying(memo, nonce(10+i), true))
		if err != nil || moved.Class != class {
			t.Fatalf("%+v, %v", moved, err)
		}
	}
	w.send(memoRequest(anID, "")).is(t, 201, "settled")
	if p := w.state(anID); p.Refund == nil || p.Refund.Amount != byMemo.Amount {
		t.Errorf("%+v", p.Refund)
	}
	w.equation()
}

// Another process of the gateway waits for the age at which it may take over, and then the
// memo is the same; what arrived meanwhile is worked for once, and a refused work is owed
// back.
func TestAMemoOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendsByMemo(node{}, false)
	memo := w.send(memoRequest(anID, "")).is(t, 402, "payment_required").header.Get(x402.MemoHeader)
	w.sendsByMemo(node{}, false)
	w.send(memoRequest(anID, "")).is(t, 409, client.CodePaymentInFlight)
	w.old(anID)
	if got := w.send(memoRequest(anID, "")).is(t, 409, client.CodePaymentInFlight); got.header.Get(x402.MemoHeader) != memo {
		t.Errorf("%+v", got.header)
	}
	if _, err := w.q.PostTransfer(t.Context(), carrying(memo, nonce(10), true)); err != nil {
		t.Fatal(err)
	}
	w.work.status = 422
	w.send(memoRequest(anID, "")).is(t, 422, "refused")
	w.send(memoRequest(anID, "")).is(t, 422, "refused")
	if p := w.state(anID); w.work.times() != 1 || p.Refund == nil || p.Refund.Amount != byMemo.Amount {
		t.Errorf("%d done, %+v", w.work.times(), p.Refund)
	}
	w.equation()
}

// Where it is asked for, the work waits until the transfer cannot vanish any more, which is
// for the rail to say.
func TestAMemoMayHaveToBeFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := node{}
	w.sendsByMemo(n, true)
	memo := w.send(memoRequest(anID, "")).is(t, 402, "payment_required").header.Get(x402.MemoHeader)
	n[nonce(2)] = carrying(memo, nonce(2), false)
	w.send(memoRequest(anID, nonce(2))).is(t, 409, client.CodePaymentInFlight)
	if w.work.times() != 0 {
		t.Error("it was done for what may vanish")
	}
	n[nonce(2)] = carrying(memo, nonce(2), true)
	w.send(memoRequest(anID, nonce(2))).is(t, 409, client.CodePaymentInFlight)
	w.tick()
	w.send(memoRequest(anID, nonce(2))).is(t, 409, client.CodePaymentInFlight)
	if w.work.times() != 0 {
		t.Error("it was done on the gateway's own word")
	}
	w.rail.change(func(r *rail) { r.final = true })
	w.tick()
	w.send(memoRequest(anID, nonce(2))).is(t, 201, "settled")
}

// What a memo buys is shown to its payer only, who must be known; and the id is the payer's.
func TestAMemoHasAPayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendsByMemo(node{}, false)
	memo := w.send(memoRequest(anID, "")).is(t, 402, "payment_required").header.Get(x402.MemoHeader)
	stranger := memoRequest(anID, "")
	stranger.payer = bob
	if got := w.send(stranger).is(t, 409, client.CodePaymentConflict); got.header.Get(x402.MemoHeader) != "" || strings.Contains(got.body, memo) {
		t.Errorf("%+v", got)
	}
	w.send(memoRequest("", "")).is(t, 400, client.CodeMalformed)
	signed := memoRequest(anID, "")
	signed.path = "/signed"
	w.send(signed).is(t, 400, client.CodeMalformed)
}

// Of each purchase only one thing may be lost, and nothing is paid twice: here the answers
// of Quittance.
func TestEachStepOfAMemoMayFailOnce(t *testing.T) {
	t.Parallel()
	for name, on := range steps {
		if name == "broadcast" {
			continue
		}
		for _, kind := range []string{"did_not_happen", "happened"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				n := node{}
				w.sendsByMemo(n, false)
				w.gate.fail(on, kind, 1)
				memo := w.send(memoRequest(anID, "")).is(t, 402, "payment_required").header.Get(x402.MemoHeader)
				n[nonce(2)] = carrying(memo, nonce(2), true)
				got := w.send(memoRequest(anID, nonce(2))).is(t, 201, "settled")
				if w.gate.faults() != 1 || got.body != "page 1" || w.work.times() != 1 {
					t.Errorf("%d faults, %q, %d done", w.gate.faults(), got.body, w.work.times())
				}
			})
		}
	}
}
