package payments

import (
	"context"

	"quittance/ledger"
	"quittance/ledger/payments"
)

// whose finds the payment that a movement is for; nil where none is known. Whatever names
// one must name the same.
func (e *Engine) whose(ctx context.Context, tx *ledger.Tx, p Posted, known *payments.Transfer) (*payments.Row, error) {
	if known != nil && known.Account != p.Account {
		return nil, &Refusal{Code: CodeConflict, Reason: ReasonPayer, Detail: "The transfer is on record for somebody else."}
	}
	var found *payments.Row
	join := func(pointer string, row *payments.Row, err error, must bool) error {
		switch {
		case err != nil:
			return err
		case row == nil || row.Account != p.Account:
			if must {
				return invalid(pointer, "names no payment of yours")
			}
		case found != nil && found.ID != row.ID:
			return &Refusal{Code: CodeConflict, Reason: ReasonRequest, Detail: "The transfer is for another payment."}
		default:
			found = row
		}
		return nil
	}
	ofOrder := func(o *payments.Order, err error) (*payments.Row, error) {
		if o == nil || err != nil {
			return nil, err
		}
		return payments.ByID(ctx, tx, o.Payment)
	}
	if known != nil && known.OrderID != "" {
		row, err := ofOrder(payments.OrderByID(ctx, tx, known.OrderID))
		if err := join("", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.Nonce != "" {
		row, err := payments.ByNonce(ctx, tx, p.Network, p.Asset, p.Sender, p.Nonce)
		if err := join("/nonce", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.Memo != "" {
		row, err := ofOrder(payments.OrderByMemo(ctx, tx, p.Network, p.Recipient, p.Memo))
		if err := join("/memo", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.PaymentID != "" {
		row, err := payments.ByName(ctx, tx, payments.Name{Account: p.Account, Gateway: p.Gateway, PaymentID: p.PaymentID})
		if err := join("/payment_id", row, err, true); err != nil {
			return nil, err
		}
	}
	if p.Order != "" {
		row, err := ofOrder(payments.OrderByID(ctx, tx, p.Order))
		if err := join("/order_id", row, err, true); err != nil {
			return nil, err
		}
	}
	return found, nil
}
