// Package payments decides what a gateway may do for a payment id. claim.go is the
// decision table, pure; the rest reads the rows it speaks about, asks it, and writes
// what it says.
//
// The payer mints the id and stores it before it sends. The id recovers the work; the
// single use of the authorization's nonce bounds the money.
package payments

import (
	"time"

	"quittance/reconcile/policy"
)

// HealAfter is the age from which a payment that is in flight may be taken over, or
// healed from its order. An age of exactly so much is not old yet.
const HealAfter = policy.HealingAge

// State is what is stored of a payment id.
type State string

const (
	None     State = "" // never claimed
	InFlight State = "in_flight"
	Unknown  State = "unknown" // it may have moved money; only proof ends it
	Settled  State = "settled"
	Refused  State = "refused"
	Pruned   State = "pruned" // a tombstone: payer, request, quote and nonces are kept
)

// States in the order above, but for None.
var States = []State{InFlight, Unknown, Settled, Refused, Pruned}

// Order is where the payment's order stands, as far as the table asks.
type Order string

const (
	NoOrder  Order = ""
	NotFinal Order = "not_final" // created, or paying
	Paid     Order = "paid"
	Unpaid   Order = "unpaid" // failed, expired or cancelled
)

// Work is what is known of what the payment pays for.
type Work string

const (
	NoWork    Work = "none"
	Undecided Work = "undecided" // recorded, and nobody knows whether it was done
	Taken     Work = "taken"     // done: never again
	NotTaken  Work = "not_taken" // proven not done
)

// Authorizations is what is known of those that are stored under the id. One is dead when
// it can never move money any more: unused at a final block past its end, cancelled at a
// final block, or landed and owed back. Usable is whatever is not proven dead.
type Authorizations string

const (
	NoAuthorization Authorizations = ""
	AllDead         Authorizations = "dead"
	SomeUsable      Authorizations = "usable"
)

// Facts are what is stored.
type Facts struct {
	State          State
	Order          Order
	Age            time.Duration // since it was claimed, or taken over
	Work           Work
	Broadcast      bool // recorded before the payment was sent to its rail
	Authorizations Authorizations
	// BroadcastFollowsWork: this gateway sends the payment only once the work is done, so
	// that a recorded broadcast means taken.
	BroadcastFollowsWork bool
}

// Brings is the authorization that a caller has with it.
type Brings string

const (
	Nothing     Brings = ""
	StoredOne   Brings = "stored"
	AnotherDead Brings = "another, dead"
	Another     Brings = "another"
)

// Elsewhere is whether the quote or the authorization that a caller brings belongs to
// another payment id.
type Elsewhere string

const (
	Nowhere       Elsewhere = ""
	LiveElsewhere Elsewhere = "live"    // of the same payer, in flight or unknown
	SettledOnce   Elsewhere = "settled" // of the same payer
	AnotherPayers Elsewhere = "another payer's"
)

// How long a payer waits before it asks again.
const (
	retrySoon  = 5 * time.Second
	retryLater = 30 * time.Second
)

// Caller is who asks, and what it brings.
type Caller struct {
	SamePayer, SameRequest bool
	// SameAttempt: it is the very try that holds the payment, whose answer was lost.
	SameAttempt bool
	Brings      Brings
	Elsewhere   Elsewhere
}

// Do is what a gateway is told.
type Do string

const (
	Proceed   Do = "proceed"    // do the work, settle, finish
	Replay    Do = "replay"     // the frozen answer
	Wait      Do = "in_flight"  // 409 payment_in_flight
	Conflict  Do = "conflict"   // 409 payment_conflict
	Spent     Do = "spent"      // 410 payment_id_spent
	SignAgain Do = "sign_again" // 402: a new signature is right only now
)

// Reason of a conflict.
type Reason string

const (
	ReasonPayer   Reason = "payer"
	ReasonRequest Reason = "request"
)

// Decision is what the table says.
type Decision struct {
	Row string
	Do  Do

	Claim     bool // proceed: the id is claimed for the first time
	TakeOver  bool // proceed: fence + 1, and its age starts again
	Paid      bool // proceed: the money has moved; the work and the finish only
	Work      Work // proceed: what is known of the work
	Heal      bool // replay: it becomes settled by its order
	Refuse    bool // replay: it becomes settled as refused
	Unknown   bool // in flight: it becomes unknown
	Check     bool // in flight: the targeted check is due
	Reason    Reason
	Alert     bool
	Elsewhere bool // the answer speaks of the other id
	ShowOrder bool // the answer may name the order: never to another payer
	Retry     time.Duration
}

// Decide says what becomes of a claim: the first row that matches wins.
func Decide(f Facts, c Caller) Decision {
	d := f.decide(c)
	// A claim, and any take-over that brings another authorization, is refused where that
	// one, or the quote, is live or settled under another id.
	if d.Do == Proceed && c.Elsewhere != Nowhere && (d.Claim || c.Brings == Another || c.Brings == AnotherDead) {
		return elsewhere(c)
	}
	return d
}

func elsewhere(c Caller) Decision {
	d := Decision{Row: "elsewhere", Elsewhere: true}
	switch c.Elsewhere {
	case LiveElsewhere:
		d.Do, d.Retry, d.ShowOrder = Wait, retrySoon, true
	case SettledOnce:
		d.Do, d.Reason, d.Alert, d.ShowOrder = Conflict, ReasonRequest, true, true
	default:
		d.Do, d.Reason, d.Alert = Conflict, ReasonPayer, true
	}
	return d
}

func (f Facts) decide(c Caller) Decision {
	if f.BroadcastFollowsWork && f.Broadcast {
		f.Work = Taken
	}
	old := f.Age > HealAfter
	open := f.Order == NotFinal || f.Order == NoOrder // one that is not created yet can still be
	switch {
	case f.State == None:
		return Decision{Row: "new", Do: Proceed, Claim: true, Work: NoWork, ShowOrder: true}
	case !c.SamePayer:
		return Decision{Row: "other payer", Do: Conflict, Reason: ReasonPayer, Alert: true}
	case !c.SameRequest:
		return Decision{Row: "other request", Do: Conflict, Reason: ReasonRequest, Alert: true, ShowOrder: true}
	case f.State == Pruned:
		return Decision{Row: "pruned", Do: Spent, ShowOrder: true}
	case f.State == Settled:
		return Decision{Row: "settled", Do: Replay, ShowOrder: true}
	case f.State == Refused:
		return Decision{Row: "refused", Do: Replay, ShowOrder: true}
	case !old && f.State == InFlight && c.SameAttempt && (c.Brings == StoredOne || c.Brings == Nothing) && f.Work == NoWork && !f.Broadcast:
		return Decision{Row: "same attempt", Do: Proceed, Paid: f.Order == Paid, Work: NoWork, ShowOrder: true}
	case !old && f.State == InFlight:
		return Decision{Row: "young", Do: Wait, Retry: retrySoon, ShowOrder: true}
	case !old:
		return f.stay("unknown")
	case f.Order == Paid && f.Work == Taken:
		return Decision{Row: "healed", Do: Replay, Heal: true, ShowOrder: true}
	case f.Work == Undecided:
		return Decision{Row: "work undecided", Do: Wait, Retry: retrySoon, ShowOrder: true}
	case f.Order == Paid:
		return f.takeOver("paid, not done", c)
	case f.Order == Unpaid && f.Authorizations != SomeUsable:
		return Decision{Row: "never paid", Do: Replay, Refuse: true, ShowOrder: true}
	case open && f.Authorizations == AllDead && (c.Brings == Nothing || c.Brings == AnotherDead || c.Brings == StoredOne):
		return Decision{Row: "sign again", Do: SignAgain, ShowOrder: true}
	case open && f.Authorizations == AllDead:
		return f.takeOver("signed again", c)
	case open && (f.Work == Taken || f.Work == NotTaken) && !f.Broadcast:
		return f.takeOver("done, not sent", c)
	case f.State == InFlight && (f.Broadcast || f.Authorizations == SomeUsable):
		return f.stay("may have been sent")
	case f.State == InFlight && f.Work == NoWork:
		return f.takeOver("nothing was begun", c)
	}
	return f.stay("unknown")
}

// stay leaves it open: nothing but proof ends it, and never 402, upon which a conforming
// payer would sign again and pay twice.
func (f Facts) stay(row string) Decision {
	return Decision{Row: row, Do: Wait, Unknown: f.State == InFlight, Check: true, Retry: retryLater, ShowOrder: true}
}

// takeOver lets one caller go on, with the stored authorization, or with another once
// every stored one is dead.
func (f Facts) takeOver(row string, c Caller) Decision {
	if (c.Brings == Another || c.Brings == AnotherDead) && f.Authorizations == SomeUsable && f.Order != Paid {
		return Decision{Row: row + ", another authorization", Do: Wait, Retry: retrySoon, ShowOrder: true}
	}
	return Decision{Row: row, Do: Proceed, TakeOver: true, Paid: f.Order == Paid, Work: f.Work, ShowOrder: true}
}
