package payments

import (
	"context"
	"slices"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
	"quittance/reconcile/refunds"
)

// Told is what a payer is told of a payment, in one word of theirs.
type Told string

const (
	ToldPaid        Told = "paid"
	ToldChecking    Told = "checking"     // nobody knows yet
	ToldNothing     Told = "nothing"      // nothing was received so far
	ToldPart        Told = "part"         // less than is asked was received
	ToldNotCharged  Told = "not_charged"  // proven: nothing was, or can be, taken
	ToldRefundDue   Told = "refund_due"   // all that was received is to go back
	ToldRefunded    Told = "refunded"     // and did
	ToldRefundAgain Told = "refund_again" // came back, and is due again
	ToldClosed      Told = "closed"       // some of it is not given back, and somebody decided so
)

// Receipt is what a payer may know: nothing that names an id of ours, what was asked for,
// or a person.
type Receipt struct {
	*Payment
	State    Told
	Received money.Atomic
	At       time.Time // when the money came, or the order was created
	Tx       string    // of what pays the order, or of what came at all
	Final    bool      // its rail cannot take it back any more
	// Refund is how far what is owed back is, "" where nothing is: the same word as in the
	// look-up of the order.
	Refund      string
	Owed        money.Atomic // in all
	Refunded    money.Atomic
	WrittenOff  money.Atomic
	DueBy       time.Time
	Destination string
	RefundTxs   []string // of what was sent back, first to last
}

// ReceiptOf finds what a receipt's token names; [CodeNotFound] for every other text.
func (e *Engine) ReceiptOf(ctx context.Context, token string) (*Receipt, error) {
	p, err := e.Receipt(ctx, token)
	if err != nil {
		return nil, err
	}
	return e.receiptFor(ctx, e.db, p)
}

func (e *Engine) receiptFor(ctx context.Context, r ledger.Reader, p *Payment) (*Receipt, error) {
	out := &Receipt{Payment: p, State: p.told(), At: p.Order.CreatedAt}
	for i := range p.Transfers {
		t := &p.Transfers[i]
		if t.Reverted() {
			continue
		}
		out.Received = out.Received.Plus(t.Amount)
		if out.Tx == "" || t.Class == Applied {
			out.Tx, out.At, out.Final = t.Tx, t.SeenAt, t.Final
		}
	}
	out.Refund, out.Owed, out.Refunded = RefundState(p.Refunds)
	within := e.policy().Gateway(p.Gateway).RefundWithin
	for i := range p.Refunds {
		f := &p.Refunds[i]
		out.WrittenOff = out.WrittenOff.Plus(f.WrittenOff)
		if f.State == refunds.Void {
			continue
		}
		out.Destination = f.To()
		if due := f.OpenedAt.Add(within); refunds.Open(f.State) && (out.DueBy.IsZero() || due.Before(out.DueBy)) {
			out.DueBy = due
		}
	}
	list, err := store.PayoutsOf(ctx, r, p.Order.ID)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if x.Tx != "" && (x.State == "confirmed" || x.State == "sent") {
			out.RefundTxs = append(out.RefundTxs, x.Tx)
		}
	}
	return out, nil
}

// told is the word for a payment that has an order. The first that fits: what was received
// says more than what its gateway said, and only proof says that nothing was taken.
func (p *Payment) told() Told {
	if standing(p.Order.State) == Paid {
		return ToldPaid
	}
	var held, back, reverted bool
	for i := range p.Transfers {
		t := &p.Transfers[i]
		switch {
		case t.Reverted():
			reverted = true
		case t.Class == Under:
			held = true
		default:
			back = true
		}
	}
	switch {
	case held:
		return ToldPart
	case back:
		return toldRefund(p.Refunds)
	case len(p.Authorizations) > 0 && !slices.ContainsFunc(p.Authorizations, func(a payments.Authorization) bool { return a.DeadWhy == "" }) && standing(p.Order.State) == Unpaid:
		return ToldNotCharged
	case len(p.Authorizations) == 0 && !p.BroadcastAt.IsZero() && (p.State == string(Refused) || p.PrunedFrom == string(Refused)) && standing(p.Order.State) == Unpaid:
		return ToldNotCharged // only people end what was sent without an authorization
	case reverted, len(p.Authorizations) > 0, !p.BroadcastAt.IsZero(), p.State == string(Unknown), p.State == string(Settled), p.PrunedFrom == string(Settled):
		return ToldChecking
	}
	return ToldNothing
}

func toldRefund(list []payments.Refund) Told {
	state, _, _ := RefundState(list)
	again := slices.ContainsFunc(list, func(f payments.Refund) bool { return f.State == refunds.Returned })
	switch {
	case again:
		return ToldRefundAgain
	case state == refunds.Confirmed:
		return ToldRefunded
	case state == refunds.WrittenOff:
		return ToldClosed
	}
	return ToldRefundDue
}
