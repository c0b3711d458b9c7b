package desk

import (
	"errors"
	"time"

	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
	"quittance/views"

	"github.com/labstack/echo/v4"
)

// paymentOf is the payment whose order the address names.
func (d *Desk) paymentOf(r *request) (*payments.Payment, error) {
	p, err := d.pay.PaymentOfOrder(r.ctx(), 0, r.Param("id"))
	if refusal, ok := errors.AsType[*payments.Refusal](err); ok && refusal.Code == payments.CodeNotFound {
		return nil, echo.ErrNotFound
	}
	return p, err
}

// orderPage shows a payment and its order to staff, with all that hangs on it, and lets
// finance decide what no rail can tell.
func (d *Desk) orderPage(r *request) error {
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	page, err := d.page(r, "Order", "/payments")
	if err != nil {
		return err
	}
	state, at := orderState("created"), p.FirstAt
	s := views.MoneySheet{Page: page, Crumb: views.Link{Text: "Payments", URL: "/payments"}, Title: line("Order of " + shortName(p.Payer)), Amount: d.moneyOf(p.Network, p.Asset, p.Amount)}
	if p.Order != nil {
		state, at = orderState(p.Order.State), p.Order.CreatedAt
		s.Facts = append(s.Facts, views.Fact{Name: "The payer's receipt", Value: line("open it"), URL: d.pay.ReceiptURL(p.Order)})
		if p.Order.Description != "" {
			s.Facts = append(s.Facts, views.Fact{Name: "For", Value: line(p.Order.Description)})
		}
		if p.Order.Memo != "" {
			s.Facts = append(s.Facts, views.Fact{Name: "Memo", Value: line(p.Order.Memo)})
		}
		if !p.Order.ExpiresAt.IsZero() {
			s.Facts = append(s.Facts, views.Fact{Name: "Open until", Value: line(r.at(p.Order.ExpiresAt.Time).Text)})
		}
	}
	unknown := p.State == string(payments.Unknown) && (p.Order == nil || p.Order.State != "paid")
	if unknown { // what nobody knows comes first
		state = paymentState(p.State)
	}
	s.State, s.Lead = &state, "Asked for "+r.at(at).Text+" by gateway "+cutText(p.Gateway, nameShown)+"."
	s.Facts = append([]views.Fact{
		{Name: "Order", Value: line(p.OrderID)}, {Name: "Payment id", Value: line(p.PaymentID)}, {Name: "Payment", Value: line(paymentText(p.State))},
		{Name: "Rail", Value: line(d.railName(p.Network))}, {Name: "To", Value: line(p.PayTo)},
	}, s.Facts...)
	if p.Work != nil {
		s.Facts = append(s.Facts, views.Fact{Name: "What it pays for", Value: line(orElse(p.Tool, "the work")), URL: effectURL(p.Work.EffectID)})
	}
	transfers := views.Table{Caption: "Money that came in", Head: head("Transfer", "What it is", ">Amount", "Since")}
	for i := range p.Transfers {
		transfers.Rows = append(transfers.Rows, d.transferRow(r, &p.Transfers[i]))
	}
	refunds := views.Table{Caption: "Owed back", Head: head("Refund", "State", ">Open", ">In all")}
	for i := range p.Refunds {
		f := &p.Refunds[i]
		refunds.Rows = append(refunds.Rows, []views.Cell{
			{Text: line(capital(reasonText(f.Reason))), URL: "/refunds/" + f.ID}, {State: refundState(f.State)},
			{Money: d.moneyOf(f.Network, f.Asset, f.Rest()), Num: true}, {Money: d.moneyOf(f.Network, f.Asset, f.Amount), Num: true},
		})
	}
	signed := views.Table{Caption: "Authorizations", Head: head("Nonce", "What is known", "Offered", "Taken up")}
	for _, a := range p.Authorizations {
		known := "not proven dead"
		if a.DeadWhy != "" {
			known = "dead: " + a.DeadWhy + ", block " + whole(a.DeadBlock)
			if a.DeadWhy == "person" {
				known = "dead: two people found that it moved nothing"
			}
		}
		signed.Rows = append(signed.Rows, []views.Cell{{Text: line(shortName(a.Nonce)), Sub: line("ends " + r.at(time.Unix(a.ValidBefore, 0)).Text)}, {Text: line(known), Sub: line(a.Seen)}, {Time: r.at(a.OfferedAt.Time)}, {Time: r.at(a.TakenUpAt.Time)}})
	}
	for _, t := range []views.Table{transfers, refunds, signed} {
		if len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
	}
	events, err := rows.History(r.ctx(), d.db, p.ID, p.OrderID, 1000)
	if err != nil {
		return err
	}
	s.History = d.moneyHistory(r, events)
	if err := d.whatWaits(r, &s, p, unknown); err != nil {
		return err
	}
	return showSheet(r, s)
}

// whatWaits says what the payment waits for, and offers what this person may do about it.
func (d *Desk) whatWaits(r *request, s *views.MoneySheet, p *payments.Payment, unknown bool) error {
	list, err := rows.Page(r.ctx(), d.db, rows.Filter{View: "any", ID: p.ID, Limit: 1})
	if err != nil || len(list) == 0 {
		return err
	}
	x := &list[0]
	waiting, err := rows.WaitingDecision(r.ctx(), d.db, p.ID)
	if err != nil {
		return err
	}
	version, err := rows.LastEvent(r.ctx(), d.db, p.ID)
	if err != nil {
		return err
	}
	if why := d.pay.Blocks(x); why != "" {
		s.Blocked = why + "."
	}
	switch {
	case waiting != nil:
		s.Blocked = decisionText(r, waiting)
	case unknown:
		if why := d.pay.Undecidable(p, payments.VerdictNotTaken); why != "" {
			s.Blocked += " That nothing was taken cannot be decided: " + why
		}
	}
	if r.may(finance) {
		s.Acts = d.paymentActs(r, p, waiting, x.Alerts, version)
	}
	return nil
}

func (d *Desk) transferRow(r *request, t *rows.Transfer) []views.Cell {
	word := classText(t.Class)
	switch {
	case t.Reverted():
		word = "taken back by its rail"
	case t.Over.Sign() > 0:
		word += ", and " + plainMoney(d.moneyOf(t.Network, t.Asset, t.Over)) + " over"
	}
	final := "not final"
	if t.Final {
		final = "final"
	}
	return []views.Cell{
		{Text: line(shortName(t.Tx)), Sub: line("from " + shortName(t.Sender)), URL: "/transfers/" + t.ID}, {Text: line(word), Sub: line(final)},
		{Money: d.moneyOf(t.Network, t.Asset, t.Amount), Num: true}, {Time: r.at(t.SeenAt)},
	}
}

func orderState(state string) views.State {
	switch state {
	case "created":
		return views.State{Kind: "plain", Word: "Created"}
	case "paying":
		return views.State{Kind: "info", Word: "Waits for payment"}
	case "paid":
		return views.State{Kind: "ok", Word: "Paid"}
	case "failed":
		return views.State{Kind: "stop", Word: "Failed"}
	case "expired":
		return views.State{Kind: "stop", Word: "Expired"}
	}
	return views.State{Kind: "stop", Word: capital(state)}
}

func paymentText(state string) string {
	switch state {
	case "in_flight":
		return "in flight"
	case "unknown":
		return "nobody knows yet"
	case "pruned":
		return "over; its answer is not kept any more"
	}
	return state
}
