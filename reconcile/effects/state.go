// Package effects is the heart of Quittance: it decides what becomes of every
// side-effecting call. state.go is the state machine, pure; the rest reads the
// rows it speaks about, asks it, and writes what it says.
package effects

import store "quittance/ledger/effects"

// Facts are what the state machine needs to know of an effect's row.
type Facts struct {
	State    State
	Why      Why
	By       By
	From     State // what undo goes back to: Interrupted or Held; None if it was never decided
	Released bool
	Used     bool
	Attempts int  // tries begun; 0 is an effect that was never cleared to run
	Gap      bool // a log gap may hide attempts of it
	SameAs   bool // taken because it is the same as another
}

// Kind is what happened.
type Kind string

const (
	KBegin    Kind = "begin"
	KIntent   Kind = "intent" // a log file says that an attempt has begun; nobody was asked
	KFinish   Kind = "finish"
	KTime     Kind = "time"     // the attempt's deadline, or the run's lease, passed
	KExpire   Kind = "expire"   // an unused permission is 24 h old
	KLookup   Kind = "look-up"  // an answer of the downstream
	KSameKey  Kind = "same_key" // the vendor's key makes a repeat safe
	KPerson   Kind = "person"   // a verdict
	KUndo     Kind = "undo"     // a decision is taken back
	KReopen   Kind = "reopen"   // the look-up before release found a hit
	KRelease  Kind = "release"  // the hold is over
	KClose    Kind = "close"    // the run is closed
	KGap      Kind = "gap"      // a person acknowledged a log gap
	KWithdraw Kind = "withdraw" // the effect that an allow overlaps was reopened
)

// Kinds in the order above.
var Kinds = []Kind{KBegin, KIntent, KFinish, KTime, KExpire, KLookup, KSameKey, KPerson, KUndo, KReopen, KRelease, KClose, KGap, KWithdraw}

// Word is how a finish says it ended; every word but two is unknown.
type Word string

const (
	WordTaken   Word = "taken"
	WordFailed  Word = "failed"
	WordUnknown Word = "unknown"
)

// Found is a look-up's answer; inconclusive is the zero value.
type Found string

const (
	FoundInconclusive Found = ""
	FoundTaken        Found = "taken"
	FoundNotTaken     Found = "not_taken"
	FoundReversed     Found = "reversed" // it took effect and the money came back
)

// Event is what happened, with what the guards of the table ask about it. Fields
// that do not belong to Kind are ignored.
type Event struct {
	Kind Kind

	// Begin.
	LogGap      bool // an acknowledged gap is open
	Kept        bool // a finish came before the intent
	Observed    bool // the call was made while its tool was only observed; of a permission: since it was given
	NoKey       bool // the tool requires a business key and a field of it is missing
	ClaimTaken  bool // another effect holds the claim
	SameLease   bool
	SameAttempt bool // the same attempt_id as the attempt in flight
	KeyDead     bool // for same_key: the new deadline would outlive the vendor's key

	// Intent line. SameAttempt: of the attempt that a line of ours lets run.
	Permitted bool // a resolved line that is not ours lets it run once more

	// Finish.
	Word     Word
	Refusal  bool // the policy's refusal rule matches
	Earlier  bool // by an attempt before the last one
	Stray    bool // by no attempt that is on record, or one from before a log gap
	OneOf    bool // ... whose vendor key made both attempts one object
	RefOwned bool // its reference already proves another effect

	// Finish and look-up.
	OtherRef bool // names another reference than the one on record
	TwoClaim bool // another begun effect, neither failed nor cancelled, holds the claim

	// Whatever says that it was taken, and under which reference.
	TwoObjects bool // an earlier attempt was taken under another reference: no one object of a vendor key

	// Look-up.
	Found      Found
	Hit        bool // something was found: not final, a mismatch, a double, or a match
	Many       bool // more than one hit that no other effect owns
	AskedEarly bool // asked before the last attempt began

	// Time.
	Lease bool // the lease passed, not the deadline

	// Person.
	Verdict        Verdict
	OverlapsClosed bool // every overlapping effect that is not itself held is taken, failed, or cancelled and released
	OtherTaken     bool // same_as: the other effect is taken

	// Whatever lets an effect claim its business key again.
	ClaimLost bool // somebody else holds it now
}

// Reply is what an agent's begin is told.
type Reply string

const (
	ReplyNone      Reply = ""
	ReplyProceed   Reply = "proceed"
	ReplyAgain     Reply = "again" // the first answer, once more
	ReplyReplay    Reply = "replay"
	ReplyInFlight  Reply = "effect_in_flight"
	ReplyPaused    Reply = "run_paused"
	ReplyCancelled Reply = "effect_cancelled"
)

// Contradiction is how evidence disagrees with what is on record; "" where it does not.
type Contradiction string

const (
	EarlierAttemptTaken Contradiction = "earlier_attempt_taken"
	OtherReference      Contradiction = "other_reference"
	SeveralHits         Contradiction = "several_hits"
	UsedButNotTaken     Contradiction = "used_but_not_taken"
	FailedButTaken      Contradiction = "failed_but_taken"
	StoppedButTaken     Contradiction = "stopped_but_taken"
	HeldByAnother       Contradiction = "business_key_held_by_another"
	BegunUnasked        Contradiction = "begun_unasked" // an agent that keeps its own log began what nothing had cleared
)

// Move is what a row of the table says.
type Move struct {
	Row           string // id of the row, e.g. "F1"
	To            State
	Why           Why
	By            By
	From          State
	Reply         Reply
	Attempt       bool // a new attempt begins
	Gap           bool // attempts may exist that are not on record
	Use           bool // the outcome is used from now on
	Release       bool // visible to agents at once
	Contradiction Contradiction
	Refused       bool // the event does not fit this state; nothing changes
	Kept          bool // recorded as evidence; the caller is told that it came too late
}

// row is one line of the table. The first whose state and kind match and whose
// guard holds decides.
type row struct {
	id    string
	from  []State
	kind  Kind
	when  string // the guard in words, for docs/state_machine.md
	guard func(f Facts, e Event) bool
	to    string // in words
	also  string // in words
	move  func(f Facts, e Event) Move
}

// Next decides what an event does to an effect. It is total: a pair that no row
// names changes nothing and is kept as evidence.
func Next(f Facts, e Event) Move {
	for _, r := range table {
		if r.kind == e.Kind && contains(r.from, f.State) && (r.guard == nil || r.guard(f, e)) {
			m := r.move(f, e)
			m.Row = r.id
			return m
		}
	}
	m := stay(f)
	m.Row = "Z"
	m.Kept = e.Kind == KFinish || e.Kind == KLookup
	m.Refused = !m.Kept
	return m
}

func contains(list []State, s State) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// stay is the move that changes nothing.
func stay(f Facts) Move {
	return Move{To: f.State, Why: f.Why, By: f.By, From: f.From, Use: f.Used, Release: f.Released}
}

// After applies a move to the facts: the row that will be written.
func After(f Facts, m Move) Facts {
	f.State, f.Why, f.By, f.From, f.Used, f.Released = m.To, m.Why, m.By, m.From, m.Use, m.Release
	if m.To != Taken {
		f.SameAs = false
	}
	if m.Attempt {
		f.Attempts++
		f.Gap = false
	}
	f.Gap = f.Gap || m.Gap
	return f
}

// speakOfAttempts are the reasons that an effect without an attempt, on record or
// lost, cannot have; speakOfFirstBegins those that only it has.
var (
	speakOfAttempts    = []Why{WhyDeadline, WhyLease, WhyUnknown, WhyReference, WhyKeptFinish, WhyHit, WhyKeyLife}
	speakOfFirstBegins = []Why{WhyKeptFinish, WhyNoBusinessKey}
)

// Valid tells whether a row may look like this; the CHECK constraints of table
// effects say the same.
func Valid(f Facts) bool {
	if whys := store.WhysOf[f.State]; len(whys) == 0 {
		if f.Why != WhyNone {
			return false
		}
	} else if !anyOf(f.Why, whys...) {
		return false
	}
	if f.SameAs && !(f.State == Taken && f.By == ByPerson) {
		return false
	}
	if f.Attempts == 0 && (anyOf(f.By, ByAgent, ByLateAgent, ByVendorKey) || !f.Gap && (f.By == ByLookup || anyOf(f.Why, speakOfAttempts...))) ||
		f.Attempts > 0 && anyOf(f.Why, speakOfFirstBegins...) || !f.Gap && anyOf(f.Why, WhyLogGap, WhyObserved) {
		return false
	}
	switch f.State {
	case InFlight:
		return f.By == ByNobody && f.Attempts >= 1 && !f.Released && !f.Used && f.From == None
	case Interrupted, Held:
		return f.By == ByNobody && !f.Released && !f.Used && f.From == None
	case Cleared:
		by := f.Why == WhyNotTaken && anyOf(f.By, ByLookup, ByPerson) && f.From == Interrupted ||
			f.Why == WhySameKey && f.By == ByVendorKey && f.From == Interrupted ||
			f.Why == WhyAllowed && f.By == ByPerson && f.From == Held
		return by && !f.Used && (f.Released || f.By == ByPerson)
	case Taken:
		if f.SameAs && f.From == Interrupted {
			return false // only what was held is the same as another
		}
		return anyOf(f.By, ByAgent, ByLateAgent, ByLookup, ByPerson) && undoable(f, ByLookup, ByPerson)
	case Failed:
		return anyOf(f.By, ByAgent, ByLateAgent) && f.Released && f.Used && f.From == None
	case Cancelled:
		return anyOf(f.By, ByPerson, ByRunClosed) && undoable(f, ByPerson)
	}
	return false
}

// undoable tells whether an outcome is used and final, or one of by has decided it
// from a state that it can go back to. Only a person's decision waits for its release.
func undoable(f Facts, by ...By) bool {
	if f.Used {
		return f.Released && f.From == None
	}
	return anyOf(f.By, by...) && (f.Released || f.By == ByPerson) &&
		(f.From == Interrupted || f.From == Held && f.By == ByPerson)
}

func anyOf[T comparable](x T, list ...T) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// HoldsClaim tells whether an effect keeps what it claims from others. A stop
// lets go only at its release; a claim on tool and arguments (callClaim) is also
// let go by taken, where a claim on a business key is kept for ever.
func HoldsClaim(f Facts, callClaim bool) bool {
	switch f.State {
	case None, Failed:
		return false
	case Cancelled:
		return !f.Released
	case Taken:
		return !callClaim
	}
	return true
}

// PausesRun tells whether an effect keeps its run paused: it is interrupted or held,
// decided and not released yet, or in a contradiction that nobody acknowledged. The
// ledger's Blocked says the same in SQL.
func PausesRun(f Facts, contradicted bool) bool {
	switch f.State {
	case Interrupted, Held:
		return true
	case Cleared, Taken, Cancelled:
		return !f.Released || contradicted
	}
	return contradicted
}

// claimRank orders states for effects that come to share a business key only
// afterwards: what may have taken effect comes before what may yet begin, and that
// before what is held.
func claimRank(s State) int {
	switch s {
	case Held:
		return 0
	case Cleared:
		return 1
	}
	return 2
}
