package crash

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

// jobVariable turns the test binary into an agent with the job it holds.
const jobVariable = "QUITTANCE_TEST_CRASH_JOB"

// job is what an agent process is told.
type job struct {
	Server, Token, Bank, Spool string

	Run      string
	Tool     string
	Invoices []string // paid in this order, each a turn
	Lease    int      // seconds
	Held     int      // seconds to wait for another holder's lease to end
	Park     []point  // where to stand still until a line arrives on the standard input
	Deaf     bool     // the tool does not heed its context: a request once sent is waited for
	Wait     bool     // wait for decisions instead of ending
}

// point is a named place in an agent's turns. All are of the first invoice.
type point string

const (
	opened       point = "opened"        // the run is held, its checkpoint read
	beforeIntent point = "before_intent" // the next call will be begin
	afterIntent  point = "after_intent"  // begun, nothing sent to the bank
	afterAct     point = "after_act"     // the bank has answered, nothing recorded
	afterRecord  point = "after_record"  // recorded, no checkpoint saved
)

// event is what an agent says, a line each.
type event struct {
	At     point  `json:"at,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Effect string `json:"effect,omitempty"`

	Invoice   string `json:"invoice,omitempty"`
	Payment   string `json:"payment,omitempty"`
	Replayed  bool   `json:"replayed,omitempty"`
	Recorded  bool   `json:"recorded,omitempty"`
	DecidedBy string `json:"decided_by,omitempty"`
	Error     string `json:"error,omitempty"`
}

// The kinds of events.
const (
	begun     = "begun"     // the server let the call be made
	paid      = "paid"      // the call came back, performed or replayed
	cancelled = "cancelled" // the call must never be made
	finished  = "finished"  // the run is closed
	failed    = "failed"    // Error says why the agent gives up
)

// Exit codes of an agent.
const (
	exitFinished = 0
	exitFailed   = 1
	exitPaused   = 3
	exitOrphaned = 9
)

// receipt is what the tool returns.
type receipt struct {
	PaymentID string `json:"payment_id"`
}

const payee = "ACME Tools"

func order(invoice string) bank.Order {
	return bank.Order{Reference: invoice, Payee: payee, Amount: 420000, Currency: "USD"}
}

// payer is an agent at work.
type payer struct {
	job
	goOn chan struct{}
	run  *client.Run
}

func agentMain(text string) int {
	a := &payer{goOn: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &a.job); err != nil {
		panic(err)
	}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			a.goOn <- struct{}{}
		}
		os.Exit(exitOrphaned)
	}()
	err := a.work(context.Background())
	switch {
	case err == nil:
		return exitFinished
	case errors.Is(err, client.ErrPaused):
		return exitPaused
	default:
		tell(event{Kind: failed, Error: err.Error()})
		return exitFailed
	}
}

func tell(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // one write: a reader never sees half of it
}

func (a *payer) park(at point, invoice int) {
	if invoice == 0 && slices.Contains(a.Park, at) {
		tell(event{At: at})
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
	var done struct{ Paid int }
	if _, err := a.run.State(&done); err != nil {
		return err
	}
	a.park(opened, done.Paid)
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
	tell(event{Kind: finished})
	return nil
}

func (a *payer) pay(ctx context.Context, i int) error {
	a.park(beforeIntent, i)
	invoice := a.Invoices[i]
	args := map[string]any{"vendor": payee, "invoice": invoice, "amount": 420000, "currency": "USD"}
	out, err := a.run.Do(ctx, a.Tool, args, func(ctx context.Context, call client.Call) (any, error) {
		tell(event{Kind: begun, Invoice: invoice, Effect: call.EffectID})
		a.park(afterIntent, i)
		if a.Deaf {
			ctx = context.WithoutCancel(ctx)
		}
		p, err := bank.Pay(ctx, a.Bank, call.VendorKey, order(invoice))
		if err != nil {
			return nil, err
		}
		a.park(afterAct, i)
		return client.Reference(p.ID, receipt{p.ID}), nil
	})
	e := event{Kind: paid, Invoice: invoice, Effect: out.EffectID, Replayed: out.Replayed, Recorded: out.Recorded, DecidedBy: out.DecidedBy}
	switch {
	case errors.Is(err, client.ErrCancelled):
		e.Kind = cancelled
	case err != nil:
		return fmt.Errorf("couldn't pay %s: %w", invoice, err)
	default:
		var r receipt
		if err := out.Decode(&r); err != nil {
			return err
		}
		e.Payment = r.PaymentID
	}
	tell(e)
	a.park(afterRecord, i)
	return nil
}
