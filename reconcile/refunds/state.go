// Package refunds decides what may happen to money that is owed back: who approves it, who
// sends it, when it counts as paid, and what comes back or is written off.
//
// The table below is pure. Its figures are the row's own, and the database refuses
// whatever this package should ever get wrong.
package refunds

import (
	"quittance/ledger/money"
	"quittance/ledger/payments"
)

// States of what is owed.
const (
	Owed       = "owed"     // nobody has approved it yet
	Approved   = "approved" // may be sent
	Batched    = "batched"  // is part of a batch
	Sending    = "sending"  // somebody is sending it just now
	Sent       = "sent"     // went out, not seen to arrive
	Unknown    = "unknown"  // nobody knows whether it went out
	Confirmed  = "confirmed"
	Returned   = "returned" // came back, and is due again
	Held       = "held"     // must not be sent: no safe destination, unknown payer
	WrittenOff = "written_off"
	Void       = "void" // its transfer was taken back by its rail
)

// States are all of them.
var States = []string{Owed, Approved, Batched, Sending, Sent, Unknown, Confirmed, Returned, Held, WrittenOff, Void}

// Event is something that happens to what is owed.
type Event int

const (
	Approve  Event = iota // a person says that it may be sent
	Withdraw              // and takes that back
	Hold                  // a person stops it
	Release               // and lets it go on
	Redirect              // it is to go somewhere else than to the payer
	AskOff                // a person wants it written off
	DropOff               // and does not want it any more
	WriteOff              // another person says so
	Reserve               // an attempt to send an amount starts
	Send                  // it went out
	Doubt                 // nobody knows whether it did
	Fail                  // it is proven that it did not
	Arrive                // it was seen to arrive
	ComeBack              // an amount that had arrived came back
	Landed                // an attempt that was given up was seen to arrive after all
	Change                // what is owed in all changed, with the class of the transfer
)

// Events are all of them.
var Events = []Event{Approve, Withdraw, Hold, Release, Redirect, AskOff, DropOff, WriteOff, Reserve, Send, Doubt, Fail, Arrive, ComeBack, Landed, Change}

// underWay are the states in which an attempt lives.
func underWay(state string) bool {
	switch state {
	case Batched, Sending, Sent, Unknown:
		return true
	}
	return false
}

// Live tells that an attempt to pay it is not over.
func Live(state string) bool { return underWay(state) }

// Open tells that something of it is still to be given back.
func Open(state string) bool { return state != Confirmed && state != WrittenOff && state != Void }

// Next is the row after an event with an amount, which only some events have. why says, in
// words for people, why it cannot be; then nothing is changed.
func Next(f payments.Refund, e Event, x money.Atomic) (after payments.Refund, why string) {
	after = f
	if why = refuse(f, e, x); why != "" {
		return f, why
	}
	switch e {
	case Approve:
		after.Approved = f.Amount.Minus(f.WrittenOff)
	case Withdraw, Redirect:
		after.Approved = f.Paid
	case Hold:
		after.Approved, after.State = f.Paid, Held
	case Release:
		after.State = Owed
	case AskOff:
		after.WriteOff = x
	case WriteOff:
		after.WrittenOff = f.WrittenOff.Plus(x)
		after.Approved = least(f.Approved, f.Amount.Minus(after.WrittenOff))
	case Reserve:
		after.Reserved, after.State = x, Sending
	case Send:
		after.State = Sent
	case Doubt:
		after.State = Unknown
	case Fail:
		after.Reserved = money.Atomic{}
	case Arrive:
		after.Reserved, after.Paid = money.Atomic{}, f.Paid.Plus(f.Reserved)
	case ComeBack:
		// What came back was approved for a payment that failed: it is approved anew.
		after.Paid, after.Approved = f.Paid.Minus(x), f.Paid.Minus(x)
		if underWay(f.State) {
			after.Approved = f.Approved.Minus(x)
		}
	case Landed:
		after.Paid = f.Paid.Plus(x)
		after.Approved = most(f.Approved, after.Paid)
	case Change:
		after.Amount, after.Approved = x, least(f.Approved, x.Minus(f.WrittenOff))
		if !underWay(f.State) {
			after.Approved = f.Paid
		}
	}
	after.State = settle(f, after, e)
	if after.State != Held {
		after.HeldWhy = ""
	}
	if after.Approved.Cmp(after.Paid) == 0 && after.Reserved.Sign() == 0 {
		after.ApprovedBy, after.ApprovedAt = 0, payments.Refund{}.ApprovedAt
	}
	if e == Change || e == DropOff || e == WriteOff || after.WriteOff.Cmp(after.Rest()) > 0 || after.Reserved.Sign() > 0 {
		after.WriteOff, after.WriteOffBy, after.WriteOffWhy = money.Atomic{}, 0, ""
	}
	return after, ""
}

// settle is the state that the figures say, where no attempt lives.
func settle(was, f payments.Refund, e Event) string {
	switch {
	case f.Reserved.Sign() > 0:
		return f.State
	case f.Amount.Sign() == 0:
		return Void
	case f.Rest().Sign() == 0 && !Open(was.State) && was.State != Void:
		return was.State
	case f.Rest().Sign() == 0 && (e == WriteOff || f.Paid.Sign() == 0):
		return WrittenOff
	case f.Rest().Sign() == 0:
		return Confirmed
	case f.State == Held:
		return Held
	case e == ComeBack, was.State == Returned && f.Approved.Cmp(f.Paid) == 0:
		return Returned
	case f.Approved.Cmp(f.Paid) > 0:
		return Approved
	}
	return Owed
}

func refuse(f payments.Refund, e Event, x money.Atomic) string {
	var none string
	live := underWay(f.State)
	switch e {
	case Approve:
		switch {
		case live:
			return "Something is being paid of it: that has to be over first."
		case f.State == Held:
			return "It is held. Release it first."
		case !Open(f.State):
			return closedText(f.State)
		case f.Approved.Plus(f.WrittenOff).Cmp(f.Amount) == 0:
			return "It is approved already."
		}
	case Withdraw:
		if f.State != Approved {
			return "It is not approved, or something of it is being paid."
		}
	case Hold:
		switch {
		case live:
			return "Something is being paid of it: that cannot be held any more."
		case f.State == Held:
			return "It is held already."
		case !Open(f.State):
			return closedText(f.State)
		}
	case Release:
		if f.State != Held {
			return "It is not held."
		}
	case Redirect:
		switch {
		case live:
			return "Something is being paid of it: where it goes cannot change now."
		case !Open(f.State):
			return closedText(f.State)
		}
	case AskOff, WriteOff:
		switch {
		case live:
			return "Something is being paid of it: that has to be over first."
		case !Open(f.State):
			return closedText(f.State)
		case x.Sign() <= 0:
			return "An amount above 0 is needed."
		case x.Cmp(f.Rest()) > 0:
			return "That is more than is owed."
		}
	case DropOff:
		if f.WriteOff.Sign() == 0 {
			return "Nobody asked to write it off."
		}
	case Reserve:
		switch {
		case live:
			return "Something of it is being paid already: one payment at a time."
		case f.State != Approved:
			return "It is not approved."
		case x.Sign() <= 0:
			return "An amount above 0 is needed."
		case x.Cmp(f.Approved.Minus(f.Paid)) > 0:
			return "That is more than is owed."
		}
	case Send:
		if f.State != Sending && f.State != Unknown {
			return "Nothing is being sent."
		}
	case Doubt:
		if f.State != Sending && f.State != Sent {
			return "Nothing is being sent."
		}
	case Fail:
		if f.State != Sending && f.State != Sent && f.State != Unknown {
			return "Nothing is being paid."
		}
	case Arrive:
		if f.State != Sent {
			return "Nothing was sent."
		}
	case ComeBack:
		switch {
		case x.Sign() <= 0 || x.Cmp(f.Paid) > 0:
			return "No more can come back than was paid."
		}
	case Landed:
		switch {
		case live || x.Sign() <= 0 || x.Cmp(f.Rest()) > 0:
			return "It is more than is owed: it left twice."
		}
	case Change:
		if x.Cmp(f.Paid.Plus(f.Reserved).Plus(f.WrittenOff)) < 0 {
			return "More was paid or written off than would be owed."
		}
	}
	return none
}

func closedText(state string) string {
	switch state {
	case Confirmed:
		return "All of it is paid."
	case WrittenOff:
		return "It is written off."
	}
	return "Nothing is owed any more: its transfer was taken back by its rail."
}

func least(a, b money.Atomic) money.Atomic {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func most(a, b money.Atomic) money.Atomic {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
