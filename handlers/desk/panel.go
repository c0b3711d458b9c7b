package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/reconcile/effects"
	"quittance/views"
)

// panel is what can be done about an effect now, by this person.
func (d *Desk) panel(r *request, s subject, p problems) views.Panel {
	var out views.Panel
	can := r.may(decider)
	if s.contradicted() {
		out.Contra = d.contradictionPanel(r, s, p, can)
	}
	switch s.State {
	case "interrupted", "held":
		if s.Proposal != nil {
			out.Second = d.secondPanel(r, s, p, can)
			break
		}
		if can {
			out.Verdict = d.verdictForm(r, s, p)
		} else {
			out.Reading = "Deciding takes one of the roles " + strings.Join(decider, ", ") + "."
		}
	case "cleared", "taken", "cancelled", "failed":
		if s.UsedAt.IsZero() && (s.DecidedBy == "person" || s.DecidedBy == "look_up" || s.DecidedBy == "vendor_key") {
			out.Hold = d.holdPanel(r, s, p, can)
		} else {
			out.Closed = closedPanel(r, s)
		}
	}
	// What somebody typed is not lost when another was faster.
	if out.Verdict == nil && s.draft != nil && s.draft.Note != "" {
		out.Typed = note(s.draft.Note)
	}
	return out
}

func (d *Desk) verdictForm(r *request, s subject, p problems) *views.Verdict {
	v := &views.Verdict{
		Action: effectURL(s.EffectID) + "/review", Token: r.session.FormToken(), Version: whole(s.Version), Title: "Did it happen?",
		Choices: d.choices(s), Problem: p.verdict,
	}
	v.Result, v.ResultHint = resultFor(s)
	if s.State == "interrupted" {
		v.Conditions, v.Proof = conditions(r, s), proofLine(r.clock, s.looks)
		v.Which = which(r.clock, s)
		v.NotOurs = hits(r.clock, s, "stop")
	}
	v.Key = keyLife(r, s)
	if s.State == "held" {
		v.Title = "May it run?"
		for _, o := range s.Overlaps {
			if o.State == "taken" {
				v.Others = append(v.Others, views.Option{Value: o.EffectID, Label: cutText(o.RunID, nameShown) + ", " + r.at(o.OpenedAt).Text})
			}
		}
	}
	t := s.draft
	if t == nil {
		return v
	}
	v.Note, v.Reference, v.NextLook = t.Note, t.Reference, t.NextLook
	for i := range v.Which {
		v.Which[i].Picked = v.Which[i].Value == t.Record
	}
	for i := range v.NotOurs {
		v.NotOurs[i].Ticked = slices.Contains(t.NotOurs, v.NotOurs[i].Reference)
	}
	if t.Result != "" {
		v.Result = t.Result
	}
	for i := range v.Choices {
		v.Choices[i].Picked = v.Choices[i].Value == t.Verdict
	}
	for i := range v.Others {
		v.Others[i].Picked = v.Others[i].Value == t.SameAs
	}
	if p.verdict == "" && (t.Note != "" || t.Verdict != "") {
		v.Restored = "What you had typed is still here, from " + r.at(t.savedAt).Text + "."
	}
	if t.Version != 0 && t.Version != s.Version {
		v.Stale = "This has changed since you wrote it. Read what is new before you go on; what you typed stays."
	}
	return v
}

// resultFor is what the agent may be given with "taken": what the downstream shows, where
// it shows one record with a result, or else the policy's example, to be filled in.
func resultFor(s subject) (result, hint string) {
	var found []effects.FoundRecord
	for _, x := range s.looks.Records() {
		if !x.Foreign && !x.Never && !x.Gone {
			found = append(found, x)
		}
	}
	if len(found) == 1 && len(found[0].Result) > 0 {
		return string(found[0].Result), "Pre-filled from what the downstream shows for " + found[0].Name()
	}
	if result = string(s.tool.ResultExample()); result != "" {
		return result, "Pre-filled from the policy's example: put the real values in"
	}
	return "", "JSON; empty gives it nothing but the reference"
}

// choices are the verdicts that fit, each with what will happen next. None is chosen
// beforehand.
func (d *Desk) choices(s subject) []views.Choice {
	again := "The agent will make this call once more."
	if s.Amount != nil {
		again = "The agent will make this call once more: " + s.Amount.Display() + " may leave again."
	}
	unsure := views.Choice{Value: "unsure", Title: "Looked, cannot tell yet", Next: "What you saw is kept; the effect stays here."}
	stop := views.Choice{Value: "stop", Title: "No, and do not send it", Next: "It is closed. The agent is told to stop asking for it."}
	if s.State == "held" {
		stop.Title = "No, it must not run"
		list := []views.Choice{}
		for _, o := range s.Overlaps {
			if o.State == "taken" {
				list = append(list, views.Choice{Value: "same_as", Title: "It is the same as one that happened", Next: "The agent gets the other's result and goes on; nothing is sent."})
				break
			}
		}
		return append(list, stop, unsure,
			views.Choice{Value: "allow", Title: "Yes, it is another one, let it run", Next: d.nextText(s, "allow") + d.secondText(s), Danger: true})
	}
	return []views.Choice{
		{Value: "taken", Title: "Yes, it took effect", Next: "It stays. The agent gets the result you enter (an empty one otherwise) with your reference, and goes on."},
		stop, unsure,
		{Value: "not_taken", Title: "No, send it again", Next: again + d.secondText(s), Danger: true},
	}
}

func (d *Desk) secondText(s subject) string {
	if s.tool.NeedsSecondPerson(s.Amount, s.AmountProblem) {
		return " Needs a second person."
	}
	return ""
}

func (d *Desk) secondPanel(r *request, s subject, p problems, can bool) *views.Second {
	x := s.Proposal
	v := &views.Second{
		Who: x.Person, Verdict: verdictText(x.Verdict), At: r.at(x.At), Note: note(x.Note), Reference: line(x.Reference),
		Own: r.session.Person.ID == x.PersonID, Danger: x.Verdict == "not_taken" || x.Verdict == "allow", Next: d.nextText(s, x.Verdict),
		Token: r.session.FormToken(), Version: whole(s.Version), Problem: p.second,
	}
	if p.second != "" {
		v.Why = r.form.Text("note")
	}
	if can {
		v.ReviewURL = effectURL(s.EffectID) + "/confirm?second=yes"
		v.SendBack = effectURL(s.EffectID) + "/send-back"
	}
	return v
}

// nextText is what a verdict does once it is released.
func (d *Desk) nextText(s subject, verdict string) string {
	switch effects.Verdict(verdict) {
	case effects.VerdictTaken:
		return "Nothing is sent. The agent is given the result and goes on."
	case effects.VerdictNotTaken, effects.VerdictAllow:
		if s.Amount != nil {
			return "The agent will send this call: " + s.Amount.Display() + " will leave" + map[bool]string{true: " again", false: ""}[verdict == "not_taken"] + "."
		}
		return "The agent will send this call."
	case effects.VerdictStop:
		return "Nothing is sent. The agent is told that this must not run."
	case effects.VerdictSameAs:
		return "Nothing is sent. The agent gets the other effect's result."
	}
	return ""
}

func (d *Desk) holdPanel(r *request, s subject, p problems, can bool) *views.Hold {
	h := &views.Hold{
		Title: "Decided: " + verdictText(verdictOf(s)), Action: effectURL(s.EffectID) + "/undo", Token: r.session.FormToken(),
		Version: whole(s.Version), Problem: p.undo, CanUndo: can && s.DecidedBy != "vendor_key",
	}
	if p.undo != "" {
		h.Why = r.form.Text("note")
	}
	who := decidedBy(s.DecidedBy)
	if x := lastDecision(s); x != nil && x.Person != "" {
		who = "by " + x.Person + " at " + r.at(x.At).Text
	}
	recheck := s.looks.Recheck && !s.looks.Off
	switch {
	case s.Early && s.Moment.After(r.now):
		h.Text = fmt.Sprintf("%s. It was decided before it can be sure: what was sent may land until %s. Then somebody confirms that it still holds.", capital(who), r.at(s.Moment).Text)
		if recheck {
			h.Text = fmt.Sprintf("%s. It was decided before it can be sure: what was sent may land until %s. Then the downstream is asked once more. Nothing found lets it go on; anything found opens it again; and where there is no answer, somebody confirms that it still holds.", capital(who), r.at(s.Moment).Text)
		}
		h.Release, h.Waits = r.at(s.Moment), true
	case s.Early && recheck:
		h.Text = capital(who) + ", before it could be sure. The downstream is being asked once more: nothing found lets it go on. You may also look yourself, and confirm."
		if can {
			h.Confirm, h.ConfirmText = effectURL(s.EffectID)+"/confirm?still=yes", "Look once more and confirm…"
		}
	case s.Early:
		h.Text = capital(who) + ", before it could be sure. It can be sure now: look once more, and confirm."
		if can {
			h.Confirm, h.ConfirmText = effectURL(s.EffectID)+"/confirm?still=yes", "Look once more and confirm…"
		}
	case !s.Released:
		h.Text = capital(who) + ". Agents do not see it yet; until they do it can be taken back freely."
		h.Release, h.Waits = r.at(s.ReleaseAt), s.ReleaseAt.After(r.now)
		switch {
		case recheck && h.Waits:
			h.Text += " The downstream is asked once more before that: anything found opens it again."
		case recheck:
			h.Text = capital(who) + ". Before agents see it, the downstream is asked once more: anything found opens it again, and without an answer it is released at " + r.at(s.looks.RecheckUntil).Text + "."
		case !h.Waits:
			h.Text = capital(who) + ". It is being released."
		}
	default:
		h.Text = capital(who) + ". Released " + r.at(s.ReleaseAt).Text + "; no agent has used it yet, so it can still be taken back."
	}
	return h
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// verdictOf is the verdict that an effect's state came from.
func verdictOf(s subject) string {
	switch s.State {
	case "cleared":
		if s.Why == "allowed" {
			return "allow"
		}
		return s.Why
	case "cancelled":
		return "stop"
	case "taken":
		if s.SameAs != "" {
			return "same_as"
		}
	}
	return s.State
}

// lastDecision is the decision in force.
func lastDecision(s subject) *effects.DecisionView {
	for i := len(s.Decisions) - 1; i >= 0; i-- {
		if x := &s.Decisions[i]; x.Act == "decide" {
			return x
		}
	}
	return nil
}

// firstOfTwo is who gave the verdict that somebody else then confirmed; "" where one
// person was enough.
func firstOfTwo(s subject, decided *effects.DecisionView) (first string) {
	for i := range s.Decisions {
		switch x := &s.Decisions[i]; x.Act {
		case "propose":
			first = x.Person
		case "send_back", "undo":
			first = ""
		case "decide":
			if x.ID == decided.ID {
				return first
			}
			first = ""
		}
	}
	return ""
}

func closedPanel(r *request, s subject) *views.Closed {
	c := &views.Closed{State: standing{state: s.State, why: s.Why, same: s.SameAs != ""}.badge(), How: capital("closed " + decidedBy(s.DecidedBy)), At: r.at(s.ReleaseAt)}
	if x := lastDecision(s); x != nil && s.DecidedBy != "agent" {
		c.At, c.Note = r.at(x.At), note(x.Note)
		if x.Person != "" {
			c.How, c.Who = "Closed by", x.Person
			if first := firstOfTwo(s, x); first != "" {
				c.Who = first + ", confirmed by " + x.Person
			}
		}
	}
	if !s.UsedAt.IsZero() && s.DecidedBy != "agent" && s.DecidedBy != "late_agent" {
		c.Used = "Resumed " + r.at(s.UsedAt).Text
	}
	return c
}

func (d *Desk) contradictionPanel(r *request, s subject, p problems, can bool) *views.Contradiction {
	c := &views.Contradiction{
		Text:   "What was seen disagrees with what was decided. Nothing is overwritten: look, and say what it was.",
		Action: effectURL(s.EffectID) + "/acknowledge", Token: r.session.FormToken(), Version: whole(s.Version), Problem: p.contradiction, CanAct: can,
	}
	if p.contradiction != "" {
		c.Note = r.form.Text("note")
	}
	for _, x := range s.Contradictions {
		if x.AcknowledgedAt.IsZero() {
			c.Lines = append(c.Lines, capital(contradictionText(x.Kind))+", seen "+r.at(x.At).Text+"."+foundAt(r.clock, s.looks, x.At))
		}
	}
	return c
}

// foundAt names what the look showed that an incident comes from.
func foundAt(c clock, v effects.LooksView, at time.Time) (text string) {
	for _, l := range v.Looks {
		if !l.AnsweredAt.Equal(at) {
			continue
		}
		for _, x := range l.Records {
			if x := (effects.FoundRecord{Judged: x}); x.Speaks() {
				text += " " + recordWords(c, x)
			}
		}
	}
	return text
}

// holdOf is how long a verdict is held before agents see it, in words.
func (d *Desk) holdOf(s subject, verdict effects.Verdict, now time.Time) string {
	again := verdict == effects.VerdictNotTaken
	hold := d.engine.Policy().Hold(again, s.Amount != nil || s.AmountProblem != "")
	text := "At once."
	if hold > 0 {
		text = "Agents see it in " + span(hold) + "; until then it can be taken back freely."
	}
	if (again || verdict == effects.VerdictStop) && len(s.Attempts) > 0 && s.Moment.After(now) {
		text = ""
	}
	return text
}
