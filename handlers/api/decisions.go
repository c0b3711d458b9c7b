package api

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

func (a *API) decide(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.DecisionRequest](c)
	if err != nil {
		return err
	}
	if in.EffectID != "" {
		return web.Invalid(web.FieldError{Pointer: "/effect_id", Detail: "must be absent: the path names the effect"})
	}
	results, err := a.engine.Decide(c.Request().Context(), who.person(), []effects.Decide{decideOp(id, in)})
	if err != nil {
		return a.refused(err)
	}
	if len(results) != 1 {
		return fmt.Errorf("the engine gave %d answers to one decision", len(results))
	}
	if results[0].Refusal != nil {
		return a.refused(results[0].Refusal)
	}
	return web.JSON(c, decisionStatus(results[0].Answer), decisionWire(results[0].Answer))
}

// decideAll takes a list only whole: a verdict that names no effect, or an effect or
// decision named twice, could land on the wrong one.
func (a *API) decideAll(c echo.Context, who identity) error {
	in, err := web.Decode[client.Decisions](c)
	if err != nil {
		return err
	}
	if faults := ambiguous(in.Decisions); faults != nil {
		return web.Invalid(faults...)
	}
	list := make([]effects.Decide, len(in.Decisions))
	for i, d := range in.Decisions {
		list[i] = decideOp(d.EffectID, d)
	}
	results, err := a.engine.Decide(c.Request().Context(), who.person(), list)
	if err != nil {
		return a.refused(err)
	}
	out := client.DecisionAnswers{Answers: make([]client.DecisionResult, len(results))}
	for i, r := range results {
		out.Answers[i] = a.decisionResult(i, list[i].EffectID, r)
	}
	return web.JSON(c, http.StatusOK, out)
}

func ambiguous(list []client.DecisionRequest) (faults []web.FieldError) {
	if len(list) > client.MaxBatch {
		faults = append(faults, web.FieldError{Pointer: "/decisions", Detail: fmt.Sprintf("holds %d decisions; at most %d are taken", len(list), client.MaxBatch)})
	}
	effectAt, decisionAt := map[string]int{}, map[string]int{}
	for i, d := range list {
		at := fmt.Sprintf("/decisions/%d", i)
		if d.EffectID == "" {
			faults = append(faults, web.FieldError{Pointer: at + "/effect_id", Detail: "is required"})
		} else if first, again := effectAt[d.EffectID]; again {
			faults = append(faults, web.FieldError{Pointer: at + "/effect_id", Detail: fmt.Sprintf("names the same effect as /decisions/%d", first)})
		} else {
			effectAt[d.EffectID] = i
		}
		if first, again := decisionAt[d.DecisionID]; again {
			faults = append(faults, web.FieldError{Pointer: at + "/decision_id", Detail: fmt.Sprintf("is the same as in /decisions/%d", first)})
		} else {
			decisionAt[d.DecisionID] = i
		}
	}
	return faults
}

func (a *API) addEvidence(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.EvidenceRequest](c)
	if err != nil {
		return err
	}
	op := effects.AddEvidence{EffectID: id, Seen: in.Seen, Note: in.Note}
	if in.NextLook != nil {
		op.NextLook = *in.NextLook
	}
	answer, err := a.engine.AddEvidence(c.Request().Context(), who.person(), op)
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, changedWire(answer))
}

func (a *API) undo(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.UndoRequest](c)
	if err != nil {
		return err
	}
	answer, err := a.engine.Undo(c.Request().Context(), who.person(), effects.Undo{EffectID: id, Version: in.Version, Note: in.Note})
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, changedWire(answer))
}

// lookUp asks the downstream out of turn; its answer is read with the effect.
func (a *API) lookUp(c echo.Context, who identity) error {
	id, err := web.Param(c, "effect_id")
	if err != nil {
		return err
	}
	soon, err := a.engine.LookNow(c.Request().Context(), id)
	if err != nil {
		return a.refused(err)
	}
	row := madeOverAPI(c, who, "effect.look_up", "effect:"+id)
	if !soon {
		row.Note = "a question was under way already"
	}
	if err := a.access.Record(c.Request().Context(), row); err != nil {
		return err
	}
	v, err := a.engine.Effect(c.Request().Context(), 0, id)
	if err != nil {
		return a.refused(err)
	}
	out := client.EffectChanged{EffectID: v.EffectID, State: v.State, Version: v.Version, LookUp: client.LookUpDue, LogPosition: v.LogPosition}
	if !soon {
		out.LookUp = client.LookUpUnderWay
	}
	return web.JSON(c, http.StatusOK, out)
}

func decideOp(id string, in client.DecisionRequest) effects.Decide {
	return effects.Decide{
		EffectID: id, DecisionID: in.DecisionID, Version: in.Version, Verdict: effects.Verdict(in.Verdict),
		Note: in.Note, Reference: in.Reference, Result: in.Result, Evidence: in.Evidence,
		SameAs: in.SameAs, NotOurs: in.NotOurs, Recovery: in.Recovery,
	}
}

func decisionStatus(d *effects.DecideAnswer) int {
	if d.Waits {
		return http.StatusAccepted
	}
	return http.StatusOK
}

func decisionWire(d *effects.DecideAnswer) *client.DecisionAnswer {
	out := &client.DecisionAnswer{
		EffectID: d.EffectID, Status: client.DecisionMade, State: d.State, Version: d.Version,
		ReleaseAt: momentOrNil(d.ReleaseAt), Early: d.Early, Moment: momentOrNil(d.Moment), LogPosition: d.LogPosition,
	}
	switch {
	case d.Waits:
		out.Status = client.DecisionSecondPerson
	case d.Concurring:
		out.Status = client.DecisionConcurring
	case d.Confirmed:
		out.Status = client.DecisionConfirmed
	}
	return out
}

func (a *API) decisionResult(i int, id string, r effects.DecideResult) client.DecisionResult {
	if r.Refusal != nil {
		p := within(a.problem(r.Refusal), fmt.Sprintf("/decisions/%d", i))
		return client.DecisionResult{EffectID: id, Status: p.Status, Problem: p}
	}
	return client.DecisionResult{EffectID: id, Status: decisionStatus(r.Answer), Decision: decisionWire(r.Answer)}
}

func changedWire(d effects.DecideAnswer) client.EffectChanged {
	return client.EffectChanged{EffectID: d.EffectID, State: d.State, Version: d.Version, LogPosition: d.LogPosition}
}
