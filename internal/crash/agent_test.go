package crash

import "quittance/cmd/torture/payer"

// The agent is the one that the torture has, too.
type (
	job     = payer.Job
	point   = payer.Point
	event   = payer.Event
	receipt = payer.Receipt
)

const (
	jobVariable = payer.Variable
	payee       = payer.Payee

	opened       = payer.Opened
	beforeIntent = payer.BeforeIntent
	afterIntent  = payer.AfterIntent
	afterAct     = payer.AfterAct
	afterRecord  = payer.AfterRecord

	begun     = payer.Begun
	paid      = payer.Paid
	cancelled = payer.Cancelled
	finished  = payer.Finished

	exitFinished = payer.ExitFinished
	exitFailed   = payer.ExitFailed
	exitPaused   = payer.ExitPaused
)
