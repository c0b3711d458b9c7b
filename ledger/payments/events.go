package payments

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Event is one line of the record.
type Event struct {
	ID       int64     `db:"id"`
	At       time.Time `db:"at"`
	Payment  int64     `db:"payment"` // 0: none
	Transfer string    `db:"transfer_id"`
	Refund   string    `db:"refund_id"`
	Kind     string    `db:"kind"`
	Alert    bool      `db:"alert"`
	Person   string    `db:"person"`
	PersonID int64     `db:"person_id"`
	Data     string    `db:"data"`
}

// Record adds a line; data is anything that JSON can write.
func Record(ctx context.Context, tx *ledger.Tx, e Event, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("couldn't write an event: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO payment_events (at, payment, transfer_id, refund_id, kind, alert, person_id, data)
		VALUES (clock_timestamp(), NULLIF($1, 0::bigint), NULLIF($2, '')::uuid, NULLIF($3, '')::uuid, $4, $5, NULLIF($6, 0::bigint), $7)`,
		e.Payment, e.Transfer, e.Refund, e.Kind, e.Alert, e.PersonID, string(raw))
	if err != nil {
		return fmt.Errorf("couldn't record an event: %w", err)
	}
	return nil
}

// RecordOnce is Record of what a payment has no equal line of yet, nor so many of its kind
// that one more would tell nothing.
func RecordOnce(ctx context.Context, tx *ledger.Tx, e Event, data any, most int) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("couldn't write an event: %w", err)
	}
	var known bool
	err = tx.Get(ctx, &known, `
		SELECT count(*) >= $4 OR COALESCE(bool_or(data = $3), false) FROM (SELECT data FROM payment_events WHERE payment = $1 AND kind = $2 LIMIT $4) e`,
		e.Payment, e.Kind, string(raw), most)
	if err != nil {
		return fmt.Errorf("couldn't read the events: %w", err)
	}
	if known {
		return nil
	}
	return Record(ctx, tx, e, data)
}

// History is what happened to a payment, its order, its transfers and what is owed for
// them, first to last.
func History(ctx context.Context, r ledger.Reader, payment int64, order string, limit int) (list []Event, err error) {
	err = r.Select(ctx, &list, `
		SELECT e.id, e.at, COALESCE(e.payment, 0) AS payment, COALESCE(e.transfer_id::text, '') AS transfer_id, COALESCE(e.refund_id::text, '') AS refund_id,
			e.kind, e.alert, COALESCE(p.name, '') AS person, COALESCE(e.person_id, 0) AS person_id, e.data
		FROM (SELECT id FROM payment_events WHERE payment = $1
			UNION SELECT e.id FROM transfers t JOIN payment_events e ON e.transfer_id = t.id WHERE t.order_id = $2::uuid) x
		JOIN payment_events e ON e.id = x.id LEFT JOIN people p ON p.id = e.person_id ORDER BY e.id LIMIT $3`, payment, order, limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a history: %w", err)
	}
	return list, nil
}

// HistoryOfTransfer is what happened to a transfer and to what is owed for it, first to
// last.
func HistoryOfTransfer(ctx context.Context, r ledger.Reader, transfer string, limit int) (list []Event, err error) {
	err = r.Select(ctx, &list, `
		SELECT e.id, e.at, COALESCE(e.payment, 0) AS payment, e.transfer_id, COALESCE(e.refund_id::text, '') AS refund_id,
			e.kind, e.alert, COALESCE(p.name, '') AS person, COALESCE(e.person_id, 0) AS person_id, e.data
		FROM payment_events e LEFT JOIN people p ON p.id = e.person_id WHERE e.transfer_id = $1::uuid ORDER BY e.id LIMIT $2`, transfer, limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a history: %w", err)
	}
	return list, nil
}

// Posting is one side of a double entry.
type Posting struct {
	Account string
	Amount  money.Atomic
	Refund  string // "" where it is of no refund
}

// Post writes an entry about a transfer. Sides of nothing are left out; the database
// refuses what does not add up.
func Post(ctx context.Context, tx *ledger.Tx, t *Moved, sides ...Posting) error {
	entry := uuid.Must(uuid.NewV7()).String()
	for _, s := range sides {
		if s.Amount.Sign() == 0 {
			continue
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO postings (entry, at, account, network, asset, amount, transfer_id, refund_id)
			VALUES ($1::uuid, clock_timestamp(), $2, $3, $4, $5, $6::uuid, NULLIF($7, '')::uuid)`,
			entry, s.Account, t.Network, t.Asset, s.Amount, t.ID, s.Refund)
		if err != nil {
			return fmt.Errorf("couldn't post an entry: %w", err)
		}
	}
	return nil
}

// alertLimit is how many alerts of a kind one payment raises: a thousand more say nothing new.
const alertLimit = 1000

// Alerted tells that the same alert stands since less than a minute, or very often.
func Alerted(ctx context.Context, r ledger.Reader, payment int64, kind, reason string) (recent bool, err error) {
	err = r.Get(ctx, &recent, `
		SELECT EXISTS (SELECT FROM (SELECT at, data FROM payment_events WHERE payment = $1 AND alert AND kind = $2 ORDER BY id DESC LIMIT 8) e
			WHERE at > clock_timestamp() - interval '1 minute' AND data::json->>'reason' = $3)
			OR $4 <= (SELECT count(*) FROM (SELECT FROM payment_events WHERE payment = $1 AND alert AND kind = $2 LIMIT $4) e)`, payment, kind, reason, alertLimit)
	if err != nil {
		return false, fmt.Errorf("couldn't read the alerts: %w", err)
	}
	return recent, nil
}
