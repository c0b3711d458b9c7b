package lookup

import "time"

// Verdict is what an answer proves. Nothing is the zero value.
type Verdict string

// Verdicts.
const (
	Inconclusive Verdict = ""
	Taken        Verdict = "taken"
	NotTaken     Verdict = "not_taken"
)

// Reason is the rule that decided.
type Reason string

// Reasons, in the order in which they are looked at.
const (
	NoAttempt    Reason = "no_attempt"    // nothing was ever sent: no look-up decides it
	CouldNot     Reason = "could_not"     // see Seen.Problem
	Partial      Reason = "partial"       // not everything was read
	WrongWorld   Reason = "wrong_world"   // the sandbox, where live was meant
	Multiple     Reason = "multiple"      // a possible double
	Mismatch     Reason = "mismatch"      // amount, currency or recipient differ
	NotFinal     Reason = "not_final"     // it may still change
	NoReference  Reason = "no_reference"  // a record without a name could prove two effects
	Shared       Reason = "shared"        // another open effect fits it as well
	Unreferenced Reason = "unreferenced"  // it may be another effect's, whose reference nobody stored
	Disputed     Reason = "disputed"      // a person closed another call with it, and no look at that one shows it
	NoCall       Reason = "no_call"       // found by a key alone: there is no call to compare it with
	Matched      Reason = "matched"       // taken
	Possible     Reason = "possible"      // nothing by our key, but what may be ours
	Vanished     Reason = "vanished"      // seen before, not now
	NeverAgain   Reason = "never"         // not taken, for good
	Absent       Reason = "absent"        // not taken, all four conditions
	NotYet       Reason = "not_found_yet" // nothing found, which proves nothing so far
)

// Answer is what a look proved, and everything a person needs to judge it.
type Answer struct {
	Verdict Verdict
	Reason  Reason
	Why     string // a sentence

	// Reference and Result are the downstream's, for taken.
	Reference string
	Result    []byte
	Reversed  bool // taken, and the money came back

	Hits []Judged
	// Free counts the hits by our key that no other effect owns and that may have taken
	// effect. Any of them stops a person's "not taken"; more than one is a possible double.
	Free int

	// Conditions of a proven "not taken", in order.
	Conditions []Condition
	// Earliest is when all conditions can hold; zero where that is not known or never.
	Earliest time.Time

	// Read is to be stored and given to [Judge] with the next look.
	Read Read
}

// Stopping are the records that stop a decision for "not taken" or "stop": whatever was
// found, unless it is another effect's, a person said that it is not ours, or it is
// cancelled for good.
func (a Answer) Stopping() (list []Judged) {
	for _, h := range a.Hits {
		if !h.Foreign && !h.Never {
			list = append(list, h)
		}
	}
	return list
}

// Judged is a hit and whose it is.
type Judged struct {
	Hit
	// Foreign: another effect owns it, or a person said that it is not ours.
	Foreign bool
	Owner   string // the other effect; "" for a person's word. One that is not Foreign is only disputed
}

// Condition is one of those that a proven "not taken" needs.
type Condition struct {
	Name ConditionName
	Met  bool
	// Earliest is when it can be met; zero where that is not known.
	Earliest time.Time
	// Never: as things are declared, it cannot be met.
	Never bool
	Why   string // a sentence, met or not
}

// ConditionName tells conditions apart.
type ConditionName string

// The conditions. The first six are the source's authority for absence.
const (
	NothingFound  ConditionName = "nothing_found"
	Authoritative ConditionName = "authoritative"
	WholeRead     ConditionName = "whole_read"
	CanarySeen    ConditionName = "canary_seen"
	SameWorld     ConditionName = "same_world"
	StillKept     ConditionName = "still_kept"
	CannotLand    ConditionName = "cannot_land"
	FreshView     ConditionName = "fresh_view"
	TwoReads      ConditionName = "two_reads"
)

// Read is what counts of an earlier look. It is stored as JSON.
type Read struct {
	AskedAt time.Time `json:"asked_at"`
	AsOf    time.Time `json:"as_of,omitzero"` // zero where the source did not say
	Source  string    `json:"source"`         // Terms.Digest: looks at another source do not count
	Whole   bool      `json:"whole"`          // complete, canary seen, in the right world
	// Saw are the names of the free hits and possible hits.
	Saw []string `json:"saw,omitempty"`
	// Passing are those among them that could still be undone.
	Passing []string `json:"passing,omitempty"`
}
