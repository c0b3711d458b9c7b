// Package recoveries decides what may happen to money that left twice and that others hold:
// it is suspected, confirmed, claimed, and comes back or is written off.
package recoveries

// States of a recovery.
const (
	Suspected  = "suspected"
	Confirmed  = "confirmed" // it did leave twice, and it is known how much
	Claimed    = "claimed"   // the other side was asked for it
	Recovered  = "recovered" // in cash or by a credit note
	WrittenOff = "written_off"
	Dismissed  = "dismissed" // it did not leave twice
)

// States are all of them.
var States = []string{Suspected, Confirmed, Claimed, Recovered, WrittenOff, Dismissed}

// Event is something that happens to a recovery.
type Event int

const (
	Confirm  Event = iota // a person says that it left twice, and how much
	Dismiss               // that it did not
	Claim                 // the other side was asked
	Receive               // a part came back
	Settle                // the last part did
	WriteOff              // what is left is given up
	Assign                // somebody else looks after it
)

// Events are all of them.
var Events = []Event{Confirm, Dismiss, Claim, Receive, Settle, WriteOff, Assign}

// moves are the rows of the table; whatever is not here does not happen.
var moves = map[Event]map[string]string{
	Confirm:  {Suspected: Confirmed, Dismissed: Confirmed},
	Dismiss:  {Suspected: Dismissed, Confirmed: Dismissed},
	Claim:    {Confirmed: Claimed, Claimed: Claimed},
	Receive:  {Confirmed: Confirmed, Claimed: Claimed},
	Settle:   {Confirmed: Recovered, Claimed: Recovered},
	WriteOff: {Confirmed: WrittenOff, Claimed: WrittenOff},
	Assign:   {Suspected: Suspected, Confirmed: Confirmed, Claimed: Claimed},
}

// Next is the state after an event; false where it does not happen in that state.
func Next(state string, e Event) (string, bool) {
	to, ok := moves[e][state]
	return to, ok
}

// Open tells that something is still to be done about it.
func Open(state string) bool { return state == Suspected || state == Confirmed || state == Claimed }
