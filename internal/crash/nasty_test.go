package crash

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/internal/chain"
	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/evm"
	"quittance/reconcile/payments/evmrail"
	"quittance/reconcile/policy"
	"quittance/reconcile/refunds"
)

// The nasty one from end to end, on a real chain, with a real server and two people: A's
// settle "fails", B is signed and pays, A lands later. One refund is owed, for A; one person
// approves it, another sends it, the chain confirms it, and the receipt says so. Told as it
// goes: `make demo-refund` shows it.
func TestTheNastyOneFromEndToEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	payer, payTo := chain.NewWallet("a payer"), s.chain.Account(4)
	s.chain.Mint(s.token, payer.Address, 10*pagePrice)
	s.chain.Mine(3)
	tell := func(format string, args ...any) { t.Helper(); t.Logf("• "+format, args...) }

	signed := func(name string) (client.PaymentRequest, []byte) {
		a, sig := s.chain.Authorize(s.token, payer, payTo, pagePrice, name, s.chain.Now().Add(24*time.Hour))
		return client.PaymentRequest{
			PaymentID: "payment-of-the-nasty-one", Gateway: "shop", Payer: payer.Address.String(), Amount: fmt.Sprint(pagePrice), Asset: s.token.String(),
			Network: fmt.Sprintf("eip155:%d", s.chain.ID), PayTo: payTo.String(), Quote: "quote-88",
			Request:       &client.PaidRequest{Method: "POST", Tool: "make_page", Arguments: []byte(`{"title":"ships"}`)},
			Authorization: &client.Authorization{Nonce: a.Nonce.String(), ValidAfter: "0", ValidBefore: a.ValidBefore.String(), Signature: sig.String()},
		}, chain.TransferCall(a, sig)
	}
	a, submitA := signed("A")
	b, submitB := signed("B")
	claim, err := s.agent.ClaimPayment(t.Context(), a)
	must(t, err)
	step := client.PaymentStep{Gateway: "shop", Fence: claim.Fence}
	_, err = s.agent.OrderPayment(t.Context(), a.PaymentID, client.PaymentOrder{PaymentStep: step, Description: "A page about ships"})
	must(t, err)
	_, err = s.agent.BroadcastPayment(t.Context(), a.PaymentID, client.PaymentBroadcast{PaymentStep: step, Nonce: a.Authorization.Nonce})
	must(t, err)
	p, err := s.agent.FinishPayment(t.Context(), a.PaymentID, client.PaymentFinish{PaymentStep: step, Outcome: client.OutcomeUnknown, Why: "success: false"})
	must(t, err)
	tell("the gateway sends authorization A; its facilitator answers success: false. The payment is %s, not failed", p.State)

	if got, err := s.agent.ClaimPayment(t.Context(), b); err == nil {
		t.Fatalf("told to %s with B while A may land", got.Do)
	}
	tell("the payer brings a second signature, B: the gateway is told to wait, never to ask for it")
	s.chain.Send(s.chain.Account(2), s.token, submitB)
	s.chain.Mine(3)
	tell("B is submitted all the same, by whoever saw it, and lands")
	paid := s.await(claim.OrderID, "paid by B", func(o client.Order) bool { return o.State == "paid" && len(o.Transfers) == 1 })
	tell("the rail is read: the order is %s", paid.State)

	landed := time.Now()
	s.chain.Send(s.chain.Account(3), s.token, submitA)
	s.chain.Mine(3)
	tell("now A lands too: the payer has paid twice")
	owed := s.await(claim.OrderID, "a refund owed", func(o client.Order) bool { return o.Refund != nil })
	took := time.Since(landed)
	if took > time.Minute || owed.Refund.State != "owed" || owed.Refund.Amount != fmt.Sprint(pagePrice) || len(owed.Transfers) != 2 {
		t.Fatalf("after %s: %+v", took, owed)
	}
	tell("found after %s: one refund of %s is owed, for A", took.Round(time.Millisecond), owed.Refund.Amount)

	source, err := os.ReadFile(s.path("quittance.yaml"))
	must(t, err)
	rules, mistakes := policy.Load("quittance.yaml", source)
	must(t, mistakes.Err())
	inForce := func() *policy.Policy { return rules }
	finance := refunds.New(refunds.Options{DB: s.db, Policy: inForce, Networks: evmrail.Networks(inForce, time.Now)})
	var refund string
	must(t, s.db.Get(t.Context(), &refund, `SELECT id::text FROM refunds`))
	act := func(name string) refunds.Act {
		id, err := access.New(s.db).AddPerson(t.Context(), name, "", []string{"finance"})
		must(t, err)
		var f *payments.Refund
		must(t, s.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
			var err error
			f, err = payments.RefundByID(ctx, tx, refund)
			return err
		}))
		return refunds.Act{By: access.MadeBy{Person: &access.Person{ID: id, Name: name, Roles: []string{"finance"}}}, Refund: refund, Version: f.Version, Note: "a double of quote-88"}
	}
	petra := act("Petra")
	must(t, finance.Approve(t.Context(), petra))
	tell("Petra approves it")
	petra.Version++
	back := s.chain.Send(payTo, s.token, evm.CallData("transfer(address,uint256)", payer.Address, big.NewInt(pagePrice)))
	if err := finance.Send(t.Context(), petra, refunds.Reference{Tx: back.Hash.String()}); err == nil {
		t.Error("whoever approved it sends it too")
	}
	must(t, finance.Send(t.Context(), act("Quentin"), refunds.Reference{Tx: back.Hash.String()}))
	tell("Quentin sends it back by hand and records the hash; Petra could not have")
	s.chain.Mine(3)
	done := s.await(claim.OrderID, "a confirmed refund", func(o client.Order) bool { return o.Refund.State == "confirmed" })
	if done.Refund.Refunded != fmt.Sprint(pagePrice) || s.chain.Balance(s.token, payer.Address).Int64() != 9*pagePrice {
		t.Errorf("%+v", done.Refund)
	}
	tell("the chain confirms it")
	page := s.read(done.Receipt)
	if !strings.Contains(page, "Refunded") || !strings.Contains(page, back.Hash.String()) {
		t.Errorf("the receipt says\n%s", page)
	}
	tell("the receipt at %s says: Refunded, with the hash", done.Receipt)
}

// await reads an order until something holds, which the loops of the server bring about.
func (s *shop) await(order, what string, holds func(client.Order) bool) client.Order {
	s.t.Helper()
	for over := time.Now().Add(90 * time.Second); ; {
		o, err := s.agent.Order(s.t.Context(), order)
		must(s.t, err)
		if holds(o) {
			return o
		}
		if time.Now().After(over) {
			s.t.Fatalf("there is no %s: %+v", what, o)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// read reads a page of the server.
func (s *shop) read(path string) string {
	s.t.Helper()
	r, err := http.Get(s.gate.URL + path)
	must(s.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(s.t, err)
	return string(text)
}
