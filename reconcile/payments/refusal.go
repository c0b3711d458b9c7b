package payments

import (
	"time"
)

// Code is what a program branches on.
type Code string

const (
	CodeInFlight   Code = "payment_in_flight"
	CodeConflict   Code = "payment_conflict"
	CodeSpent      Code = "payment_id_spent"
	CodeSignAgain  Code = "sign_again"
	CodeOrderFinal Code = "order_final"
	CodeStaleFence Code = "stale_fence"
	CodeNotFound   Code = "not_found"
	CodeLogBehind  Code = "log_behind"
	CodeInvalid    Code = "invalid"
)

// Refusal is an answer that is not the one asked for; it implements error. It never holds
// a body or a secret, and nothing of another payer.
type Refusal struct {
	Code   Code
	Detail string
	Faults []Fault // CodeInvalid

	PaymentID  string
	OrderID    string
	State      string
	Reason     Reason // CodeConflict
	Fence      int64  // CodeStaleFence: the one that holds now
	Poll       string
	RetryAfter time.Duration
}

// Fault is one field that is wrong.
type Fault struct{ Pointer, Detail string }

func (r *Refusal) Error() string {
	if len(r.Faults) > 0 {
		return string(r.Code) + ": " + r.Faults[0].Pointer + " " + r.Faults[0].Detail
	}
	return string(r.Code) + ": " + r.Detail
}

func invalid(pointer, detail string) *Refusal {
	return &Refusal{Code: CodeInvalid, Faults: []Fault{{pointer, detail}}}
}

var errNotFound = &Refusal{Code: CodeNotFound, Detail: "There is no such payment."}

var errBehind = &Refusal{Code: CodeLogBehind, Detail: "The database was found not to hold what it once confirmed: nothing goes on until a person acknowledges it."}
