package desk

import (
	"net/http"
	"net/url"

	"quittance/ledger/books"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/views"
	"quittance/web"
)

// unplacedShown is how many transfers without a place the page of the money lists.
const unplacedShown = 100

// money shows the equation, a line an asset of a rail, and what a person has to place.
func (d *Desk) money(r *request) error {
	page, err := d.page(r, "Money", "/money")
	if err != nil {
		return err
	}
	s := views.MoneySheet{
		Page: page, Crumb: views.Link{Text: "Refunds owed", URL: "/refunds"}, Title: line("Money"),
		Lead:  "What came in, less what its rail took back, stands somewhere to the last unit. Assets are never added to each other.",
		Links: []views.Link{{Text: "Journal, CSV", URL: "/journal.csv?zone=" + url.QueryEscape(r.zone.String())}},
	}
	equation, err := books.Equation(r.ctx(), d.db)
	if err != nil {
		return err
	}
	t := views.Table{Caption: "The equation, by asset", Head: head("Asset", "Does it hold", ">Received", ">Taken back by its rail", ">Applied", ">Owed", ">Refunded", ">Written off", ">Held", ">Unmatched")}
	wrong := 0
	for _, l := range equation {
		state := views.State{Kind: "ok", Word: "Holds"}
		sub := ""
		if !l.Holds() {
			wrong++
			state = views.State{Kind: "danger", Word: "Does not hold"}
			sub = "off by " + plainMoney(d.moneyOf(l.Network, l.Asset, l.Difference))
			if !l.Posted {
				sub += "; the double entries say something else"
			}
		}
		row := []views.Cell{{Text: line(d.assetName(l.Network, l.Asset)), Sub: line(d.railName(l.Network))}, {State: &state, Sub: line(sub)}}
		for _, x := range []money.Atomic{l.Received, l.Reverted, l.Applied, l.Owed, l.Refunded, l.WrittenOff, l.Held, l.Unmatched} {
			row = append(row, views.Cell{Text: line(d.moneyOf(l.Network, l.Asset, x).Value), Num: true})
		}
		t.Rows = append(t.Rows, row)
	}
	switch {
	case wrong > 0:
		s.Blocked = "The money does not add up. Pay nothing back before somebody has found out why; `quittance verify` names the rows."
	case len(equation) == 0:
		s.Lead = "No money came in yet. " + page.Loops + "."
	}
	if len(t.Rows) > 0 {
		s.Tables = append(s.Tables, t)
	}
	unplaced, err := rows.Unplaced(r.ctx(), d.db, unplacedShown)
	if err != nil {
		return err
	}
	if len(unplaced) > 0 {
		u := views.Table{Caption: "For a person to place", Head: head("Transfer", "What it is", ">Amount", "Since")}
		for i := range unplaced {
			x := &unplaced[i]
			u.Rows = append(u.Rows, []views.Cell{
				{Text: line("From " + cutText(x.Sender, nameShown)), Sub: line(d.railName(x.Network) + " · " + cutText(x.Tx, nameShown)), URL: "/transfers/" + x.ID},
				{Text: line(classText(x.Class))}, {Money: d.moneyOf(x.Network, x.Asset, x.Amount), Num: true}, {Time: r.at(x.SeenAt)},
			})
		}
		if len(unplaced) == unplacedShown {
			u.Caption += ", the oldest " + whole(unplacedShown)
		}
		s.Tables = append(s.Tables, u)
	}
	return web.Render(r.Context, http.StatusOK, views.MoneySheetPage(s))
}
