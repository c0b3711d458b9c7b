package desk

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"quittance/ledger/money"
	store "quittance/ledger/recoveries"
	"quittance/reconcile/recoveries"
	"quittance/views"
	"quittance/web"
)

func recoveryState(v *store.Recovery) *views.State {
	words := map[string]views.State{
		recoveries.Suspected: {Kind: "unknown", Word: "Suspected"}, recoveries.Confirmed: {Kind: "danger", Word: "Left twice"}, recoveries.Claimed: {Kind: "info", Word: "Claimed"},
		recoveries.Recovered: {Kind: "ok", Word: "Recovered"}, recoveries.WrittenOff: {Kind: "stop", Word: "Written off"}, recoveries.Dismissed: {Kind: "plain", Word: "Not twice"},
	}
	s := words[v.State]
	return &s
}

// recoveryMoney is what is still to come back; nil while nobody has said how much.
func recoveryMoney(v *store.Recovery, x money.Atomic) *views.Money {
	if !v.Amount.Valid {
		return nil
	}
	m := money.Of(x, money.Asset{Code: v.Currency, Decimals: v.Decimals})
	return amount(&m)
}

// recoveryQuery is the filter of the list of recoveries, as its address carries it.
func (d *Desk) recoveryQuery(r *request) (p report, f store.Filter) {
	p = d.report(r, "state", "currency", "mine")
	p.nowOnly()
	f = store.Filter{State: p.values.Get("state"), Currency: p.values.Get("currency"), From: p.from, To: p.to}
	switch f.State {
	case "":
		f.State = "open"
	case "any":
		f.State = ""
	}
	if p.values.Get("mine") != "" {
		f.Owner = r.session.Person.ID
	}
	return p, f
}

func (d *Desk) recoveries(r *request) error {
	p, f := d.recoveryQuery(r)
	page, err := d.page(r, "Recoveries", "/recoveries")
	if err != nil {
		return err
	}
	v := views.MoneyList{
		Page: page, Title: "Recoveries", Lead: "Money that left twice and that others hold. None of it is part of what is owed back.", Note: p.note(r), Filter: p.form("/recoveries"),
		Empty: &views.Empty{Title: "Nothing is to be claimed back", Text: "No recovery fits this filter. " + page.Loops + "."},
	}
	v.Downloads = []views.Link{{Text: "CSV of these rows", URL: p.with("/recoveries.csv")}}
	v.Filter.Inputs = append(v.Filter.Inputs, views.Input{Label: "Currency", Name: "currency", Value: f.Currency, Type: "text"})
	if s := p.values.Get("state"); s != "" {
		v.Filter.Hidden = append(v.Filter.Hidden, views.Option{Value: "state", Label: s})
	}
	for _, t := range [][2]string{
		{"", "Open"}, {recoveries.Suspected, "Suspected"}, {recoveries.Confirmed, "Left twice"}, {recoveries.Claimed, "Claimed"}, {recoveries.Recovered, "Recovered"},
		{recoveries.WrittenOff, "Written off"}, {recoveries.Dismissed, "Not twice"}, {"any", "All"},
	} {
		v.Tabs = append(v.Tabs, views.NavItem{Label: t[1], URL: p.with("/recoveries", "state", t[0]), Here: p.values.Get("state") == t[0]})
	}
	v.Tabs = append(v.Tabs, views.NavItem{Label: "Mine", URL: p.with("/recoveries", "mine", "yes"), Here: f.Owner != 0})
	if p.problem != "" {
		return web.Render(r.Context, http.StatusUnprocessableEntity, views.MoneyListPage(v))
	}
	sums := f
	if place := parsePlace(p.cursor); place != nil {
		f.After, v.Pager.First = &store.Place{At: place.At, ID: place.ID}, p.with("/recoveries")
	}
	f.Limit = pageRows + 1
	rows, err := store.Page(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		last := rows[len(rows)-1]
		v.Pager.Next = p.with("/recoveries", "cursor", placeText(last.OpenedAt, last.ID))
	}
	v.Rows = views.Table{Caption: "Recoveries, oldest first", Head: head("What", "State", ">To come back", "Owner", ">Age")}
	for i := range rows {
		v.Rows.Rows = append(v.Rows.Rows, recoveryRow(r, &rows[i], p.zone))
	}
	totals, err := store.Sums(r.ctx(), d.db, sums, p.bounds(r.now))
	if err != nil {
		return err
	}
	v.Totals = recoveryTotals(totals)
	return web.Render(r.Context, http.StatusOK, views.MoneyListPage(v))
}

func recoveryRow(r *request, x *store.Recovery, zone *time.Location) []views.Cell {
	sub := orElse(x.Tool, "a refund paid twice")
	switch x.Origin {
	case "double":
		sub += " · a look-up found more than one"
	case "contradiction":
		sub += " · evidence against a decision"
	}
	to := views.Cell{Text: line("not said yet"), Num: true}
	if m := recoveryMoney(x, x.Amount.V.Minus(x.Recovered)); m != nil {
		m.Value = shorter(m.Value, m.Code)
		to = views.Cell{Money: m, Num: true}
	}
	return []views.Cell{
		{Text: line(shortName(x.Counterparty)), Sub: line(sub), URL: "/recoveries/" + url.PathEscape(x.ID)},
		{State: recoveryState(x), Sub: show(x.Claim, noteShown, false)}, to,
		{Text: name(orElse(x.Owner, "nobody"))}, ageCell(x.OpenedAt, r.now, zone, recoveries.Open(x.State)),
	}
}

func recoveryTotals(list []store.Sum) *views.Table {
	if len(list) == 0 {
		return nil
	}
	t := &views.Table{Caption: "What is to come back, by currency and age", Head: head("Currency", ">Recoveries", ">To come back", ">"+bucketNames[0], ">"+bucketNames[1], ">"+bucketNames[2], ">"+bucketNames[3], ">"+bucketNames[4])}
	for i := 0; i < len(list); {
		code, decimals := list[i].Currency, list[i].Decimals
		asset := money.Asset{Code: code, Decimals: decimals}
		cells := make([]views.Cell, 8)
		var n int64
		var total money.Atomic
		for ; i < len(list) && list[i].Currency == code && list[i].Decimals == decimals; i++ {
			n += list[i].Count
			total = total.Plus(list[i].Open)
			value, _, _ := strings.Cut(money.Of(list[i].Open, asset).Display(), " ")
			value = shorter(value, code)
			if code == "" {
				value = grouped(list[i].Count) + " of unknown amount"
			}
			cells[3+list[i].Bucket] = views.Cell{Text: line(value)}
		}
		cells[0], cells[1] = views.Cell{Text: line(orElse(code, "not said yet"))}, views.Cell{Text: line(grouped(n))}
		if code != "" {
			m := money.Of(total, asset)
			cells[2] = views.Cell{Money: amount(&m)}
			cells[2].Money.Value = shorter(cells[2].Money.Value, code)
		}
		for j := 1; j < 8; j++ {
			cells[j].Num = true
		}
		t.Rows = append(t.Rows, cells)
	}
	return stacked(t, wholeWidth)
}
