package desk

import (
	"net/http"

	"quittance/ledger/desk"
	"quittance/views"
	"quittance/web"
)

// decided lists what is decided and not yet used by an agent.
func (d *Desk) decided(r *request) error {
	page, err := d.page(r, "Decided", "/decided")
	if err != nil {
		return err
	}
	page.Live = "/events"
	after := parsePlace(r.QueryParam("cursor"))
	rows, err := desk.ClosedPage(r.ctx(), d.db, desk.ClosedFilter{Unused: true, After: after, Limit: pageRows + 1})
	if err != nil {
		return err
	}
	v := views.Decided{Page: page, Empty: &views.Empty{Title: "Nothing is on its way back", Text: "What is decided shows here until an agent has used it. " + page.Loops + "."}}
	v.Rows, v.Pager = decidedRows(r, rows, "/decided", after != nil, releaseText)
	return web.Render(r.Context, http.StatusOK, views.DecidedPage(v))
}

// decidedRows lays out a page of effects; one more than a page holds tells that there
// is a next one.
func decidedRows(r *request, rows []desk.Closed, path string, later bool, when func(clock, desk.Closed) string) (out []views.DecidedRow, p views.Pager) {
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		last := rows[len(rows)-1]
		p.Next = path + "?cursor=" + placeText(last.ChangedAt, last.ID)
	}
	if later {
		p.First = path
	}
	for _, x := range rows {
		how := capital(decidedBy(x.DecidedBy))
		if x.Person != "" {
			how = "By " + x.Person
		}
		if x.Note != "" {
			how += ": " + x.Note
		} else if x.Reference != "" {
			how += ", " + x.Reference
		}
		out = append(out, views.DecidedRow{
			URL: effectURL(x.ID), What: line(x.Summary), Sub: line(x.Tool + " · " + x.Agent + " · " + cutText(x.RunID, nameShown)),
			State: closedState(x), How: line(how), Amount: unsent(amountOf(x.Amount, x.Currency, x.Decimals), x.Same),
			Release: when(r.clock, x), At: r.at(x.ChangedAt),
		})
	}
	return out, p
}

// releaseText says when agents see a decision.
func releaseText(_ clock, x desk.Closed) string {
	switch {
	case x.Early && x.Moment.After(x.Now):
		return "to confirm in " + span(x.Moment.Sub(x.Now))
	case x.Early:
		return "to be confirmed now"
	case x.Released:
		return "released"
	case x.ReleaseAt.After(x.Now):
		return "in " + span(x.ReleaseAt.Sub(x.Now))
	}
	return "now"
}
