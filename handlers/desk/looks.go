package desk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/views"
)

// recordsShown is how many records of a downstream a page lays side by side.
const recordsShown = 12

// looksPanel is what asking the downstream has shown; nil for a tool that nobody can ask
// about, and for an effect about which nobody ever asked or will.
func (d *Desk) looksPanel(r *request, s subject) *views.Looks {
	v := s.looks
	last := v.Last()
	if last == nil && (v.Blind || len(s.Attempts) == 0 && v.Next.IsZero()) {
		return nil
	}
	p := &views.Looks{State: views.State{Kind: "plain", Word: "Not asked yet"}, Next: nextLook(r, s), Intent: views.Intent{Amount: amount(s.Amount), Key: line(s.BusinessKey)}}
	if !v.EndedAt.IsZero() {
		p.Ended = "The schedule ended at " + r.at(v.EndedAt).Text + " without proof: nobody is asked by itself any more. What became of it stays unknown until a person finds out."
	}
	if last != nil {
		p.State, p.Asked, p.Said = lookState(last.Verdict, last.Reason), r.at(last.AskedAt), note(last.Why)
		p.Since = failedSince(r, v)
		p.Records, p.More = recordViews(r.clock, v.Records(), s.Amount)
		if last.Verdict != "taken" && s.State != "taken" && s.State != "failed" { // what is closed otherwise needs no such proof
			p.Conditions, p.Proven = proofOf(r.clock, last)
		}
		p.Open = last.Reason == lookup.NotYet
	}
	if r.may(decider) && !v.Blind {
		p.Check = checkButton(r, s)
	}
	return p
}

// checkButton asks now; nil where there is nothing to ask about, or nobody is asked.
func checkButton(r *request, s subject) *views.CheckNow {
	v := s.looks
	if v.Off || s.State == "in_flight" || len(s.Attempts) == 0 && s.Why != "log_gap" {
		return nil
	}
	c := &views.CheckNow{Label: "Check now", Action: effectURL(s.EffectID) + "/lookup", Token: r.session.FormToken()}
	if len(v.Looks) > 0 && v.Looks[0].Reason == lookup.CouldNot {
		c.Label = "Try again now"
	}
	c.WithForm = (s.State == "interrupted" || s.State == "held") && s.Proposal == nil
	return c
}

// nextLook says when the downstream is asked next.
func nextLook(r *request, s subject) string {
	v := s.looks
	switch {
	case v.Off:
		return "Nobody is asked here now: this database may have lost events, or it was started in another place than before."
	case v.Asking:
		return "Asking now…"
	case v.Blind:
		return "The policy in force has no look-up for this tool any more."
	case v.Next.IsZero():
		return ""
	case !v.Next.After(r.now):
		return "It is asked in a moment…"
	}
	text := "It is asked again at " + r.at(v.Next).Text
	switch {
	case v.Recheck:
		text += ", before the decision is released"
	case s.State == "taken" || s.State == "failed" || s.State == "cancelled":
		text += ", to see that it stays so"
	}
	return text + "."
}

// failedSince tells of looks that could not look, where the last ones did not.
func failedSince(r *request, v effects.LooksView) views.Text {
	last := v.Last()
	n := slices.IndexFunc(v.Looks, func(l effects.LookView) bool { return l.ID == last.ID })
	switch {
	case n <= 0:
		return nil
	case n == 1:
		return note("Asked again at " + r.at(v.Looks[0].AskedAt).Text + ": " + v.Looks[0].Says() + ".")
	}
	return note(fmt.Sprintf("Asked again %d times since, the last at %s: %s.", n, r.at(v.Looks[0].AskedAt).Text, v.Looks[0].Says()))
}

// lookState is what a look showed as a word and a shape.
func lookState(verdict string, reason lookup.Reason) views.State {
	switch verdict {
	case "taken":
		return views.State{Kind: "ok", Word: "It took effect"}
	case "not_taken":
		return views.State{Kind: "info", Word: "It did not take effect"}
	}
	switch reason {
	case lookup.Multiple:
		return views.State{Kind: "danger", Word: "Possible double"}
	case lookup.Mismatch:
		return views.State{Kind: "danger", Word: "Found, and differs"}
	case lookup.NotFinal:
		return views.State{Kind: "unknown", Word: "Found, not final"}
	case lookup.NoReference, lookup.Shared, lookup.Unreferenced, lookup.Disputed, lookup.NoCall, lookup.Matched:
		return views.State{Kind: "unknown", Word: "Found, proves nothing"}
	case lookup.Possible:
		return views.State{Kind: "unknown", Word: "Possible match"}
	case lookup.Vanished:
		return views.State{Kind: "danger", Word: "Seen, and gone"}
	case lookup.NotYet:
		return views.State{Kind: "plain", Word: "Not found yet"}
	case lookup.NoAttempt:
		return views.State{Kind: "plain", Word: "Nothing was sent"}
	}
	return views.State{Kind: "unknown", Word: "Could not check"}
}

func recordViews(c clock, list []effects.FoundRecord, meant *money.Amount) (out []views.Record, more string) {
	free := 0 // as the proof rules count: more than one is a possible double
	for _, x := range list {
		if x.Speaks() && !x.Possible && !x.Gone {
			free++
		}
	}
	for i, x := range list {
		if i == recordsShown {
			return out, fmt.Sprintf("And %d more.", len(list)-recordsShown)
		}
		out = append(out, recordView(c, x, meant, free > 1))
	}
	return out, ""
}

func recordView(c clock, x effects.FoundRecord, meant *money.Amount, double bool) views.Record {
	v := views.Record{ID: x.Name(), Reference: line(x.Reference), Amount: line(recordAmount(x)), Differs: amountDiffers(x, meant), Word: line(x.State), Final: "no", Ours: "not carried"}
	if x.Final {
		v.Final = "yes"
	}
	if x.Ours {
		v.Ours = "carried"
	}
	mark := func(kind, word string) { v.Marks = append(v.Marks, views.State{Kind: kind, Word: word}) }
	switch {
	case x.Foreign && x.Owner != "":
		mark("plain", "Another effect's")
		v.Owner = effectURL(x.Owner)
	case x.Foreign:
		mark("plain", "Not ours, a person said")
	case x.Never:
		mark("stop", "Cancelled for good")
	case x.Owner != "":
		mark("danger", "A person closed another call with it")
		v.Owner = effectURL(x.Owner)
	case x.Possible:
		mark("unknown", "Possible, without our key")
	default:
		if double && !x.Gone {
			mark("danger", "Possible double")
		}
		switch {
		case v.Differs:
			mark("danger", "Amount differs")
		case !x.Match:
			mark("danger", "Recipient or currency differs")
		case x.Final:
			mark("ok", "Matches")
		}
		if !x.Final {
			mark("unknown", "Not final")
		}
	}
	if x.Reversed {
		mark("unknown", "The money came back")
	}
	if x.Gone {
		mark("unknown", "Not shown any more")
		v.Seen = "Shown last at " + c.at(x.SeenAt).Text + "."
	}
	if x.Record != "" {
		k := code([]byte(x.Record), "")
		v.Code = &k
	}
	return v
}

// recordAmount is a record's money as the intent's is written, where it can be.
func recordAmount(x effects.FoundRecord) string {
	asset, err := money.Currency(x.Currency)
	if err == nil {
		if a, err := money.ParseDecimal(x.Amount, asset); err == nil {
			return a.Display()
		}
	}
	return strings.TrimSpace(x.Amount + " " + x.Currency)
}

func amountDiffers(x effects.FoundRecord, meant *money.Amount) bool {
	return meant != nil && x.Amount != "" && (x.Amount != meant.String() || x.Currency != "" && !strings.EqualFold(x.Currency, meant.Asset().Code))
}

// proofOf lays out what a proven "not taken" needs, as one look found it.
func proofOf(c clock, l *effects.LookView) (list []views.Proof, sum string) {
	met, never, found := 0, false, false
	for _, x := range l.Conditions {
		found = found || x.Name == lookup.NothingFound && !x.Met && len(l.Records) > 0
		p := views.Proof{Met: x.Met, Never: x.Never, Text: x.Why}
		if !x.Met && !x.Never && !x.Earliest.IsZero() {
			p.Text = strings.TrimSuffix(x.Why, ".") + "; from " + c.at(x.Earliest).Text + "."
		}
		if x.Met {
			met++
		}
		never = never || x.Never
		list = append(list, p)
	}
	switch {
	case len(list) == 0:
		return nil, ""
	case met == len(list):
		sum = "all hold"
	case found:
		sum = fmt.Sprintf("%d of %d hold, and never all while something is shown", met, len(list))
	case never:
		sum = fmt.Sprintf("%d of %d hold; as things are declared, all never can", met, len(list))
	case l.Earliest.IsZero():
		sum = fmt.Sprintf("%d of %d hold", met, len(list))
	case l.Earliest.After(c.now):
		sum = fmt.Sprintf("%d of %d hold; all can from %s", met, len(list), c.at(l.Earliest).Text)
	default:
		sum = fmt.Sprintf("%d of %d held; all could from %s", met, len(list), c.at(l.Earliest).Text)
	}
	return list, sum
}

// keyLife says how much is left of the vendor's own key.
func keyLife(r *request, s subject) string {
	switch {
	case len(s.Attempts) == 0:
		return ""
	case s.looks.KeyEnds.IsZero():
		return "The vendor's own key: no life is declared for it, so a repeat counts as a new call."
	case s.looks.KeyEnds.After(r.now):
		return fmt.Sprintf("The vendor's own key lives until %s, %s more: until then its vendor takes a repeat for the same call.",
			r.at(s.looks.KeyEnds).Text, span(s.looks.KeyEnds.Sub(r.now)))
	}
	return "The vendor's own key ended at " + r.at(s.looks.KeyEnds).Text + ": its vendor takes a repeat for a new call."
}

// proofLine says beside the verdicts how far look-ups are from a proof by themselves.
func proofLine(c clock, v effects.LooksView) string {
	l := v.Last()
	if l == nil || l.Verdict != "inconclusive" {
		return ""
	}
	_, sum := proofOf(c, l)
	if sum == "" || len(speaking(v)) > 0 {
		return ""
	}
	return "Proven by look-ups: " + sum
}

// speaking are the records that speak against "it did not take effect".
func speaking(v effects.LooksView) []effects.FoundRecord {
	return slices.DeleteFunc(v.Records(), func(x effects.FoundRecord) bool { return !x.Speaks() })
}

// recordWords is a record in a sentence.
func recordWords(c clock, x effects.FoundRecord) string {
	words := []string{}
	if a := recordAmount(x); a != "" {
		words = append(words, a)
	}
	if x.State != "" {
		words = append(words, x.State)
	}
	switch {
	case x.Foreign && x.Owner != "":
		words = append(words, "proves another effect")
	case x.Foreign:
		words = append(words, "not ours, a person said")
	case x.Never:
		words = append(words, "cancelled for good")
	case x.Owner != "":
		words = append(words, "a person closed another call with it")
	case x.Possible:
		words = append(words, "without our key")
	case !x.Match:
		words = append(words, "differs from the intent")
	case !x.Final:
		words = append(words, "not final")
	}
	if x.Gone {
		words = append(words, "shown last at "+c.at(x.SeenAt).Text)
	}
	name := x.Reference
	if name == "" {
		name = "A record without a reference"
	}
	if len(words) == 0 {
		return name + "."
	}
	return name + ": " + strings.Join(words, ", ") + "."
}

// latency is how long an answer took.
func latency(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
