package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"quittance/ledger/desk"
	store "quittance/ledger/effects"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// review takes the verdict form: it keeps what was typed, checks it, and leads to the
// page that shows it once more. "Cannot tell yet" is recorded at once.
func (d *Desk) review(r *request) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	t := draftOf(r.form)
	t.savedAt = r.now
	if err := d.keepThis(r, s.EffectID, t); err != nil {
		return err
	}
	s.draft = &t
	if problem := d.incomplete(s, t); problem != "" {
		return d.showEffect(r, http.StatusUnprocessableEntity, s, problems{verdict: problem})
	}
	if t.Verdict == "unsure" {
		return d.unsure(r, s, t)
	}
	return web.Redirect(r.Context, effectURL(s.EffectID)+"/confirm")
}

// incomplete says what is missing before a verdict can be shown for confirmation.
func (d *Desk) incomplete(s subject, t draft) string {
	fits := slices.ContainsFunc(d.choices(s), func(c views.Choice) bool { return c.Value == t.Verdict })
	switch {
	case s.State != "interrupted" && s.State != "held":
		return ""
	case t.Verdict == "":
		return "Choose what happened."
	case !fits:
		return "That verdict does not fit any more: the effect has moved on. Choose again."
	case t.Note == "":
		return "Say what you saw, and where: the next person has only that."
	case t.Verdict == "same_as" && t.SameAs == "":
		return "Choose which effect it is the same as."
	}
	if _, problem := t.chosen(which(c0, s)); problem != "" {
		return problem
	}
	if t.Verdict == "taken" && t.Result != "" {
		if !json.Valid([]byte(t.Result)) {
			return "The result is not JSON."
		}
		if err := s.tool.CheckResult([]byte(t.Result)); err != nil {
			return "The result does not look like what the tool returns: " + err.Error() + "."
		}
	}
	return ""
}

// unsure records that somebody looked and cannot tell yet.
func (d *Desk) unsure(r *request, s subject, t draft) error {
	op := effects.AddEvidence{EffectID: s.EffectID, Seen: t.Note}
	if t.NextLook != "" {
		at, err := time.ParseInLocation("2006-01-02T15:04", t.NextLook, r.zone)
		if err != nil {
			return d.showEffect(r, http.StatusUnprocessableEntity, s, problems{verdict: "When to look again cannot be read."})
		}
		op.NextLook = at
	}
	if err := d.access.UseForm(r.ctx(), r.session, r.form.Text("form")); err != nil {
		if errors.Is(err, access.ErrFormUsed) {
			return d.backToEffect(r)
		}
		return err
	}
	if _, err := d.engine.AddEvidence(r.ctx(), r.person(), op); err != nil {
		return err
	}
	return d.done(r, s.EffectID, "noted")
}

// done forgets the draft and leads back to the effect.
func (d *Desk) done(r *request, effect, word string) error {
	if err := desk.DropDraft(r.ctx(), d.db, effect, r.session.Person.ID); err != nil {
		return err
	}
	to := effectURL(effect)
	if word != "" {
		to += "?done=" + word
	}
	return web.Redirect(r.Context, to)
}

// decide records a verdict that was shown for confirmation.
func (d *Desk) decide(r *request) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	t := draftOf(r.form)
	op := effects.Decide{
		EffectID: s.EffectID, DecisionID: decisionID(r.form.Text("form")), Version: t.Version, Verdict: effects.Verdict(t.Verdict),
		Note: t.Note, Reference: t.Reference, SameAs: t.SameAs, NotOurs: r.form.All("not_ours"),
	}
	if t.Result != "" {
		op.Result = []byte(t.Result)
	}
	if !r.form.Has("second") && !r.form.Has("still") {
		if err := d.keepThis(r, s.EffectID, t); err != nil {
			return err
		}
		s.draft = &t
	}
	for _, h := range hits(r.clock, s, t.Verdict) {
		if !slices.Contains(op.NotOurs, h.Reference) {
			return d.showConfirm(r, http.StatusUnprocessableEntity, s, t, "Something was found that speaks against this: "+h.Reference+". Look at it, and say that it is not this call, or go back.")
		}
	}
	results, err := d.engine.Decide(r.ctx(), r.person(), []effects.Decide{op})
	if err != nil {
		return err
	}
	if refusal := results[0].Refusal; refusal != nil {
		return d.notDecided(r, s.EffectID, t, refusal)
	}
	a := results[0].Answer
	switch {
	case a.Waits:
		return d.done(r, s.EffectID, "waits")
	case a.Concurring:
		return d.done(r, s.EffectID, "concurring")
	case a.Confirmed:
		return d.done(r, s.EffectID, "confirmed")
	}
	return d.done(r, s.EffectID, "")
}

// decisionID is the client's id of a verdict: its form, so that a form sent twice is
// one decision.
func decisionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "form-" + hex.EncodeToString(sum[:16])
}

// notDecided shows the effect as it is now, with what was typed still there.
func (d *Desk) notDecided(r *request, effect string, t draft, refusal *effects.Refusal) error {
	d.audit(r, string(refusal.Code)+" ("+t.Verdict+")")
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	var p problems
	status := http.StatusConflict
	switch refusal.Code {
	case effects.CodeDecided:
		text := "Somebody was faster."
		if x := refusal.Decided; x != nil && x.Person != "" {
			text = x.Person + " decided this already at " + r.at(x.At).Text + ": " + verdictText(x.Verdict) + "."
		} else if x != nil {
			text = "This was closed already at " + r.at(x.At).Text + ", " + decidedBy(x.By) + "."
		}
		p.notice = &views.Notice{Kind: "warn", Text: text + " Your verdict was not recorded; what you typed is kept."}
	case effects.CodeStale:
		p.verdict = "This has changed since you looked. Read what is new; what you typed is still here."
	case effects.CodeSecondWaits:
		p.notice = &views.Notice{Kind: "warn", Text: "Another verdict waits for a second person by now: confirm it or send it back. What you typed is kept."}
	case effects.CodeNoteMissing, effects.CodeInvalid, effects.CodeTooLarge:
		status = http.StatusUnprocessableEntity
		if r.form.Has("second") || r.form.Has("still") {
			return d.showConfirm(r, status, s, t, refusal.Detail)
		}
		p.verdict = refusal.Detail
	default:
		p.notice = &views.Notice{Kind: "warn", Text: refusal.Detail + " Your verdict was not recorded; what you typed is kept."}
	}
	if out := d.panel(r, s, p); out.Verdict == nil && p.verdict != "" {
		p.notice = &views.Notice{Kind: "warn", Text: p.verdict}
	}
	return d.showEffect(r, status, s, p)
}

// decidedBefore answers a verdict form that was sent before: with what became of the
// first sending, which may still be under way.
func (d *Desk) decidedBefore(r *request) error {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return d.backToEffect(r)
	}
	want := decisionID(r.form.Text("form"))
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		past, err := store.Decisions(r.ctx(), d.db, []string{id.String()})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(past[id.String()], func(x store.Decision) bool { return x.DecisionID == want }) {
			if err := web.Redirect(r.Context, effectURL(id.String())); err != nil {
				return err
			}
			return errAnswered
		}
		select {
		case <-r.ctx().Done():
			return r.ctx().Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return d.backToEffect(r)
}
