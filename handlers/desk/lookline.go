package desk

import (
	"fmt"
	"slices"
	"strings"

	"quittance/ledger/lookups"
	"quittance/reconcile/effects"
	"quittance/views"
)

// fromLooks tells each look; several in a row that say the same are one line, with the
// last of them.
func fromLooks(v effects.LooksView, c clock) (lines []told) {
	list := slices.Clone(v.Looks)
	slices.Reverse(list) // oldest first
	for i := 0; i < len(list); {
		n := i + 1
		for n < len(list) && says(list[n]) == says(list[i]) {
			n++
		}
		lines = append(lines, ofLooks(list[i:n], c))
		i = n
	}
	return lines
}

// says is what two looks have in common that say the same.
func says(l effects.LookView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %d", l.Verdict, l.Reason, l.Problem, l.Status)
	for _, r := range l.Records {
		fmt.Fprintf(&b, "\n%s %v %v %v %v %v %v %s %s", r.Reference, r.Match, r.Final, r.Possible, r.Never, r.Reversed, r.Foreign, r.Amount, r.State)
	}
	return b.String()
}

// ofLooks tells looks that say the same, oldest first.
func ofLooks(list []effects.LookView, c clock) told {
	last := list[len(list)-1]
	l := told{at: list[0].AskedAt, kind: lookState(last.Verdict, last.Reason).Kind, title: "Asked the downstream: " + last.Says(), fold: foldOf(last, c)}
	if l.kind == "plain" {
		l.kind = "info"
	}
	if last.Verdict != "inconclusive" { // of the others the title says it
		l.detail = last.Why
	}
	if len(list) > 1 {
		l.title = fmt.Sprintf("Asked the downstream %d times: %s", len(list), last.Says())
		l.detail = strings.TrimSpace("The last at " + c.at(last.AskedAt).Text + ". " + l.detail)
	}
	if last.Reference != "" {
		l.title += " (" + last.Reference + ")"
	}
	return l
}

var causes = map[lookups.Cause]string{
	lookups.BySchedule: "by the schedule", lookups.ByRelease: "a decision waits for it", lookups.ByPage: "somebody opened this page",
	lookups.ByPerson: "somebody asked for it", lookups.ByEvent: "an event or an answer came",
}

func foldOf(l effects.LookView, c clock) *views.Fold {
	f := &views.Fold{ID: "look-" + l.ID, Facts: lookFacts(l), Excerpt: show(l.Excerpt, 4000, true)}
	f.Facts = append([]views.Fact{{Name: "Asked at", Value: line(c.at(l.AskedAt).Text + ", " + causes[l.Cause])}}, f.Facts...)
	return f
}

// lookFacts are what was asked and how it was answered.
func lookFacts(l effects.LookView) (list []views.Fact) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, views.Fact{Name: name, Value: note(value)})
		}
	}
	add("Asked", l.Request)
	if l.Status != 0 {
		add("Status", fmt.Sprint(l.Status))
	}
	add("Took", latency(l.Latency))
	if l.Pages > 1 {
		add("Pages", fmt.Sprint(l.Pages))
	}
	add("Verdict", strings.ReplaceAll(l.Verdict, "_", " ")+", by the rule "+string(l.Reason))
	add("Why", l.Why)
	for _, r := range l.Records {
		add("Found", recordWords(c0, effects.FoundRecord{Judged: r}))
	}
	if l.Status != 0 || l.Excerpt != "" {
		add("SHA-256 of the answer", l.BodyDigest)
	}
	return list
}

// c0 is for words that hold no time.
var c0 = clock{zone: nowhereZone}
