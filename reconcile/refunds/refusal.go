package refunds

import (
	"quittance/ledger/money"
)

// Refusal is why an act was not done; it implements error. Detail is for people.
type Refusal struct {
	Code   Code
	Detail string
	// Rest is what may still be paid, of a payment that was too much.
	Rest *money.Amount
}

// Code is what a program branches on.
type Code string

const (
	CodeNotFound  Code = "not_found"
	CodeStale     Code = "stale" // it changed since the person looked
	CodeNotNow    Code = "not_now"
	CodeTooMuch   Code = "too_much"
	CodeOwn       Code = "own"     // the same person may not do both
	CodeInvalid   Code = "invalid" // what was typed cannot be read
	CodeUsed      Code = "used"    // the reference is on record already
	CodeLogBehind Code = "log_behind"
)

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

func refusal(code Code, detail string) *Refusal { return &Refusal{Code: code, Detail: detail} }

var errBehind = refusal(CodeLogBehind, "The database was found not to hold what it once confirmed: nothing goes on until a person acknowledges it.")
