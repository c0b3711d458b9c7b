package desk

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger/desk"
	"quittance/ledger/money"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// closedList is the queue page asked for what is closed, by how it was.
func (d *Desk) closedList(r *request, f filter) error {
	sums, err := d.engine.QueueSums(r.ctx(), effects.QueueQuery{})
	if err != nil {
		return err
	}
	view, err := d.queueView(r, f, sums)
	if err != nil {
		return err
	}
	from, to, problem := f.days()
	if f.words+f.agent+f.run+f.key+f.state+f.age+f.currency+f.least+f.most != "" {
		problem = "What is closed is found by how, by tool and by day; clear the rest."
	}
	view.Filter.Problem = problem
	cf := desk.ClosedFilter{By: f.closed, Tool: f.tool, From: from, To: to, After: parsePlace(f.cursor), Limit: pageRows + 1}
	if cf.By == "any" {
		cf.By = ""
	}
	var rows []desk.Closed
	if problem == "" {
		if rows, err = desk.ClosedPage(r.ctx(), d.db, cf); err != nil {
			return err
		}
	}
	next := ""
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		last := rows[len(rows)-1]
		next = placeText(last.ChangedAt, last.ID)
	}
	for _, x := range rows {
		view.Rows = append(view.Rows, closedRow(r, x))
	}
	view.Closed = true
	csv := url.Values{}
	for _, name := range []string{"tool", "from", "to", "zone"} {
		if value := f.values().Get(name); value != "" {
			csv.Set(name, value)
		}
	}
	view.CSV = views.Link{Text: "CSV of all effects of these days", URL: address("/effects.csv", csv)}
	view.Pager = f.pager(next)
	view.Empty = &views.Empty{Title: "Nothing was closed like that", Text: "In the days and by the way that the filter asks for."}
	status := http.StatusOK
	if problem != "" {
		status = http.StatusUnprocessableEntity
	}
	return web.Render(r.Context, status, views.QueuePage(view))
}

func closedRow(r *request, x desk.Closed) views.QueueRow {
	how := decidedBy(x.DecidedBy)
	if x.Person != "" {
		how = "by " + x.Person
	}
	if x.Reference != "" {
		how += ", " + x.Reference
	}
	return views.QueueRow{
		ID: x.ID, URL: effectURL(x.ID), Version: whole(x.Version), What: line(x.Summary), Tool: name(x.Tool), Agent: name(x.Agent),
		Run: name(x.RunID), RunFull: x.RunID, State: closedState(x), Known: line(how),
		Amount: unsent(amountOf(x.Amount, x.Currency, x.Decimals), x.Same), Waiting: r.at(x.ChangedAt).Text, Since: r.at(x.ChangedAt),
	}
}

// closedState is the badge of a row that tells beside it when it is to be confirmed.
func closedState(x desk.Closed) views.State {
	return standing{state: x.State, why: x.Why, same: x.Same}.badge()
}

func amountOf(atomic, currency string, decimals int) *views.Money {
	return amount(moneyOf(atomic, currency, decimals))
}

// moneyOf is an amount as its row holds it; nil where there is none, or none that is exact.
func moneyOf(atomic, currency string, decimals int) *money.Amount {
	if atomic == "" {
		return nil
	}
	asset, err := money.NewAsset(currency, decimals)
	if err != nil {
		return nil
	}
	a, err := money.ParseMinor(atomic, asset)
	if err != nil {
		return nil
	}
	return &a
}

// placeText is where a page ended, for the address of the next.
func placeText(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + id))
}

// parsePlace reads one; nil, the first page, for what is not one.
func parsePlace(s string) *desk.Place {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	when, id, _ := strings.Cut(string(b), " ")
	at, err := time.Parse(time.RFC3339Nano, when)
	if err != nil {
		return nil
	}
	if _, err := uuid.Parse(id); err != nil {
		return nil
	}
	return &desk.Place{At: at, ID: id}
}
