package payments

import (
	"context"
	"encoding/json"
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
	Approved   money.Atomic `db:"approved"` // how much may be paid in all
	Reserved   money.Atomic `db:"reserved"`
	Paid       money.Atomic `db:"paid"`
	WrittenOff money.Atomic `db:"written_off"`
	State      string       `db:"state"`
	Reason     string       `db:"reason"`
	OpenedBy   int64        `db:"opened_by"` // who decided that it is given back; 0: no person did
	OpenedAt   time.Time    `db:"opened_at"`
	ChangedAt  time.Time    `db:"changed_at"`
	Version    int64        `db:"version"`

	Destination   string       `db:"destination"` // "" while it goes to the payer
	DestinationBy int64        `db:"destination_by"`
	ApprovedBy    int64        `db:"approved_by"`
	ApprovedAt    ledger.Time  `db:"approved_at"`
	HeldWhy       string       `db:"held_why"`
	WriteOff      money.Atomic `db:"write_off"` // asked for, not done
	WriteOffBy    int64        `db:"write_off_by"`
	WriteOffWhy   string       `db:"write_off_why"`
}

// To is where it goes.
func (f *Refund) To() string {
	if f.Destination != "" {
		return f.Destination
	}
	return f.Payer
}

// Rest is what is neither paid nor written off.
func (f *Refund) Rest() money.Atomic { return f.Amount.Minus(f.Paid).Minus(f.WrittenOff) }

// RefundColumns are those of a [Refund], of a table that the statement calls f.
const RefundColumns = `f.id, f.transfer_id, f.account_id, COALESCE(f.gateway, '') AS gateway, f.network, f.asset, f.payer, f.amount, f.approved, f.reserved, f.paid,
	f.written_off, f.state, f.reason, COALESCE(f.opened_by, 0) AS opened_by, f.opened_at, f.changed_at, f.version,
	COALESCE(f.destination, '') AS destination, COALESCE(f.destination_by, 0) AS destination_by, COALESCE(f.approved_by, 0) AS approved_by, f.approved_at,
	COALESCE(f.held_why, '') AS held_why, COALESCE(f.write_off, 0) AS write_off, COALESCE(f.write_off_by, 0) AS write_off_by, COALESCE(f.write_off_why, '') AS write_off_why`

// RefundOf reads what is owed for a transfer; nil while nothing ever was.
func RefundOf(ctx context.Context, r ledger.Reader, transfer string) (*Refund, error) {
	return refund(ctx, r, `SELECT `+RefundColumns+` FROM refunds f WHERE f.transfer_id = $1::uuid`, transfer)
}

func refund(ctx context.Context, r ledger.Reader, query, id string) (*Refund, error) {
	return row[Refund](ctx, r, "a refund", query, id)
}

// RefundByID reads a refund; nil where there is none.
func RefundByID(ctx context.Context, r ledger.Reader, id string) (*Refund, error) {
	return refund(ctx, r, `SELECT `+RefundColumns+` FROM refunds f WHERE f.id = $1::uuid`, id)
}

// RefundsOf are what is owed for the transfers of an order.
func RefundsOf(ctx context.Context, r ledger.Reader, order string) (list []Refund, err error) {
	err = r.Select(ctx, &list, `SELECT `+RefundColumns+` FROM transfers t JOIN refunds f ON f.transfer_id = t.id WHERE t.order_id = $1::uuid ORDER BY f.opened_at, f.id`, order)
	if err != nil {
		return nil, fmt.Errorf("couldn't read refunds: %w", err)
	}
	return list, nil
}

// AddRefund opens what is owed for a transfer.
func AddRefund(ctx context.Context, tx *ledger.Tx, f Refund) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO refunds (id, transfer_id, account_id, gateway, network, asset, payer, amount, state, reason, opened_by, opened_at, changed_at)
		VALUES ($1::uuid, $2::uuid, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, $10, NULLIF($11, 0::bigint), $12, $12)`,
		f.ID, f.Transfer, f.Account, f.Gateway, f.Network, f.Asset, f.Payer, f.Amount, f.State, f.Reason, f.OpenedBy, f.OpenedAt)
	if err != nil {
		return fmt.Errorf("couldn't open a refund: %w", err)
	}
	return RecordRefund(ctx, tx, f.ID, "refund_owed", f.OpenedBy, nil)
}

// ChangeRefund stores a refund that was locked and decided about; its version rises.
func ChangeRefund(ctx context.Context, tx *ledger.Tx, f *Refund) error {
	err := exactly(ctx, tx, "change a refund", `
		UPDATE refunds SET amount = $3, approved = $4, reserved = $5, paid = $6, written_off = $7, state = $8, reason = $9,
			destination = NULLIF($10, ''), destination_by = NULLIF($11, 0::bigint), approved_by = NULLIF($12, 0::bigint), approved_at = $13,
			held_why = NULLIF($14, ''), write_off = NULLIF($15, 0::numeric), write_off_by = NULLIF($16, 0::bigint), write_off_why = NULLIF($17, ''),
			version = version + 1, changed_at = clock_timestamp()
		WHERE id = $1::uuid AND version = $2`,
		f.ID, f.Version, f.Amount, f.Approved, f.Reserved, f.Paid, f.WrittenOff, f.State, f.Reason, f.Destination, f.DestinationBy, f.ApprovedBy, f.ApprovedAt,
		f.HeldWhy, f.WriteOff, f.WriteOffBy, f.WriteOffWhy)
	if err == nil {
		f.Version++
	}
	return err
}

// RecordRefund adds a line about a refund to the record, with its figures as they are
// stored now: folding these lines gives the table. more is added to them; it may be nil.
func RecordRefund(ctx context.Context, tx *ledger.Tx, id, kind string, person int64, more map[string]any) error {
	if more == nil {
		more = map[string]any{}
	}
	raw, err := json.Marshal(more)
	if err != nil {
		return fmt.Errorf("couldn't write an event: %w", err)
	}
	return exactly(ctx, tx, "record a refund", `
		INSERT INTO payment_events (at, transfer_id, refund_id, kind, person_id, data)
		SELECT clock_timestamp(), f.transfer_id, f.id, $2, NULLIF($3, 0::bigint), (jsonb_build_object('state', f.state, 'reason', f.reason, 'amount', f.amount::text,
			'approved', f.approved::text, 'reserved', f.reserved::text, 'paid', f.paid::text, 'written_off', f.written_off::text, 'version', f.version) || $4::jsonb)::text
		FROM refunds f WHERE f.id = $1::uuid`, id, kind, person, string(raw))
}
