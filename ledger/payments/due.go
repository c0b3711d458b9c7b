package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// CheckAfter makes the rail be asked about a payment after a while, unless that is due
// sooner already. Step is where in the schedule that is.
func CheckAfter(ctx context.Context, tx *ledger.Tx, id int64, after time.Duration, step int) error {
	_, err := tx.Exec(ctx, `
		UPDATE payments SET check_at = least(check_at, clock_timestamp() + $2 * interval '1 microsecond'), check_step = CASE WHEN check_at IS NULL THEN $3 ELSE check_step END
		WHERE id = $1 AND state IN ('in_flight','unknown','settled')`, id, after.Microseconds(), step)
	if err != nil {
		return fmt.Errorf("couldn't schedule a check: %w", err)
	}
	return nil
}

// TakeChecks takes payments whose check is due, oldest first, for a while: whoever took
// one and does not come back leaves it to others then. At most limit.
func TakeChecks(ctx context.Context, db *ledger.DB, networks []string, limit int, patience time.Duration) (list []int64, err error) {
	rows, err := db.OnceEach(ctx, `
		UPDATE payments SET checking_until = clock_timestamp() + $3 * interval '1 microsecond'
		WHERE id IN (SELECT id FROM payments WHERE check_at <= clock_timestamp() AND network = ANY($1)
			AND (checking_until IS NULL OR checking_until <= clock_timestamp()) ORDER BY check_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING id`, pq.Array(networks), limit, patience.Microseconds())
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

// Open are payments that are open and older than an age, oldest first from a place on.
func Open(ctx context.Context, r ledger.Reader, age time.Duration, limit int) (list []int64, err error) {
	err = r.Select(ctx, &list, `
		SELECT p.id FROM payments p JOIN orders o ON o.payment = p.id WHERE p.state IN ('in_flight','unknown')
		AND p.claimed_at < clock_timestamp() - $1 * interval '1 microsecond' AND o.state NOT IN ('created','paying') ORDER BY p.claimed_at LIMIT $2`, age.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't read open payments: %w", err)
	}
	return list, nil
}
