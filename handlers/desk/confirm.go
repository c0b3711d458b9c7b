package desk

import (
	"context"
	"net/http"
	"slices"
	"strings"

	store "quittance/ledger/effects"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

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
	t := *s.draft
	t.Reference, _ = t.chosen(which(r.clock, s))
	return t, true
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
		Hits: hits(r.clock, s, t.Verdict), Button: "Record this verdict",
	}
	if !r.asked("second") && !r.asked("still") { // whoever confirms looks for themselves
		for i := range c.Hits {
			c.Hits[i].Ticked = slices.Contains(t.NotOurs, c.Hits[i].Reference)
		}
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
	if v == effects.VerdictTaken && t.Result != "" && t.Result == string(s.tool.ResultExample()) {
		list = append(list, "The agent is given the policy's example, word for word. Go back and put the real values in, unless they are these.")
	}
	if (v == effects.VerdictNotTaken || v == effects.VerdictStop) && len(s.Attempts) > 0 {
		if !s.Blind {
			list = append(list, "The downstream is asked once more before agents see it. Whatever is found then, and not named here as somebody else's, opens it again.")
		}
		if v == effects.VerdictNotTaken {
			list = append(list, keyLife(r, s))
		}
		if s.Moment.After(r.now) {
			list = append(list, "It is early: what was sent may still land until "+r.at(s.Moment).Text+". The verdict waits until then, and has to be confirmed once more.")
		}
		if _, declared := s.tool.LandsWithin(); !declared {
			list = append(list, "How long a sent request may still land is not declared for this tool. If it lands later, it happens twice, and is shown as a contradiction.")
		}
	}
	return append(list, "Run "+cutText(s.RunID, nameShown)+" goes on when nothing else keeps it paused.")
}

// hits are what was seen of an effect that somebody is about to call not taken: the
// records that look-ups showed, and what was reported otherwise.
func hits(c clock, s subject, verdict string) (list []views.Hit) {
	if verdict != "not_taken" && verdict != "stop" {
		return nil
	}
	seen := map[string]bool{}
	for _, x := range s.looks.Records() {
		seen[x.Name()] = true
		if x.Speaks() {
			list = append(list, views.Hit{Reference: x.Name(), Text: cutText(recordWords(c, x), lineLimit)})
		}
	}
	for _, e := range s.Evidence {
		if e.Verdict != "taken" && (e.Source != "look_up" || e.Reference == "") || e.Source == "person" {
			continue
		}
		ref := e.Reference
		if ref == "" {
			ref = "what was reported at " + iso(e.At)
		}
		if _, denied := s.looks.NotOurs[ref]; !denied && !seen[ref] {
			seen[ref] = true
			list = append(list, views.Hit{Reference: ref, Text: cutText(e.Seen, lineLimit)})
		}
	}
	return list
}

// noRecord says that "taken" means none of the records that were found.
const noRecord = "none"

// which are the records that "taken" may mean, none chosen beforehand.
func which(c clock, s subject) (list []views.Option) {
	for _, x := range speaking(s.looks) {
		if x.Reference != "" {
			list = append(list, views.Option{Value: "is " + x.Reference, Label: cutText(recordWords(c, x), lineLimit)})
		}
	}
	if len(list) > 0 {
		list = append(list, views.Option{Value: noRecord, Label: "None of these; the note says what it is"})
	}
	return list
}

// chosen is the reference that a draft names, typed or chosen; problem where it is not said,
// or said twice.
func (t draft) chosen(options []views.Option) (reference, problem string) {
	if t.Verdict != string(effects.VerdictTaken) {
		return "", ""
	}
	picked, isRecord := strings.CutPrefix(t.Record, "is ")
	switch {
	case len(options) == 0:
		return t.Reference, ""
	case isRecord && slices.ContainsFunc(options, func(o views.Option) bool { return o.Value == t.Record }):
		if t.Reference != "" && t.Reference != picked {
			return "", "You chose one record and typed the reference of another. Say which it is."
		}
		return picked, ""
	case t.Record == noRecord || t.Reference != "":
		return t.Reference, ""
	}
	return "", "Records were found. Say which of them it is, or that it is none of them."
}
