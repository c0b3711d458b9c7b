package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
)

const moneyRules = rules + `
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
payments:
  accounts: {refund_owed: "2150 Refunds owed", revenue: "=4000 Sales"}
rails:
  bank:main:
    name: The bank
    assets:
      usd: {code: USD, decimals: 2}
      jpy: {code: JPY, decimals: 0}
  eip155:8453:
    name: Base
    assets:
      "0x1000000000000000000000000000000000000001": {code: USDC, decimals: 6}
      "0x1000000000000000000000000000000000000018": {code: WETH, decimals: 18}
      "0x1000000000000000000000000000000000000003": {code: PTS, decimals: 3}
`

const (
	theBank = "bank:main"
	onBase  = "eip155:8453"
	usdc    = "0x1000000000000000000000000000000000000001"
	weth    = "0x1000000000000000000000000000000000000018"
	points  = "0x1000000000000000000000000000000000000003"
)

// moneyWorld is a world with two rails, and three people of finance beside the others.
type moneyWorld struct {
	*world
	fay, gil, hal access.MadeBy
	n             int
}

func newMoneyWorld(t testing.TB) *moneyWorld {
	w := &moneyWorld{world: newWorldWith(t, moneyRules)}
	person := func(name, mail string) access.MadeBy {
		p := w.addPerson(name, mail, "finance")
		return access.MadeBy{Person: &access.Person{ID: p.ID, Name: name, Roles: []string{"finance"}}}
	}
	w.fay, w.gil, w.hal = person("Fay Moreau", "fay"), person("Gil Ortiz", "gil"), person("Hal Brandt", "hal")
	return w
}

func (w *moneyWorld) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// incoming is money that came in, of nobody's order unless one is named.
func (w *moneyWorld) incoming(network, asset, from, amount, order string) *payments.Moved {
	w.t.Helper()
	w.n++
	hash, to := fmt.Sprintf("in-%d", w.n), "our-account"
	if network == onBase {
		hash, to = fmt.Sprintf("0x%064x", w.n), "0x2000000000000000000000000000000000000002"
	}
	m, err := w.pay.Post(w.t.Context(), payments.Incoming{
		Account: w.account, Network: network, Tx: hash, Asset: asset, From: from, To: to, Amount: amount, OrderID: order, Block: int64(w.n), Final: true,
	})
	w.check(err)
	return m
}

// owed is a refund that Hal decided to give.
func (w *moneyWorld) owed(network, asset, from, amount string) string {
	w.t.Helper()
	m := w.incoming(network, asset, from, amount, "")
	m, err := w.pay.GiveBack(w.t.Context(), payments.ByHand{By: w.hal, Transfer: m.Transfer.ID, Note: "nobody ordered this"})
	w.check(err)
	return m.Refund.ID
}

func (w *moneyWorld) act(by access.MadeBy, id string) refunds.Act {
	return refunds.Act{By: by, Refund: id, Note: "as seen at the bank " + strings.Repeat("long ", 700)}
}

func (w *moneyWorld) approved(network, asset, from, amount string) string {
	w.t.Helper()
	id := w.owed(network, asset, from, amount)
	w.check(w.refund.Approve(w.t.Context(), w.act(w.fay, id)))
	return id
}

func (w *moneyWorld) sent(id, amount string) {
	w.t.Helper()
	w.n++
	tx := fmt.Sprintf("out-%d", w.n)
	if f, _ := rows.RefundByID(w.t.Context(), w.db, id); f.Network == onBase {
		tx = fmt.Sprintf("0x%064x", 1_000_000+w.n)
	}
	w.check(w.refund.Send(w.t.Context(), w.act(w.gil, id), refunds.Reference{Tx: tx, Amount: amount}))
}

// order is an order with its payment, and where it is.
func (w *moneyWorld) order(amount string) *payments.Payment {
	w.t.Helper()
	w.n++
	id := fmt.Sprintf("payment-of-the-desk-%04d", w.n)
	a, err := w.pay.Claim(w.t.Context(), payments.Asked{
		Account: w.account, Gateway: "shop", PaymentID: id, Payer: "payer-one", RequestDigest: strings.Repeat("ab", 32), Amount: amount, Asset: "usd", Network: theBank, PayTo: "our-account",
	})
	w.check(err)
	p, err := w.pay.Order(w.t.Context(), payments.NewOrder{Step: payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: id}, Fence: a.Fence}})
	w.check(err)
	return p
}

// month has refunds in every state on both rails, and recoveries; by name.
func (w *moneyWorld) month() map[string]string {
	w.t.Helper()
	ctx := w.t.Context()
	const alice = "0xa000000000000000000000000000000000000001"
	m := map[string]string{"owed": w.owed(onBase, usdc, alice, "4200000"), "approved": w.approved(theBank, "usd", "payer-two", "12000")}
	m["sending"] = w.approved(theBank, "jpy", "payer-three", "6400")
	w.check(w.refund.Start(ctx, w.act(w.gil, m["sending"]), ""))
	m["sent"] = w.approved(onBase, weth, alice, "1500000000000000001")
	w.sent(m["sent"], "")
	m["unknown"] = w.approved(theBank, "usd", "payer-four", "990")
	w.check(w.refund.Start(ctx, w.act(w.gil, m["unknown"]), ""))
	w.check(w.refund.Doubt(ctx, w.act(w.hal, m["unknown"])))
	m["confirmed"] = w.approved(theBank, "usd", "payer-five", "995")
	w.sent(m["confirmed"], "3.30")
	w.check(w.refund.Saw(ctx, w.act(w.hal, m["confirmed"])))
	w.sent(m["confirmed"], "6.65")
	w.check(w.refund.Saw(ctx, w.act(w.hal, m["confirmed"])))
	m["returned"] = w.approved(theBank, "usd", "payer-six", "500")
	w.sent(m["returned"], "")
	w.check(w.refund.Saw(ctx, w.act(w.hal, m["returned"])))
	list, err := w.refund.Payouts(ctx, m["returned"])
	w.check(err)
	w.check(w.refund.CameBack(ctx, w.act(w.hal, m["returned"]), refunds.Back{Payout: list[0].ID, Tx: "return-1"}))
	m["held"] = w.owed(onBase, points, alice, "1002003")
	w.check(w.refund.Hold(ctx, w.act(w.fay, m["held"])))
	m["written off"] = w.owed(theBank, "usd", "payer-seven", "3")
	w.check(w.refund.AskWriteOff(ctx, w.act(w.gil, m["written off"]), ""))
	w.check(w.refund.WriteOff(ctx, w.act(w.fay, m["written off"])))
	m["odd"] = w.owed(theBank, "tokens-nobody-declared", strings.Repeat("w", 120), "77")
	m["hebrew"] = w.owed(theBank, "usd", "משלם אחד", "100")
	p := w.order("1000")
	m["order"] = p.OrderID
	w.incoming(theBank, "usd", "payer-one", "1000", p.OrderID)
	m["duplicate"] = w.incoming(theBank, "usd", "payer-one", "1000", p.OrderID).Refund.ID
	m["unmatched"] = w.incoming(theBank, "usd", "payer-nine", "4711", "").Transfer.ID
	w.contradicted("run-1", pay("Birch Supply", "INV-1", "20.00", "USD"))
	var recovery string
	w.check(w.db.Get(ctx, &recovery, `SELECT id::text FROM recoveries LIMIT 1`))
	m["recovery"] = recovery
	return m
}

// field is what a hidden field of a page holds.
func (a answer) field(t testing.TB, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(a.body, `name="`+name+`" value="`)
	if !ok {
		t.Fatalf("there is no field %s: %s", name, a.body)
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// step does one act on the pages, from its confirmation page on.
func (v *visitor) step(path string, query url.Values, note string) answer {
	v.w.t.Helper()
	page := v.get(path + "/confirm?" + query.Encode())
	if page.status != http.StatusOK {
		return page
	}
	form := url.Values{"form": {page.token(v.w.t, path+"/act")}, "note": {note}}
	for k, x := range query {
		form[k] = x
	}
	return v.send(path+"/act", form)
}
