// Package payer is an agent that is made to die: with the client that agents use it pays
// invoices at the stand-in for a bank, tells each step on its standard output, and
// stands still at named points until it is told to go on, or killed.
package payer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// Variable turns a program that calls [Main] first of all into an agent with the job
// that the variable holds.
const Variable = "QUITTANCE_TEST_PAYER_JOB"

// ClockVariable says by how many seconds a process's clock is off, to programs that were
// built for that.
const ClockVariable = "QUITTANCE_TORTURE_CLOCK"

// patience is how long an agent tries to reach the server: far more than a restart
// takes, also on a busy machine.
const patience = 60 * time.Second

// Job is what an agent process is told.
type Job struct {
	Server, Token, Bank, Spool string

	Run      string
	Tool     string
	Invoices []string // paid in this order, each a turn
	Lease    int      // seconds
	Held     int      // seconds to wait for another holder's lease to end
	Park     []Point  // where to stand still until a line arrives on the standard input
	Turn     int      // the invoice, from 0, at which it stands still
	Deaf     bool     // the tool does not heed its context: a request once sent is waited for
	File     string   // the agent keeps its own log in this file, and knows no server; "" for the others
	Room     int64    // bytes by which the file may grow; 0 without limit
	WrongBy  int      // seconds by which the process's clock is off: what it tells is not
	Wait     bool     // wait for decisions instead of ending
}

// Point is a named place in an agent's turns. All but the first are of the invoice that
// [Job].Turn names.
type Point string

const (
	Opened       Point = "opened"        // the run is held, its checkpoint read
	BeforeIntent Point = "before_intent" // the next call will be begin
	AfterIntent  Point = "after_intent"  // begun, nothing sent to the bank
	InAct        Point = "in_act"        // the bank is about to be asked: told of, never stood at
	AfterAct     Point = "after_act"     // the bank has answered, nothing recorded
	AfterRecord  Point = "after_record"  // recorded, no checkpoint saved
)

// Event is what an agent says, a line each.
type Event struct {
	At     Point  `json:"at,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Effect string `json:"effect,omitempty"`

	Epoch int64     `json:"epoch,omitempty"` // of the lease that it holds, or held
	Since time.Time `json:"since,omitzero"`  // Holds: when it had the lease; Begun: when it was about to ask

	Invoice   string `json:"invoice,omitempty"`
	Payment   string `json:"payment,omitempty"`
	Replayed  bool   `json:"replayed,omitempty"`
	Recorded  bool   `json:"recorded,omitempty"`
	DecidedBy string `json:"decided_by,omitempty"`
	Error     string `json:"error,omitempty"`
}

// The kinds of events.
const (
	Holds     = "holds"     // the lease is the agent's
	Begun     = "begun"     // the server let the call be made
	Paid      = "paid"      // the call came back, performed or replayed
	Cancelled = "cancelled" // the call must never be made
	Finished  = "finished"  // the run is closed
	Failed    = "failed"    // Error says why the agent gives up
)

// Exit codes of an agent.
const (
	ExitFinished = 0
	ExitFailed   = 1
	ExitPaused   = 3
	ExitOrphaned = 9
)

// Receipt is what the tool returns.
type Receipt struct {
	PaymentID string `json:"payment_id"`
}

// Payee gets every payment.
const Payee = "ACME Tools"

// Order is what the bank is asked for an invoice.
func Order(invoice string) bank.Order {
	return bank.Order{Reference: invoice, Payee: Payee, Amount: 420000, Currency: "USD"}
}

// payer is an agent at work.
type payer struct {
	Job
	goOn chan struct{}
	run  *client.Run
}

// Main is the agent's program: it works on a job and returns the exit code.
func Main(text string) int {
	a := &payer{goOn: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &a.Job); err != nil {
		panic(err)
	}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			a.goOn <- struct{}{}
		}
		os.Exit(ExitOrphaned)
	}()
	work := a.work
	if a.File != "" {
		work = a.keep
	}
	err := work(context.Background())
	switch {
	case err == nil:
		return ExitFinished
	case errors.Is(err, client.ErrPaused):
		return ExitPaused
	default:
		tell(Event{Kind: Failed, Error: err.Error()})
		return ExitFailed
	}
}

// now is the time, whatever the process's clock says.
func (a *payer) now() time.Time { return time.Now().Add(-time.Duration(a.WrongBy) * time.Second) }

func tell(e Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // one write: a reader never sees half of it
}

func (a *payer) park(at Point, invoice int) {
	if invoice == a.Turn && slices.Contains(a.Park, at) {
		tell(Event{At: at})
		<-a.goOn
	}
}

func (a *payer) work(ctx context.Context) error {
	c := client.New(a.Server, a.Token, client.WithSpool(a.Spool), client.WithPatience(patience))
	defer c.Close()
	for {
		err := a.turns(ctx, c)
		if !a.Wait || !errors.Is(err, client.ErrPaused) {
			return err
		}
		for {
			v, err := c.Run(ctx, a.Run, 5*time.Second)
			if err != nil {
				return err
			}
			if v.State != client.RunPaused {
				break
			}
		}
	}
}

// turns opens the run and pays what is not paid yet. Paused, it gives the run back as
// an agent should.
func (a *payer) turns(ctx context.Context, c *client.Client) (err error) {
	a.run, err = c.Open(ctx, a.Run, client.RunOptions{Agent: "payer", LeaseSeconds: a.Lease, WaitHeld: time.Duration(a.Held) * time.Second})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = a.run.Release(ctx)
		}
	}()
	tell(Event{Kind: Holds, Epoch: a.run.Epoch(), Since: a.now()})
	var done struct{ Paid int }
	if _, err := a.run.State(&done); err != nil {
		return err
	}
	a.park(Opened, a.Turn)
	for i := done.Paid; i < len(a.Invoices); i++ {
		if err := a.pay(ctx, i); err != nil {
			return err
		}
		done.Paid = i + 1
		if err := a.run.Checkpoint(ctx, int64(done.Paid), done); err != nil {
			return err
		}
	}
	if err := a.run.Close(ctx, client.RunFinished); err != nil {
		return err
	}
	tell(Event{Kind: Finished})
	return nil
}

func (a *payer) pay(ctx context.Context, i int) error {
	a.park(BeforeIntent, i)
	invoice := a.Invoices[i]
	asked, epoch := a.now(), a.run.Epoch()
	args := map[string]any{"vendor": Payee, "invoice": invoice, "amount": 420000, "currency": "USD"}
	out, err := a.run.Do(ctx, a.Tool, args, func(ctx context.Context, call client.Call) (any, error) {
		tell(Event{Kind: Begun, Invoice: invoice, Effect: call.EffectID, Epoch: epoch, Since: asked})
		a.park(AfterIntent, i)
		if a.Deaf {
			ctx = context.WithoutCancel(ctx)
		}
		if i == a.Turn && slices.Contains(a.Park, InAct) {
			tell(Event{At: InAct})
		}
		p, err := bank.Pay(ctx, a.Bank, call.VendorKey, Order(invoice))
		if err != nil {
			return nil, err
		}
		a.park(AfterAct, i)
		return client.Reference(p.ID, Receipt{p.ID}), nil
	})
	e := Event{Kind: Paid, Invoice: invoice, Effect: out.EffectID, Replayed: out.Replayed, Recorded: out.Recorded, DecidedBy: out.DecidedBy}
	switch {
	case errors.Is(err, client.ErrCancelled):
		e.Kind = Cancelled
	case err != nil:
		return fmt.Errorf("couldn't pay %s: %w", invoice, err)
	default:
		var r Receipt
		if err := out.Decode(&r); err != nil {
			return err
		}
		e.Payment = r.PaymentID
	}
	tell(e)
	a.park(AfterRecord, i)
	return nil
}
