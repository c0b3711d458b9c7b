package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

func (a *API) begin(c echo.Context, who identity) error {
	in, err := web.Decode[client.BeginRequest](c)
	if err != nil {
		return err
	}
	op, err := beginOp(who.account(), in)
	if err != nil {
		return err
	}
	answer, err := a.one(c, op)
	if err != nil {
		return err
	}
	return web.JSON(c, beginStatus(answer.Begin), beginWire(answer.Begin))
}

func (a *API) finish(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.FinishRequest](c)
	if err != nil {
		return err
	}
	if faults := namedTwice(in, ""); faults != nil {
		return web.Invalid(faults...)
	}
	answer, err := a.one(c, finishOp(who.account(), id, in))
	if err != nil {
		return err
	}
	return web.JSON(c, http.StatusOK, finishWire(answer.Finish))
}

func (a *API) finishByKey(c echo.Context, who identity) error {
	in, err := web.Decode[client.FinishRequest](c)
	if err != nil {
		return err
	}
	if err := namesOne(in, ""); err != nil {
		return err
	}
	answer, err := a.one(c, finishOp(who.account(), "", in))
	if err != nil {
		return err
	}
	return web.JSON(c, http.StatusOK, finishWire(answer.Finish))
}

// one applies a single operation; a refusal is an error.
func (a *API) one(c echo.Context, op effects.Op) (effects.Answer, error) {
	answers, err := a.engine.Apply(c.Request().Context(), []effects.Op{op})
	if err != nil {
		return effects.Answer{}, a.refused(err)
	}
	if len(answers) != 1 {
		return effects.Answer{}, fmt.Errorf("the engine gave %d answers to one operation", len(answers))
	}
	if answers[0].Refusal != nil {
		return effects.Answer{}, a.refused(answers[0].Refusal)
	}
	return answers[0], nil
}

func (a *API) getEffect(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	v, err := a.engine.Effect(c.Request().Context(), who.account(), id)
	if err != nil {
		return a.refused(err)
	}
	looks, err := a.engine.Looks(c.Request().Context(), v.EffectID)
	if err != nil {
		return a.refused(err)
	}
	out := effectWire(v)
	looksWire(looks, &out)
	return web.JSON(c, http.StatusOK, out)
}

// beginOp leaves the arguments to the engine, which says what they may hold: also
// that they are an object.
func beginOp(account int64, in client.BeginRequest) (effects.Op, error) {
	b := &effects.Begin{
		Account: account, RunID: in.RunID, Lease: in.Lease, AttemptID: in.AttemptID, Tool: in.Tool,
		Arguments: in.Arguments, Occurrence: in.Occurrence, Key: in.Key, CallID: in.CallID, LogPosition: in.LogPosition,
	}
	if in.ClientTime != nil {
		b.ClientTime = moment(*in.ClientTime).Format(time.RFC3339Nano)
	}
	if in.Context != nil {
		raw, err := json.Marshal(in.Context)
		if err != nil {
			return effects.Op{}, fmt.Errorf("couldn't write the context: %w", err)
		}
		b.Context = raw
	}
	return effects.Op{Begin: b}, nil
}

func finishOp(account int64, id string, in client.FinishRequest) effects.Op {
	return effects.Op{Finish: &effects.Finish{
		Account: account, EffectID: id, RunID: in.RunID, Key: in.Key, Tool: in.Tool,
		Arguments: in.Arguments, Occurrence: in.Occurrence,
		Fence: in.Fence, Outcome: in.Outcome, Result: in.Result, Error: in.Error, Reference: in.Reference,
		ResultOmitted: in.ResultOmitted, ResultSize: in.ResultSize, ResultDigest: in.ResultDigest,
		LogPosition: in.LogPosition,
	}}
}

// namedTwice lists the members of a finish that name an effect although its id does
// already: which of two different ones was meant would be a guess.
func namedTwice(in client.FinishRequest, at string) (faults []web.FieldError) {
	for member, given := range map[string]bool{
		"run_id": in.RunID != "", "key": in.Key != "", "tool": in.Tool != "",
		"arguments": in.Arguments != nil, "occurrence": in.Occurrence != 0,
	} {
		if given {
			faults = append(faults, web.FieldError{Pointer: at + "/" + member, Detail: "must be absent where the effect's id is given"})
		}
	}
	return faults
}

// namesOne refuses a finish that does not name one effect. A call id is a note: many
// calls may carry the same.
func namesOne(in client.FinishRequest, at string) error {
	byCall := in.Tool != "" && in.Arguments != nil
	switch {
	case in.RunID != "" && (in.Key != "") != byCall:
		return nil
	case in.RunID != "" && in.Key != "":
		return web.Invalid(web.FieldError{Pointer: at + "/key", Detail: "must be absent where tool and arguments name the effect"})
	}
	return &web.Problem{
		Status: http.StatusUnprocessableEntity, Code: client.CodeAmbiguous, Pointer: at,
		Detail: "This does not name one effect. Give run_id with key, or run_id with tool, arguments and occurrence; a call id is only a note.",
	}
}

func beginStatus(b *effects.BeginAnswer) int {
	if b.Do == client.DoProceed {
		return http.StatusCreated
	}
	return http.StatusOK
}

func beginWire(b *effects.BeginAnswer) *client.BeginAnswer {
	out := &client.BeginAnswer{Do: b.Do, EffectID: b.EffectID, Key: b.Key, LogPosition: b.LogPosition}
	switch b.Do {
	case client.DoPass:
		return out
	case client.DoProceed:
		out.Attempt, out.Fence, out.VendorKey, out.Observed = b.Attempt, b.Fence, b.VendorKey, b.Observed
		out.Deadline, out.PerformWithinMS = momentOrNil(b.Deadline), b.PerformWithin.Milliseconds()
		return out
	}
	out.Replayed, out.Outcome, out.DecidedBy = true, b.Outcome, b.DecidedBy
	out.Stored = client.Stored{Result: b.Result, Error: b.Error, Reference: b.Reference}
	if b.Omitted {
		out.ResultOmitted, out.ResultSize, out.ResultDigest = true, b.Size, b.Digest
	}
	return out
}

func finishWire(f *effects.FinishAnswer) *client.FinishAnswer {
	out := &client.FinishAnswer{
		EffectID: f.EffectID, State: f.State, Version: f.Version, WithoutIntent: f.EffectID == "", LogPosition: f.LogPosition,
		ResultSize: f.Stored.Size, ResultDigest: f.Stored.Digest,
	}
	if f.Stored.Cut {
		out.ResultCut, out.StoredLimit = true, f.Stored.Limit
	}
	return out
}
