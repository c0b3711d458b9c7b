package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

func (a *API) observeReport(c echo.Context, _ identity) error {
	q, err := observeQuery(c, "account", "tool", "since")
	if err != nil {
		return err
	}
	list, err := a.engine.ObserveReport(c.Request().Context(), q)
	if err != nil {
		return a.refused(inQuery(err))
	}
	return web.JSON(c, http.StatusOK, ObserveWire(q, list))
}

// ObserveWire is the report as it travels.
func ObserveWire(q effects.ObserveQuery, list []effects.ObservedTool) client.ObserveReport {
	out := client.ObserveReport{Since: momentOrNil(q.Since), Tools: make([]client.ObservedTool, len(list))}
	for i, t := range list {
		out.Tools[i] = client.ObservedTool{Tool: t.Tool, Observed: t.Observed, Sums: make([]client.ObservedSum, len(t.Sums))}
		for k, s := range t.Sums {
			out.Tools[i].Sums[k] = client.ObservedSum{What: s.What, Calls: s.Calls, Unpriced: s.Unpriced}
			for _, m := range s.Amounts {
				out.Tools[i].Sums[k].Amounts = append(out.Tools[i].Sums[k].Amounts, *amountWire(&m))
			}
		}
	}
	return out
}

func (a *API) observedCalls(c echo.Context, _ identity) error {
	q, err := observeQuery(c, "account", "tool", "since", "cursor", "limit")
	if err != nil {
		return err
	}
	list, next, err := a.engine.ObservedCalls(c.Request().Context(), q)
	if err != nil {
		return a.refused(inQuery(err))
	}
	out := client.ObservedCalls{Calls: make([]client.ObservedCall, len(list)), NextCursor: next}
	for i, x := range list {
		out.Calls[i] = client.ObservedCall{
			CallID: x.ID, RunID: x.RunID, Account: x.Account, Agent: x.Agent, Tool: x.Tool, Summary: x.Summary, BusinessKey: x.BusinessKey,
			Amount: amountWire(x.Amount), AmountProblem: x.AmountProblem, Attempt: x.Attempt, BegunAt: moment(x.BegunAt), Would: x.Would, Why: x.Why,
			MetCall: x.MetCall, MetEffect: x.MetEffect, Outcome: x.Outcome, Unknown: x.Unknown, Reference: x.Reference,
		}
	}
	return web.JSON(c, http.StatusOK, out)
}

func observeQuery(c echo.Context, names ...string) (q effects.ObserveQuery, err error) {
	given, err := query(c, names...)
	if err != nil {
		return q, err
	}
	q = effects.ObserveQuery{Account: given["account"], Tool: given["tool"], Cursor: given["cursor"]}
	if q.Limit, err = limitOf(given["limit"]); err != nil {
		return q, err
	}
	if s := given["since"]; s != "" {
		if q.Since, err = sinceOf(s, time.Now()); err != nil {
			return q, err
		}
	}
	return q, nil
}

// query reads parameters that are each given once; one that is not known is refused, as a
// misspelt filter would show more than was asked for.
func query(c echo.Context, names ...string) (map[string]string, error) {
	given := map[string]string{}
	var faults []web.FieldError
	for _, name := range names {
		given[name] = ""
	}
	for name, values := range c.QueryParams() {
		_, known := given[name]
		switch {
		case !known:
			faults = append(faults, web.FieldError{Pointer: "?" + name, Detail: "is not a filter of this list"})
		case len(values) > 1:
			faults = append(faults, web.FieldError{Pointer: "?" + name, Detail: "is given more than once"})
		default:
			given[name] = values[0]
		}
	}
	if faults != nil {
		return nil, web.Invalid(faults...)
	}
	return given, nil
}

// limitOf is 0 where nothing is given.
func limitOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, web.Invalid(web.FieldError{Pointer: "?limit", Detail: "must be a whole number from 1"})
	}
	return n, nil
}

// sinceOf reads a time, or how long ago it was: 7d, 36h.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, web.Invalid(web.FieldError{Pointer: "?since", Detail: "must be a time of RFC 3339, or how long ago it was, such as 7d or 36h"})
}
