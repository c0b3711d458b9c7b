package desk

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) undo(r *request) error {
	return d.act(r, "undone", func(s subject, refusal string) problems { return problems{undo: refusal} }, func(id string) error {
		_, err := d.engine.Undo(r.ctx(), r.person(), effects.Undo{EffectID: id, Version: r.form.Whole("version"), Note: r.form.Text("note")})
		return err
	})
}

func (d *Desk) sendBack(r *request) error {
	return d.act(r, "sent-back", func(s subject, refusal string) problems { return problems{second: refusal} }, func(id string) error {
		return d.one(r, effects.Decide{EffectID: id, Verdict: effects.VerdictSendBack})
	})
}

func (d *Desk) acknowledge(r *request) error {
	return d.act(r, "acknowledged", func(s subject, refusal string) problems { return problems{contradiction: refusal} }, func(id string) error {
		recovery := r.form.Text("recovery")
		if recovery != "yes" && recovery != "no" {
			return &effects.Refusal{Code: effects.CodeInvalid, Detail: "Say whether money left twice."}
		}
		return d.one(r, effects.Decide{EffectID: id, Verdict: effects.VerdictAcknowledge, Recovery: recovery == "yes"})
	})
}

// lookIfStale asks the downstream of an effect whose page is opened, where the last answer
// is old. Of an effect that does not exist the page tells.
func (d *Desk) lookIfStale(r *request) error {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return nil
	}
	return d.engine.LookIfStale(r.ctx(), id.String())
}

// checkNow asks the downstream at once. What was typed on the page is kept.
func (d *Desk) checkNow(r *request) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	if t := draftOf(r.form); t.Verdict+t.Note+t.Reference+t.Result+t.SameAs+t.NextLook != "" {
		if err := d.keepThis(r, s.EffectID, t); err != nil {
			return err
		}
	}
	soon, err := d.engine.LookNow(r.ctx(), s.EffectID)
	if err != nil {
		return err
	}
	row := r.by().Row(r.route.action, "effect:"+s.EffectID)
	word := "asked"
	if !soon {
		word, row.Note = "asking", "a question was under way already"
	}
	if err := d.access.Record(r.ctx(), row); err != nil {
		return err
	}
	return web.Redirect(r.Context, effectURL(s.EffectID)+"?done="+word+"#says")
}

// one records a single act with the form's note and version.
func (d *Desk) one(r *request, op effects.Decide) error {
	op.DecisionID, op.Version, op.Note = decisionID(r.form.Text("form")), r.form.Whole("version"), r.form.Text("note")
	results, err := d.engine.Decide(r.ctx(), r.person(), []effects.Decide{op})
	if err == nil && results[0].Refusal != nil {
		err = results[0].Refusal
	}
	return err
}

// act does one thing to an effect and leads back to it; a refusal is shown beside its
// form, on the effect as it is now.
func (d *Desk) act(r *request, word string, beside func(subject, string) problems, f func(id string) error) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	err = f(s.EffectID)
	refusal, refused := errors.AsType[*effects.Refusal](err)
	if err != nil && !refused {
		return err
	}
	if !refused {
		return web.Redirect(r.Context, effectURL(s.EffectID)+"?done="+url.QueryEscape(word))
	}
	d.audit(r, string(refusal.Code))
	if s, err = d.subject(r); err != nil {
		return err
	}
	p := beside(s, refusal.Detail)
	p.notice = &views.Notice{Kind: "warn", Text: strings.TrimSpace(refusal.Detail)}
	return d.showEffect(r, http.StatusConflict, s, p)
}
