// Package wakes holds the statements about telling endpoints that a run is ready.
package wakes

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Ready is a run that became ready.
type Ready struct {
	ID      int64       `db:"id"`
	Run     int64       `db:"run_id"`
	ReadyAt ledger.Time `db:"ready_at"`
	RunName string      `db:"run_name"`
	Agent   string      `db:"agent"`
	Account string      `db:"account"`
	Still   bool        `db:"still"` // and is so still
}

// Take takes out runs of which nobody was told yet, at most n: they are gone if the
// transaction commits. What another server is telling is passed over.
func Take(ctx context.Context, tx *ledger.Tx, n int) (list []Ready, err error) {
	err = tx.Select(ctx, &list, `
		WITH out AS (
			DELETE FROM wakes WHERE id = ANY (ARRAY(SELECT id FROM wakes ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
			RETURNING id, run_id, ready_at
		)
		SELECT o.id, o.run_id, o.ready_at, r.run_id AS run_name, r.agent, a.name AS account,
			r.state = 'ready' AND r.changed_at = o.ready_at AS still
		FROM out o JOIN runs r ON r.id = o.run_id JOIN accounts a ON a.id = r.account_id ORDER BY o.id`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read which runs became ready: %w", err)
	}
	return list, nil
}

// Delivery is what one endpoint is told.
type Delivery struct {
	ID       string      `db:"id"`
	Endpoint string      `db:"endpoint"`
	Run      int64       `db:"run_id"`
	ReadyAt  ledger.Time `db:"ready_at"`
	Body     string      `db:"body"`
	MadeAt   ledger.Time `db:"made_at"`
	State    string      `db:"state"`
	Step     int         `db:"step"`
	Attempts int         `db:"attempts"`
	NextAt   ledger.Time `db:"next_at"`
	Forced   bool        `db:"forced"`
	EndedAt  ledger.Time `db:"ended_at"`
	Sending  bool        `db:"sending"`
}

const columns = `d.id, d.endpoint, d.run_id, d.ready_at, d.body, d.made_at, d.state, d.step, d.attempts, d.next_at, d.forced, d.ended_at,
	COALESCE(d.asked_until > clock_timestamp(), false) AS sending`

// Add makes a delivery, due at once; nothing where the endpoint was told of it before.
func Add(ctx context.Context, tx *ledger.Tx, d Delivery) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO deliveries (id, endpoint, run_id, ready_at, body, made_at, next_at)
		VALUES ($1::uuid, $2, $3, $4, $5, $6, $6) ON CONFLICT (endpoint, run_id, ready_at) DO NOTHING`,
		d.ID, d.Endpoint, d.Run, d.ReadyAt.Time, d.Body, d.MadeAt.Time)
	if err != nil {
		return fmt.Errorf("couldn't make a delivery: %w", err)
	}
	return nil
}

// Overtake ends deliveries of an endpoint that are due and that nobody needs any more: the
// run was taken, or paused again.
func Overtake(ctx context.Context, tx *ledger.Tx, endpoint string) error {
	_, err := tx.Exec(ctx, `
		UPDATE deliveries SET state = 'overtaken', next_at = NULL, ended_at = clock_timestamp()
		WHERE id = ANY (ARRAY(
			SELECT d.id FROM deliveries d JOIN runs r ON r.id = d.run_id
			WHERE d.endpoint = $1 AND d.state = 'due' AND d.next_at <= clock_timestamp() AND NOT d.forced
			AND (d.asked_until IS NULL OR d.asked_until <= clock_timestamp())
			AND NOT (r.state = 'ready' AND r.changed_at = d.ready_at)
			FOR UPDATE OF d SKIP LOCKED))`, endpoint)
	if err != nil {
		return fmt.Errorf("couldn't end deliveries: %w", err)
	}
	return nil
}

// Ask takes deliveries of an endpoint that are due, at most n, for whoever is asked by:
// nobody else sends them for so long. It is committed before anything leaves.
func Ask(ctx context.Context, tx *ledger.Tx, endpoint, by string, n int, patience time.Duration) (list []Delivery, err error) {
	err = tx.Select(ctx, &list, `
		UPDATE deliveries d SET asked_by = $2::uuid, asked_until = clock_timestamp() + $4 * interval '1 microsecond', attempts = attempts + 1
		WHERE id = ANY (ARRAY(
			SELECT id FROM deliveries WHERE endpoint = $1 AND state = 'due' AND next_at <= clock_timestamp()
			AND (asked_until IS NULL OR asked_until <= clock_timestamp())
			ORDER BY next_at LIMIT $3 FOR UPDATE SKIP LOCKED))
		RETURNING `+columns, endpoint, by, n, patience.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("couldn't take deliveries: %w", err)
	}
	return list, nil
}

// Attempt is one answer of an endpoint, or why there was none.
type Attempt struct {
	Number  int         `db:"number"`
	At      ledger.Time `db:"at"`
	Seconds float64     `db:"seconds"`
	Status  int         `db:"status"` // 0: none
	Problem string      `db:"problem"`
}

// Answered records an attempt and where the delivery stands now: next is when it is sent
// again, zero where it ends in the state. Whoever lost the delivery meanwhile records
// nothing: false.
func Answered(ctx context.Context, tx *ledger.Tx, d Delivery, by string, a Attempt, state string, next time.Time) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE deliveries SET asked_by = NULL, asked_until = NULL, forced = false, state = $3, step = CASE WHEN $3 = 'due' THEN step + 1 ELSE step END,
			next_at = $4::timestamptz, ended_at = CASE WHEN $4::timestamptz IS NULL THEN clock_timestamp() END
		WHERE id = $1::uuid AND asked_by = $2::uuid`, d.ID, by, state, ledger.Time{Time: next})
	if err == nil && n == 1 {
		_, err = tx.Exec(ctx, `
			INSERT INTO delivery_attempts (delivery_id, number, at, seconds, status, problem)
			VALUES ($1::uuid, $2, $3, $4, NULLIF($5, 0), NULLIF($6, ''))`, d.ID, d.Attempts, a.At.Time, a.Seconds, a.Status, a.Problem)
	}
	if err != nil {
		return false, fmt.Errorf("couldn't record a delivery: %w", err)
	}
	return n == 1, nil
}

// GiveBack lets others send a delivery at once: this server stops.
func GiveBack(ctx context.Context, tx *ledger.Tx, id, by string) error {
	_, err := tx.Exec(ctx, `UPDATE deliveries SET asked_by = NULL, asked_until = NULL WHERE id = $1::uuid AND asked_by = $2::uuid`, id, by)
	if err != nil {
		return fmt.Errorf("couldn't give a delivery back: %w", err)
	}
	return nil
}

// GiveUp ends deliveries to endpoints that are none of these, made longer ago than life.
func GiveUp(ctx context.Context, tx *ledger.Tx, endpoints []string, life time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE deliveries SET state = 'given_up', next_at = NULL, asked_by = NULL, asked_until = NULL, ended_at = clock_timestamp()
		WHERE state = 'due' AND endpoint <> ALL ($1::text[]) AND made_at <= clock_timestamp() - $2 * interval '1 microsecond'`,
		pq.Array(endpoints), life.Microseconds())
	if err != nil {
		return fmt.Errorf("couldn't give up deliveries: %w", err)
	}
	return nil
}
