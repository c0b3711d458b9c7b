package effects

import (
	"slices"
	"testing"

	store "quittance/ledger/effects"
)

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
		if p.e.Kind == KIntent {
			// It has begun already, elsewhere: what was not allowed is an incident.
			allowed := p.f.State == None || anyOf(p.f.State, InFlight, Interrupted) && (p.e.SameAttempt || p.e.Permitted)
			switch {
			case allowed == (p.m.Contradiction == BegunUnasked):
				return "an attempt that nothing let run is no incident, or one that something did is"
			case to.State == Cleared || p.m.Reply != ReplyNone:
				return "a line of a file permits something"
			case p.m.Attempt && to.Attempts != p.f.Attempts+1:
				return "the attempt is not counted"
			}
			return ""
		}
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
		case possible(p.f, p.e) && p.e.Kind == KLookup && p.f.Attempts == 0 && !p.f.Gap && p.f.State != None && (to != p.f || p.m.Contradiction != ""):
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
		case to.State == p.f.State && p.f.Used && p.m.Refused && p.m.Contradiction != "":
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
		evidence := p.e.Kind == KFinish || p.e.Kind == KLookup || p.e.Kind == KPerson || p.e.Kind == KIntent
		switch {
		case p.m.Contradiction == "":
			return ""
		case !evidence:
			return "a contradiction without evidence"
		case to == p.f, p.f.State == Cleared && to.State == Interrupted:
			return "" // recorded; or the permission is withdrawn as well
		case p.e.Kind == KIntent && to.State == Interrupted && !p.f.Used:
			return "" // what is open is unknown from now on
		case to.State == Taken && (p.e.TwoClaim || p.e.TwoObjects) && anyOf(p.f.State, InFlight, Interrupted, Cleared):
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
		case p.m.Row == "Z" && (p.after() != p.f || p.m.Contradiction != "" || p.m.Kept != evidence || p.m.Refused == evidence):
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
