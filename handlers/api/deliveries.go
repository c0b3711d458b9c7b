package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/ledger/audit"
	"quittance/ledger/wakes"
	"quittance/reconcile/access"
	"quittance/reconcile/wake"
	"quittance/web"
)

// Deliveries is what the handlers ask of [wake.Service].
type Deliveries interface {
	Log(ctx context.Context, q wake.Query) (list []wakes.Logged, next string, err error)
	Delivery(ctx context.Context, id string) (*wakes.Logged, []wakes.Attempt, error)
	Replay(ctx context.Context, id string, who audit.Row) error
}

func (a *API) listDeliveries(c echo.Context, _ identity) error {
	given, err := query(c, "endpoint", "state", "cursor", "limit")
	if err != nil {
		return err
	}
	q := wake.Query{Endpoint: given["endpoint"], State: given["state"], Cursor: given["cursor"]}
	if q.Limit, err = limitOf(given["limit"]); err != nil {
		return err
	}
	list, next, err := a.deliveries.Log(c.Request().Context(), q)
	if err != nil {
		return deliveryProblem(err)
	}
	out := client.Deliveries{Deliveries: make([]client.Delivery, len(list)), NextCursor: next}
	for i, d := range list {
		out.Deliveries[i] = deliveryWire(d)
	}
	return web.JSON(c, http.StatusOK, out)
}

func (a *API) getDelivery(c echo.Context, _ identity) error {
	id, err := web.Param(c, "delivery_id")
	if err != nil {
		return err
	}
	d, attempts, err := a.deliveries.Delivery(c.Request().Context(), id)
	if err != nil {
		return deliveryProblem(err)
	}
	out := client.DeliveryView{Delivery: deliveryWire(*d), Body: d.Body, Log: make([]client.DeliveryAttempt, len(attempts))}
	for i, t := range attempts {
		out.Log[i] = client.DeliveryAttempt{Number: t.Number, At: moment(t.At.Time), Seconds: t.Seconds, Status: t.Status, Problem: t.Problem}
	}
	return web.JSON(c, http.StatusOK, out)
}

func (a *API) replayDelivery(c echo.Context, who identity) error {
	id, err := web.Param(c, "delivery_id")
	if err != nil {
		return err
	}
	if err := a.deliveries.Replay(c.Request().Context(), id, madeOverAPI(c, who, "", "")); err != nil {
		return deliveryProblem(err)
	}
	return a.getDelivery(c, who)
}

// madeOverAPI is the trail's line of something that a person did with a token.
func madeOverAPI(c echo.Context, who identity, action, subject string) audit.Row {
	by := access.MadeBy{Person: who.Person, RequestID: web.RequestID(c)}
	row := by.Row(action, subject)
	row.Via = "api"
	return row
}

func deliveryProblem(err error) error {
	switch {
	case errors.Is(err, wake.ErrNotFound):
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such delivery."}
	case errors.Is(err, wake.ErrSending):
		return &web.Problem{Status: http.StatusConflict, Code: "sending", Detail: "The delivery is being sent just now: look again in half a minute."}
	}
	for pointer, known := range map[string]error{"?cursor": wake.ErrCursor, "?state": wake.ErrState, "?limit": wake.ErrLimit} {
		if errors.Is(err, known) {
			return web.Invalid(web.FieldError{Pointer: pointer, Detail: known.Error()})
		}
	}
	return err
}

func deliveryWire(d wakes.Logged) client.Delivery {
	return client.Delivery{
		DeliveryID: d.ID, WebhookID: wake.WebhookID(d.ID), Endpoint: d.Endpoint, RunID: d.RunName, Account: d.Account, Agent: d.Agent,
		ReadyAt: moment(d.ReadyAt.Time), MadeAt: moment(d.MadeAt.Time), State: d.State, Attempts: d.Attempts,
		NextAt: momentOrNil(d.NextAt.Time), EndedAt: momentOrNil(d.EndedAt.Time), Status: d.Status, Problem: d.Problem,
	}
}
