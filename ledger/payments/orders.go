package payments

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Order is what was asked for.
type Order struct {
	ID          string       `db:"id"`
	Payment     int64        `db:"payment"`
	Account     int64        `db:"account_id"`
	Gateway     string       `db:"gateway"`
	Payer       string       `db:"payer"`
	Network     string       `db:"network"`
	Asset       string       `db:"asset"`
	Amount      money.Atomic `db:"amount"`
	PayTo       string       `db:"pay_to"`
	Memo        string       `db:"memo"`
	Description string       `db:"description"`
	State       string       `db:"state"`
	CreatedAt   time.Time    `db:"created_at"`
	ExpiresAt   ledger.Time  `db:"expires_at"`
	ChangedAt   time.Time    `db:"changed_at"`
	ReceiptHash ledger.Bytes `db:"receipt_hash"`
	Receipt     int          `db:"receipt_number"`
}

const orderColumns = `o.id, o.payment, o.account_id, o.gateway, o.payer, o.network, o.asset, o.amount, o.pay_to, COALESCE(o.memo, '') AS memo,
	COALESCE(o.description, '') AS description, o.state, o.created_at, o.expires_at, o.changed_at, o.receipt_hash, o.receipt_number`

// OrderOf reads the order of a payment; nil while there is none.
func OrderOf(ctx context.Context, r ledger.Reader, payment int64) (*Order, error) {
	return order(ctx, r, `SELECT `+orderColumns+` FROM orders o WHERE o.payment = $1`, payment)
}

// OrderByID reads an order; nil where there is none.
func OrderByID(ctx context.Context, r ledger.Reader, id string) (*Order, error) {
	return order(ctx, r, `SELECT `+orderColumns+` FROM orders o WHERE o.id = $1::uuid`, id)
}

// OrderByMemo reads the order that a memo names on a rail.
func OrderByMemo(ctx context.Context, r ledger.Reader, network, payTo, memo string) (*Order, error) {
	return order(ctx, r, `SELECT `+orderColumns+` FROM orders o WHERE o.network = $1 AND o.pay_to = $2 AND o.memo = $3`, network, payTo, memo)
}

// OrderByReceipt reads the order of a receipt's token, by its hash.
func OrderByReceipt(ctx context.Context, r ledger.Reader, hash []byte) (*Order, error) {
	return order(ctx, r, `SELECT `+orderColumns+` FROM orders o WHERE o.receipt_hash = $1`, hash)
}

func order(ctx context.Context, r ledger.Reader, query string, args ...any) (*Order, error) {
	return row[Order](ctx, r, "an order", query, args...)
}

// AddOrder creates the order of a payment. The error violates orders_memo where another
// order has its memo.
func AddOrder(ctx context.Context, tx *ledger.Tx, o Order) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO orders (id, payment, account_id, gateway, payer, network, asset, amount, pay_to, memo, description, state, created_at, expires_at, changed_at, receipt_hash)
		VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, NULLIF($10, ''), NULLIF($11, ''), $12, $13, $14, $13, $15)`,
		o.ID, o.Payment, o.Account, o.Gateway, o.Payer, o.Network, o.Asset, o.Amount, o.PayTo, o.Memo, o.Description, o.State, o.CreatedAt, o.ExpiresAt, o.ReceiptHash)
	if err != nil {
		return fmt.Errorf("couldn't create an order: %w", err)
	}
	return watch(ctx, tx, o)
}

// MoveOrder moves an order from one state to another.
func MoveOrder(ctx context.Context, tx *ledger.Tx, id, from, to string) error {
	return exactly(ctx, tx, "move an order", `UPDATE orders SET state = $3, changed_at = clock_timestamp() WHERE id = $1::uuid AND state = $2`, id, from, to)
}

// Expired are payments whose order's time is over, oldest first, at most limit.
func Expired(ctx context.Context, r ledger.Reader, limit int) (list []int64, err error) {
	err = r.Select(ctx, &list, `SELECT payment FROM orders WHERE state IN ('created','paying') AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't read what expires: %w", err)
	}
	return list, nil
}

// Postpone puts an order's end off.
func Postpone(ctx context.Context, tx *ledger.Tx, id string, by time.Duration) error {
	return exactly(ctx, tx, "put an order's end off", `UPDATE orders SET expires_at = clock_timestamp() + $2 * interval '1 microsecond' WHERE id = $1::uuid`, id, by.Microseconds())
}

// NewReceipt gives an order's receipt its next number: the token of the one before names
// nothing any more.
func NewReceipt(ctx context.Context, tx *ledger.Tx, id string, number int, hash []byte) error {
	return exactly(ctx, tx, "renew a receipt", `UPDATE orders SET receipt_number = $2, receipt_hash = $3 WHERE id = $1::uuid AND receipt_number = $2 - 1`, id, number, hash)
}
