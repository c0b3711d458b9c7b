// Package effects holds the statements about effects, their attempts, claims,
// evidence and decisions, and the names their columns take. The rules about the
// names are in reconcile/effects.
package effects

// State is where an effect stands. None is an effect that is not recorded.
type State string

const (
	None        State = ""
	InFlight    State = "in_flight"
	Interrupted State = "interrupted"
	Held        State = "held"
	Cleared     State = "cleared"
	Taken       State = "taken"
	Failed      State = "failed"
	Cancelled   State = "cancelled"
)

// States in the order of the state table, None left out.
var States = []State{InFlight, Interrupted, Held, Cleared, Taken, Failed, Cancelled}

// Why says why an effect is interrupted, held or cleared.
type Why string

const (
	WhyNone Why = ""

	// interrupted
	WhyDeadline     Why = "deadline"     // the attempt's deadline passed
	WhyLease        Why = "lease"        // the run's lease passed or was released
	WhyUnknown      Why = "unknown"      // the agent said that it does not know
	WhyReference    Why = "reference"    // the agent's reference already proves another effect
	WhyLogGap       Why = "log_gap"      // the log may have lost attempts
	WhyKeptFinish   Why = "kept_finish"  // a finish came before the intent
	WhyHit          Why = "hit"          // a look-up found something after all
	WhyContradicted Why = "contradicted" // evidence against an unused decision
	WhyKeyLife      Why = "key_life"     // the vendor's key no longer lives long enough
	WhyObserved     Why = "observed"     // it may have been performed while its tool was only observed

	// held
	WhyOverlap       Why = "overlap"         // another effect holds the business key
	WhyNoBusinessKey Why = "no_business_key" // a field of the business key is missing

	// interrupted or held
	WhyUndone  Why = "undone"  // a decision was taken back
	WhyExpired Why = "expired" // a permission was not used in time

	// cleared
	WhyNotTaken Why = "not_taken" // it did not take effect
	WhyAllowed  Why = "allowed"   // a person let the overlap through
	WhySameKey  Why = "same_key"  // the vendor's own key makes a repeat safe
)

// By says who or what closed an effect; told apart for ever.
type By string

const (
	ByNobody    By = ""
	ByAgent     By = "agent"
	ByLateAgent By = "late_agent"
	ByLookup    By = "look_up"
	ByVendorKey By = "vendor_key"
	ByPerson    By = "person"
	ByRunClosed By = "run_closed"
)

// WhysOf lists what Why may be in a state; an empty list means none.
var WhysOf = map[State][]Why{
	Interrupted: {WhyDeadline, WhyLease, WhyUnknown, WhyReference, WhyLogGap, WhyKeptFinish, WhyUndone, WhyHit, WhyExpired, WhyContradicted, WhyKeyLife, WhyObserved},
	Held:        {WhyOverlap, WhyNoBusinessKey, WhyUndone, WhyExpired},
	Cleared:     {WhyNotTaken, WhyAllowed, WhySameKey},
}
