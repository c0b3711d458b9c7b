package lookup_test

import (
	"slices"
	"testing"
	"time"

	"quittance/reconcile/lookup"
)

// The times of all tests here: one attempt, sent by noon, that may land until 12:10.
var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	begun  = noon.Add(-3 * time.Minute)
	moment = noon.Add(10 * time.Minute)
)

const (
	lands   = 10 * time.Minute
	visible = 5 * time.Minute
)

func ptr[T any](v T) *T { return &v }

// question is one that time has done everything for.
func question() lookup.Question {
	return lookup.Question{
		Effect: "e", BusinessKey: "K", VendorKey: "qt_k", LandsWithin: ptr(time.Duration(lands)),
		Attempts: []lookup.Attempt{{Begun: begun, Deadline: noon}},
		AskedAt:  noon.Add(time.Hour),
		Owned:    map[string]string{"others": "e2", "refused": "", "": "e3"}, // a record without a name is nobody's
	}
}

func terms() lookup.Terms {
	return lookup.Terms{AbsenceIsProof: true, VisibleAfter: ptr(time.Duration(visible)), KeptFor: ptr(90 * 24 * time.Hour), World: "live", Digest: "d"}
}

func nothing() lookup.Seen {
	return lookup.Seen{Complete: true, Canary: true, World: "live"}
}

// good is an earlier read that would have shown it.
func good(asked time.Time) lookup.Read {
	return lookup.Read{AskedAt: asked, Source: "d", Whole: true}
}

func hit() lookup.Hit {
	return lookup.Hit{Reference: "tr_1", Match: true, Final: true, Result: []byte(`{}`)}
}

// everyHit is the cross product of what can be said of one record.
func everyHit(references ...string) (list []lookup.Hit) {
	for bits := range 1 << 5 {
		for _, reference := range references {
			is := func(i int) bool { return bits&(1<<i) != 0 }
			list = append(list, lookup.Hit{
				Reference: reference, Match: is(0), Final: is(1), Ours: is(2), Possible: is(3), Never: is(4),
			})
		}
	}
	return list
}

// TestTakenNeedsAMatch holds the verdict taken against the words of lookups.md, over every
// combination of what one and two records can be.
func TestTakenNeedsAMatch(t *testing.T) {
	t.Parallel()
	free := func(h lookup.Hit) bool { return h.Reference != "others" && h.Reference != "refused" }
	counts := func(h lookup.Hit) bool { return free(h) && !h.Possible && !h.Never }
	taken := 0
	second := append([]lookup.Hit{{}}, everyHit("tr_2", "", "others")...) // the first stands for none
	for _, h := range everyHit("tr_1", "", "others", "refused") {
		for i, other := range second {
			for flags := range 1 << 5 {
				is := func(b int) bool { return flags&(1<<b) != 0 }
				q, s := question(), nothing()
				q.Shared, q.Unreferenced = is(0), is(1)
				s.Complete, s.World = !is(2), map[bool]string{true: "sandbox", false: "live"}[is(3)]
				if is(4) {
					s.Problem = lookup.PageFailed
				}
				s.Hits = []lookup.Hit{h}
				if i > 0 {
					if other.Reference == h.Reference && other.Reference != "" {
						continue // one record seen twice: TestOneRecordSeenTwice
					}
					s.Hits = append(s.Hits, other)
				}
				alone := i == 0 || !counts(other)
				want := counts(h) && alone && h.Match && h.Final && h.Reference != "" &&
					(h.Ours || !q.Shared && !q.Unreferenced) && s.Complete && s.World == "live" && s.Problem == lookup.NoProblem
				if i > 0 && !want { // or the other one is it
					want = counts(other) && !counts(h) && other.Match && other.Final && other.Reference != "" &&
						(other.Ours || !q.Shared && !q.Unreferenced) && s.Complete && s.World == "live" && s.Problem == lookup.NoProblem
				}
				a := lookup.Judge(q, terms(), s, nil)
				if (a.Verdict == lookup.Taken) != want {
					t.Fatalf("%+v and %+v, flags %05b: %s (%s), want taken %v", h, other, flags, a.Verdict, a.Reason, want)
				}
				if i > 0 && counts(h) && counts(other) && s.Complete && s.World == "live" && s.Problem == lookup.NoProblem && a.Reason != lookup.Multiple {
					t.Fatalf("%+v and %+v: %s, want multiple", h, other, a.Reason)
				}
				if want {
					taken++
					if a.Reference != "tr_1" && a.Reference != "tr_2" || a.Free != 1 {
						t.Fatalf("taken by %q, free %d", a.Reference, a.Free)
					}
				} else if a.Reference != "" || a.Result != nil {
					t.Fatalf("not taken, and yet there is reference %q", a.Reference)
				}
				if a.Verdict == lookup.NotTaken {
					// No second read was given: only a cancelled record of ours is proof.
					dead := func(h lookup.Hit) bool { return free(h) && h.Never && h.Ours && !h.Possible }
					blocked := counts(h) || free(h) && h.Possible || i > 0 && (counts(other) || free(other) && other.Possible)
					if blocked || !(dead(h) || i > 0 && dead(other)) || s.Problem != lookup.NoProblem || !s.Complete || s.World != "live" {
						t.Fatalf("%+v and %+v, flags %05b: not taken", h, other, flags)
					}
				}
			}
		}
	}
	if taken == 0 {
		t.Error("nothing was ever taken: the test tests nothing")
	}
}

// TestNotTakenNeedsEverything holds proven absence against the words of lookups.md, over
// every combination of what is declared, seen and remembered.
func TestNotTakenNeedsEverything(t *testing.T) {
	t.Parallel()
	asked := []time.Time{noon, moment.Add(-time.Nanosecond), moment, moment.Add(visible - time.Nanosecond), moment.Add(visible), moment.Add(time.Hour)}
	kept := []*time.Duration{nil, ptr(90 * 24 * time.Hour), ptr(16 * time.Minute)}
	type memory struct {
		before time.Duration // ago
		change func(*lookup.Read)
		counts bool
	}
	earlier := []memory{
		{30 * time.Second, func(*lookup.Read) {}, true},
		{30*time.Second - 1, func(*lookup.Read) {}, false},
		{0, func(*lookup.Read) {}, false},
		{-time.Minute, func(*lookup.Read) {}, false},
		{40 * time.Second, func(r *lookup.Read) { r.Whole = false }, false},
		{40 * time.Second, func(r *lookup.Read) { r.Source = "another" }, false},
		{40 * time.Second, func(r *lookup.Read) { r.AsOf = noon }, false},
		{40 * time.Second, func(r *lookup.Read) { r.Saw = []string{"tr_1"} }, false},
		{40 * time.Second, func(r *lookup.Read) { r.Saw = []string{""} }, false},
		{40 * time.Second, nil, false}, // none
	}
	proven := 0
	for flags := range 1 << 8 {
		is := func(b int) bool { return flags&(1<<b) != 0 }
		for _, at := range asked {
			for _, k := range kept {
				for i, m := range earlier {
					q, te, s := question(), terms(), nothing()
					q.AskedAt, te.KeptFor = at, k
					te.AbsenceIsProof, s.Complete, s.Canary = !is(0), !is(1), !is(2)
					if is(3) {
						s.World = "sandbox"
					}
					if is(4) {
						te.VisibleAfter = nil
					}
					if is(5) {
						q.LandsWithin = nil
					}
					if is(6) {
						s.Problem = lookup.TimedOut
					}
					if is(7) {
						q.Attempts = nil
					}
					var reads []lookup.Read
					if m.change != nil {
						r := good(at.Add(-m.before))
						m.change(&r)
						reads = append(reads, r)
					}
					fresh := func(asked time.Time) bool { return !asked.Add(-visible).Before(moment) }
					first := at.Add(-m.before)
					young := k != nil && at.Before(begun.Add(*k))
					want := !is(0) && !is(1) && !is(2) && !is(3) && !is(4) && !is(5) && !is(6) && !is(7) &&
						young && fresh(at) && m.counts && fresh(first)
					a := lookup.Judge(q, te, s, reads)
					if (a.Verdict == lookup.NotTaken) != want {
						t.Fatalf("flags %08b, asked %s, kept %v, earlier %d: %s (%s)", flags, at.Format(time.TimeOnly), k, i, a.Verdict, a.Reason)
					}
					if want {
						proven++
					} else if a.Verdict != lookup.Inconclusive {
						t.Fatalf("flags %08b: %s", flags, a.Verdict)
					}
					allMet := !slices.ContainsFunc(a.Conditions, func(c lookup.Condition) bool { return !c.Met })
					if !is(7) && allMet != want {
						t.Fatalf("flags %08b, asked %s, earlier %d: the conditions say %v, the verdict %v", flags, at.Format(time.TimeOnly), i, allMet, want)
					}
				}
			}
		}
	}
	if proven == 0 {
		t.Error("nothing was ever proven: the test tests nothing")
	}
}

// The canary is asked for exactly where absence may be proven.
func TestWhatIsAbsent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hits []lookup.Hit
		want bool
	}{
		{nil, true},
		{[]lookup.Hit{{Reference: "others"}, {Reference: "refused"}, {Reference: "tr_1", Never: true}}, true},
		{[]lookup.Hit{{Reference: "others"}, {Reference: "tr_1"}}, false},
		{[]lookup.Hit{{Reference: "tr_1", Possible: true}}, false},
		{[]lookup.Hit{{}}, false},
	} {
		q := question()
		if got := q.Absent(&lookup.Seen{Hits: c.hits, Complete: true}); got != c.want {
			t.Errorf("%+v: %v", c.hits, got)
		}
		if q.Absent(&lookup.Seen{Hits: c.hits}) {
			t.Errorf("%+v, half read", c.hits)
		}
	}
}

// The zero value of everything, and of each part, proves nothing.
func TestNothingIsInconclusive(t *testing.T) {
	t.Parallel()
	never, found := question(), nothing() // asked at no time
	never.AskedAt, found.Hits = time.Time{}, []lookup.Hit{hit()}
	for i, a := range []lookup.Answer{
		{},
		lookup.Judge(lookup.Question{}, lookup.Terms{}, lookup.Seen{}, nil),
		lookup.Judge(never, terms(), found, nil),
		lookup.Judge(question(), terms(), lookup.Seen{}, []lookup.Read{good(noon.Add(30 * time.Minute))}),
		lookup.Judge(question(), lookup.Terms{}, nothing(), []lookup.Read{good(noon.Add(30 * time.Minute))}),
		lookup.Judge(lookup.Question{}, terms(), nothing(), []lookup.Read{good(noon.Add(30 * time.Minute))}),
	} {
		if a.Verdict != "" {
			t.Errorf("%d: %q", i, a.Verdict)
		}
	}
}

func TestOneRecordSeenTwiceIsOneAndProvesTheLess(t *testing.T) {
	t.Parallel()
	again := hit()
	s := nothing()
	s.Hits = []lookup.Hit{hit(), again}
	if a := lookup.Judge(question(), terms(), s, nil); a.Verdict != lookup.Taken || a.Free != 1 {
		t.Errorf("%s, %d free", a.Verdict, a.Free)
	}
	again.Final = false
	for _, hits := range [][]lookup.Hit{{hit(), again}, {again, hit()}} {
		s.Hits = hits
		if a := lookup.Judge(question(), terms(), s, nil); a.Reason != lookup.NotFinal {
			t.Errorf("%s", a.Reason)
		}
	}
	dead := hit()
	dead.Never, dead.Ours = true, true
	s.Hits = []lookup.Hit{dead, hit()}
	if a := lookup.Judge(question(), terms(), s, nil); a.Verdict == lookup.NotTaken || a.Free != 1 {
		t.Errorf("a record that is cancelled on one page and alive on the other: %s", a.Verdict)
	}
}

// A search for what may be ours, such as by amount, also shows what our key finds.
func TestARecordFoundByKeyIsNotMerelyPossible(t *testing.T) {
	t.Parallel()
	moving, dead := hit(), lookup.Hit{Reference: "tr_1", Never: true, Ours: true}
	moving.Final = false
	for want, found := range map[lookup.Reason]lookup.Hit{lookup.Matched: hit(), lookup.NotFinal: moving, lookup.NeverAgain: dead} {
		possible, another := lookup.Hit{Reference: "tr_1", Possible: true}, lookup.Hit{Reference: "tr_2", Possible: true}
		for _, hits := range [][]lookup.Hit{{found, possible}, {possible, found}} {
			s := nothing()
			s.Hits = hits
			if a := lookup.Judge(question(), terms(), s, nil); a.Reason != want || len(a.Hits) != 1 {
				t.Errorf("%+v: %s, %d records", hits, a.Reason, len(a.Hits))
			}
			s.Hits = append(hits, another)
			if a := lookup.Judge(question(), terms(), s, nil); a.Verdict == lookup.NotTaken {
				t.Errorf("%+v: another record that may be ours is overlooked", s.Hits)
			}
		}
	}
}

func TestAStateThatCanNeverChangeBackNeedsNoWaiting(t *testing.T) {
	t.Parallel()
	q := question()
	q.AskedAt, q.LandsWithin = begun.Add(time.Second), nil
	dead := lookup.Hit{Reference: "pi_1", Never: true, Ours: true}
	s := nothing()
	s.Canary, s.Hits = false, []lookup.Hit{dead}
	if a := lookup.Judge(q, lookup.Terms{}, s, nil); a.Verdict != lookup.NotTaken || a.Reason != lookup.NeverAgain {
		t.Errorf("cancelled, ours: %s (%s)", a.Verdict, a.Reason)
	}
	s.Hits[0].Ours = false // another request of ours may still become another record
	if a := lookup.Judge(q, lookup.Terms{}, s, nil); a.Verdict != lookup.Inconclusive {
		t.Errorf("cancelled, not ours: %s", a.Verdict)
	}
	s.Hits, s.Never = nil, "it expired unused"
	if a := lookup.Judge(q, lookup.Terms{}, s, nil); a.Verdict != lookup.NotTaken {
		t.Errorf("impossible: %s", a.Verdict)
	}
	if a := lookup.Judge(q, lookup.Terms{}, s, []lookup.Read{{AskedAt: begun, Saw: []string{"pi_2"}}}); a.Reason != lookup.Vanished {
		t.Errorf("impossible, and yet seen before: %s", a.Reason)
	}
	// Seen in a block that could still be reorganised away, and was: a part of what it is
	// that the source says "never".
	passing := nothing()
	passing.Hits = []lookup.Hit{{Reference: "pi_2", Ours: true, Match: true, Passing: true}}
	before := lookup.Judge(q, terms(), passing, nil)
	if a := lookup.Judge(q, lookup.Terms{}, s, []lookup.Read{before.Read}); before.Reason != lookup.NotFinal || a.Verdict != lookup.NotTaken {
		t.Errorf("impossible, and seen before in a block that was undone: %s", a.Reason)
	}
	passing.Hits = append(passing.Hits, lookup.Hit{Reference: "pi_3", Ours: true})
	before = lookup.Judge(q, terms(), passing, nil)
	if a := lookup.Judge(q, lookup.Terms{}, s, []lookup.Read{before.Read}); a.Reason != lookup.Vanished {
		t.Errorf("impossible, and something else was seen before: %s", a.Reason)
	}
	// Absence alone is not such a word: what was undone may come back.
	if a := lookup.Judge(q, lookup.Terms{}, nothing(), []lookup.Read{{AskedAt: begun, Saw: []string{"pi_2"}, Passing: []string{"pi_2"}}}); a.Reason != lookup.Vanished {
		t.Errorf("absent, and undone before: %s", a.Reason)
	}
	s.Complete = false
	if a := lookup.Judge(q, lookup.Terms{}, s, nil); a.Verdict != lookup.Inconclusive {
		t.Errorf("impossible, from half a read: %s", a.Verdict)
	}
}

// A log gap may hide attempts: when they began is not on record, so that how long records
// are kept says nothing. A hit proves as ever.
func TestALogGap(t *testing.T) {
	t.Parallel()
	q := question()
	q.Attempts = []lookup.Attempt{{Deadline: noon}}
	reads := []lookup.Read{good(noon.Add(30 * time.Minute))}
	if a := lookup.Judge(q, terms(), nothing(), reads); a.Reason != lookup.NotYet || !a.Earliest.IsZero() {
		t.Errorf("nothing found: %s, earliest %s", a.Reason, a.Earliest)
	}
	s := nothing()
	s.Hits = []lookup.Hit{hit()}
	if a := lookup.Judge(q, terms(), s, reads); a.Verdict != lookup.Taken {
		t.Errorf("found: %s", a.Reason)
	}
}

// A new attempt moves the moment: what was read before it counts no more.
func TestALaterAttemptUndoesEarlierReads(t *testing.T) {
	t.Parallel()
	q := question()
	reads := []lookup.Read{good(noon.Add(30 * time.Minute))}
	if a := lookup.Judge(q, terms(), nothing(), reads); a.Verdict != lookup.NotTaken {
		t.Fatalf("with one attempt: %s", a.Reason)
	}
	q.Attempts = append(q.Attempts, lookup.Attempt{Begun: noon.Add(25 * time.Minute), Deadline: noon.Add(28 * time.Minute)})
	if a := lookup.Judge(q, terms(), nothing(), reads); a.Reason != lookup.NotYet {
		t.Errorf("with two: %s", a.Reason)
	}
}

func TestThePageIsToldWhenItCanBeProven(t *testing.T) {
	t.Parallel()
	q := question()
	q.AskedAt = noon.Add(time.Minute)
	a := lookup.Judge(q, terms(), nothing(), nil)
	if want := moment.Add(visible + lookup.Apart); !a.Earliest.Equal(want) {
		t.Errorf("before the moment: %s, want %s", a.Earliest, want)
	}
	q.AskedAt = moment.Add(visible)
	a = lookup.Judge(q, terms(), nothing(), nil)
	if want := q.AskedAt.Add(lookup.Apart); !a.Earliest.Equal(want) {
		t.Errorf("after the first read that counts: %s, want %s", a.Earliest, want)
	}
	// Exactly then it is proven, and not a moment before.
	first := a.Read
	for _, at := range []time.Time{a.Earliest.Add(-1), a.Earliest} {
		q.AskedAt = at
		got := lookup.Judge(q, terms(), nothing(), []lookup.Read{first})
		if (got.Verdict == lookup.NotTaken) != at.Equal(a.Earliest) {
			t.Errorf("asked at %s: %s", at, got.Verdict)
		}
	}
	te := terms()
	te.VisibleAfter = nil
	if a := lookup.Judge(question(), te, nothing(), nil); !a.Earliest.IsZero() {
		t.Errorf("never, and yet %s", a.Earliest)
	}
	te = terms()
	te.KeptFor = ptr(15 * time.Minute) // forgotten before it can be proven
	q.AskedAt = noon
	if a := lookup.Judge(q, te, nothing(), nil); !a.Earliest.IsZero() {
		t.Errorf("forgotten by then, and yet %s", a.Earliest)
	}
}

// What was found stands in the way of "not taken" by its name, final or not, until a person
// says of it that it is not ours.
func TestBC107_WhatWasFoundStopsNotTaken(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]lookup.Hit{
		"final": {Reference: "tr_552", Match: true, Final: true}, "moving": {Reference: "tr_552", Match: true},
		"another amount": {Reference: "tr_552", Final: true}, "possible": {Reference: "tr_552", Possible: true},
	} {
		q, s := question(), nothing()
		s.Hits = []lookup.Hit{h, {Reference: "others", Match: true, Final: true}, {Reference: "tr_9", Never: true}}
		if stopping := lookup.Judge(q, terms(), s, nil).Stopping(); len(stopping) != 1 || stopping[0].Reference != "tr_552" {
			t.Errorf("%s: stopped by %+v", name, stopping)
		}
		q.Owned["tr_552"] = ""
		if stopping := lookup.Judge(q, terms(), s, nil).Stopping(); len(stopping) != 0 {
			t.Errorf("%s, named as not ours: stopped by %+v", name, stopping)
		}
	}
}

// What still moves is said, and proves nothing either way.
func TestBC111_WhatStillMovesIsSaid(t *testing.T) {
	t.Parallel()
	s := nothing()
	s.Hits = []lookup.Hit{{Reference: "tr_5", Match: true, State: "processing"}}
	a := lookup.Judge(question(), terms(), s, []lookup.Read{good(noon.Add(30 * time.Minute))})
	if a.Verdict != lookup.Inconclusive || a.Reason != lookup.NotFinal || a.Free != 1 || a.Hits[0].State != "processing" {
		t.Errorf("%q %s, %+v", a.Verdict, a.Reason, a.Hits)
	}
}

// A read counts as negative only by what it saw itself, whatever is known since.
func TestAReadThatWasNotNegativeNeverBecomesOne(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*lookup.Seen){
		"no canary": func(s *lookup.Seen) { s.Canary = false }, "half": func(s *lookup.Seen) { s.Complete = false },
		"sandbox": func(s *lookup.Seen) { s.World = "sandbox" }, "failed": func(s *lookup.Seen) { s.Problem = lookup.TimedOut },
		"still moving": func(s *lookup.Seen) { s.Hits = []lookup.Hit{{Reference: "tr_5", Match: true}} },
	} {
		q, s := question(), nothing()
		spoil(&s)
		first := lookup.Judge(q, terms(), s, nil).Read
		q.AskedAt = q.AskedAt.Add(time.Minute)
		now := nothing()
		now.Hits = []lookup.Hit{{Reference: "tr_5", Never: true}} // cancelled by now, and not by our key
		if a := lookup.Judge(q, terms(), now, []lookup.Read{first}); a.Reason != lookup.NotYet {
			t.Errorf("%s: %s", name, a.Reason)
		}
	}
}

// An effect that was never sent is not looked up, whatever is found.
func TestWithoutAnAttemptNothingIsProven(t *testing.T) {
	t.Parallel()
	q, s := question(), nothing()
	q.Attempts, s.Hits = nil, []lookup.Hit{hit()}
	if a := lookup.Judge(q, terms(), s, nil); a.Verdict != lookup.Inconclusive || a.Reason != lookup.NoAttempt {
		t.Errorf("%q %s", a.Verdict, a.Reason)
	}
}
