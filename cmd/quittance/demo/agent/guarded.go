package agent

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// Tool is the guarded call's name in the policy.
const Tool = "send_payment"

// leaseSeconds is near the shortest there is, because a restarted agent waits for the
// dead one's lease to end; a busy machine must not lose it by being slow.
const leaseSeconds = 3

// guarded is an agent with Quittance between it and the bank.
type guarded struct {
	Config
	client *client.Client
	run    *client.Run
}

// load opens the run, waiting for the lease of a process that was killed to end.
func (g *guarded) load(ctx context.Context) (m memory, err error) {
	g.client = client.New(g.Server, g.Token, client.WithSpool(filepath.Join(g.Dir, "spool")))
	g.run, err = g.client.Open(ctx, g.Run, client.RunOptions{
		Agent: "invoice-payer", LeaseSeconds: leaseSeconds, WaitHeld: 10 * leaseSeconds * time.Second,
	})
	if err != nil {
		return memory{}, err
	}
	_, err = g.run.State(&m)
	return m, err
}

func (g *guarded) save(ctx context.Context, m memory) error { return g.run.Checkpoint(ctx, m.Turn, m) }

// arguments are the call as the policy knows it.
type arguments struct {
	Vendor   string `json:"vendor"`
	Invoice  string `json:"invoice"`
	Amount   int64  `json:"amount"` // in the currency's smallest unit
	Currency string `json:"currency"`
}

func (g *guarded) pay(ctx context.Context, o bank.Order) (r Receipt, e Event, err error) {
	args := arguments{Vendor: o.Payee, Invoice: o.Reference, Amount: o.Amount, Currency: o.Currency}
	out, err := g.run.Do(ctx, Tool, args, func(ctx context.Context, call client.Call) (any, error) {
		p, err := bank.Pay(ctx, g.Bank, call.VendorKey, o)
		if refusal, ok := errors.AsType[*bank.Refusal](err); ok {
			return nil, client.Refused(refusal)
		}
		return client.Reference(p.ID, Receipt{p.ID}), err
	})
	if err != nil {
		return r, e, err
	}
	err = out.Decode(&r)
	return r, Event{Replayed: out.Replayed, DecidedBy: out.DecidedBy}, err
}

func (g *guarded) close(ctx context.Context, done bool) error {
	if g.client == nil {
		return nil
	}
	defer g.client.Close()
	switch {
	case g.run == nil:
		return nil
	case done:
		return g.run.Close(ctx, client.RunFinished)
	default:
		return g.run.Release(ctx)
	}
}
