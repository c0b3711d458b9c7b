package payments

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
)

// Decision is what a person says became of a payment that no rail can tell about.
type Decision struct {
	ID      string      `db:"id"`
	Payment int64       `db:"payment"`
	Verdict string      `db:"verdict"` // "settled" or "not_taken"
	Tx      string      `db:"tx"`      // of "settled": by which its network knows it
	Note    string      `db:"note"`
	Fence   int64       `db:"fence"` // of the payment when it was looked at
	MadeBy  int64       `db:"made_by"`
	Maker   string      `db:"maker"` // name
	MadeAt  time.Time   `db:"made_at"`
	ReadyAt time.Time   `db:"ready_at"` // it is not let go before
	State   string      `db:"state"`    // "waiting", "done" or "dropped"
	EndedBy int64       `db:"ended_by"`
	Ender   string      `db:"ender"`
	EndedAt ledger.Time `db:"ended_at"`
	EndNote string      `db:"end_note"`
}

const decisionColumns = `d.id, d.payment, d.verdict, COALESCE(d.tx, '') AS tx, d.note, d.fence, d.made_by, m.name AS maker, d.made_at, d.ready_at, d.state,
	COALESCE(d.ended_by, 0) AS ended_by, COALESCE(e.name, '') AS ender, d.ended_at, COALESCE(d.end_note, '') AS end_note`

// WaitingDecision reads the decision of a payment that somebody else has to let go; nil
// where there is none.
func WaitingDecision(ctx context.Context, r ledger.Reader, payment int64) (*Decision, error) {
	return row[Decision](ctx, r, "a decision", `SELECT `+decisionColumns+` FROM payment_decisions d JOIN people m ON m.id = d.made_by LEFT JOIN people e ON e.id = d.ended_by
		WHERE d.payment = $1 AND d.state = 'waiting'`, payment)
}

// AddDecision asks for one. The error violates one of the payment_decisions_… constraints
// where it cannot be.
func AddDecision(ctx context.Context, tx *ledger.Tx, d Decision) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO payment_decisions (id, payment, verdict, tx, note, fence, made_by, made_at, ready_at, state)
		VALUES ($1::uuid, $2, $3, NULLIF($4, ''), $5, $6, $7, $8, $9, 'waiting')`, d.ID, d.Payment, d.Verdict, d.Tx, d.Note, d.Fence, d.MadeBy, d.MadeAt, d.ReadyAt)
	if err != nil {
		return fmt.Errorf("couldn't ask for a decision: %w", err)
	}
	return nil
}

// EndDecision lets a decision go ("done"), or drops it.
func EndDecision(ctx context.Context, tx *ledger.Tx, id, state string, person int64, note string) error {
	return exactly(ctx, tx, "end a decision", `
		UPDATE payment_decisions SET state = $2, ended_by = $3, ended_at = clock_timestamp(), end_note = $4 WHERE id = $1::uuid AND state = 'waiting'`, id, state, person, note)
}

// DecidedNotTaken tells that people let a payment go as not taken.
func DecidedNotTaken(ctx context.Context, r ledger.Reader, payment int64) (yes bool, err error) {
	err = r.Get(ctx, &yes, `SELECT EXISTS (SELECT FROM payment_decisions WHERE payment = $1 AND verdict = 'not_taken' AND state = 'done')`, payment)
	if err != nil {
		return false, fmt.Errorf("couldn't read decisions: %w", err)
	}
	return yes, nil
}

// DeadByPerson records that an authorization can never move money any more, as two people
// found.
func DeadByPerson(ctx context.Context, tx *ledger.Tx, id int64, seen string) error {
	return exactly(ctx, tx, "record that an authorization is dead", `
		UPDATE authorizations SET dead_why = 'person', dead_at = clock_timestamp(), seen = $2 WHERE id = $1 AND dead_why IS NULL`, id, seen)
}

// LastEvent is the newest line about a payment: what a page that shows it was made from.
func LastEvent(ctx context.Context, r ledger.Reader, payment int64) (id int64, err error) {
	if err = r.Get(ctx, &id, `SELECT COALESCE(max(id), 0) FROM payment_events WHERE payment = $1`, payment); err != nil {
		return 0, fmt.Errorf("couldn't read the newest event of a payment: %w", err)
	}
	return id, nil
}

// OpenAlerts is how many alerts of a payment nobody has said yet that they saw.
func OpenAlerts(ctx context.Context, r ledger.Reader, payment int64) (n int, err error) {
	err = r.Get(ctx, &n, `SELECT count(*) FROM (`+openAlerts+` AND a.payment = $1) x`, payment)
	if err != nil {
		return 0, fmt.Errorf("couldn't count alerts: %w", err)
	}
	return n, nil
}

// CursorOf is when the incoming movements of an asset of a rail were last read to the end
// without a problem; zero for never.
func CursorOf(ctx context.Context, r ledger.Reader, network, asset string) (at ledger.Time, err error) {
	err = r.Get(ctx, &at, `SELECT max(read_at) FROM rail_cursors WHERE network = $1 AND asset = $2 AND problem IS NULL`, network, asset)
	if err != nil {
		return at, fmt.Errorf("couldn't read a cursor: %w", err)
	}
	return at, nil
}
