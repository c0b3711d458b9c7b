package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

// claimLookups answers when a question is due, or after the wait. A server that stops
// answers its waiters with nothing: they ask the next one.
func (a *API) claimLookups(c echo.Context, who identity) error {
	in, err := web.Decode[client.ClaimLookups](c)
	if err != nil {
		return err
	}
	wait, err := waitOf(in.Wait, "/wait")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	waiting, cancel := untilStopping(ctx)
	defer cancel()
	list, err := a.engine.ClaimLookups(waiting, effects.ClaimLookups{Account: who.account(), Pool: in.Pool, Max: in.Max, Wait: wait})
	if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
		return a.refused(err)
	}
	out := client.LookupQuestions{Questions: make([]client.LookupQuestion, 0, len(list))}
	for _, q := range list {
		out.Questions = append(out.Questions, questionWire(q))
	}
	return web.JSON(c, http.StatusOK, out)
}

// answerLimit is what a worker may bring for one question, in bytes: as much as a look-up
// reads of an answer.
const answerLimit = 1 << 20

func (a *API) answerLookup(c echo.Context, who identity) error {
	id, err := web.Param(c, "lookup_id")
	if err != nil {
		return err
	}
	in, err := web.DecodeUpTo[client.LookupAnswer](c, answerLimit)
	if err != nil {
		return err
	}
	if in.Hits == nil && in.Error == "" {
		return web.Invalid(web.FieldError{Pointer: "/hits", Detail: "is required: an empty list says that nothing was found, error that it could not look"})
	}
	brought, err := json.Marshal(in)
	if err != nil {
		return web.Invalid(web.FieldError{Pointer: "", Detail: "holds what is not JSON"})
	}
	v, err := a.engine.AnswerLookup(c.Request().Context(), who.account(), id, brought)
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, client.LookupVerdict{
		LookupID: v.ID, EffectID: v.EffectID, Verdict: v.Verdict, Reason: string(v.Reason), Why: v.Why, Earliest: momentOrNil(v.Earliest),
	})
}

// receive takes no token: the event's signature says who sent it.
func (a *API) receive(c echo.Context, _ identity) error {
	name, err := web.Param(c, "name")
	if err != nil {
		return err
	}
	body, err := web.Body(c, effects.EventLimit)
	if err != nil {
		return err
	}
	got, err := a.engine.Receive(c.Request().Context(), name, c.Request().Header, body)
	if r, ok := errors.AsType[*effects.Refusal](err); ok && r.Code == effects.CodeUnsigned {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Signature")
	}
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, client.InboxAnswer{EventID: got.EventID, Repeated: got.Repeats > 0})
}

func questionWire(q effects.LookupQuestion) client.LookupQuestion {
	out := client.LookupQuestion{
		LookupID: q.ID, AnswerBy: moment(q.Until), AnswerWithin: q.Within.Milliseconds(), AskedAt: moment(q.AskedAt),
		EffectID: q.Effect, RunID: q.Run, Tool: q.Tool, BusinessKey: q.BusinessKey, VendorKey: q.VendorKey, Reference: q.Reference,
		Arguments: q.Arguments, Attempts: make([]client.LookupAttempt, 0, len(q.Attempts)), Canary: q.Canary, World: q.World,
	}
	if q.Amount != nil {
		out.Amount = &client.Amount{Value: q.Amount.String(), Currency: q.Amount.Asset().Code}
	}
	for _, t := range q.Attempts {
		out.Attempts = append(out.Attempts, client.LookupAttempt{BegunAt: momentOrNil(t.Begun), Deadline: momentOrNil(t.Deadline)})
	}
	return out
}
