package effects

import (
	"fmt"
	"regexp"
	"testing"

	store "quittance/ledger/effects"
)

// The tests of the table look at the full cross product: each row that may exist, and the
// effect that is not recorded yet, times each event with each answer to what the
// guards ask about it.

var bools = []bool{false, true}

// allFacts are the rows that Valid accepts, and the effect without one.
func allFacts() []Facts {
	list := []Facts{{}}
	everyShape(func(f Facts) {
		if Valid(f) {
			list = append(list, f)
		}
	})
	return list
}

var (
	everyWhy = []Why{WhyNone, WhyDeadline, WhyLease, WhyUnknown, WhyReference, WhyLogGap, WhyKeptFinish, WhyHit, WhyContradicted,
		WhyKeyLife, WhyObserved, WhyOverlap, WhyNoBusinessKey, WhyUndone, WhyExpired, WhyNotTaken, WhyAllowed, WhySameKey}
	everyBy = []By{ByNobody, ByAgent, ByLateAgent, ByLookup, ByVendorKey, ByPerson, ByRunClosed}
)

// everyShape calls f for every combination of columns, possible or not. More than
// two attempts are as good as two.
func everyShape(f func(Facts)) {
	for _, state := range store.States {
		for _, why := range everyWhy {
			for _, by := range everyBy {
				for _, from := range append([]State{None}, store.States...) {
					for n := range 3 * 16 {
						f(Facts{State: state, Why: why, By: by, From: from, Attempts: n / 16,
							Released: n&1 != 0, Used: n&2 != 0, Gap: n&4 != 0, SameAs: n&8 != 0})
					}
				}
			}
		}
	}
}

// allEvents are all events of every kind.
func allEvents() []Event {
	var list []Event
	bits := func(n int, f func(bit func(i int) bool)) {
		for v := range 1 << n {
			f(func(i int) bool { return v>>i&1 != 0 })
		}
	}
	bits(8, func(is func(int) bool) {
		list = append(list, Event{Kind: KBegin, Observed: is(7), LogGap: is(0), Kept: is(1), NoKey: is(2), ClaimTaken: is(3), SameLease: is(4), SameAttempt: is(5), KeyDead: is(6)})
	})
	bits(2, func(is func(int) bool) {
		list = append(list, Event{Kind: KIntent, SameAttempt: is(0), Permitted: is(1)})
	})
	for _, word := range []Word{WordTaken, WordFailed, WordUnknown} {
		bits(9, func(is func(int) bool) {
			list = append(list, Event{Kind: KFinish, Word: word, Refusal: is(0), Earlier: is(1), Stray: is(2), OneOf: is(3), RefOwned: is(4), OtherRef: is(5), TwoClaim: is(6), ClaimLost: is(7), TwoObjects: is(8)})
		})
	}
	for _, found := range []Found{FoundInconclusive, FoundTaken, FoundNotTaken, FoundReversed} {
		bits(7, func(is func(int) bool) {
			list = append(list, Event{Kind: KLookup, Found: found, Hit: is(0), Many: is(1), AskedEarly: is(2), OtherRef: is(3), TwoClaim: is(4), ClaimLost: is(5), TwoObjects: is(6)})
		})
	}
	for _, verdict := range []Verdict{VerdictTaken, VerdictNotTaken, VerdictStop, VerdictAllow, VerdictSameAs, VerdictAcknowledge, VerdictSendBack} {
		bits(4, func(is func(int) bool) {
			list = append(list, Event{Kind: KPerson, Verdict: verdict, OverlapsClosed: is(0), OtherTaken: is(1), TwoClaim: is(2), TwoObjects: is(3)})
		})
	}
	for _, a := range bools {
		list = append(list, Event{Kind: KTime, Lease: a}, Event{Kind: KUndo, ClaimLost: a}, Event{Kind: KReopen, ClaimLost: a},
			Event{Kind: KSameKey, KeyDead: a}, Event{Kind: KSameKey, KeyDead: a, Hit: true})
	}
	for _, kind := range []Kind{KExpire, KRelease, KClose, KGap, KWithdraw} {
		list = append(list, Event{Kind: kind})
	}
	return list
}

// possible tells whether an event can happen to an effect that looks like this.
func possible(f Facts, e Event) bool {
	switch e.Kind {
	case KFinish:
		last := !e.Earlier && !e.Stray
		switch {
		case f.State == None:
			return true
		case e.Earlier && e.Stray, e.OneOf && !e.Earlier:
			return false
		}
		// After a log gap no number tells which attempt speaks.
		return !(last || e.Earlier) || f.Attempts >= 1 && !f.Gap
	case KLookup:
		proven := e.Found == FoundTaken || e.Found == FoundReversed
		switch {
		case f.State == None, e.AskedEarly && f.Attempts == 0:
			return false
		case e.Found == FoundNotTaken && (e.Hit || e.Many || e.OtherRef), proven && !e.Hit:
			return false // absence has no hit, and what was found is one
		case e.Many && (!e.Hit || proven), e.OtherRef && !e.Hit:
			return false // several hits prove nothing
		}
	case KIntent:
		// What is handed out is on record; a line of the file speaks of an effect in it.
		return (f.State != None || !e.Permitted && !e.SameAttempt) && (!e.SameAttempt || f.Attempts >= 1)
	case KBegin:
		return f.State == InFlight || !e.SameLease && !e.SameAttempt
	}
	return f.State != None || e.Kind == KBegin
}

// pair is one element of the cross product with what the table says to it.
type pair struct {
	f Facts
	e Event
	m Move
}

func (p pair) after() Facts { return After(p.f, p.m) }

// String leaves out what is zero: a pair has forty fields.
func (p pair) String() string {
	zero := regexp.MustCompile(`\w+:(false|0)? `)
	return zero.ReplaceAllString(fmt.Sprintf("%+v \n  on %+v \n  by %+v ", p.f, p.e, p.m), "")
}

// eachPair calls check for every pair until ten have failed.
func eachPair(t *testing.T, onlyPossible bool, check func(p pair) (problem string)) {
	t.Helper()
	facts, events := allFacts(), allEvents()
	failed, seen := 0, 0
	for _, f := range facts {
		for _, e := range events {
			if onlyPossible && !possible(f, e) {
				continue
			}
			seen++
			p := pair{f, e, Next(f, e)}
			if problem := check(p); problem != "" {
				t.Errorf("%s: %v", problem, p)
				if failed++; failed == 10 {
					t.Fatal("and so on")
				}
			}
		}
	}
	if seen < 50_000 {
		t.Fatalf("only %d pairs were looked at", seen)
	}
}
