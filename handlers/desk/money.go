package desk

import (
	"net/url"

	"quittance/ledger/books"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/views"
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
	wrong := 0
	for _, l := range equation {
		g := views.Group{Title: line(d.assetName(l.Network, l.Asset)), Sub: d.railName(l.Network), State: views.State{Kind: "ok", Word: "Adds up"}}
		if !l.Holds() {
			wrong++
			g.State, g.Problem = views.State{Kind: "danger", Word: "Does not add up"}, "Off by "+plainMoney(d.moneyOf(l.Network, l.Asset, l.Difference))+"."
			if !l.Posted {
				g.Problem += " The double entries say something else than the tables."
			}
		}
		for _, x := range []struct {
			label string
			sum   money.Atomic
		}{
			{"Received", l.Received}, {"Taken back by its rail", l.Reverted}, {"Pays orders", l.Applied}, {"Owed back", l.Owed}, {"Refunded", l.Refunded},
			{"Written off", l.WrittenOff}, {"Held for orders", l.Held}, {"Without an order", l.Unmatched},
		} {
			g.Figures = append(g.Figures, views.Figure{Label: x.label, Money: d.moneyOf(l.Network, l.Asset, x.sum)})
		}
		s.Groups = append(s.Groups, g)
	}
	switch {
	case wrong > 0:
		s.Blocked = "The money does not add up. Pay nothing back before somebody has found out why; `quittance verify` names the rows."
	case len(equation) == 0:
		s.Lead = "No money came in yet. " + page.Loops + "."
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
				{Text: line("From " + shortName(x.Sender)), Sub: line(d.railName(x.Network) + " · " + shortName(x.Tx)), URL: "/transfers/" + x.ID},
				{Text: line(classText(x.Class))}, {Money: d.moneyOf(x.Network, x.Asset, x.Amount), Num: true}, {Time: r.at(x.SeenAt)},
			})
		}
		if len(unplaced) == unplacedShown {
			u.Caption += ", the oldest " + whole(unplacedShown)
		}
		s.Tables = append(s.Tables, u)
	}
	return showSheet(r, s)
}
