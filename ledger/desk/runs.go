package desk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Run is one row of the list of runs.
type Run struct {
	ID         int64       `db:"id"`
	Account    string      `db:"account"`
	AccountID  int64       `db:"account_id"`
	RunID      string      `db:"run_id"`
	Agent      string      `db:"agent"`
	State      string      `db:"state"`
	Epoch      int64       `db:"epoch"`
	Worker     string      `db:"worker"`
	LeaseUntil ledger.Time `db:"lease_until"`
	Refused    int64       `db:"refused"`
	OpenedAt   time.Time   `db:"opened_at"`
	ChangedAt  time.Time   `db:"changed_at"`
	ClosedAt   ledger.Time `db:"closed_at"`
	Open       int         `db:"open"` // effects that keep it from going on
	Now        time.Time   `db:"now"`
}

// RunFilter narrows the list, latest first.
type RunFilter struct {
	State, Agent, Name string
	After              *RunPlace
	Limit              int
}

// RunPlace is where a page of runs ended.
type RunPlace struct {
	OpenedAt time.Time
	ID       int64
}

const runColumns = `r.id, a.name AS account, r.account_id, r.run_id, r.agent, r.state, r.epoch, COALESCE(r.lease_worker, '') AS worker,
	r.lease_until, r.refused, r.opened_at, r.changed_at, r.closed_at, clock_timestamp() AS now,
	(SELECT count(*) FROM effects e WHERE e.run_id = r.id AND (e.state IN ('in_flight', 'interrupted', 'held')
		OR NOT e.released OR e.contradictions > 0)) AS open`

// RunsPage reads one page of runs.
func RunsPage(ctx context.Context, r ledger.Reader, f RunFilter) ([]Run, error) {
	var c where.Conds
	if f.State != "" {
		c.Add("r.state = ?", f.State)
	}
	if f.Agent != "" {
		c.Add("r.agent = ?", f.Agent)
	}
	if f.Name != "" {
		c.Add("r.id IN (SELECT x.id FROM accounts n JOIN runs x ON x.account_id = n.id AND x.run_id = ?)", f.Name)
	}
	if f.After != nil {
		c.Add("(r.opened_at, r.id) < (?, ?)", f.After.OpenedAt, f.After.ID)
	}
	limit := c.Arg(f.Limit)
	var rows []Run
	err := r.Select(ctx, &rows, `
		SELECT `+runColumns+` FROM runs r JOIN accounts a ON a.id = r.account_id
		WHERE `+c.String()+` ORDER BY r.opened_at DESC, r.id DESC LIMIT `+limit, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list runs: %w", err)
	}
	return rows, nil
}

// RunByID reads one run; [ledger.ErrNotFound].
func RunByID(ctx context.Context, r ledger.Reader, id int64) (run Run, err error) {
	err = r.Get(ctx, &run, `SELECT `+runColumns+` FROM runs r JOIN accounts a ON a.id = r.account_id WHERE r.id = $1`, id)
	return run, err
}

// RunOfEffect is the id of an effect's run; [ledger.ErrNotFound].
func RunOfEffect(ctx context.Context, r ledger.Reader, effect string) (id int64, err error) {
	err = r.Get(ctx, &id, `SELECT run_id FROM effects WHERE id = $1::uuid`, effect)
	return id, err
}

// Lease is who held a run, and when.
type Lease struct {
	Epoch   int64       `db:"epoch"`
	Worker  string      `db:"worker"`
	TakenAt time.Time   `db:"taken_at"`
	EndedAt ledger.Time `db:"ended_at"`
	EndedBy string      `db:"ended_by"`
}

// LeasesOf reads a run's holders, latest first, at most n.
func LeasesOf(ctx context.Context, r ledger.Reader, run int64, n int) ([]Lease, error) {
	var rows []Lease
	err := r.Select(ctx, &rows, `
		SELECT epoch, worker, taken_at, ended_at, COALESCE(ended_by, '') AS ended_by
		FROM leases WHERE run_id = $1 ORDER BY epoch DESC LIMIT $2`, run, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read leases: %w", err)
	}
	return rows, nil
}

// EffectsOfRun reads a run's effects, latest first, behind a place.
func EffectsOfRun(ctx context.Context, r ledger.Reader, run int64, after *Place, n int) ([]Closed, error) {
	var c where.Conds
	c.Add("e.run_id = ?", run)
	if after != nil {
		c.Add("(e.opened_at, e.id) < (?, ?::uuid)", after.At, after.ID)
	}
	limit := c.Arg(n)
	var rows []Closed
	err := r.Select(ctx, &rows, `
		SELECT `+strings.Replace(closedColumns, "e.changed_at,", "e.opened_at AS changed_at,", 1)+` FROM effects e`+closedJoins+`
		WHERE `+c.String()+` ORDER BY e.opened_at DESC, e.id DESC LIMIT `+limit, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a run's effects: %w", err)
	}
	return rows, nil
}

// Event is one line of a run's log, as people read it. Data is JSON.
type Event struct {
	At   time.Time `db:"at"`
	Kind string    `db:"kind"`
	Data string    `db:"data"`
}

// EventsOfRun reads what happened to a run itself and to none of its effects, latest
// first, at most n; of a long log only the last part is looked at.
func EventsOfRun(ctx context.Context, r ledger.Reader, run int64, n int) ([]Event, error) {
	var rows []Event
	err := r.Select(ctx, &rows, `
		SELECT at, kind, data FROM (
			SELECT id, at, effect_id, kind, data FROM effect_events WHERE run_id = $1 ORDER BY id DESC LIMIT 2000
		) AS v WHERE effect_id IS NULL ORDER BY id DESC LIMIT $2`, run, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a run's log: %w", err)
	}
	return rows, nil
}
