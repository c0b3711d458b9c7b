package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// confirm shows a verdict once more, with what will happen. Its address can be opened
// again and changes nothing.
func (d *Desk) confirm(r *request) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	t, ok := d.toConfirm(r, s)
	if !ok {
		return web.Redirect(r.Context, effectURL(s.EffectID))
	}
	return d.showConfirm(r, http.StatusOK, s, t, "")
}

// toConfirm is the verdict that a confirmation page is about: the person's own draft,
// another's verdict that waits for a second, or an early one that is to be confirmed.
func (d *Desk) toConfirm(r *request, s subject) (draft, bool) {
	switch {
	case r.QueryParam("second") != "":
		if s.Proposal == nil || s.Proposal.PersonID == r.session.Person.ID {
			return draft{}, false
		}
		return draft{Version: s.Version, Verdict: s.Proposal.Verdict, Reference: s.Proposal.Reference, SameAs: d.proposedSameAs(r.ctx(), s)}, true
	case r.QueryParam("still") != "":
		if !s.Early || s.Moment.After(r.now) {
			return draft{}, false
		}
		return draft{Version: s.Version, Verdict: verdictOf(s)}, true
	case s.draft == nil || d.incomplete(s, *s.draft) != "" || s.draft.Version != s.Version || s.Proposal != nil:
		return draft{}, false
	case s.State != "interrupted" && s.State != "held":
		return draft{}, false
	}
	return *s.draft, true
}

func (d *Desk) proposedSameAs(ctx context.Context, s subject) string {
	if s.Proposal.Verdict != string(effects.VerdictSameAs) {
		return ""
	}
	past, err := store.Decisions(ctx, d.db, []string{s.EffectID})
	if err != nil {
		return ""
	}
	for _, x := range past[s.EffectID] {
		if x.ID == s.Proposal.ID {
			return x.SameAs
		}
	}
	return ""
}

func (d *Desk) showConfirm(r *request, status int, s subject, t draft, problem string) error {
	page, err := d.page(r, "Confirm", "/")
	if err != nil {
		return err
	}
	c := views.Confirm{
		Page: page, Back: effectURL(s.EffectID), What: show(s.Summary, 2000, false), Amount: amount(s.Amount),
		Statement: capital(verdictText(t.Verdict)) + ".", Danger: t.Verdict == "not_taken" || t.Verdict == "allow",
		Action: effectURL(s.EffectID) + "/decision", Token: r.session.FormToken(), Note: note(t.Note), Reference: line(t.Reference), Problem: problem,
		Hits: hits(s, t.Verdict), Button: "Record this verdict",
	}
	for _, f := range []struct{ name, value string }{
		{"version", whole(t.Version)}, {"verdict", t.Verdict}, {"reference", t.Reference}, {"same_as", t.SameAs},
	} {
		c.Hidden = append(c.Hidden, views.Option{Value: f.name, Label: f.value})
	}
	second, still := r.asked("second"), r.asked("still")
	switch {
	case second:
		c.AskNote, c.NoteValue, c.Button = true, t.Note, "Confirm it"
		c.Note = note(s.Proposal.Note)
		c.NoteBy = s.Proposal.Person
		c.Hidden = append(c.Hidden, views.Option{Value: "second", Label: "yes"})
	case still:
		c.AskNote, c.NoteValue, c.Button = true, t.Note, "It still holds"
		c.Note = nil
		c.Hidden = append(c.Hidden, views.Option{Value: "still", Label: "yes"})
	default:
		c.Hidden = append(c.Hidden, views.Option{Value: "note", Label: t.Note})
		if t.Verdict == "taken" {
			c.Hidden = append(c.Hidden, views.Option{Value: "result", Label: t.Result})
			if t.Result != "" {
				x := code([]byte(t.Result), "")
				c.Result = &x
			}
		}
		if s.tool.NeedsSecondPerson(s.Amount, s.AmountProblem) {
			c.Second = "This is above the limit for one person: it waits until somebody else confirms it."
		}
	}
	if c.Danger {
		c.Button = map[bool]string{true: "Confirm: let the agent send it", false: "Let the agent send it again"}[second]
		if t.Verdict == "allow" {
			c.Button = "Let the agent send it"
		}
	}
	c.Next = d.willHappen(r, s, t)
	return web.Render(r.Context, status, views.ConfirmPage(c))
}

func (d *Desk) willHappen(r *request, s subject, t draft) []string {
	v := effects.Verdict(t.Verdict)
	list := []string{d.nextText(s, t.Verdict)}
	if text := d.holdOf(s, v, r.now); text != "" {
		list = append(list, text)
	}
	if (v == effects.VerdictNotTaken || v == effects.VerdictStop) && len(s.Attempts) > 0 {
		if s.Moment.After(r.now) {
			list = append(list, "It is early: what was sent may still land until "+r.at(s.Moment).Text+". The verdict waits until then, and has to be confirmed once more.")
		}
		if _, declared := s.tool.LandsWithin(); !declared {
			list = append(list, "How long a sent request may still land is not declared for this tool. If it lands later, it happens twice, and is shown as a contradiction.")
		}
	}
	return append(list, "Run "+cutText(s.RunID, nameShown)+" goes on when nothing else keeps it paused.")
}

// hits are what was seen of an effect that somebody is about to call not taken.
func hits(s subject, verdict string) (list []views.Hit) {
	if verdict != "not_taken" && verdict != "stop" {
		return nil
	}
	seen := map[string]bool{}
	for _, e := range s.Evidence {
		if e.Verdict != "taken" && (e.Source != "look_up" || e.Reference == "") || e.Source == "person" {
			continue
		}
		ref := e.Reference
		if ref == "" {
			ref = "what was reported at " + iso(e.At)
		}
		if !seen[ref] {
			seen[ref] = true
			list = append(list, views.Hit{Reference: ref, Text: cutText(e.Seen, lineLimit)})
		}
	}
	return list
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
	for _, h := range hits(s, t.Verdict) {
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
