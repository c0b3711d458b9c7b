package effects

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	store "quittance/ledger/effects"
)

// Every test below looks at the full cross product: each row that may exist, and the
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
		WhyKeyLife, WhyOverlap, WhyNoBusinessKey, WhyUndone, WhyExpired, WhyNotTaken, WhyAllowed, WhySameKey}
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
	bits(7, func(is func(int) bool) {
		list = append(list, Event{Kind: KBegin, LogGap: is(0), Kept: is(1), NoKey: is(2), ClaimTaken: is(3), SameLease: is(4), SameAttempt: is(5), KeyDead: is(6)})
	})
	for _, word := range []Word{WordTaken, WordFailed, WordUnknown} {
		bits(8, func(is func(int) bool) {
			list = append(list, Event{Kind: KFinish, Word: word, Refusal: is(0), Earlier: is(1), Stray: is(2), OneOf: is(3), RefOwned: is(4), OtherRef: is(5), TwoClaim: is(6), ClaimLost: is(7)})
		})
	}
	for _, found := range []Found{FoundInconclusive, FoundTaken, FoundNotTaken, FoundReversed} {
		bits(6, func(is func(int) bool) {
			list = append(list, Event{Kind: KLookup, Found: found, Hit: is(0), Many: is(1), AskedEarly: is(2), OtherRef: is(3), TwoClaim: is(4), ClaimLost: is(5)})
		})
	}
	for _, verdict := range []Verdict{VerdictTaken, VerdictNotTaken, VerdictStop, VerdictAllow, VerdictSameAs, VerdictAcknowledge, VerdictSendBack} {
		bits(3, func(is func(int) bool) {
			list = append(list, Event{Kind: KPerson, Verdict: verdict, OverlapsClosed: is(0), OtherTaken: is(1), TwoClaim: is(2)})
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

func TestEveryMoveLeavesAValidRow(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		if to := p.after(); to != (Facts{}) && !Valid(to) {
			return "leaves a row that may not exist"
		}
		if p.f.State != None && p.m.To == None {
			return "an effect disappears"
		}
		return ""
	})
}

// The promise, in one test: a second attempt needs a permission, a permission needs
// a proof, the vendor's key or a person, and it is used up.
func TestNoAttemptWithoutPermission(t *testing.T) {
	t.Parallel()
	grants := map[string]Why{"K2": WhyNotTaken, "K10": WhySameKey, "P2": WhyNotTaken, "P4": WhyAllowed}
	eachPair(t, false, func(p pair) string {
		to := p.after()
		switch {
		case p.m.Attempt && !(p.f.State == None || p.f.State == Cleared && p.f.Released):
			return "an attempt begins without a permission that agents may see"
		case p.m.Attempt != (p.m.To == InFlight && p.f.State != InFlight):
			return "in flight without an attempt, or an attempt that is not in flight"
		case p.m.Attempt != (p.m.Reply == ReplyProceed):
			return "an agent is told to perform what was not begun, or is not told"
		case p.m.Attempt && to.Attempts != p.f.Attempts+1:
			return "the attempt is not counted"
		case to.State == Cleared && p.f.State != Cleared && grants[p.m.Row] != to.Why:
			return "a permission from nowhere"
		case to.State == Cleared && p.f.State == Cleared && (to.Why != p.f.Why || to.By != p.f.By):
			return "one permission becomes another"
		case to.State == Cleared && p.f.State != Cleared && p.f.State != Interrupted && p.f.State != Held:
			return "a permission for what is not unknown"
		}
		return ""
	})
}

// What an agent was told stays true: nothing that is used ever changes.
func TestUsedOutcomesNeverChange(t *testing.T) {
	t.Parallel()
	eachPair(t, false, func(p pair) string {
		if p.f.Used && p.after() != p.f {
			return "a used outcome changes"
		}
		if p.m.Use && !p.f.Used {
			switch {
			case p.e.Kind == KBegin && (p.m.Reply == ReplyReplay || p.m.Reply == ReplyCancelled):
			case p.e.Kind == KFinish && (p.m.By == ByAgent || p.m.By == ByLateAgent):
			case p.e.Kind == KClose:
			default:
				return "used by what does not use it"
			}
		}
		return ""
	})
}

func TestAgentsSeeOnlyWhatIsReleased(t *testing.T) {
	t.Parallel()
	eachPair(t, false, func(p pair) string {
		told := p.m.Reply == ReplyReplay || p.m.Reply == ReplyCancelled
		switch {
		case told && !(p.f.Released && p.m.Use):
			return "an outcome is told before its release, or is not used by telling it"
		case told && p.m.To != p.f.State:
			return "telling an outcome changes it"
		case p.m.Reply != ReplyNone && p.e.Kind != KBegin, p.e.Kind == KBegin && p.m.Reply == ReplyNone:
			return "only a begin is answered, and each is"
		case p.m.Release && !p.f.Released && p.m.By == ByPerson && p.e.Kind != KRelease:
			return "a person's decision becomes visible before its time"
		}
		return ""
	})
}

// Who may do what: only a person, or the end of a run, cancels; evidence of presence
// never makes a not-taken, and evidence of absence only where it is a proof.
func TestWhoDecidesWhat(t *testing.T) {
	t.Parallel()
	eachPair(t, false, func(p pair) string {
		to := p.after()
		entered := to.State != p.f.State
		switch {
		case entered && to.State == Cancelled && !(p.e.Kind == KPerson && to.By == ByPerson || p.e.Kind == KClose && to.By == ByRunClosed):
			return "cancelled by somebody else"
		case entered && to.State == Failed && !(p.e.Kind == KFinish && !p.e.Earlier && !p.e.Stray):
			return "failed without the word of the last attempt"
		case entered && to.State == Taken && p.e.Kind == KFinish && (p.e.Earlier || p.e.Stray || p.e.RefOwned):
			return "taken by the word of another attempt, or by a record that proves another effect"
		case entered && to.State == Taken && p.e.Kind != KFinish && p.e.Kind != KLookup && p.e.Kind != KPerson:
			return "taken without evidence"
		case possible(p.f, p.e) && p.e.Kind == KLookup && p.f.Attempts == 0 && !p.f.Gap && p.f.State != None && (to != p.f || p.m.Contradiction):
			return "a look-up decides what was never attempted"
		case entered && to.State == Cleared && p.e.Kind == KLookup && (p.e.Found != FoundNotTaken || p.e.AskedEarly):
			return "not taken without a proof of absence"
		case p.f.State == InFlight && p.e.Kind == KPerson && !p.m.Refused:
			return "a person overrules an attempt in flight"
		}
		return ""
	})
}

// Who closed an effect is told apart for ever: it is set where it is decided and
// nowhere else.
func TestByIsWhoDecided(t *testing.T) {
	t.Parallel()
	by := map[Kind][]By{KFinish: {ByAgent, ByLateAgent}, KLookup: {ByLookup}, KSameKey: {ByVendorKey}, KPerson: {ByPerson}, KClose: {ByRunClosed}}
	eachPair(t, false, func(p pair) string {
		switch to := p.after(); {
		case to.State == p.f.State && to.By != p.f.By:
			return "the decider changes while the state stays"
		case to.State != p.f.State && to.By != ByNobody && !slices.Contains(by[p.e.Kind], to.By):
			return "closed in somebody else's name"
		case to.State == p.f.State && p.f.Used && p.m.Refused && p.m.Contradiction:
			return "refused and recorded at once"
		}
		return ""
	})
}

// A contradiction is an incident, never an overwrite: what is closed stays, and only
// what nobody has used, or has not been closed yet, may move with it.
func TestContradictionsOverwriteNothing(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		to := p.after()
		evidence := p.e.Kind == KFinish || p.e.Kind == KLookup || p.e.Kind == KPerson
		switch {
		case !p.m.Contradiction:
			return ""
		case !evidence:
			return "a contradiction without evidence"
		case to == p.f, p.f.State == Cleared && to.State == Interrupted:
			return "" // recorded; or the permission is withdrawn as well
		case to.State == Taken && p.e.TwoClaim && anyOf(p.f.State, InFlight, Interrupted, Cleared):
			return "" // a second one of the same business key
		case p.f.State == Cancelled && !p.f.Used && to.State == Held && p.e.TwoClaim && p.e.ClaimLost:
			return "" // a stop reopened while another was let through
		}
		return "a contradiction overwrites"
	})
}

// Whatever speaks for taken withdraws a permission for another attempt, unless a
// person allowed that attempt beside it.
func TestNoPermissionSurvivesEvidenceOfTaken(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		taken := p.e.Kind == KFinish && p.e.Word == WordTaken || p.e.Kind == KLookup && (p.e.Found == FoundTaken || p.e.Many) && (p.f.Attempts > 0 || p.f.Gap)
		if taken && p.f.State == Cleared && p.f.Why != WhyAllowed && p.m.To == Cleared {
			return "the permission stands"
		}
		return ""
	})
}

// Undo goes back to where a decision came from, never to a permission; a decision
// that an agent has seen, or made, has nothing to go back to.
func TestUndoGoesBack(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		if p.e.Kind != KUndo {
			return ""
		}
		may := anyOf(p.f.By, ByPerson, ByLookup) && !p.f.Used
		want := p.f.From
		if p.e.ClaimLost {
			want = Held
		}
		switch {
		case may == p.m.Refused:
			return "undo is allowed or refused wrongly"
		case may && p.m.To != want:
			return "undo goes elsewhere"
		}
		return ""
	})
}

// A gap of the log makes unknown whatever may have been done or permitted, and what
// is closed keeps its word.
func TestAGapMakesTheOpenUnknown(t *testing.T) {
	t.Parallel()
	for _, f := range allFacts() {
		m := Next(f, Event{Kind: KGap})
		if open := anyOf(f.State, InFlight, Held, Cleared); open != (m.To == Interrupted && f.State != Interrupted) {
			t.Errorf("%+v: %+v", f, m)
		}
	}
}

// An event that does not fit is refused, a finish or look-up is kept: never lost,
// and neither changes anything.
func TestWhatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	eachPair(t, false, func(p pair) string {
		evidence := p.e.Kind == KFinish || p.e.Kind == KLookup
		switch {
		case p.m.Row == "Z" && (p.after() != p.f || p.m.Contradiction || p.m.Kept != evidence || p.m.Refused == evidence):
			return "the catch-all does something"
		case p.m.Refused && (p.m.Row != "Z" || evidence):
			return "refused by a row"
		}
		return ""
	})
}

// A finish that is not the last attempt's is told so, whatever it set in motion.
func TestALateFenceIsToldSo(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		if p.e.Kind == KFinish && p.f.State != None && (p.e.Earlier || p.e.Stray) && !p.m.Kept {
			return "another attempt's finish is accepted"
		}
		return ""
	})
}

// A row that no pair reaches, because nothing is like that or because a row before
// it takes everything, is a mistake in the table.
func TestEveryRowIsReached(t *testing.T) {
	t.Parallel()
	reached := map[string]map[State]bool{}
	eachPair(t, true, func(p pair) string {
		if reached[p.m.Row] == nil {
			reached[p.m.Row] = map[State]bool{}
		}
		reached[p.m.Row][p.f.State] = true
		return ""
	})
	ids := map[string]bool{}
	for _, r := range table {
		if ids[r.id] {
			t.Errorf("there are two rows %s", r.id)
		}
		ids[r.id] = true
		for _, s := range r.from {
			// A row for every state may be decided by a narrower one before it.
			if !reached[r.id][s] && len(r.from) < len(store.States) {
				t.Errorf("nothing reaches row %s from %s", r.id, s)
			}
		}
		if len(reached[r.id]) == 0 {
			t.Errorf("nothing reaches row %s", r.id)
		}
	}
}

// No row may live beyond what the others let in: every valid row is reached from the
// effect that does not exist yet, so that Valid is no wider than the table.
func TestValidIsWhatTheTableReaches(t *testing.T) {
	t.Parallel()
	seen := map[Facts]bool{{}: true}
	todo := []Facts{{}}
	events := allEvents()
	add := func(f Facts) {
		f.Attempts = min(f.Attempts, 2)
		if !seen[f] {
			seen[f] = true
			todo = append(todo, f)
		}
	}
	for len(todo) > 0 {
		f := todo[0]
		todo = todo[1:]
		for _, e := range events {
			if !possible(f, e) {
				continue
			}
			m := Next(f, e)
			to := After(f, m)
			add(to)
			if m.Row == "P5" {
				to.SameAs = true
				add(to)
			}
		}
		if f.State == Interrupted && f.Attempts > 0 {
			f.Gap = true // found interrupted by an acknowledged gap
			add(f)
		}
	}
	missing := 0
	for _, f := range allFacts() {
		if !seen[f] && !f.Gap { // a gap also touches what is closed already
			t.Errorf("valid, but no way leads there: %+v", f)
			if missing++; missing == 20 {
				t.Fatal("and so on")
			}
		}
	}
	for f := range seen {
		if f != (Facts{}) && !Valid(f) {
			t.Errorf("reached, but not valid: %+v", f)
		}
	}
}

// A claim is never free under an effect that may still act.
func TestWhatMayStillActHoldsItsClaim(t *testing.T) {
	t.Parallel()
	for _, f := range allFacts() {
		for _, call := range bools {
			open := anyOf(f.State, InFlight, Interrupted, Held, Cleared) || f.State == Cancelled && !f.Released
			if open && !HoldsClaim(f, call) {
				t.Errorf("lets go of its claim: %+v", f)
			}
			if done := f.State == None || f.State == Failed || f.State == Cancelled && f.Released || f.State == Taken && call; done && HoldsClaim(f, call) {
				t.Errorf("keeps its claim for ever: %+v", f)
			}
		}
	}
}
