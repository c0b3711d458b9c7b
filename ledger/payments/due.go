package payments

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
)

// CheckPace is the least time between two questions to a rail about one payment, however
// often its payer asks.
const CheckPace = 15 * time.Second

// CheckAfter makes the rail be asked about a payment after a while, unless that is due
// sooner already, and never twice within [CheckPace]. anew begins the schedule again:
// something was sent, or taken back.
func CheckAfter(ctx context.Context, tx *ledger.Tx, id int64, after time.Duration, anew bool) error {
	_, err := tx.Exec(ctx, `
		UPDATE payments SET check_at = least(check_at, greatest(clock_timestamp() + $2 * interval '1 microsecond', checked_at + $3 * interval '1 microsecond')),
			check_step = CASE WHEN $4 OR check_at IS NULL THEN 0 ELSE check_step END
		WHERE id = $1 AND state IN ('in_flight','unknown','settled')`, id, after.Microseconds(), CheckPace.Microseconds(), anew)
	if err != nil {
		return fmt.Errorf("couldn't schedule a check: %w", err)
	}
	return nil
}

// TakeChecks takes payments whose check is due, oldest first, for a while: whoever took
// one and does not come back leaves it to others then. At most limit.
func TakeChecks(ctx context.Context, db *ledger.DB, network string, limit int, patience time.Duration) (list []int64, err error) {
	rows, err := db.OnceEach(ctx, `
		UPDATE payments SET checking_until = clock_timestamp() + $3 * interval '1 microsecond'
		WHERE id IN (SELECT id FROM payments WHERE check_at <= clock_timestamp() AND network = $1
			AND (checking_until IS NULL OR checking_until <= clock_timestamp()) ORDER BY check_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING id`, network, limit, patience.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("couldn't take checks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

// Checked records that the rail was asked, and when it is asked next; never where next is 0.
func Checked(ctx context.Context, tx *ledger.Tx, id int64, next time.Duration, step int, said string) error {
	return exactly(ctx, tx, "record a check", `
		UPDATE payments SET checked_at = clock_timestamp(), checking_until = NULL, check_said = $4, check_step = $3,
			check_at = CASE WHEN $2 > 0 AND state IN ('in_flight','unknown','settled') THEN clock_timestamp() + $2 * interval '1 microsecond' END
		WHERE id = $1`, id, next.Microseconds(), step, said)
}

// Place is where a list goes on.
type Place struct {
	At  time.Time `db:"claimed_at"`
	ID  int64     `db:"id"`
	Due bool      `db:"due"`
}

// Lapsed is a stretch of the payments that are open and older than an age, oldest first,
// after a place; the zero place is the beginning. Due are those that time alone may bring
// on: in flight with something that may have been sent, or with an order that is final. At
// most limit are looked at, however few of them are due.
func Lapsed(ctx context.Context, r ledger.Reader, age time.Duration, after Place, limit int) (list []Place, err error) {
	err = r.Select(ctx, &list, `
		SELECT p.claimed_at, p.id, COALESCE(o.state NOT IN ('created','paying'), false)
			OR p.state = 'in_flight' AND (p.broadcast_at IS NOT NULL OR EXISTS (SELECT FROM authorizations a WHERE a.payment = p.id)) AS due
		FROM (SELECT claimed_at, id, state, broadcast_at FROM payments WHERE state IN ('in_flight','unknown')
			AND claimed_at < clock_timestamp() - $1 * interval '1 microsecond' AND (claimed_at, id) > ($2, $3) ORDER BY claimed_at, id LIMIT $4) p
		LEFT JOIN orders o ON o.payment = p.id ORDER BY p.claimed_at, p.id`, age.Microseconds(), after.At, after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't read open payments: %w", err)
	}
	return list, nil
}

// OpenCount is how many payments of a network are open in a state.
type OpenCount struct {
	Network string  `db:"network"`
	State   string  `db:"state"`
	Unasked bool    `db:"unasked"` // unknown, and nobody asked its rail when that was due
	Count   int64   `db:"count"`
	Oldest  float64 `db:"oldest"` // seconds
}

// OpenCounts counts the payments that are open. One that is unknown and was due five
// minutes ago is asked about by nobody: its rail is not configured, or does not answer.
func OpenCounts(ctx context.Context, r ledger.Reader) (list []OpenCount, err error) {
	err = r.Select(ctx, &list, `
		SELECT network, state, unasked, count(*) AS count, extract(epoch FROM clock_timestamp() - min(first_at))::float8 AS oldest
		FROM (SELECT network, state, first_at, state = 'unknown' AND (check_at IS NULL OR check_at < clock_timestamp() - interval '5 minutes') AS unasked
			FROM payments WHERE state IN ('in_flight','unknown')) p
		GROUP BY network, state, unasked ORDER BY network, state, unasked`)
	if err != nil {
		return nil, fmt.Errorf("couldn't count open payments: %w", err)
	}
	return list, nil
}
