package desk

import (
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	store "quittance/ledger/refunds"
	"quittance/reconcile/refunds"
	"quittance/views"
)

// owed is one refund with what hangs on it.
type owed struct {
	*rows.Refund
	transfer *rows.Transfer
	payouts  []store.Payout
	live     *store.Payout
}

func (d *Desk) owed(r *request) (o owed, err error) {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return o, echo.ErrNotFound
	}
	if o.Refund, err = rows.RefundByID(r.ctx(), d.db, id.String()); err != nil {
		return o, err
	}
	if o.Refund == nil {
		return o, echo.ErrNotFound
	}
	if o.transfer, err = rows.TransferByID(r.ctx(), d.db, o.Transfer); err != nil {
		return o, err
	}
	if o.payouts, err = store.Payouts(r.ctx(), d.db, o.ID); err != nil {
		return o, err
	}
	for i := range o.payouts {
		switch o.payouts[i].State {
		case "sending", "sent", "unknown":
			o.live = &o.payouts[i]
		}
	}
	return o, nil
}

func (d *Desk) refundPage(r *request) error {
	o, err := d.owed(r)
	if err != nil {
		return err
	}
	page, err := d.page(r, "Refund", "/refunds")
	if err != nil {
		return err
	}
	show := func(x money.Atomic) *views.Money { return d.moneyOf(o.Network, o.Asset, x) }
	s := views.MoneySheet{
		Page: page, Crumb: views.Link{Text: "Refunds owed", URL: "/refunds"}, Title: line("To " + shortName(o.To())),
		Lead:  capital(reasonText(o.Reason)) + ". Open since " + r.at(o.OpenedAt).Text + ", for " + span(r.now.Sub(o.OpenedAt)) + ".",
		State: refundState(o.State), Amount: show(o.Rest()),
	}
	if why := d.refund.Blocks(o.Refund, o.transfer.Final); why != "" {
		s.Blocked = why + "."
	}
	if why := refunds.NotYours(o.Refund, o.live, r.session.Person.ID); why != "" && r.may(finance) {
		s.Blocked = strings.TrimSpace(s.Blocked + " " + why)
	}
	s.Figures = []views.Figure{
		{Label: "Owed in all", Money: show(o.Amount)}, {Label: "Still open", Money: show(o.Rest())}, {Label: "Under way", Money: show(o.Reserved)},
		{Label: "Refunded", Money: show(o.Paid)}, {Label: "Written off", Money: show(o.WrittenOff)},
	}
	s.Facts = []views.Fact{
		{Name: "Rail", Value: line(d.railName(o.Network))}, {Name: "Asset", Value: line(d.assetName(o.Network, o.Asset))},
		{Name: "Payer", Value: line(o.Payer)}, {Name: "Goes to", Value: line(o.To())},
		{Name: "Money that came in", Value: line(o.transfer.Tx), URL: "/transfers/" + o.Transfer},
	}
	if o.Gateway != "" {
		s.Facts = append(s.Facts, views.Fact{Name: "Gateway", Value: line(o.Gateway)})
	}
	if o.WriteOff.Sign() > 0 {
		s.Facts = append(s.Facts, views.Fact{Name: "Write-off asked for", Value: line(plainMoney(show(o.WriteOff)) + ": " + o.WriteOffWhy)})
	}
	if err := d.orderFacts(r, &s, o.transfer); err != nil {
		return err
	}
	if t := d.payoutTable(r, o); len(t.Rows) > 0 {
		s.Tables = append(s.Tables, t)
	}
	events, err := rows.HistoryOfTransfer(r.ctx(), d.db, o.Transfer, 1000)
	if err != nil {
		return err
	}
	s.History = d.moneyHistory(r, events)
	if r.may(finance) {
		s.Acts = d.refundActs(r, o)
	}
	return showSheet(r, s)
}

// orderFacts link a transfer's order, its effect and its receipt.
func (d *Desk) orderFacts(r *request, s *views.MoneySheet, t *rows.Transfer) error {
	if t.OrderID == "" {
		return nil
	}
	p, err := d.pay.PaymentOfOrder(r.ctx(), 0, t.OrderID)
	if err != nil {
		return err
	}
	s.Facts = append(s.Facts, views.Fact{Name: "Order", Value: line(t.OrderID), URL: "/orders/" + t.OrderID})
	if p.Work != nil {
		s.Facts = append(s.Facts, views.Fact{Name: "What it paid for", Value: line(orElse(p.Tool, "the work")), URL: effectURL(p.Work.EffectID)})
	}
	if u := d.pay.ReceiptURL(p.Order); u != "" {
		s.Facts = append(s.Facts, views.Fact{Name: "The payer's receipt", Value: line("open it"), URL: u})
	}
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (d *Desk) payoutTable(r *request, o owed) views.Table {
	t := views.Table{Caption: "Payments of it", Head: head("Reference", "State", ">Amount", "Who", "When")}
	states := map[string]views.State{
		"sending": {Kind: "info", Word: "Being sent"}, "sent": {Kind: "info", Word: "Sent, not seen yet"}, "unknown": {Kind: "danger", Word: "Not known"},
		"confirmed": {Kind: "ok", Word: "Arrived"}, "failed": {Kind: "stop", Word: "Did not arrive"}, "landed": {Kind: "danger", Word: "Arrived a second time"}, "returned": {Kind: "danger", Word: "Came back"},
	}
	for _, p := range o.payouts {
		state := states[p.State]
		ref := views.Cell{Text: line(orElse(p.Tx, "none yet")), Sub: line("attempt " + whole(int64(p.Attempt)) + " · " + p.Key[:15] + "…")}
		who := "sent by " + p.Maker + ", approved by " + p.Approver
		if p.Ender != "" {
			who += ", seen by " + p.Ender
		}
		said := p.Said
		if p.ReturnedTx != "" {
			said += " Return: " + p.ReturnedTx
		}
		t.Rows = append(t.Rows, []views.Cell{ref, {State: &state, Sub: line(said)}, {Money: d.moneyOf(p.Network, p.Asset, p.Amount), Num: true}, {Text: line(who)}, {Time: r.at(p.StartedAt)}})
	}
	return t
}

// leading are the acts that take a refund on its way; the others stand aside.
var leading = map[string]bool{"approve": true, "send": true, "saw": true, "release": true, "write-off": true}

// refundActs are what fits the refund as it stands, and this person; the engine decides
// again when it is done.
func (d *Desk) refundActs(r *request, o owed) (acts []views.MoneyAct) {
	me := r.session.Person.ID
	yours := d.refund.Stuck(o.Refund, o.transfer.Final) == "" && refunds.NotYours(o.Refund, o.live, me) == ""
	action := "/refunds/" + url.PathEscape(o.ID) + "/confirm"
	add := func(do, title, text, button string, inputs ...views.Input) {
		acts = append(acts, views.MoneyAct{
			Title: title, Text: text, Action: action, Button: button, Inputs: inputs, First: leading[do],
			Hidden: []views.Option{{Value: "do", Label: do}, {Value: "version", Label: whole(o.Version)}},
		})
	}
	amountInput := views.Input{Label: "Amount", Name: "amount", Type: "text", Hint: "Empty: all of it. Plain digits, at most as many decimals as the asset has."}
	switch {
	case o.WriteOff.Sign() > 0 && o.WriteOffBy != me:
		add("write-off", "Write off", "Asked for by somebody else. It takes you too.", "Write off…")
		add("drop-write-off", "Do not write off", "", "Keep it owed…")
	case o.WriteOff.Sign() > 0:
		add("drop-write-off", "Write-off asked for", "Another person decides. You can take it back.", "Take it back…")
	case (o.State == refunds.Owed || o.State == refunds.Returned) && yours:
		add("approve", "Approve", "Then somebody else may send it.", "Approve…")
	case o.State == refunds.Approved && yours:
		add("send", "It was sent", "Record the reference on the network.", "Record…", views.Input{Label: "Reference", Name: "tx", Type: "text", Needed: true}, amountInput)
		add("start", "I am going to send it", "Nobody else can while you do.", "Start…", amountInput)
	case o.State == refunds.Held:
		add("release", "Release", "It has to be approved then.", "Release…")
	}
	switch {
	case o.State == refunds.Approved:
		add("withdraw", "Withdraw the approval", "", "Withdraw…")
	case o.live != nil && (o.State == refunds.Sending && o.live.MadeBy == me || o.State == refunds.Unknown):
		add("send", "It was sent", "Record the reference on the network.", "Record…", views.Input{Label: "Reference", Name: "tx", Type: "text", Needed: true})
		if o.State == refunds.Sending || yours {
			add("give-up", "It was not sent", "", "Not sent…")
		}
	}
	if o.State == refunds.Sending {
		add("doubt", "Nobody knows", "The amount stays reserved.", "Not known…")
	}
	if o.State == refunds.Sent && o.live != nil && o.live.MadeBy != me {
		if d.refund.Blind(o.Network) {
			add("saw", "It arrived", "This rail cannot be asked from here: say what you saw.", "It arrived…")
		}
		add("give-up", "It did not arrive", "Only when you looked and are sure.", "Not arrived…")
	}
	for _, p := range o.payouts {
		if p.State == "confirmed" && p.MadeBy != me {
			add("came-back", "Payment "+whole(int64(p.Attempt))+" came back", "The payment of "+plainMoney(d.moneyOf(p.Network, p.Asset, p.Amount))+" is owed again then.", "Came back…",
				views.Input{Label: "Reference of the return", Name: "tx", Type: "text", Needed: true}, amountInput)
			acts[len(acts)-1].Hidden = append(acts[len(acts)-1].Hidden, views.Option{Value: "payout", Label: p.ID})
		}
	}
	if refunds.Open(o.State) && o.live == nil {
		if o.State != refunds.Held {
			add("hold", "Hold", "", "Hold…")
		}
		add("redirect", "Send it somewhere else", "Needs a new approval.", "Change…", views.Input{Label: "Destination", Name: "to", Type: "text", Value: o.Destination, Hint: "Empty: back to the payer."})
		if o.WriteOff.Sign() == 0 {
			add("ask-write-off", "Ask to write off", "", "Write off…", amountInput)
		}
	}
	return acts
}
