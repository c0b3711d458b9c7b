package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Refund is what is owed back for one transfer.
type Refund struct {
	ID         string       `db:"id"`
	Transfer   string       `db:"transfer_id"`
	Account    int64        `db:"account_id"`
	Gateway    string       `db:"gateway"`
	Network    string       `db:"network"`
	Asset      string       `db:"asset"`
	Payer      string       `db:"payer"`
	Amount     money.Atomic `db:"amount"`
	Reserved   money.Atomic `db:"reserved"`
	Paid       money.Atomic `db:"paid"`
	WrittenOff money.Atomic `db:"written_off"`
	State      string       `db:"state"`
	Reason     string       `db:"reason"`
	OpenedAt   time.Time    `db:"opened_at"`
	ChangedAt  time.Time    `db:"changed_at"`
	Version    int64        `db:"version"`
}

const refundColumns = `f.id, f.transfer_id, f.account_id, COALESCE(f.gateway, '') AS gateway, f.network, f.asset, f.payer, f.amount, f.reserved, f.paid,
	f.written_off, f.state, f.reason, f.opened_at, f.changed_at, f.version`

// RefundOf reads what is owed for a transfer; nil while nothing ever was.
func RefundOf(ctx context.Context, r ledger.Reader, transfer string) (*Refund, error) {
	var f Refund
	err := r.Get(ctx, &f, `SELECT `+refundColumns+` FROM refunds f WHERE f.transfer_id = $1::uuid`, transfer)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a refund: %w", err)
	}
	return &f, nil
}

// RefundsOf are what is owed for the transfers of an order.
func RefundsOf(ctx context.Context, r ledger.Reader, order string) (list []Refund, err error) {
	err = r.Select(ctx, &list, `SELECT `+refundColumns+` FROM transfers t JOIN refunds f ON f.transfer_id = t.id WHERE t.order_id = $1::uuid ORDER BY f.opened_at, f.id`, order)
	if err != nil {
		return nil, fmt.Errorf("couldn't read refunds: %w", err)
	}
	return list, nil
}

// AddRefund opens what is owed for a transfer.
func AddRefund(ctx context.Context, tx *ledger.Tx, f Refund) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO refunds (id, transfer_id, account_id, gateway, network, asset, payer, amount, state, reason, opened_at, changed_at)
		VALUES ($1::uuid, $2::uuid, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, $10, $11, $11)`,
		f.ID, f.Transfer, f.Account, f.Gateway, f.Network, f.Asset, f.Payer, f.Amount, f.State, f.Reason, f.OpenedAt)
	if err != nil {
		return fmt.Errorf("couldn't open a refund: %w", err)
	}
	return nil
}

// Owe changes how much is owed, why, and the state that goes with it.
func Owe(ctx context.Context, tx *ledger.Tx, id string, amount money.Atomic, state, reason string) error {
	return exactly(ctx, tx, "change what is owed", `
		UPDATE refunds SET amount = $2, state = $3, reason = $4, version = version + 1, changed_at = clock_timestamp() WHERE id = $1::uuid`, id, amount, state, reason)
}
