package api

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

// batch refuses a list that cannot be read whole, before anything of it is done; what
// is refused by the rules is refused alone.
func (a *API) batch(c echo.Context, who identity) error {
	in, err := web.Decode[client.Batch](c)
	if err != nil {
		return err
	}
	if len(in.Ops) > client.MaxBatch {
		return web.Invalid(web.FieldError{Pointer: "/ops", Detail: fmt.Sprintf("holds %d operations; at most %d are taken", len(in.Ops), client.MaxBatch)})
	}
	ops, err := batchOps(who.account(), in.Ops)
	if err != nil {
		return err
	}
	answers, err := a.engine.Apply(c.Request().Context(), ops)
	if err != nil {
		return a.refused(err)
	}
	out := client.BatchAnswers{Answers: make([]client.BatchAnswer, len(answers))}
	for i, answer := range answers {
		out.Answers[i] = a.batchAnswer(i, ops[i], answer)
	}
	return web.JSON(c, http.StatusOK, out)
}

func batchOps(account int64, list []client.BatchOp) ([]effects.Op, error) {
	ops := make([]effects.Op, len(list))
	var faults []web.FieldError
	for i, op := range list {
		at := fmt.Sprintf("/ops/%d", i)
		switch {
		case (op.Begin == nil) == (op.Finish == nil):
			faults = append(faults, web.FieldError{Pointer: at, Detail: "must hold exactly one of begin and finish"})
		case op.Begin != nil && op.EffectID != "":
			faults = append(faults, web.FieldError{Pointer: at + "/effect_id", Detail: "must be absent beside begin"})
		case op.Begin != nil:
			begin, err := beginOp(account, *op.Begin)
			if err != nil {
				return nil, err
			}
			ops[i] = begin
		case op.EffectID != "":
			faults = append(faults, namedTwice(*op.Finish, at+"/finish")...)
			ops[i] = finishOp(account, op.EffectID, *op.Finish)
		default:
			if err := namesOne(*op.Finish, at+"/finish"); err != nil {
				return nil, err
			}
			ops[i] = finishOp(account, "", *op.Finish)
		}
	}
	if faults != nil {
		return nil, web.Invalid(faults...)
	}
	return ops, nil
}

func (a *API) batchAnswer(i int, op effects.Op, answer effects.Answer) client.BatchAnswer {
	switch {
	case answer.Begin != nil:
		return client.BatchAnswer{Status: beginStatus(answer.Begin), Begin: beginWire(answer.Begin)}
	case answer.Finish != nil:
		return client.BatchAnswer{Status: http.StatusOK, Finish: finishWire(answer.Finish)}
	}
	at := fmt.Sprintf("/ops/%d/finish", i)
	if op.Begin != nil {
		at = fmt.Sprintf("/ops/%d/begin", i)
	}
	p := within(a.problem(answer.Refusal), at)
	return client.BatchAnswer{Status: p.Status, Problem: p}
}
