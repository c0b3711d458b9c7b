package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

// queue refuses a parameter it does not know: a misspelt filter would show more than
// was asked for.
func (a *API) queue(c echo.Context, _ identity) error {
	q, err := queueQuery(c)
	if err != nil {
		return err
	}
	page, err := a.engine.Queue(c.Request().Context(), q)
	if err != nil {
		return a.refused(inQuery(err))
	}
	out := client.QueuePage{Items: make([]client.QueueItem, len(page.Items)), NextCursor: page.Next}
	for i, item := range page.Items {
		out.Items[i] = a.queueWire(item)
	}
	return web.JSON(c, http.StatusOK, out)
}

// inQuery says of a filter that the engine refuses where it stood: in the address.
func inQuery(err error) error {
	r, ok := errors.AsType[*effects.Refusal](err)
	if !ok {
		return err
	}
	moved := *r
	moved.Pointer = "?" + strings.TrimPrefix(r.Pointer, "/")
	return &moved
}

// queueQuery reads the filters; what each may hold is the engine's to say.
func queueQuery(c echo.Context) (effects.QueueQuery, error) {
	var q effects.QueueQuery
	var limit string
	into := map[string]*string{
		"account": &q.Account, "agent": &q.Agent, "tool": &q.Tool, "run_id": &q.RunID,
		"business_key": &q.BusinessKey, "state": &q.State, "cursor": &q.Cursor, "limit": &limit,
	}
	var faults []web.FieldError
	for name, values := range c.QueryParams() {
		field, known := into[name]
		switch {
		case !known:
			faults = append(faults, web.FieldError{Pointer: "?" + name, Detail: "is not a filter of the queue"})
		case len(values) > 1:
			faults = append(faults, web.FieldError{Pointer: "?" + name, Detail: "is given more than once"})
		default:
			*field = values[0]
		}
	}
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 { // to the engine 0 is none given
			faults = append(faults, web.FieldError{Pointer: "?limit", Detail: "must be a whole number from 1"})
		}
		q.Limit = n
	}
	if faults != nil {
		return q, web.Invalid(faults...)
	}
	return q, nil
}

func (a *API) queueWire(q effects.QueueItem) client.QueueItem {
	return client.QueueItem{
		EffectID: q.EffectID, RunID: q.RunID, Account: q.Account, Agent: q.Agent, Tool: q.Tool,
		State: q.State, Why: q.Why, Version: q.Version, Summary: q.Summary, BusinessKey: q.BusinessKey,
		Amount: amountWire(q.Amount), WaitingSince: moment(q.WaitingSince), WaitingFor: int64(q.Waiting.Seconds()), Overdue: q.Overdue,
		Attempts: q.Attempts, Refused: q.Refused, Contradicted: q.Contradicted, SecondWaits: q.SecondWaits, Confirm: q.Confirm,
		Known: q.Known, ProvableFrom: momentOrNil(q.Provable), URL: a.effectURL(q.EffectID),
	}
}
