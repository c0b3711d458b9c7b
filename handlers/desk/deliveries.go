package desk

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger/wakes"
	"quittance/reconcile/wake"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) deliveries(r *request) error {
	page, err := d.page(r, "Deliveries", "/deliveries")
	if err != nil {
		return err
	}
	page.Live = "/events"
	values := r.QueryParams()
	q := wake.Query{Endpoint: queryText(values, "endpoint"), State: queryText(values, "state"), Cursor: values.Get("cursor"), Limit: pageRows}
	v := views.Deliveries{Page: page, Endpoint: q.Endpoint, Empty: &views.Empty{Title: "Nothing was delivered",
		Text: "An endpoint is declared under webhooks in the policy. It is told when a run is ready to go on."}}
	for _, s := range append([]string{""}, wake.States...) {
		label := "Any state"
		if s != "" {
			label = deliveryState(s).Word
		}
		v.State = append(v.State, views.Option{Value: s, Label: label, Picked: s == q.State})
	}
	list, next, err := d.wake.Log(r.ctx(), q)
	if errors.Is(err, wake.ErrCursor) || errors.Is(err, wake.ErrState) {
		return web.Redirect(r.Context, "/deliveries")
	}
	if err != nil {
		return err
	}
	for _, x := range list {
		v.Rows = append(v.Rows, d.deliveryRow(r, x))
	}
	back := url.Values{}
	for _, name := range []string{"endpoint", "state"} {
		if s := queryText(values, name); s != "" {
			back.Set(name, s)
		}
	}
	if q.Cursor != "" {
		v.Pager.First = address("/deliveries", back)
	}
	if next != "" {
		back.Set("cursor", next)
		v.Pager.Next = address("/deliveries", back)
	}
	return web.Render(r.Context, http.StatusOK, views.DeliveriesPage(v))
}

func (d *Desk) delivery(r *request) error {
	x, attempts, err := d.wake.Delivery(r.ctx(), r.Param("delivery"))
	if errors.Is(err, wake.ErrNotFound) {
		return echo.ErrNotFound
	}
	if err != nil {
		return err
	}
	page, err := d.page(r, cutText(x.RunName, nameShown), "/deliveries")
	if err != nil {
		return err
	}
	v := views.Delivery{Page: page, Row: d.deliveryRow(r, *x), Body: show(x.Body, 20_000, true)}
	fact := func(name, value string) { v.Facts = append(v.Facts, views.Fact{Name: name, Value: line(value)}) }
	fact("Endpoint", x.Endpoint)
	fact("Agent and account", x.Agent+" · "+x.Account)
	fact("webhook-id", wake.WebhookID(x.ID))
	fact("Attempts", strconv.Itoa(x.Attempts))
	for _, a := range attempts {
		t := views.DeliveryAttempt{Number: strconv.Itoa(a.Number), At: r.at(a.At.Time), Problem: line(a.Problem),
			Took: time.Duration(a.Seconds * float64(time.Second)).Round(time.Millisecond).String(), State: views.State{Kind: "danger", Word: "No answer"}}
		switch {
		case a.Status >= 200 && a.Status < 300:
			t.State = views.State{Kind: "ok", Word: strconv.Itoa(a.Status)}
		case a.Status > 0:
			t.State = views.State{Kind: "danger", Word: strconv.Itoa(a.Status)}
		}
		v.Attempts = append(v.Attempts, t)
	}
	if r.may(decider) && !x.Sending {
		v.Replay, v.Token = deliveryURL(x.ID)+"/replay", r.session.FormToken()
	}
	return web.Render(r.Context, http.StatusOK, views.DeliveryPage(v))
}

// replay sends a delivery again. The change itself writes the line of the audit trail.
func (d *Desk) replay(r *request) error {
	err := d.wake.Replay(r.ctx(), r.Param("delivery"), r.by().Row("", ""))
	switch {
	case errors.Is(err, wake.ErrNotFound):
		return echo.ErrNotFound
	case errors.Is(err, wake.ErrSending):
		d.audit(r, err.Error())
		return &web.Problem{Status: http.StatusConflict, Code: "sending", Detail: "It is being sent just now: look again in half a minute."}
	case err != nil:
		return err
	}
	return web.Redirect(r.Context, deliveryURL(r.Param("delivery"))+"?done=replayed")
}

func (d *Desk) backToDelivery(r *request) error {
	return web.Redirect(r.Context, deliveryURL(r.Param("delivery"))+"?done=again")
}

func deliveryURL(id string) string { return "/deliveries/" + url.PathEscape(id) }

func (d *Desk) deliveryRow(r *request, x wakes.Logged) views.DeliveryRow {
	v := views.DeliveryRow{
		URL: deliveryURL(x.ID), Run: name(x.RunName), Sub: line("to " + x.Endpoint + " · " + x.Agent + " · " + x.Account),
		State: deliveryState(x.State), Made: r.at(x.ReadyAt.Time),
	}
	last := "Not sent yet."
	switch {
	case x.Status > 0 && x.Problem != "":
		last = fmt.Sprintf("Last answer %d: %s.", x.Status, x.Problem)
	case x.Status > 0:
		last = fmt.Sprintf("Last answer %d.", x.Status)
	case x.Problem != "":
		last = capital(x.Problem) + "."
	}
	switch {
	case x.Sending:
		last += " It is being sent now."
	case x.State == "due" && !d.wake.Known(x.Endpoint):
		last += " The policy in force names no such endpoint."
	case x.State == "due" && x.Attempts > 0:
		last += " Sent again at " + r.at(x.NextAt.Time).Text + "."
	case x.State == "overtaken":
		last += " The run was taken, or paused again, before it answered."
	}
	v.Known = line(last)
	return v
}

func deliveryState(s string) views.State {
	switch s {
	case "due":
		return views.State{Kind: "info", Word: "Due"}
	case "delivered":
		return views.State{Kind: "ok", Word: "Delivered"}
	case "overtaken":
		return views.State{Kind: "plain", Word: "Overtaken"}
	}
	return views.State{Kind: "danger", Word: "Given up"}
}
