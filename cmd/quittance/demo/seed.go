package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// call is one call of a run that lies on the desk before the agent comes.
type call struct {
	run, agent, tool string
	why              string // in the agent's own words
	args             map[string]any
	perform          client.Perform

	verdict *client.DecisionRequest // what the colleague said; nil leaves it to others
}

// What becomes of a call.
func took(reference string) client.Perform {
	return func(context.Context, client.Call) (any, error) {
		return client.Reference(reference, map[string]string{"id": reference}), nil
	}
}

func declined(reason string) client.Perform {
	return func(context.Context, client.Call) (any, error) { return nil, client.Refused(reason) }
}

func broke(how string) client.Perform {
	return func(context.Context, client.Call) (any, error) { return nil, errors.New(how) }
}

// unanswered pays at the bank, which books the order and does not answer: the caller
// hangs up then.
func (sc *scene) unanswered(o bank.Order) client.Perform {
	return func(ctx context.Context, call client.Call) (any, error) {
		ctx, hangUp := context.WithCancel(ctx)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = bank.Pay(ctx, sc.bankAt, call.VendorKey, o)
		}()
		_, err := sc.nextBooked(ctx)
		hangUp()
		<-answered
		return nil, cmp.Or(err, errors.New("the connection broke before the bank answered"))
	}
}

const (
	provenRun  = "ap-0120" // its payment is as the bank has it
	differsRun = "ap-0121" // its payment is not quite as the bank has it
	lostBySeed = 2         // answers of the bank
)

// repeated is for a call that overlaps an earlier one, and so is never performed.
var repeated = broke("a call that had to be held was performed")

func payment(vendor, invoice string, amount int64, currency string) map[string]any {
	return map[string]any{"vendor": vendor, "invoice": invoice, "amount": amount, "currency": currency}
}

// calls leave an effect in every state but in_flight, in the order of their making.
func (sc *scene) calls() []call {
	northern := payment("Northern Paper", "2026-118", 182550, "EUR")
	again := payment("Northern Paper", "2026-118", 182500, "EUR")
	rail := payment("Rail Freight Ltd", "RF-5521", 64000, "GBP")
	lamps := payment("Lamp Works", "LW-70", 9900, "USD")
	glass := bank.Order{Reference: "GS-311", Payee: "Glass and Sons", Amount: 31200, Currency: "USD"}
	copper := bank.Order{Reference: "CM-204", Payee: "Copper Mill", Amount: 86500, Currency: "USD"}
	const payer, nightly = "invoice-payer", "The nightly run was started again after a failure."
	wire := func(amount, beneficiary, purpose string) map[string]any {
		return map[string]any{"amount": amount, "currency": "USD", "beneficiary": beneficiary, "purpose": purpose}
	}
	return []call{
		{run: "ap-0117", agent: payer, tool: "send_payment", args: northern, perform: took("po_7731")},
		{run: "ap-0117-again", agent: payer, tool: "send_payment", args: again, why: nightly, perform: repeated}, // held
		{run: "ap-0118", agent: payer, tool: "send_payment", args: rail, perform: took("po_7732")},
		{run: "ap-0118-again", agent: payer, tool: "send_payment", args: rail, why: nightly, perform: repeated,
			verdict: &client.DecisionRequest{Verdict: client.VerdictAllow, Note: "The freight was split: they do want this amount twice."}},
		{run: "ap-0119", agent: payer, tool: "send_payment", args: lamps, perform: took("po_7733")},
		{run: "ap-0119-again", agent: payer, tool: "send_payment", args: lamps, why: nightly, perform: repeated,
			verdict: &client.DecisionRequest{Verdict: client.VerdictStop, Note: "The same invoice once more. It was paid with po_7733."}},
		{run: provenRun, agent: payer, tool: "send_payment", args: payment(glass.Payee, glass.Reference, glass.Amount, glass.Currency),
			perform: sc.unanswered(glass)},
		{run: differsRun, agent: payer, tool: "send_payment", args: payment(copper.Payee, copper.Reference, 85600, copper.Currency), // two digits swapped
			perform: sc.unanswered(copper)},
		{run: "shop-refund-88", agent: "shop-helper", tool: "issue_refund", why: "The parcel came back unopened.",
			args:    map[string]any{"order": "SO-3088", "amount": 12999, "currency": "EUR"},
			perform: broke("504 Gateway Timeout after 30 s")},
		{run: "trip-osaka", agent: "travel-desk", tool: "book_flight", why: "The only direct flight that day.",
			args:    map[string]any{"flight": "NH 204", "date": "2027-03-08", "traveller": "J. Lindqvist", "fare": 148300, "currency": "JPY"},
			perform: broke("the connection was reset while the answer was read")},
		{run: "trip-lisbon", agent: "travel-desk", tool: "book_flight",
			args:    map[string]any{"flight": "TP 571", "date": "2027-02-11", "traveller": "M. Okafor", "fare": 21850, "currency": "EUR"},
			perform: declined("sold out")},
		{run: "treasury-31", agent: "treasury", tool: "wire_transfer", why: "The rent is due on the first.",
			args: wire("48500.00", "Harbour Estates", "Rent 2027-01"), perform: broke("the bank's session ended before its receipt came"),
			verdict: &client.DecisionRequest{Verdict: client.VerdictTaken, Reference: "FT-20391", Note: "The portal shows FT-20391 to Harbour Estates, booked."}},
		{run: "digest-week-48", agent: "digest", tool: "send_email", args: map[string]any{"to": "board@example.com", "subject": "Week 48"},
			perform: broke("the mail server hung up after DATA"),
			verdict: &client.DecisionRequest{Verdict: client.VerdictTaken, Note: "It is in the board's inbox."}},
	}
}

// seed makes the calls, has a colleague decide some, and leaves one under way until
// stop is called.
func (sc *scene) seed(ctx context.Context, colleague string) (stop func(), err error) {
	token, err := sc.account(ctx, "back-office")
	if err != nil {
		return nil, err
	}
	c, person := sc.as(token), sc.as(colleague)
	defer person.Close()
	for _, call := range sc.calls() {
		if err := call.make(ctx, c, person); err != nil {
			c.Close()
			return nil, fmt.Errorf("couldn't put %s of %s on the desk: %w", call.tool, call.run, err)
		}
	}
	if err := sc.bankAsked(ctx, token); err != nil {
		c.Close()
		return nil, err
	}
	end, err := underWay(ctx, c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return func() { end(); c.Close() }, nil
}

// bankAsked waits until the bank's answers have proven what they can.
func (sc *scene) bankAsked(ctx context.Context, token string) error {
	for run, proven := range map[string]bool{provenRun: true, differsRun: false} {
		open, err := sc.lookedUp(ctx, token, run)
		if err == nil && (open == nil) != proven {
			err = errors.New("the bank's answer was judged otherwise")
		}
		if err != nil {
			return fmt.Errorf("couldn't have the bank asked about %s: %w", run, err)
		}
	}
	return nil
}

// make makes one call, and ends its run where nothing is open.
func (a call) make(ctx context.Context, c, person *client.Client) error {
	run, err := c.Open(ctx, a.run, client.RunOptions{Agent: a.agent})
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, a.tool, a.args, a.perform, client.WithContext(client.Context{Why: a.why}))
	_, refused := errors.AsType[*client.RefusedError](err)
	paused, open := errors.AsType[*client.Paused](err)
	switch {
	case err == nil:
		return run.Close(ctx, client.RunFinished)
	case refused:
		return run.Close(ctx, client.RunFailed)
	case !open:
		return err
	}
	if err := run.Release(ctx); err != nil || a.verdict == nil {
		return err
	}
	id := paused.WaitingFor[0].EffectID
	seen, err := person.Effect(ctx, id)
	if err != nil {
		return err
	}
	a.verdict.DecisionID, a.verdict.Version = "demo-"+a.run, seen.Version
	_, err = person.Decide(ctx, id, *a.verdict)
	return err
}

// underWay begins a call that goes on until stop is called.
func underWay(ctx context.Context, c *client.Client) (stop func(), err error) {
	run, err := c.Open(ctx, "restore-staging", client.RunOptions{Agent: "keeper"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var (
		wg      sync.WaitGroup
		begun   = make(chan struct{})
		refused = make(chan error, 1)
	)
	wg.Go(func() {
		_, err := run.Do(ctx, "restore_backup", map[string]any{"database": "staging", "backup": "2026-11-29"},
			func(ctx context.Context, _ client.Call) (any, error) {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			})
		refused <- err
	})
	stop = func() { cancel(); wg.Wait() }
	select {
	case <-begun:
		return stop, nil
	case err := <-refused:
		stop()
		return nil, err
	}
}
