// Package agent is the demo's agent: it reads an invoice, pays it, files the receipt,
// and saves what it knows after each turn. The same turns run with Quittance and
// without it.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// Config is what an agent process is told.
type Config struct {
	Bank   string `help:"The bank's address." required:"" placeholder:"URL"`
	Server string `help:"Quittance's address. Without it the agent pays unguarded." placeholder:"URL"`
	Run    string `help:"The run to begin or to go on with." required:"" placeholder:"ID"`
	Dir    string `help:"Where an unguarded agent saves its state, and a guarded one the outcomes it cannot deliver." default:"." placeholder:"DIR"`
	HoldAt Point  `help:"Stop for ever at this point (paid: the payment is made and recorded, and nothing is saved yet)." enum:"none,paid" default:"none"`

	Token string `kong:"-"` // the agent's own; a command line would show it to everybody
}

// Point is a place in the turns where an agent can be told to stand still, so that
// whoever kills it knows what it has done.
type Point string

// PointPaid is after the payment is made, and recorded if guarded, and before the
// turn is saved.
const PointPaid Point = "paid"

// Invoice is what lies in the agent's inbox.
var Invoice = bank.Order{Reference: "INV-9", Payee: "ACME Tools", Amount: 420000, Currency: "USD"}

// memory is what an agent knows, saved after each turn.
type memory struct {
	Turn    int64       `json:"turn"` // the last complete one
	Invoice *bank.Order `json:"invoice,omitempty"`
	Receipt *Receipt    `json:"receipt,omitempty"`
}

// Receipt is what the agent's tool returns.
type Receipt struct {
	PaymentID string `json:"payment_id"`
}

// keeper is what differs with Quittance and without: where the memory lies, and what
// stands between the agent and the bank.
type keeper interface {
	// load returns the memory of an earlier process, or an empty one.
	load(ctx context.Context) (memory, error)
	save(ctx context.Context, m memory) error
	// pay also says how the receipt was come by.
	pay(ctx context.Context, o bank.Order) (Receipt, Event, error)
	// close ends the run when done, and otherwise leaves it to another process.
	close(ctx context.Context, done bool) error
}

// Main goes through the turns from where an earlier process of the run stood. It
// writes one [Event] a line to out. When a person must decide first it returns an
// error that wraps [client.ErrPaused].
func Main(ctx context.Context, c Config, out io.Writer) error {
	a := &agent{Config: c, out: out, keeper: &bare{c}}
	if c.Server != "" {
		a.keeper = &guarded{Config: c}
	}
	err := a.turns(ctx)
	if paused, ok := errors.AsType[*client.Paused](err); ok {
		a.tell(Event{Kind: Paused, Waiting: paused.WaitingFor})
	}
	return errors.Join(err, a.keeper.close(context.WithoutCancel(ctx), err == nil))
}

type agent struct {
	Config
	keeper
	out io.Writer
}

func (a *agent) turns(ctx context.Context) error {
	m, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.tell(Event{Kind: Started, Turn: m.Turn})
	if m.Turn < 1 {
		invoice := Invoice
		m.Turn, m.Invoice = 1, &invoice
		if err := a.remember(ctx, m); err != nil {
			return err
		}
	}
	if m.Turn < 2 {
		receipt, paid, err := a.pay(ctx, *m.Invoice)
		if err != nil {
			return fmt.Errorf("couldn't pay %s: %w", m.Invoice.Reference, err)
		}
		paid.Kind, paid.Turn, paid.Payment = Paid, m.Turn, receipt.PaymentID
		a.tell(paid)
		if a.HoldAt == PointPaid {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		m.Turn, m.Receipt = 2, &receipt
		if err := a.remember(ctx, m); err != nil {
			return err
		}
	}
	m.Turn = 3
	if err := a.remember(ctx, m); err != nil {
		return err
	}
	a.tell(Event{Kind: Finished, Turn: m.Turn, Payment: m.Receipt.PaymentID})
	return nil
}

func (a *agent) remember(ctx context.Context, m memory) error {
	if err := a.save(ctx, m); err != nil {
		return fmt.Errorf("couldn't save turn %d: %w", m.Turn, err)
	}
	a.tell(Event{Kind: Saved, Turn: m.Turn})
	return nil
}

// tell writes one event in one write: a reader never sees half of one.
func (a *agent) tell(e Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = a.out.Write(append(line, '\n'))
	}
}
