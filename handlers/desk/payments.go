package desk

import (
	"net/http"
	"net/url"
	"strconv"

	rows "quittance/ledger/payments"
	"quittance/views"
	"quittance/web"
)

// paymentViews are the views of the list, in the order of their tabs.
var paymentViews = [][2]string{
	{"", "To look at"}, {"unknown", "Unknown"}, {"unasked", "Nobody asks"}, {"decide", "To let go"}, {"unpaid", "Settled, not paid"}, {"alerts", "Alerts"},
	{"in_flight", "In flight"}, {"over", "Over"}, {"any", "All"},
}

// payments lists payments: those that a person should look at first.
func (d *Desk) payments(r *request) error {
	p := d.report(r, "view", "rail", "gateway", "payer", "name")
	p.nowOnly()
	v := p.values
	f := rows.Filter{View: v.Get("view"), Network: v.Get("rail"), Gateway: v.Get("gateway"), Payer: v.Get("payer"), Name: v.Get("name"), From: p.from, To: p.to, Limit: pageRows + 1}
	page, err := d.page(r, "Payments", "/payments")
	if err != nil {
		return err
	}
	page.Live = "/events"
	lead := "What payers paid for, and what became of it. Oldest first."
	if rows.Newest(f.View) {
		lead = "What payers paid for, and what became of it. Newest first."
	}
	l := views.MoneyList{Page: page, Title: "Payments", Lead: lead, Filter: paymentForm(d, r, p),
		Empty: &views.Empty{Title: "Nothing to look at", Text: "No payment fits this view and filter. " + page.Loops + "."}}
	known := false
	for _, t := range paymentViews {
		l.Tabs = append(l.Tabs, views.NavItem{Label: t[1], URL: p.with("/payments", "view", t[0]), Here: f.View == t[0]})
		known = known || f.View == t[0]
	}
	if !known {
		l.Filter.Problem = "There is no such view."
	}
	if l.Filter.Problem != "" {
		return web.Render(r.Context, http.StatusUnprocessableEntity, views.MoneyListPage(l))
	}
	f.After, _ = strconv.ParseInt(p.cursor, 10, 64)
	list, err := rows.Page(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	if f.After != 0 {
		l.Pager.First = p.with("/payments")
	}
	if len(list) > pageRows {
		list = list[:pageRows]
		l.Pager.Next = p.with("/payments", "cursor", whole(list[pageRows-1].ID))
	}
	l.Rows = views.Table{Caption: "Payments", Head: head("What", "State", "Waits for", ">Amount", ">Age")}
	for i := range list {
		l.Rows.Rows = append(l.Rows.Rows, d.paymentRow(r, p, &list[i]))
	}
	return web.Render(r.Context, http.StatusOK, views.MoneyListPage(l))
}

func (d *Desk) paymentRow(r *request, p report, x *rows.Item) []views.Cell {
	state := paymentState(x.State)
	waits := views.Cell{Text: show(d.pay.Blocks(x), noteShown, false)}
	if x.Alerts > 0 {
		waits.Sub, waits.Late = line(alertsText(x.Alerts)), true
	}
	order := "no order yet"
	if x.OrderState != "" {
		order = "order: " + orderState(x.OrderState).Word
	}
	return []views.Cell{
		{Text: line("From " + shortName(x.Payer)), Sub: line(cutText(x.Gateway, nameShown) + " · " + d.railName(x.Network) + " · " + shortName(x.PaymentID)), URL: "/orders/" + url.PathEscape(x.OrderID)},
		{State: &state, Sub: line(order)}, waits,
		{Money: d.listed(x.Network, x.Asset, x.Amount), Num: true},
		ageCell(x.FirstAt, r.now, p.zone, x.State == "unknown"),
	}
}

func alertsText(n int) string {
	if n == 1 {
		return "1 alert"
	}
	return whole(int64(n)) + " alerts"
}

func paymentState(state string) views.State {
	switch state {
	case "in_flight":
		return views.State{Kind: "info", Word: "In flight"}
	case "unknown":
		return views.State{Kind: "unknown", Word: "Not known"}
	case "settled":
		return views.State{Kind: "ok", Word: "Settled"}
	case "refused":
		return views.State{Kind: "stop", Word: "Refused"}
	}
	return views.State{Kind: "plain", Word: "Over, answer gone"}
}

func paymentForm(d *Desk, r *request, p report) views.MoneyFilter {
	f := p.form("/payments")
	rails := []string{"", "Any"}
	for _, x := range d.engine.Policy().Rails() {
		rails = append(rails, x.Network, x.Name)
	}
	v := p.values
	f.Selects = append([]views.Selector{{Label: "Rail", Name: "rail", Options: options(v.Get("rail"), rails...)}}, f.Selects...)
	f.Inputs = append(f.Inputs, views.Input{Label: "Gateway, whole", Name: "gateway", Value: v.Get("gateway"), Type: "text"},
		views.Input{Label: "Payer, whole", Name: "payer", Value: v.Get("payer"), Type: "text"}, views.Input{Label: "Payment id, whole", Name: "name", Value: v.Get("name"), Type: "text"})
	if s := v.Get("view"); s != "" {
		f.Hidden = append(f.Hidden, views.Option{Value: "view", Label: s})
	}
	for _, name := range []string{"rail", "gateway", "payer", "name"} {
		if s := v.Get(name); s != "" {
			f.Active = append(f.Active, name+" "+cutText(s, nameShown))
		}
	}
	f.Open = r.QueryParam("filters") != ""
	return f
}
