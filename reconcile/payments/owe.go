package payments

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	"quittance/reconcile/refunds"
)

// reclass gives a transfer another class, and what goes with it.
func (e *Engine) reclass(ctx context.Context, tx *ledger.Tx, pay *Payment, t payments.Transfer, class, why string) error {
	before := t
	t.Class, t.Over = class, money.Atomic{}
	if err := payments.Classify(ctx, tx, t); err != nil {
		return err
	}
	_, err := e.moved(ctx, tx, pay, &before, &t, "transfer_"+why, 0, "")
	return err
}

// moved posts what a transfer's change means, opens or changes what is owed for it, and
// records it. before nil: it is new. by and note are of the person who decided it; 0 where
// none did.
func (e *Engine) moved(ctx context.Context, tx *ledger.Tx, pay *Payment, before, t *payments.Transfer, kind string, by int64, note string) (*payments.Refund, error) {
	f, err := owe(ctx, tx, pay, t, by)
	if err != nil {
		return nil, err
	}
	sides := difference(before, t)
	if f != nil {
		for i := range sides {
			if sides[i].Account == "refund_owed" {
				sides[i].Refund = f.ID
			}
		}
	}
	if err := payments.Post(ctx, tx, &t.Moved, sides...); err != nil {
		return nil, err
	}
	event := payments.Event{Transfer: t.ID, Kind: kind, PersonID: by, Alert: t.Class == Unmatched && before == nil}
	if pay != nil {
		event.Payment = pay.ID
	}
	said := map[string]any{
		"class": t.Class, "over": t.Over.String(), "amount": t.Amount.String(), "final": t.Final, "reverted": t.Reverted(), "block": t.Block,
	}
	if note != "" {
		said["note"] = note
	}
	return f, payments.Record(ctx, tx, event, said)
}

// owe makes what is owed for a transfer what its class says. by is the person who decided
// about the class; 0 where none did.
func owe(ctx context.Context, tx *ledger.Tx, pay *Payment, t *payments.Transfer, by int64) (*payments.Refund, error) {
	f, err := payments.RefundOf(ctx, tx, t.ID)
	if err != nil {
		return nil, err
	}
	want := owed(t)
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	reason := t.Class
	if t.Class == Applied {
		reason = "over"
	}
	switch {
	case f == nil && want.Sign() == 0:
		return nil, nil
	case f == nil:
		f = &payments.Refund{
			ID: uuid.Must(uuid.NewV7()).String(), Transfer: t.ID, Account: t.Account, Network: t.Network, Asset: t.Asset, Payer: t.Sender,
			Amount: want, State: refunds.Owed, Reason: reason, OpenedBy: by, OpenedAt: now, Version: 1,
		}
		if pay != nil {
			f.Gateway = pay.Gateway
		}
		return f, payments.AddRefund(ctx, tx, *f)
	case f.Amount.Cmp(want) == 0:
		return f, nil
	}
	after, why := refunds.Next(*f, refunds.Change, want)
	if why != "" {
		return nil, fmt.Errorf("couldn't change what is owed for transfer %s: %s", t.ID, why)
	}
	if want.Sign() != 0 {
		after.Reason = reason
	}
	if err := payments.ChangeRefund(ctx, tx, &after); err != nil {
		return nil, err
	}
	return &after, payments.RecordRefund(ctx, tx, f.ID, "refund_changed", by, map[string]any{"was": f.Amount.String()})
}
