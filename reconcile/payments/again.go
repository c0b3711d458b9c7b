package payments

import (
	"context"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
)

// again meets a movement that is on record: what was said before must be said again, and
// where it stands on its rail may have changed.
func (e *Engine) again(ctx context.Context, tx *ledger.Tx, pay *Payment, p Posted, id string) (*Moved, error) {
	t, err := payments.TransferByID(ctx, tx, id) // as it is now that its payment is held
	if err != nil {
		return nil, err
	}
	if t.OrderID == "" {
		if t, err = payments.LockTransfer(ctx, tx, t.ID); err != nil {
			return nil, err
		}
		if t.OrderID != "" {
			return nil, errAgain // it was matched just now
		}
	} else if pay == nil || pay.OrderID != t.OrderID {
		return nil, errAgain
	}
	if t.Asset != p.Asset || t.Sender != p.Sender || t.Recipient != p.Recipient || t.Amount.Cmp(p.Amount) != 0 || p.Nonce != "" && t.Nonce != "" && t.Nonce != p.Nonce {
		return nil, &Refusal{Code: CodeConflict, Reason: ReasonRequest, Detail: "The same place of the rail is on record with another movement."}
	}
	if t.Position == payments.NoPlace {
		if err := payments.ShownAt(ctx, tx, t.ID, p.Position); err != nil {
			return nil, err
		}
	}
	if p.Hearsay && p.Reverted != t.Reverted() && !t.Final {
		if err := payments.AskSoon(ctx, tx, t.ID); err != nil {
			return nil, err
		}
		f, err := payments.RefundOf(ctx, tx, t.ID)
		return &Moved{Transfer: *t, Refund: f}, err
	}
	before := *t
	t.Block, t.BlockHash = orElse(p.Block, t.Block), orElse(p.BlockHash, t.BlockHash)
	switch {
	case p.Reverted && t.Final:
		if pay != nil {
			e := payments.Event{Payment: pay.ID, Transfer: t.ID, Kind: "final_reverted", Alert: true}
			if err := payments.RecordOnce(ctx, tx, e, map[string]any{"tx": t.Tx, "position": t.Position}, lateLimit); err != nil {
				return nil, err
			}
		}
		return nil, &Refusal{Code: CodeConflict, Reason: ReasonRequest, Detail: "The transfer is on record as final, and what is final is not reorganised away. A person has to look."}
	case p.Reverted && !t.Reverted():
		return e.revert(ctx, tx, pay, before, *t)
	case !p.Reverted && t.Reverted():
		return e.comeBack(ctx, tx, pay, before, *t, p.Final)
	}
	t.Final = t.Final || p.Final && !t.Reverted()
	if t.Class == Unmatched && t.OrderID == "" && pay != nil && !t.Reverted() {
		if m, err := e.placed(ctx, tx, pay, before, *t); m != nil || err != nil {
			return m, err
		}
	}
	if *t != before {
		if err := payments.Classify(ctx, tx, *t); err != nil {
			return nil, err
		}
		if t.Final != before.Final {
			if _, err := e.moved(ctx, tx, pay, &before, t, "transfer_final", 0, ""); err != nil {
				return nil, err
			}
		}
	}
	f, err := payments.RefundOf(ctx, tx, t.ID)
	return &Moved{Transfer: *t, Refund: f}, err
}

// placed finds a movement's order that nothing named when it was first seen: the rail was
// read before its gateway told what it is for, or before its authorization was offered. nil
// leaves it to a person.
func (e *Engine) placed(ctx context.Context, tx *ledger.Tx, pay *Payment, before, t payments.Transfer) (*Moved, error) {
	returned, err := store.ReturnKnown(ctx, tx, t.Network, t.Tx)
	if err != nil || returned {
		return nil, err
	}
	if pay.Network != t.Network || pay.Asset != t.Asset || pay.PayTo != t.Recipient {
		return nil, nil
	}
	if err := e.ordered(ctx, tx, pay); err != nil {
		return nil, err
	}
	c := classify(pay.Order, pay.Transfers, t.Amount)
	t.OrderID, t.Class, t.Over = pay.OrderID, c.class, c.over
	if err := payments.Classify(ctx, tx, t); err != nil {
		return nil, err
	}
	f, err := e.moved(ctx, tx, pay, &before, &t, "transfer_"+t.Class, 0, "")
	if err != nil {
		return nil, err
	}
	return &Moved{Transfer: t, Refund: f}, e.paid(ctx, tx, pay, c)
}

func orElse[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}

// revert takes a transfer out that was reorganised away: what was owed for it is void, and
// an order that it paid is open again, with what else arrived for it held.
func (e *Engine) revert(ctx context.Context, tx *ledger.Tx, pay *Payment, before, t payments.Transfer) (*Moved, error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	t.RevertedAt = ledger.At(now)
	if err := payments.Classify(ctx, tx, t); err != nil {
		return nil, err
	}
	f, err := e.moved(ctx, tx, pay, &before, &t, "transfer_reverted", 0, "")
	if err != nil {
		return nil, err
	}
	if pay != nil && before.Class == Applied && standing(pay.Order.State) == Paid {
		others := without(pay.Transfers, t.ID)
		if enough, err := e.stillPaid(ctx, tx, pay, others); enough || err != nil {
			return &Moved{Transfer: t, Refund: f}, err
		}
		for _, other := range others {
			if other.Class != Applied || other.Reverted() {
				continue
			}
			if err := e.reclass(ctx, tx, pay, other, Under, "held_again"); err != nil {
				return nil, err
			}
		}
		if err := e.paid(ctx, tx, pay, classes{order: "paying"}); err != nil {
			return nil, err
		}
		if err := payments.CheckAfter(ctx, tx, pay.ID, checks[0], true); err != nil {
			return nil, err
		}
	}
	return &Moved{Transfer: t, Refund: f}, nil
}

// stillPaid tells that an order is paid without a transfer that was taken away: then less
// is over of what paid the rest.
func (e *Engine) stillPaid(ctx context.Context, tx *ledger.Tx, pay *Payment, others []payments.Transfer) (bool, error) {
	var got money.Atomic
	var last *payments.Transfer
	for i := range others {
		if x := &others[i]; x.Class == Applied && !x.Reverted() {
			got = got.Plus(x.Amount)
			// Only what came last brought anything over: what was held before was less than is asked.
			if x.Over.Sign() > 0 {
				last = x
			}
		}
	}
	if last == nil || got.Cmp(pay.Order.Amount) < 0 {
		return false, nil
	}
	before := *last
	last.Over = got.Minus(pay.Order.Amount)
	if err := payments.Classify(ctx, tx, *last); err != nil {
		return false, err
	}
	_, err := e.moved(ctx, tx, pay, &before, last, "transfer_less_over", 0, "")
	return true, err
}

// comeBack classifies a transfer again that was reorganised away and is there again, in its
// own row.
func (e *Engine) comeBack(ctx context.Context, tx *ledger.Tx, pay *Payment, before, t payments.Transfer, final bool) (*Moved, error) {
	t.RevertedAt, t.Final = ledger.Time{}, final
	c := classes{class: t.Class}
	if pay != nil && t.Class != GivenBack && t.Class != FailedCall {
		c = classify(pay.Order, without(pay.Transfers, t.ID), t.Amount)
	}
	t.Class, t.Over = c.class, c.over
	if err := payments.Classify(ctx, tx, t); err != nil {
		return nil, err
	}
	f, err := e.moved(ctx, tx, pay, &before, &t, "transfer_back", 0, "")
	if err != nil {
		return nil, err
	}
	if pay != nil && c.order != "" {
		pay.Transfers = without(pay.Transfers, t.ID)
		if err := e.paid(ctx, tx, pay, c); err != nil {
			return nil, err
		}
	}
	return &Moved{Transfer: t, Refund: f}, nil
}

// fail ends an order that is not to be paid any more, and gives back what arrived for it.
// Money that paid it is given back too: what it paid for was not done.
func (e *Engine) fail(ctx context.Context, tx *ledger.Tx, pay *Payment, to string) error {
	if pay.Order == nil || standing(pay.Order.State) == Unpaid {
		return nil
	}
	wasPaid := standing(pay.Order.State) == Paid
	for _, t := range pay.Transfers {
		if t.Reverted() || t.Class != Applied && t.Class != Under {
			continue
		}
		class := Late
		if wasPaid {
			class = FailedCall
		}
		if err := e.reclass(ctx, tx, pay, t, class, class); err != nil {
			return err
		}
	}
	return e.paid(ctx, tx, pay, classes{order: to})
}

// Cancel ends an order by its gateway's word, while nothing that was sent for it may land.
func (e *Engine) Cancel(ctx context.Context, n payments.Name) (p *Payment, err error) {
	err = e.locked(ctx, n, func(ctx context.Context, tx *ledger.Tx, stored *Payment) (refusal, err error) {
		p = stored
		switch {
		case p.Order == nil || standing(p.Order.State) != NotFinal:
			return p.refusal(CodeOrderFinal, "There is no open order."), nil
		case p.waits():
			return p.refusal(CodeInFlight, "Something was done or sent for the order: it is not over until its authorization is dead."), nil
		}
		if err := e.fail(ctx, tx, p, "cancelled"); err != nil {
			return nil, err
		}
		return nil, p.reload(ctx, tx)
	})
	return p, err
}

// waits tells that an order may not end by time: a settled payment's never does, and where
// work or a broadcast is recorded not until every authorization is closed.
func (p *Payment) waits() bool {
	if p.State == string(Settled) || p.PrunedFrom == string(Settled) {
		return true
	}
	if (p.Work == nil && p.BroadcastAt.IsZero()) || p.State != string(InFlight) && p.State != string(Unknown) {
		return false
	}
	for i := range p.Authorizations {
		if !p.closed(&p.Authorizations[i]) {
			return true
		}
	}
	return len(p.Authorizations) == 0 && !p.BroadcastAt.IsZero()
}
