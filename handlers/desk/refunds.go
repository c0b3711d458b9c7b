package desk

import (
	"net/http"
	"net/url"
	"time"

	store "quittance/ledger/refunds"
	"quittance/reconcile/refunds"
	"quittance/views"
	"quittance/web"
)

// refundQuery is the filter of the list of refunds, as its address carries it.
func (d *Desk) refundQuery(r *request) (p report, f store.Filter) {
	p = d.report(r, "state", "rail", "asset", "reason", "gateway", "payer")
	v := p.values
	f = store.Filter{
		State: v.Get("state"), Network: v.Get("rail"), Asset: v.Get("asset"), Reason: v.Get("reason"), Gateway: v.Get("gateway"), Payer: v.Get("payer"),
		From: p.from, To: p.to, AsOf: p.asOf,
	}
	switch f.State {
	case "":
		f.State = "open"
	case "any":
		f.State = ""
	}
	return p, f
}

func (d *Desk) refunds(r *request) error {
	p, f := d.refundQuery(r)
	page, err := d.page(r, "Refunds owed", "/refunds")
	if err != nil {
		return err
	}
	page.Live = "/events"
	v := views.MoneyList{Page: page, Title: "Refunds owed", Lead: "Money that came in and must go back. Oldest first.", Note: p.note(r), Filter: p.form("/refunds")}
	if v.Filter, err = d.refundForm(r, p, v.Filter); err != nil {
		return err
	}
	v.Tabs = refundTabs(p)
	v.Downloads = []views.Link{{Text: "CSV of these rows", URL: p.with("/refunds.csv")}}
	status := http.StatusOK
	if p.problem == "" {
		if err := d.refundRows(r, &v, p, f); err != nil {
			return err
		}
	} else {
		status = http.StatusUnprocessableEntity
	}
	v.Empty = &views.Empty{Title: "Nothing is owed back", Text: "No refund fits this filter. " + page.Loops + "."}
	return web.Render(r.Context, status, views.MoneyListPage(v))
}

func (d *Desk) refundRows(r *request, v *views.MoneyList, p report, f store.Filter) error {
	sums := f
	f.After, f.Limit = refundPlace(p.cursor), pageRows+1
	rows, err := store.Page(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	if f.After != nil {
		v.Pager.First = p.with("/refunds")
	}
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		last := rows[len(rows)-1]
		v.Pager.Next = p.with("/refunds", "cursor", placeText(last.OpenedAt, last.ID))
	}
	now := p.at(r.now)
	v.Rows = views.Table{Caption: "Refunds, oldest first", Head: head("What", "State", ">Open", ">Age")}
	for i := range rows {
		v.Rows.Rows = append(v.Rows.Rows, d.refundRow(r, p, &rows[i], now))
	}
	// Totals over more than the page shows are added up after it: the rows do not wait.
	if (v.Pager.Next != "" || v.Pager.First != "") && !r.asked("count") {
		v.Later = p.with("/refunds", "count", "yes")
		return nil
	}
	if sums.State == "" {
		sums.State = "open" // what is closed is not open money
	}
	totals, err := store.Sums(r.ctx(), d.db, sums, p.bounds(r.now))
	if err != nil {
		return err
	}
	v.Totals = d.refundTotals(totals)
	return nil
}

func (d *Desk) refundRow(r *request, p report, x *store.Item, now time.Time) []views.Cell {
	what := "From " + shortName(x.Payer)
	sub := reasonText(x.Reason) + " · " + d.railName(x.Network)
	if x.Gateway != "" {
		sub += " · " + cutText(x.Gateway, nameShown)
	}
	f := x.Refund()
	open := views.Cell{Money: d.listed(x.Network, x.Asset, x.Open()), Num: true}
	if x.Open().Cmp(x.Amount) != 0 {
		open.Sub = line("of " + plainMoney(d.listed(x.Network, x.Asset, x.Amount)))
	}
	return []views.Cell{
		{Text: line(what), Sub: line(sub), URL: "/refunds/" + url.PathEscape(x.ID)},
		{State: refundState(x.State), Sub: show(d.refund.Blocks(&f, x.Final), noteShown, false)},
		open, ageCell(x.OpenedAt, now, p.zone, refunds.Open(x.State)),
	}
}

// noteShown is how much of what somebody wrote stands in a list.
const noteShown = 80

// refundTotals is a line an asset of a rail: what is open, by age.
func (d *Desk) refundTotals(list []store.Sum) *views.Table {
	if len(list) == 0 {
		return nil
	}
	t := &views.Table{Caption: "What is open, by asset and age", Head: head("Asset", ">Refunds", ">Open", ">"+bucketNames[0], ">"+bucketNames[1], ">"+bucketNames[2], ">"+bucketNames[3], ">"+bucketNames[4])}
	for i := 0; i < len(list); {
		network, asset := list[i].Network, list[i].Asset
		cells := make([]views.Cell, 8)
		var n int64
		total := list[i].Open.Minus(list[i].Open)
		for ; i < len(list) && list[i].Network == network && list[i].Asset == asset; i++ {
			n += list[i].Count
			total = total.Plus(list[i].Open)
			cells[3+list[i].Bucket] = views.Cell{Text: line(d.listed(network, asset, list[i].Open).Value)}
		}
		cells[0] = views.Cell{Text: line(d.assetName(network, asset)), Sub: line(d.railName(network))}
		cells[1] = views.Cell{Text: line(grouped(n))}
		cells[2] = views.Cell{Money: d.listed(network, asset, total)}
		for j := 1; j < 8; j++ {
			cells[j].Num = true
		}
		t.Rows = append(t.Rows, cells)
	}
	return stacked(t, wholeWidth)
}

func refundTabs(p report) (list []views.NavItem) {
	state := p.values.Get("state")
	for _, t := range [][2]string{
		{"", "Open"}, {refunds.Owed, "To approve"}, {refunds.Approved, "To send"}, {refunds.Sent, "Sent, not seen"}, {refunds.Unknown, "Not known"},
		{refunds.Returned, "Came back"}, {refunds.Held, "Held"}, {refunds.Confirmed, "Refunded"}, {refunds.WrittenOff, "Written off"}, {"any", "All"},
	} {
		list = append(list, views.NavItem{Label: t[1], URL: p.with("/refunds", "state", t[0]), Here: state == t[0]})
	}
	return list
}

func (d *Desk) refundForm(r *request, p report, f views.MoneyFilter) (views.MoneyFilter, error) {
	names, err := store.NamesUsed(r.ctx(), d.db)
	if err != nil {
		return f, err
	}
	rails, assets := []string{"", "Any"}, []string{"", "Any"}
	seen := map[string]bool{}
	for _, n := range names {
		if !seen["rail "+n.Network] {
			rails = append(rails, n.Network, d.railName(n.Network))
		}
		if !seen["asset "+n.Asset] {
			assets = append(assets, n.Asset, d.assetName(n.Network, n.Asset))
		}
		seen["rail "+n.Network], seen["asset "+n.Asset] = true, true
	}
	v := p.values
	f.Selects = append([]views.Selector{
		{Label: "Rail", Name: "rail", Options: options(v.Get("rail"), rails...)},
		{Label: "Asset", Name: "asset", Options: options(v.Get("asset"), assets...)},
		{Label: "Why", Name: "reason", Options: options(v.Get("reason"), "", "Any", "late", "Came late", "duplicate", "Duplicate", "over", "Too much", "failed_call", "Not earned", "given_back", "Given back")},
	}, f.Selects...)
	f.Inputs = append(f.Inputs,
		views.Input{Label: "As of the end of", Name: "as_of", Value: v.Get("as_of"), Type: "date"},
		views.Input{Label: "Payer, whole", Name: "payer", Value: v.Get("payer"), Type: "text"},
		views.Input{Label: "Gateway, whole", Name: "gateway", Value: v.Get("gateway"), Type: "text"})
	if s := v.Get("state"); s != "" {
		f.Hidden = append(f.Hidden, views.Option{Value: "state", Label: s})
	}
	for _, name := range []string{"rail", "asset", "reason", "gateway", "payer"} {
		if s := v.Get(name); s != "" {
			f.Active = append(f.Active, name+" "+cutText(s, nameShown))
		}
	}
	f.Open = r.QueryParam("filters") != ""
	return f, nil
}

func refundPlace(cursor string) *store.Place {
	if p := parsePlace(cursor); p != nil {
		return &store.Place{At: p.At, ID: p.ID}
	}
	return nil
}
