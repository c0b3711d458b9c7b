package evmrail_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/evm"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/payments/evmrail"
	"quittance/reconcile/policy"
)

// world is a gateway's server on a real chain, with the money of one payer.
type world struct {
	*payments.Engine
	*chain.Chain
	t       *testing.T
	db      *ledger.DB
	account int64
	token   evm.Address
	shop    evm.Address
	payer   chain.Wallet
}

func start(t *testing.T, contract chain.Contract) *world {
	t.Helper()
	w := &world{t: t, Chain: chain.Start(t), payer: chain.NewWallet("payer")}
	w.token, w.shop = w.Deploy(contract), w.Account(5)
	w.Mint(w.token, w.payer.Address, 100_000_000)
	w.Finalize()
	w.db = ledgertest.New(t)
	p, mistakes := policy.Load("quittance.yaml", fmt.Appendf(nil, `
gateways: {shop: {seller: Paid Pages}}
rails:
  eip155:%d:
    allow_private: true
    rpc: [%q]
    assets: {%q: {code: USDC, decimals: 6, eip3009: {name: USD Coin, version: "2"}}}
`, w.ID, w.URL, w.token.String()))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), w.db, p, notify.NewHub(), log)
	must(t, err)
	w.Engine, err = payments.New(t.Context(), payments.Options{DB: w.db, Effects: engine, Policy: engine.Policy, Log: log, Rails: evmrail.Rails(engine.Policy, w.Now)})
	must(t, err)
	must(t, access.New(w.db).AddAgentToken(t.Context(), "acme", "test", "qa_a-token-for-the-tests", 0))
	must(t, w.db.Get(t.Context(), &w.account, `SELECT id FROM accounts`))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked is a claim that brings an authorization of a name, signed for it.
func (w *world) asked(id, nonce string, until time.Duration) (payments.Asked, []byte) {
	w.t.Helper()
	a, s := w.Authorize(w.token, w.payer, w.shop, 4_200_000, nonce, w.Now().Add(until))
	return payments.Asked{
		Account: w.account, Gateway: "shop", PaymentID: id, Payer: w.payer.Address.String(), HasRequest: true, Method: "POST", Tool: "write_page",
		Amount: "4200000", Asset: w.token.String(), Network: fmt.Sprintf("eip155:%d", w.ID), PayTo: w.shop.String(),
		Authorization: &payments.Offered{Nonce: a.Nonce.String(), ValidAfter: "0", ValidBefore: a.ValidBefore.String(), Signature: s.String()},
	}, chain.TransferCall(a, s)
}

// sent claims, orders and records the broadcast.
func (w *world) sent(a payments.Asked) *payments.Answer {
	w.t.Helper()
	c, err := w.Claim(w.t.Context(), a)
	must(w.t, err)
	s := w.step(a, c.Fence)
	_, err = w.Order(w.t.Context(), payments.NewOrder{Step: s})
	must(w.t, err)
	_, err = w.Broadcast(w.t.Context(), payments.Sending{Step: s})
	must(w.t, err)
	return c
}

func (w *world) step(a payments.Asked, fence int64) payments.Step {
	return payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: a.PaymentID}, Fence: fence}
}

func (w *world) payment(a payments.Asked) *payments.Payment {
	w.t.Helper()
	p, err := w.Payment(w.t.Context(), w.step(a, 0).Name)
	must(w.t, err)
	return p
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	must(w.t, w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	}))
}

// round lets everything that waits for time be due, and runs the loops once.
func (w *world) round() {
	w.t.Helper()
	w.exec(`UPDATE payments SET check_at = clock_timestamp(), checking_until = NULL WHERE check_at IS NOT NULL`)
	w.exec(`UPDATE rail_cursors SET read_at = NULL, read_until = NULL`)
	w.exec(`UPDATE transfers SET asked_at = '2000-01-01' WHERE NOT final`)
	must(w.t, w.Tick(w.t.Context()))
	var off int
	must(w.t, w.db.Get(w.t.Context(), &off, `SELECT count(*) FROM money_equation WHERE difference <> 0 OR NOT posted`))
	if off != 0 {
		w.t.Fatal("the money does not add up")
	}
}

const p1, p2 = "payment-0000000001", "payment-0000000002"

// The nasty one, on a real chain: A's settle "fails", B is signed and pays, A lands later.
func TestALandsAfterBPaid(t *testing.T) {
	t.Parallel()
	w := start(t, chain.Dollar)
	a, callA := w.asked(p1, "A", 24*time.Hour)
	c := w.sent(a)
	_, err := w.Finish(t.Context(), payments.Finish{Step: w.step(a, c.Fence), Outcome: "unknown", Why: "success: false"})
	must(t, err)
	b, callB := w.asked(p1, "B", 24*time.Hour)
	if got, err := w.Claim(t.Context(), b); err == nil {
		t.Fatalf("told to %s with B while A may land", got.Do)
	}
	w.Send(w.Account(1), w.token, callB) // whoever saw B submits it
	w.Finalize()
	w.round()
	if p := w.payment(a); p.Order.State != "paid" || len(p.Transfers) != 1 || !p.Transfers[0].Final {
		t.Fatalf("order %s, %+v", p.Order.State, p.Transfers)
	}
	w.Send(w.Account(2), w.token, callA)
	w.round()
	w.Finalize()
	for range 3 {
		w.round()
	}
	p := w.payment(a)
	if len(p.Transfers) != 2 || len(p.Refunds) != 1 || p.Refunds[0].Amount.String() != "4200000" || p.Refunds[0].Reason != "duplicate" {
		t.Fatalf("%+v\n%+v", p.Transfers, p.Refunds)
	}
	for _, x := range p.Transfers {
		if want := map[bool]string{true: "duplicate", false: "applied"}[x.Nonce == a.Authorization.Nonce]; x.Class != want {
			t.Errorf("%s is %s", x.Nonce, x.Class)
		}
	}
}

// What expired unused at a final block is dead, and only then is a new signature asked for.
func TestTheDeadMakeRoom(t *testing.T) {
	t.Parallel()
	w := start(t, chain.Dollar)
	a, callA := w.asked(p1, "A", time.Minute)
	c := w.sent(a)
	_, err := w.Finish(t.Context(), payments.Finish{Step: w.step(a, c.Fence), Outcome: "unknown"})
	must(t, err)
	w.exec(`ALTER TABLE payments DISABLE TRIGGER payments_fence`)
	w.exec(`UPDATE payments SET claimed_at = claimed_at - interval '1 hour'`)
	w.exec(`ALTER TABLE payments ENABLE TRIGGER payments_fence`)
	w.round()
	if _, err := w.Claim(t.Context(), a); !strings.Contains(fmt.Sprint(err), "payment_in_flight") {
		t.Errorf("while it may land: %v", err)
	}
	w.At(w.Now().Add(2 * time.Minute))
	w.Finalize()
	w.Finalize()
	w.round()
	if got := w.payment(a).Authorizations; len(got) != 1 || got[0].DeadWhy != "expired" {
		t.Fatalf("%+v", got)
	}
	if _, err := w.Claim(t.Context(), a); !strings.Contains(fmt.Sprint(err), "sign_again") {
		t.Errorf("with the dead one: %v", err)
	}
	if why := w.Refuses(w.Account(1), w.token, callA); why == "" {
		t.Error("the chain takes it all the same")
	}
	b, callB := w.asked(p1, "B", 24*time.Hour)
	got, err := w.Claim(t.Context(), b)
	must(t, err)
	if got.Do != payments.Proceed || got.Fence <= c.Fence {
		t.Errorf("%+v", got)
	}
	w.Send(w.Account(1), w.token, callB)
	w.Finalize()
	w.round()
	if p := w.payment(a); p.Order.State != "paid" || len(p.Refunds) != 0 {
		t.Errorf("order %s, %+v", p.Order.State, p.Refunds)
	}
}

// A transfer that the gateway posted and a reorganisation took away opens its order again;
// mined again in another block it is the same one.
func TestAReorganisation(t *testing.T) {
	t.Parallel()
	w := start(t, chain.Dollar)
	a, call := w.asked(p1, "A", 24*time.Hour)
	c := w.sent(a)
	receipt := w.Send(w.Account(1), w.token, call)
	raw := w.Raw(receipt.Hash)
	var block struct{ BlockHash string }
	must(t, json.Unmarshal(w.Call("eth_getTransactionReceipt", receipt.Hash), &block))
	in := payments.Incoming{
		Account: w.account, Network: a.Network, Tx: receipt.Hash.String(), Position: 1, Asset: a.Asset, From: a.Payer, To: a.PayTo, Amount: a.Amount,
		Nonce: a.Authorization.Nonce, Block: int64(receipt.Block), BlockHash: block.BlockHash,
	}
	m, err := w.Post(t.Context(), in)
	must(t, err)
	_, err = w.Finish(t.Context(), payments.Finish{Step: w.step(a, c.Fence), Outcome: "settled", Response: &payments.Response{Status: 200}})
	must(t, err)
	if m.Transfer.Class != payments.Applied || m.Transfer.Final {
		t.Fatalf("%+v", m.Transfer)
	}
	w.round()
	w.Reorg(1)
	w.round()
	if p := w.payment(a); p.Order.State != "paid" {
		t.Errorf("order is %s before the other block is final", p.Order.State)
	}
	w.Finalize()
	w.round()
	if p := w.payment(a); p.Order.State != "paying" || !p.Transfers[0].Reverted() || p.State != "settled" {
		t.Fatalf("order %s, payment %s, %+v", p.Order.State, p.State, p.Transfers)
	}
	w.SubmitRaw(raw)
	w.Mine(1)
	w.Finalize()
	w.round()
	w.round()
	p := w.payment(a)
	if len(p.Transfers) != 1 || p.Transfers[0].Reverted() || !p.Transfers[0].Final || p.Order.State != "paid" || len(p.Refunds) != 0 {
		t.Errorf("order %s, %+v, %+v", p.Order.State, p.Transfers, p.Refunds)
	}
}

// The second rail: a transfer finds its order by its memo.
func TestATransferWithAMemo(t *testing.T) {
	t.Parallel()
	w := start(t, chain.Memo)
	a, _ := w.asked(p1, "A", time.Hour)
	a.Authorization = nil
	c, err := w.Claim(t.Context(), a)
	must(t, err)
	memo := evm.Keccak([]byte("order 1"))
	_, err = w.Order(t.Context(), payments.NewOrder{Step: w.step(a, c.Fence), Memo: memo.String(), ExpiresIn: time.Hour})
	must(t, err)
	w.Mint(w.token, w.Account(3), 10_000_000)
	pay := func(value int64, memo evm.Hash) {
		w.Send(w.Account(3), w.token, evm.CallData("transferWithMemo(address,uint256,bytes32)", w.shop, big.NewInt(value), memo))
	}
	pay(4_200_000, memo)
	pay(1, evm.Keccak([]byte("nobody's")))
	w.round()
	if p := w.payment(a); len(p.Transfers) != 0 {
		t.Errorf("read before it is final: %+v", p.Transfers)
	}
	w.Finalize()
	w.round()
	p := w.payment(a)
	if p.Order.State != "paid" || len(p.Transfers) != 1 || p.Transfers[0].Memo != memo.String() {
		t.Errorf("order %s, %+v", p.Order.State, p.Transfers)
	}
	var unmatched int
	must(t, w.db.Get(t.Context(), &unmatched, `SELECT count(*) FROM transfers WHERE class = 'unmatched'`))
	if unmatched != 1 {
		t.Errorf("%d unmatched", unmatched)
	}
}

// Who signed is told offline: for another amount, recipient or by another wallet it is not
// the payer's.
func TestAWrongSignature(t *testing.T) {
	t.Parallel()
	w := start(t, chain.Dollar)
	for what, change := range map[string]func(*payments.Asked){
		"amount":    func(a *payments.Asked) { a.Amount = "4200001" },
		"recipient": func(a *payments.Asked) { a.PayTo = w.Account(6).String() },
		"payer":     func(a *payments.Asked) { a.Payer = w.Account(7).String() },
		"nonce":     func(a *payments.Asked) { a.Authorization.Nonce = evm.Keccak([]byte("x")).String() },
		"signature": func(a *payments.Asked) { a.Authorization.Signature = "0x1234" },
		"end":       func(a *payments.Asked) { a.Authorization.ValidBefore = "4102444800" },
	} {
		a, _ := w.asked(p2, "A", time.Hour)
		change(&a)
		if _, err := w.Claim(t.Context(), a); !strings.Contains(fmt.Sprint(err), "/authorization/signature") {
			t.Errorf("another %s: %v", what, err)
		}
	}
	a, _ := w.asked(p2, "A", time.Hour)
	_, err := w.Claim(t.Context(), a)
	must(t, err)
}
