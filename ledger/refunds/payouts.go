// Package refunds holds the statements about money on its way back: the attempts to pay
// what is owed, and the lists that finance reads. What is owed itself is in
// ledger/payments, under the same lock.
package refunds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Payout is one attempt to give back what is owed.
type Payout struct {
	ID         string       `db:"id"`
	Refund     string       `db:"refund_id"`
	Attempt    int          `db:"attempt"`
	Key        string       `db:"payout_key"` // from (refund, attempt): what a downstream knows it by
	Network    string       `db:"network"`
	Asset      string       `db:"asset"`
	Recipient  string       `db:"recipient"`
	Amount     money.Atomic `db:"amount"`
	State      string       `db:"state"`
	MadeBy     int64        `db:"made_by"`
	Maker      string       `db:"maker"`
	ApprovedBy int64        `db:"approved_by"`
	Approver   string       `db:"approver"`
	StartedAt  time.Time    `db:"started_at"`
	Tx         string       `db:"tx"` // "" while none is known
	SentAt     ledger.Time  `db:"sent_at"`
	EndedAt    ledger.Time  `db:"ended_at"`
	EndedBy    int64        `db:"ended_by"`
	Ender      string       `db:"ender"`
	Block      int64        `db:"block"`
	Said       string       `db:"said"`
	CheckedAt  ledger.Time  `db:"checked_at"`
	CheckAt    ledger.Time  `db:"check_at"`
	CheckStep  int          `db:"check_step"`
	Returned   money.Atomic `db:"returned"`
	ReturnedTx string       `db:"returned_tx"`
	ReturnedAt ledger.Time  `db:"returned_at"`
}

const payoutColumns = `p.id, p.refund_id, p.attempt, p.payout_key, p.network, p.asset, p.recipient, p.amount, p.state, p.made_by, m.name AS maker,
	p.approved_by, a.name AS approver, p.started_at, COALESCE(p.tx, '') AS tx, p.sent_at, p.ended_at, COALESCE(p.ended_by, 0) AS ended_by,
	COALESCE(x.name, '') AS ender, COALESCE(p.block, 0) AS block, COALESCE(p.said, '') AS said, p.checked_at, p.check_at, p.check_step,
	p.returned, COALESCE(p.returned_tx, '') AS returned_tx, p.returned_at`

const payoutFrom = ` FROM payouts p JOIN people m ON m.id = p.made_by JOIN people a ON a.id = p.approved_by LEFT JOIN people x ON x.id = p.ended_by`

// Payouts are the attempts for a refund, first to last.
func Payouts(ctx context.Context, r ledger.Reader, refund string) (list []Payout, err error) {
	err = r.Select(ctx, &list, `SELECT `+payoutColumns+payoutFrom+` WHERE p.refund_id = $1::uuid ORDER BY p.attempt`, refund)
	if err != nil {
		return nil, fmt.Errorf("couldn't read payouts: %w", err)
	}
	return list, nil
}

// PayoutsOf are the attempts for the transfers of an order, first to last.
func PayoutsOf(ctx context.Context, r ledger.Reader, order string) (list []Payout, err error) {
	err = r.Select(ctx, &list, `SELECT `+payoutColumns+payoutFrom+` JOIN refunds f ON f.id = p.refund_id JOIN transfers t ON t.id = f.transfer_id
		WHERE t.order_id = $1::uuid ORDER BY p.started_at, p.id`, order)
	if err != nil {
		return nil, fmt.Errorf("couldn't read payouts: %w", err)
	}
	return list, nil
}

// PayoutByID reads an attempt; nil where there is none.
func PayoutByID(ctx context.Context, r ledger.Reader, id string) (*Payout, error) {
	var p Payout
	err := r.Get(ctx, &p, `SELECT `+payoutColumns+payoutFrom+` WHERE p.id = $1::uuid`, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a payout: %w", err)
	}
	return &p, nil
}

// Start adds an attempt to pay: the next one of its refund, which reserved its amount in
// the same transaction.
func Start(ctx context.Context, tx *ledger.Tx, p Payout) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO payouts (id, refund_id, attempt, network, asset, recipient, amount, how, state, made_by, approved_by, started_at)
		SELECT $1::uuid, $2::uuid, COALESCE((SELECT max(attempt) FROM payouts WHERE refund_id = $2::uuid), 0) + 1, $3, $4, $5, $6, 'hand', 'sending', $7, $8, clock_timestamp()`,
		p.ID, p.Refund, p.Network, p.Asset, p.Recipient, p.Amount, p.MadeBy, p.ApprovedBy)
	if err != nil {
		return fmt.Errorf("couldn't start a payout: %w", err)
	}
	return nil
}

// Move takes an attempt from one state to what p says, with what is known of it.
func Move(ctx context.Context, tx *ledger.Tx, from string, p Payout) error {
	n, err := tx.Exec(ctx, `
		UPDATE payouts SET state = $3, tx = NULLIF($4, ''), sent_at = $5, ended_at = $6, ended_by = NULLIF($7, 0::bigint), block = NULLIF($8, 0::bigint),
			said = NULLIF($9, ''), check_at = $10, check_step = $11, checking_until = NULL, returned = $12, returned_tx = NULLIF($13, ''), returned_at = $14
		WHERE id = $1::uuid AND state = $2`,
		p.ID, from, p.State, p.Tx, p.SentAt, p.EndedAt, p.EndedBy, p.Block, p.Said, p.CheckAt, p.CheckStep, p.Returned, p.ReturnedTx, p.ReturnedAt)
	if err != nil {
		return fmt.Errorf("couldn't change a payout: %w", err)
	}
	if n != 1 {
		return errors.New("couldn't change a payout: its guard did not hold")
	}
	return nil
}

// Checked notes that the rail was asked about an attempt and what it said; nothing else of
// it changes. It is asked next at a time, never where that is zero.
func Checked(ctx context.Context, tx *ledger.Tx, id, said string, next ledger.Time, step int) error {
	_, err := tx.Exec(ctx, `
		UPDATE payouts SET checked_at = clock_timestamp(), checking_until = NULL, said = NULLIF($2, ''), check_at = $3, check_step = $4 WHERE id = $1::uuid`, id, said, next, step)
	if err != nil {
		return fmt.Errorf("couldn't note a look at a payout: %w", err)
	}
	return nil
}

// TakeDue takes attempts whose look is due, on networks that can be asked, for a while:
// whoever took one and does not come back leaves it to others then.
func TakeDue(ctx context.Context, db *ledger.DB, networks []string, limit int, patience time.Duration) (list []string, err error) {
	rows, err := db.OnceEach(ctx, `
		UPDATE payouts SET checking_until = clock_timestamp() + $3 * interval '1 microsecond'
		WHERE id IN (SELECT id FROM payouts WHERE check_at <= clock_timestamp() AND network = ANY($1)
			AND (checking_until IS NULL OR checking_until <= clock_timestamp()) ORDER BY check_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING id`, pq.Array(networks), limit, patience.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("couldn't take payouts to look at: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

// ReturnKnown tells that a reference is on record as that of a payout that came back.
func ReturnKnown(ctx context.Context, r ledger.Reader, network, tx string) (known bool, err error) {
	err = r.Get(ctx, &known, `SELECT EXISTS (SELECT FROM payouts WHERE network = $1 AND returned_tx = $2)`, network, tx)
	if err != nil {
		return false, fmt.Errorf("couldn't look a return up: %w", err)
	}
	return known, nil
}
