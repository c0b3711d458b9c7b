// Package bank is a stand-in for a bank: a real server with a ledger on disk, made to
// fail in the ways that banks do. What it has booked survives a kill -9.
//
// It shares no code with what it is used to prove.
package bank

import "time"

// Order is what a payer asks for.
type Order struct {
	Reference string `json:"reference"` // the payer's own name for it, such as an invoice number
	Payee     string `json:"payee"`
	Amount    int64  `json:"amount"` // in the currency's smallest unit
	Currency  string `json:"currency"`
}

// Payment is an order that the bank has booked.
type Payment struct {
	ID string `json:"id"`
	Order
	Status   string    `json:"status"` // Processing or Paid
	Final    bool      `json:"final"`  // the status will not change any more
	BookedAt time.Time `json:"booked_at"`
}

// The states of a payment.
const (
	Processing = "processing"
	Paid       = "paid"
)

// Behaviour is how a bank treats the orders that arrive. The zero value, and the
// defaults on a command line, are a bank without faults that enforces its keys.
type Behaviour struct {
	Keys        Keys          `help:"What an Idempotency-Key does: honour or ignore." enum:"honour,ignore" default:"honour"`
	Slow        time.Duration `help:"Book an order only after this time, whether or not its sender still waits." placeholder:"TIME"`
	Lands       time.Duration `help:"Show a booked payment in look-ups only after this time." placeholder:"TIME"`
	Settles     time.Duration `help:"Keep a payment processing for this time after it has landed." placeholder:"TIME"`
	Large       int64         `help:"Settle payments below this amount, in the currency's smallest unit, at once." placeholder:"AMOUNT"`
	LoseAnswers int           `help:"Book this many orders without answering: each sender waits until it goes away." placeholder:"N"`
	Fault       Fault         `help:"Be broken." enum:"none,double,forget,merge,invent,deny,misstate,hasten" default:"none" hidden:""`
}

// Keys says what an idempotency key does at a bank.
type Keys string

const (
	Honour Keys = "honour" // the same key is the same payment, for ever
	Ignore Keys = "ignore" // every order is a new payment
)

// Fault is a lie about the books. No honest bank has one: they prove that whoever
// checks a bank's ledger would notice.
type Fault string

const (
	NoFault Fault = "none"
	Double  Fault = "double" // an order is booked twice
	Forget  Fault = "forget" // an order is answered and not booked
	Merge   Fault = "merge"  // a reference is booked once, whatever is sent

	// Of look-ups; the books are right.
	Invent   Fault = "invent"   // an order that was not booked is shown
	Deny     Fault = "deny"     // nothing is shown
	Misstate Fault = "misstate" // another amount is shown
	Hasten   Fault = "hasten"   // what is processing is shown as paid
)

// shown is what a look-up shows of what it should show.
func (f Fault) shown(list []Payment) []Payment {
	switch f {
	case Deny:
		return []Payment{}
	case Misstate:
		for i := range list {
			list[i].Amount++
		}
	case Hasten:
		for i := range list {
			list[i].Status, list[i].Final = Paid, true
		}
	}
	return list
}
