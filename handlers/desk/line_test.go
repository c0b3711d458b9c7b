package desk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quittance/ledger/lookups"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

// A queue that redelivers gives each try to a worker of another name, and one that
// begins too soon stands between: still a line for each kind.
func TestRepeatedRefusalsAreOneLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 14, 23, 30, 0, 0, time.UTC)
	var list []effects.RefusedView
	for i := range 25 {
		list = append(list, effects.RefusedView{At: at.Add(time.Duration(i) * 10 * time.Minute), Call: "start", Reason: "run_paused", Worker: fmt.Sprint("pod-", i)})
	}
	begin := effects.RefusedView{At: at.Add(time.Minute), Call: "begin", Reason: "run_paused", Worker: "pod-0"}
	list = append(list[:1], append([]effects.RefusedView{begin}, list[1:]...)...)
	lines := fromRefusals(list, clock{time.UTC, at})
	if len(lines) != 2 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	want := told{at: at, kind: "plain", title: "25 starts of the run were refused",
		detail: "run paused, the last at 15 May, 03:30:00 UTC, asked by pod-0, pod-1, pod-2, 22 more"}
	if lines[0] != want {
		t.Errorf("got  %+v\nwant %+v", lines[0], want)
	}
	if l := lines[1]; l.title != "A begin was refused" || l.detail != "run paused, asked by pod-0" || !l.at.Equal(begin.At) {
		t.Errorf("%+v", l)
	}
}

// Looks in a row that say the same are a line; one that says something else stands between.
func TestLooksThatSayTheSameAreOneLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 14, 23, 30, 0, 0, time.UTC)
	look := func(i int, reason lookup.Reason, records ...lookup.Judged) effects.LookView {
		return effects.LookView{ID: fmt.Sprint(i), AskedAt: at.Add(time.Duration(i) * time.Minute), Verdict: "inconclusive", Reason: reason, Why: "A sentence.", Showed: effects.Showed{Records: records}}
	}
	found := lookup.Judged{Hit: lookup.Hit{Reference: "tr_1", Match: true}}
	booked := found
	booked.Amount = "40.00"
	v := effects.LooksView{Looks: []effects.LookView{
		look(6, lookup.NotYet), look(5, lookup.NotFinal, booked), look(4, lookup.NotFinal, found), look(3, lookup.NotYet), look(2, lookup.NotYet), look(1, lookup.NotYet),
	}}
	lines := fromLooks(v, clock{time.UTC, at})
	if len(lines) != 4 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	if l := lines[0]; l.title != "Asked the downstream 3 times: not found yet" || l.detail != "The last at 23:33:00 UTC." || !l.at.Equal(at.Add(time.Minute)) || l.fold.ID != "look-3" {
		t.Errorf("%+v", l)
	}
	if lines[1].title != "Asked the downstream: found, not final" || lines[3].title != "Asked the downstream: not found yet" {
		t.Errorf("%q, %q", lines[1].title, lines[3].title)
	}
}

// A record that later looks do not show stays among what was found, and one that a person
// said is not ours does not speak against a no.
func TestRecordsAreThoseOfAllLooks(t *testing.T) {
	t.Parallel()
	hit := func(ref string, final bool) lookup.Judged {
		return lookup.Judged{Hit: lookup.Hit{Reference: ref, Match: true, Final: final}}
	}
	v := effects.LooksView{NotOurs: lookups.Denials{"tr_3": time.Now()}, Looks: []effects.LookView{
		{Reason: lookup.CouldNot},
		{Reason: lookup.Vanished, Showed: effects.Showed{Records: []lookup.Judged{hit("tr_3", true)}}},
		{Reason: lookup.Multiple, Showed: effects.Showed{Records: []lookup.Judged{hit("tr_1", true), hit("tr_3", false), hit("", false)}}},
		{Reason: lookup.NotFinal, Showed: effects.Showed{Records: []lookup.Judged{hit("tr_1", false)}}},
	}}
	var got []string
	for _, r := range v.Records() {
		got = append(got, fmt.Sprint(r.Reference, " final:", r.Final, " gone:", r.Gone, " speaks:", r.Speaks()))
	}
	want := []string{"tr_3 final:true gone:false speaks:false", "tr_1 final:true gone:true speaks:true", " final:false gone:true speaks:true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if l := v.Last(); l == nil || l.Reason != lookup.Vanished {
		t.Errorf("%+v", l)
	}
}
