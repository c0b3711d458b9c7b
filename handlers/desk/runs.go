package desk

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger"
	"quittance/ledger/desk"
	"quittance/ledger/runs"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) runs(r *request) error {
	page, err := d.page(r, "Runs", "/runs")
	if err != nil {
		return err
	}
	page.Live = "/events"
	q := r.QueryParams()
	f := desk.RunFilter{State: queryText(q, "state"), Agent: queryText(q, "agent"), Name: queryText(q, "run"), After: parseRunPlace(q.Get("cursor")), Limit: pageRows + 1}
	rows, err := desk.RunsPage(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	v := views.Runs{Page: page, Name: f.Name, Agent: f.Agent, Empty: &views.Empty{Title: "No such run", Text: "A run appears here when an agent opens it."}}
	for _, s := range [][2]string{{"", "Any state"}, {"paused", "Paused"}, {"running", "Running"}, {"ready", "Ready"}, {"finished", "Finished"}, {"failed", "Failed"}, {"cancelled", "Cancelled"}} {
		v.State = append(v.State, views.Option{Value: s[0], Label: s[1], Picked: s[0] == f.State})
	}
	back := url.Values{}
	for _, name := range []string{"state", "agent", "run"} {
		if s := queryText(q, name); s != "" {
			back.Set(name, s)
		}
	}
	if f.After != nil {
		v.Pager.First = address("/runs", back)
	}
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		last := rows[len(rows)-1]
		back.Set("cursor", base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d", last.OpenedAt.UTC().Format(time.RFC3339Nano), last.ID)))
		v.Pager.Next = address("/runs", back)
	}
	for _, x := range rows {
		v.Rows = append(v.Rows, views.RunRow{
			URL: fmt.Sprintf("/runs/%d", x.ID), Name: line(x.RunID), Agent: line(x.Agent + " · " + x.Account), State: runState(x.State),
			Open: openText(x), Holder: name(x.Worker), Opened: r.at(x.OpenedAt),
		})
	}
	return web.Render(r.Context, http.StatusOK, views.RunsPage(v))
}

func parseRunPlace(s string) *desk.RunPlace {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	when, id, _ := strings.Cut(string(b), " ")
	at, err1 := time.Parse(time.RFC3339Nano, when)
	n, err2 := strconv.ParseInt(id, 10, 64)
	if err1 != nil || err2 != nil {
		return nil
	}
	return &desk.RunPlace{OpenedAt: at, ID: n}
}

func openText(x desk.Run) string {
	switch {
	case x.Open == 0:
		return ""
	case x.State == "paused" && x.Open == 1:
		return "one effect keeps it"
	case x.State == "paused":
		return fmt.Sprintf("%d effects keep it", x.Open)
	case x.Open == 1:
		return "one effect is open"
	}
	return fmt.Sprintf("%d effects are open", x.Open)
}

func runState(s string) views.State {
	return map[string]views.State{
		"running": {Kind: "info", Word: "Running"}, "paused": {Kind: "unknown", Word: "Paused"}, "ready": {Kind: "held", Word: "Ready to resume"},
		"finished": {Kind: "ok", Word: "Finished"}, "failed": {Kind: "plain", Word: "Failed"}, "cancelled": {Kind: "stop", Word: "Cancelled"},
	}[s]
}

// holdersShown and refusedShown bound what one run's page lists.
const holdersShown = 50

func (d *Desk) run(r *request) error {
	id, err := strconv.ParseInt(r.Param("id"), 10, 64)
	if err != nil {
		return echo.ErrNotFound
	}
	x, err := desk.RunByID(r.ctx(), d.db, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return echo.ErrNotFound
	}
	if err != nil {
		return err
	}
	page, err := d.page(r, cutText(x.RunID, nameShown), "/runs")
	if err != nil {
		return err
	}
	page.Live = fmt.Sprintf("/events?run=%d", id)
	after := parsePlace(r.QueryParam("cursor"))
	rows, err := desk.EffectsOfRun(r.ctx(), d.db, id, after, pageRows+1)
	if err != nil {
		return err
	}
	leases, err := desk.LeasesOf(r.ctx(), d.db, id, holdersShown)
	if err != nil {
		return err
	}
	refused, err := runs.Refusals(r.ctx(), d.db, id, time.Time{})
	if err != nil {
		return err
	}
	v := views.Run{Page: page, Name: show(x.RunID, 600, false), State: runState(x.State), Lead: runLead(r, x)}
	v.Rows, v.Pager = decidedRows(r, rows, fmt.Sprintf("/runs/%d", id), after != nil, func(c clock, x desk.Closed) string { return c.at(x.ChangedAt).Text })
	for _, l := range leases {
		v.Holders = append(v.Holders, views.Holder{Epoch: whole(l.Epoch), Worker: l.Worker, From: r.at(l.TakenAt), To: r.at(l.EndedAt.Time), How: strings.ReplaceAll(l.EndedBy, "_", " ")})
	}
	v.Refused = refusedLines(r, refused)
	v.Facts = []views.Fact{{Name: "Agent", Value: line(x.Agent)}, {Name: "Account", Value: line(x.Account)}, {Name: "Refused starts and begins", Value: line(grouped(x.Refused))}}
	return web.Render(r.Context, http.StatusOK, views.RunPage(v))
}

func runLead(r *request, x desk.Run) string {
	text := "Opened by " + x.Agent + " at " + r.at(x.OpenedAt).Text + "."
	switch {
	case x.State == "paused":
		text += " It waits: " + openText(x) + "."
	case x.Worker != "":
		text += " Held by " + x.Worker + " until " + r.at(x.LeaseUntil.Time).Text + "."
	case !x.ClosedAt.IsZero():
		text += " Closed at " + r.at(x.ClosedAt.Time).Text + "."
	}
	return text
}

func refusedLines(r *request, list []runs.Refusal) (out []views.Event) {
	seen := make([]effects.RefusedView, len(list))
	for i, x := range list {
		seen[i] = effects.RefusedView{At: x.At.Time, Call: x.Call, Reason: x.Reason, Worker: x.Worker}
	}
	for _, l := range fromRefusals(seen, r.clock) {
		out = append(out, views.Event{At: r.short(l.at), Kind: l.kind, Title: note(l.title), Detail: note(l.detail), Day: r.day(l.at)})
	}
	for i := len(out) - 1; i > 0; i-- {
		if out[i].Day == out[i-1].Day {
			out[i].Day = ""
		}
	}
	return out
}
