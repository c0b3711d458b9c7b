package wakes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Filter narrows the log of deliveries; zero values filter nothing.
type Filter struct {
	Endpoint, State string
	After           *Place
	Limit           int
}

// Place is where a page ended.
type Place struct {
	MadeAt time.Time
	ID     string
}

// Logged is a delivery for people.
type Logged struct {
	Delivery
	RunName string `db:"run_name"`
	Agent   string `db:"agent"`
	Account string `db:"account"`
	Status  int    `db:"status"`  // of the last attempt that is on record
	Problem string `db:"problem"` // of it
}

const logged = `
	SELECT ` + columns + `, r.run_id AS run_name, r.agent, a.name AS account, COALESCE(l.status, 0) AS status, COALESCE(l.problem, '') AS problem
	FROM deliveries d JOIN runs r ON r.id = d.run_id JOIN accounts a ON a.id = r.account_id
	LEFT JOIN LATERAL (SELECT status, problem FROM delivery_attempts t WHERE t.delivery_id = d.id ORDER BY number DESC LIMIT 1) l ON true
	WHERE `

// Page reads one page of the log, latest first.
func Page(ctx context.Context, r ledger.Reader, f Filter) (list []Logged, err error) {
	var c where.Conds
	if f.Endpoint != "" {
		c.Add("d.endpoint = ?", f.Endpoint)
	}
	if f.State != "" {
		c.Add("d.state = ?", f.State)
	}
	if f.After != nil {
		c.Add("(d.made_at, d.id) < (?, ?::uuid)", f.After.MadeAt, f.After.ID)
	}
	limit := c.Arg(f.Limit)
	err = r.Select(ctx, &list, logged+c.String()+` ORDER BY d.made_at DESC, d.id DESC LIMIT `+limit, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the deliveries: %w", err)
	}
	return list, nil
}

// ByID reads one delivery; nil where there is none.
func ByID(ctx context.Context, r ledger.Reader, id string) (*Logged, error) {
	var d Logged
	err := r.Get(ctx, &d, logged+`d.id = $1::uuid`, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a delivery: %w", err)
	}
	return &d, nil
}

// Attempts reads what became of each attempt, first to last.
func Attempts(ctx context.Context, r ledger.Reader, id string) (list []Attempt, err error) {
	err = r.Select(ctx, &list, `
		SELECT number, at, seconds, COALESCE(status, 0) AS status, COALESCE(problem, '') AS problem
		FROM delivery_attempts WHERE delivery_id = $1::uuid ORDER BY number`, id)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the attempts of a delivery: %w", err)
	}
	return list, nil
}

// Replay makes a delivery due at once, from the start of its schedule, whatever became of
// it. False while it is being sent.
func Replay(ctx context.Context, tx *ledger.Tx, id string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE deliveries SET state = 'due', next_at = clock_timestamp(), ended_at = NULL, step = 0, forced = true, asked_by = NULL, asked_until = NULL
		WHERE id = $1::uuid AND (asked_until IS NULL OR asked_until <= clock_timestamp())`, id)
	if err != nil {
		return false, fmt.Errorf("couldn't make a delivery due: %w", err)
	}
	return n == 1, nil
}
