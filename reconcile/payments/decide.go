package payments

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/payments"
	"quittance/ledger/system"
	"quittance/reconcile/access"
)

// Deciding is one thing that a person does about a payment of which nobody knows what
// became.
type Deciding struct {
	By      access.MadeBy
	Order   string  // its order's id
	Verdict Verdict // of [Engine.AskDecision]
	Tx      string  // of VerdictSettled
	Note    string  // where they looked, and what they saw
	Version int64   // the newest event on the page that they looked at
}

// AskDecision records what a person says became of a payment; another person lets it go.
// Where the rail can be asked it is asked first, and what it shows is recorded instead:
// done tells that nothing is left to be decided.
func (e *Engine) AskDecision(ctx context.Context, in Deciding) (done bool, err error) {
	if in.Verdict != VerdictSettled && in.Verdict != VerdictNotTaken {
		return false, notNow("Nothing else can be decided of it.")
	}
	p, err := e.PaymentOfOrder(ctx, 0, in.Order)
	if err != nil {
		return false, err
	}
	if in.Tx = same(p.Network, strings.TrimSpace(in.Tx)); in.Verdict == VerdictNotTaken {
		in.Tx = ""
	}
	switch {
	case in.Verdict == VerdictSettled && in.Tx == "":
		return false, notNow("The reference is needed by which the network knows the payment.")
	case len(in.Tx) > 256:
		return false, notNow("A reference has at most 256 bytes.")
	case in.Tx != "" && evm(p.Network) && !hash32.MatchString(in.Tx):
		return false, notNow("That is no transaction's hash: 0x and 64 hex digits.")
	}
	if why := e.Undecidable(p, in.Verdict); why != "" {
		return false, notNow(why)
	}
	if done, err = e.askFirst(ctx, p, in.Verdict, in.Tx); done || err != nil {
		return done, err
	}
	err = e.deciding(ctx, in, "payment.decide", func(ctx context.Context, tx *ledger.Tx, p *Payment, waiting *payments.Decision) error {
		if waiting != nil {
			return notNow("Somebody has decided it already; it waits to be let go.")
		}
		if why := e.Undecidable(p, in.Verdict); why != "" {
			return notNow(why)
		}
		if err := e.referenceIsFree(ctx, tx, p, in.Tx); err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		err = payments.AddDecision(ctx, tx, payments.Decision{
			ID: uuid.Must(uuid.NewV7()).String(), Payment: p.ID, Verdict: string(in.Verdict), Tx: in.Tx, Note: in.Note, Fence: p.Fence,
			MadeBy: in.By.Person.ID, MadeAt: now, ReadyAt: now.Add(e.policy().Hold(in.Verdict == VerdictNotTaken, true)),
		})
		if err != nil {
			return decided(err)
		}
		return payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "decision_asked", PersonID: in.By.Person.ID},
			map[string]any{"verdict": in.Verdict, "tx": in.Tx, "note": in.Note, "fence": p.Fence})
	})
	return false, err
}

// LetGo does what another person decided, after a look of one's own. The rail is asked once
// more where it can be.
func (e *Engine) LetGo(ctx context.Context, in Deciding) (done bool, err error) {
	p, err := e.PaymentOfOrder(ctx, 0, in.Order)
	if err != nil {
		return false, err
	}
	d, err := payments.WaitingDecision(ctx, e.db, p.ID)
	if err != nil {
		return false, err
	}
	if d == nil {
		return false, notNow("Nothing waits to be let go.")
	}
	if done, err = e.askFirst(ctx, p, Verdict(d.Verdict), d.Tx); done || err != nil {
		return done, err
	}
	var end *Payment
	err = e.deciding(ctx, in, "payment.let_go", func(ctx context.Context, tx *ledger.Tx, p *Payment, d *payments.Decision) error {
		end = p
		switch {
		case d == nil:
			return notNow("Nothing waits to be let go.")
		case d.MadeBy == in.By.Person.ID:
			return notNow("You decided it: another person looks again, and lets it go.")
		case p.Now.Before(d.ReadyAt):
			return notNow("It is let go from " + d.ReadyAt.UTC().Format("15:04:05 UTC") + " on, not before.")
		case p.Fence != d.Fence:
			return notNow("Somebody took the payment over since. Drop the decision, and look again.")
		}
		if why := e.Undecidable(p, Verdict(d.Verdict)); why != "" {
			return notNow(why)
		}
		if err := e.referenceIsFree(ctx, tx, p, d.Tx); err != nil {
			return err
		}
		if err := payments.EndDecision(ctx, tx, d.ID, "done", in.By.Person.ID, in.Note); err != nil {
			return decided(err)
		}
		err := payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "decided_" + d.Verdict, PersonID: in.By.Person.ID}, map[string]any{"tx": d.Tx, "note": in.Note})
		if err != nil {
			return err
		}
		if Verdict(d.Verdict) == VerdictSettled {
			return e.settledByPeople(ctx, tx, p, d.Tx)
		}
		return e.notTakenByPeople(ctx, tx, p, d)
	})
	if err == nil && end.State == string(Refused) {
		e.closeRun(ctx, end)
	}
	return false, err
}

// DropDecision ends a decision that was not let go: nothing came of it.
func (e *Engine) DropDecision(ctx context.Context, in Deciding) error {
	return e.deciding(ctx, in, "payment.drop", func(ctx context.Context, tx *ledger.Tx, p *Payment, d *payments.Decision) error {
		if d == nil {
			return notNow("Nothing waits to be let go.")
		}
		if err := payments.EndDecision(ctx, tx, d.ID, "dropped", in.By.Person.ID, in.Note); err != nil {
			return err
		}
		return payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "decision_dropped", PersonID: in.By.Person.ID}, map[string]any{"note": in.Note})
	})
}

// SeeAlerts records that a person saw the alerts of a payment, and what they make of them.
func (e *Engine) SeeAlerts(ctx context.Context, in Deciding) error {
	return e.deciding(ctx, in, "payment.alerts_seen", func(ctx context.Context, tx *ledger.Tx, p *Payment, _ *payments.Decision) error {
		n, err := payments.OpenAlerts(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return notNow("Somebody has seen them already.")
		}
		return payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "alerts_seen", PersonID: in.By.Person.ID}, map[string]any{"note": in.Note, "alerts": n})
	})
}

// settledByPeople records the movement that people saw, as what pays the order.
func (e *Engine) settledByPeople(ctx context.Context, tx *ledger.Tx, p *Payment, hash string) error {
	sys, err := system.Read(ctx, tx)
	if err != nil {
		return err
	}
	// Final: nobody else can be asked whether it is.
	s := Seen{Final: true, Moved: payments.Moved{
		Account: p.Account, Network: p.Network, Tx: hash, Position: payments.NoPlace, Asset: p.Asset, Sender: p.Payer, Recipient: p.PayTo, Amount: p.Amount, KnownBy: "person",
	}}
	var open []string
	for i := range p.Authorizations {
		if a := &p.Authorizations[i]; !p.closed(a) {
			open = append(open, a.Nonce)
		}
	}
	if len(open) == 1 { // nothing else can have moved it
		s.Nonce = open[0]
	}
	_, err = e.arrive(ctx, tx, p, Posted{Seen: s}, sys)
	return err
}

// notTakenByPeople ends a payment of which people found that nothing moved: what was signed
// for it counts as dead, and money that comes after all is owed back.
func (e *Engine) notTakenByPeople(ctx context.Context, tx *ledger.Tx, p *Payment, d *payments.Decision) error {
	for i := range p.Authorizations {
		if a := &p.Authorizations[i]; a.DeadWhy == "" && !p.closed(a) {
			if err := payments.DeadByPerson(ctx, tx, a.ID, cut("Two people found that it moved nothing: "+d.Note, 1000)); err != nil {
				return err
			}
		}
	}
	if err := e.fail(ctx, tx, p, "failed"); err != nil {
		return err
	}
	if err := payments.End(ctx, tx, p.ID, string(Refused), "", "two people found that nothing was taken", false, payments.Answer{}); err != nil {
		return err
	}
	return p.reload(ctx, tx)
}

// deciding runs f in a transaction that holds the payment, as the person saw it.
func (e *Engine) deciding(ctx context.Context, in Deciding, action string, f func(ctx context.Context, tx *ledger.Tx, p *Payment, waiting *payments.Decision) error) error {
	if err := noted(in.By, in.Note); err != nil {
		return err
	}
	row, err := payments.ByOrder(ctx, e.db, in.Order)
	if err != nil {
		return err
	}
	if row == nil {
		return errNotFound
	}
	return e.locked(ctx, payments.Name{Account: row.Account, Gateway: row.Gateway, PaymentID: row.PaymentID}, func(ctx context.Context, tx *ledger.Tx, p *Payment) (refusal, err error) {
		last, err := payments.LastEvent(ctx, tx, p.ID)
		if err != nil {
			return nil, err
		}
		if last != in.Version {
			return nil, notNow("It changed since you looked. Look again.")
		}
		waiting, err := payments.WaitingDecision(ctx, tx, p.ID)
		if err != nil {
			return nil, err
		}
		err = f(ctx, tx, p, waiting)
		if errors.Is(err, errAgain) {
			err = notNow("It changed since you looked. Look again.")
		}
		if err != nil {
			return nil, err // also a refusal rolls back: nothing of it stays
		}
		line := in.By.Row(action, "order:"+p.OrderID)
		line.Note = in.Note
		return nil, audit.Add(ctx, tx, line)
	})
}

// decided turns what the database refused into words; the rules were asked before.
func decided(err error) error {
	switch ledger.Constraint(err) {
	case "payment_decisions_unknown", "payment_decisions_fence", "payment_decisions_paid", "payment_decisions_one_waiting":
		return notNow("It changed since you looked. Look again.")
	case "payment_decisions_may_land":
		return notNow("What was signed may still land.")
	case "payment_decisions_two_people":
		return notNow("You decided it: another person looks again, and lets it go.")
	case "payment_decisions_in_time":
		return notNow("It is not let go yet.")
	}
	return err
}

// noted wants a person, and a reason.
func noted(by access.MadeBy, note string) error {
	switch {
	case by.Person == nil || strings.TrimSpace(note) == "":
		return notNow("Say why, in a note.")
	case len(note) > 4096:
		return notNow("A note has at most 4096 bytes.")
	}
	return nil
}
