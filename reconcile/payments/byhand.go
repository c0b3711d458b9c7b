package payments

import (
	"context"
	"errors"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
	"quittance/ledger/system"
	"quittance/reconcile/access"
)

// ByHand is what a person decides about a transfer that no rule can place.
type ByHand struct {
	By       access.MadeBy
	Transfer string
	Note     string // why; it is needed
	Order    string // of Match
}

// GiveBack decides that a transfer is owed back whole: one that nobody knows an order of,
// or one that is held since it is less than its order asks. Somebody else approves it.
func (e *Engine) GiveBack(ctx context.Context, in ByHand) (*Moved, error) {
	return e.byHand(ctx, in, func(ctx context.Context, tx *ledger.Tx, pay *Payment, t payments.Transfer) (*Moved, error) {
		switch {
		case t.Class != Unmatched && t.Class != Under:
			return nil, notNow("Only a transfer without an order, or one that is held, is given back by hand.")
		case t.Reverted():
			return nil, notNow("It was taken back by its rail: there is nothing to give back.")
		}
		counted, err := store.ReturnKnown(ctx, tx, t.Network, t.Tx)
		if err != nil {
			return nil, err
		}
		if counted {
			return nil, notNow("It is on record as a refund that came back, and that one is owed again. Giving this back too would pay twice.")
		}
		before := t
		t.Class = GivenBack
		if err := payments.Classify(ctx, tx, t); err != nil {
			return nil, err
		}
		f, err := e.moved(ctx, tx, pay, &before, &t, "transfer_given_back", in.By.Person.ID, in.Note)
		return &Moved{Transfer: t, Refund: f}, err
	})
}

// Match decides which order a transfer is for that named none. From then on the rules say
// what it is, as if it had come with the order's name.
func (e *Engine) Match(ctx context.Context, in ByHand) (*Moved, error) {
	if !isUUID(in.Order) {
		return nil, notNow("That is no order's id.")
	}
	return e.byHand(ctx, in, func(ctx context.Context, tx *ledger.Tx, pay *Payment, t payments.Transfer) (*Moved, error) {
		switch {
		case t.Class != Unmatched || t.OrderID != "":
			return nil, notNow("It has its place already: only a transfer without an order is matched by hand.")
		case t.Reverted():
			return nil, notNow("It was taken back by its rail.")
		case pay == nil || pay.Account != t.Account:
			return nil, notNow("There is no such order.")
		case pay.Order == nil || !fits(pay.Order, &t.Moved):
			return nil, notNow("The order is of another asset, rail or recipient.")
		}
		counted, err := store.ReturnKnown(ctx, tx, t.Network, t.Tx)
		if err != nil {
			return nil, err
		}
		if counted {
			return nil, notNow("It is on record as a refund that came back, and that one is owed again.")
		}
		before, c := t, classify(pay.Order, pay.Transfers, t.Amount)
		t.OrderID, t.Class, t.Over = pay.OrderID, c.class, c.over
		if err := payments.Classify(ctx, tx, t); err != nil {
			return nil, err
		}
		f, err := e.moved(ctx, tx, pay, &before, &t, "transfer_matched", in.By.Person.ID, in.Note)
		if err != nil {
			return nil, err
		}
		return &Moved{Transfer: t, Refund: f}, e.paid(ctx, tx, pay, c)
	})
}

func notNow(detail string) *Refusal {
	return &Refusal{Code: CodeConflict, Reason: ReasonRequest, Detail: detail}
}

// byHand runs f in a transaction that holds the payment of the transfer's order, or of the
// order that it is to be matched to, and the transfer.
func (e *Engine) byHand(ctx context.Context, in ByHand, f func(ctx context.Context, tx *ledger.Tx, pay *Payment, t payments.Transfer) (*Moved, error)) (m *Moved, err error) {
	if err := noted(in.By, in.Note); err != nil {
		return nil, err
	}
	if !isUUID(in.Transfer) {
		return nil, errNoTransfer
	}
	for range tries {
		err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
			sys, err := system.Read(ctx, tx)
			if err != nil {
				return err
			}
			if sys.Behind() {
				return errBehind
			}
			t, err := payments.TransferByID(ctx, tx, in.Transfer)
			if err != nil {
				return err
			}
			if t == nil {
				return errNoTransfer
			}
			order, was := t.OrderID, t.OrderID
			if order == "" {
				order = in.Order
			}
			var pay *Payment
			if order != "" {
				row, err := payments.ByOrder(ctx, tx, order)
				if err != nil {
					return err
				}
				if row != nil {
					if row, err = payments.Lock(ctx, tx, row.ID); err != nil {
						return err
					}
					if pay, err = load(ctx, tx, row); err != nil {
						return err
					}
				}
			}
			if t, err = payments.LockTransfer(ctx, tx, in.Transfer); err != nil {
				return err
			}
			if t.OrderID != was {
				return errAgain
			}
			if m, err = f(ctx, tx, pay, *t); err != nil {
				return err
			}
			line := in.By.Row("transfer.by_hand", "transfer:"+t.ID)
			line.Note = in.Note
			return audit.Add(ctx, tx, line)
		})
		if !errors.Is(err, errAgain) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

var errNoTransfer = &Refusal{Code: CodeNotFound, Detail: "There is no such transfer."}
