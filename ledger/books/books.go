// Package books holds the statements that read the double entries and the equation: what
// was received, less what its rail took back, stands somewhere, to the last unit.
package books

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/where"
)

// Line is the equation for one asset of one rail.
type Line struct {
	Network    string       `db:"network"`
	Asset      string       `db:"asset"`
	Received   money.Atomic `db:"received"`
	Reverted   money.Atomic `db:"reverted"`
	Applied    money.Atomic `db:"applied"`
	Owed       money.Atomic `db:"owed"` // with what is under way
	Refunded   money.Atomic `db:"refunded"`
	WrittenOff money.Atomic `db:"written_off"`
	Held       money.Atomic `db:"held"`
	Unmatched  money.Atomic `db:"unmatched"`
	Difference money.Atomic `db:"difference"`
	Posted     bool         `db:"posted"` // the double entries say the same
}

// Holds tells that the line is true.
func (l *Line) Holds() bool { return l.Difference.Sign() == 0 && l.Posted }

// Equation reads a line for each asset of each rail in which anything was received.
func Equation(ctx context.Context, r ledger.Reader) (list []Line, err error) {
	err = r.Select(ctx, &list, `
		SELECT network, asset, received, reverted, applied, owed, refunded, written_off, held, unmatched, difference, posted
		FROM money_equation ORDER BY network, asset`)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the equation: %w", err)
	}
	return list, nil
}

// Check says for each asset whose equation does not hold what is wrong; nothing when all
// is well. It is what `quittance verify` asks.
func Check(ctx context.Context, r ledger.Reader) (wrong []string, err error) {
	list, err := Equation(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Difference.Sign() != 0 {
			wrong = append(wrong, fmt.Sprintf("money of %s on %s: %s is received and stands nowhere", l.Asset, l.Network, l.Difference))
		}
		if !l.Posted {
			wrong = append(wrong, fmt.Sprintf("money of %s on %s: the double entries do not say what the tables say", l.Asset, l.Network))
		}
	}
	// A sum can be right where two rows are wrong: each refund by itself, too.
	var bad []string
	err = r.Select(ctx, &bad, `
		SELECT f.id::text FROM refunds f
		LEFT JOIN (SELECT refund_id, sum(amount) FILTER (WHERE account = 'refund_owed') AS owed, sum(amount) FILTER (WHERE account = 'refund_wallet') AS paid
			FROM postings WHERE refund_id IS NOT NULL GROUP BY 1) p ON p.refund_id = f.id
		LEFT JOIN (SELECT refund_id, sum(amount) FILTER (WHERE state IN ('sending','sent','unknown')) AS live,
			sum(amount - returned) FILTER (WHERE state IN ('confirmed','returned')) AS paid FROM payouts GROUP BY 1) o ON o.refund_id = f.id
		LEFT JOIN LATERAL (SELECT data::jsonb AS d FROM payment_events e WHERE e.refund_id = f.id ORDER BY e.id DESC LIMIT 1) e ON true
		WHERE COALESCE(p.owed, 0) <> f.reserved + f.paid + f.written_off - f.amount OR COALESCE(p.paid, 0) <> -f.paid
			OR COALESCE(o.live, 0) <> f.reserved OR COALESCE(o.paid, 0) <> f.paid
			OR (e.d->>'version')::bigint IS DISTINCT FROM f.version OR e.d->>'state' IS DISTINCT FROM f.state
			OR (e.d->>'paid')::numeric IS DISTINCT FROM f.paid OR (e.d->>'amount')::numeric IS DISTINCT FROM f.amount
		ORDER BY f.id LIMIT 20`)
	if err != nil {
		return nil, fmt.Errorf("couldn't check refunds: %w", err)
	}
	for _, id := range bad {
		wrong = append(wrong, "refund "+id+": its payouts, its double entries or the log do not say what it says")
	}
	return wrong, nil
}

// Posting is one side of a double entry, for the journal.
type Posting struct {
	ID       int64        `db:"id"`
	Entry    string       `db:"entry"`
	At       time.Time    `db:"at"`
	Account  string       `db:"account"`
	Network  string       `db:"network"`
	Asset    string       `db:"asset"`
	Amount   money.Atomic `db:"amount"`
	Transfer string       `db:"transfer_id"`
	Refund   string       `db:"refund_id"`
	Tx       string       `db:"tx_hash"`
	Order    string       `db:"order_id"`
	Position int64        `db:"position"` // the newest posting when it was read
}

// Journal streams the postings of a time, first to last, as they stand at one moment: the
// caller closes it. A zero time is no bound; to is not included.
func Journal(ctx context.Context, db *ledger.DB, from, to time.Time) (*sqlx.Rows, error) {
	var c where.Conds
	if !from.IsZero() {
		c.Add("p.at >= ?", from)
	}
	if !to.IsZero() {
		c.Add("p.at < ?", to)
	}
	rows, err := db.Query(ctx, `
		SELECT p.id, p.entry, p.at, p.account, p.network, p.asset, p.amount, p.transfer_id, COALESCE(p.refund_id::text, '') AS refund_id, t.tx_hash,
			COALESCE(t.order_id::text, '') AS order_id, (SELECT COALESCE(max(id), 0) FROM postings) AS position
		FROM postings p JOIN transfers t ON t.id = p.transfer_id WHERE `+c.String()+` ORDER BY p.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the journal: %w", err)
	}
	return rows, nil
}
