package desk

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Closed is one row of a list of effects that somebody or something has decided.
type Closed struct {
	ID          string      `db:"id"`
	RunID       string      `db:"run_id"`
	Agent       string      `db:"agent"`
	Tool        string      `db:"tool"`
	BusinessKey string      `db:"business_key"`
	Summary     string      `db:"summary"`
	Amount      string      `db:"amount"`
	Currency    string      `db:"currency"`
	Decimals    int         `db:"decimals"`
	State       string      `db:"state"`
	Why         string      `db:"why"`
	DecidedBy   string      `db:"decided_by"`
	Person      string      `db:"person"` // who decided, when it was a person
	Note        string      `db:"note"`
	Reference   string      `db:"reference"`
	Same        bool        `db:"same"` // as another effect: nothing was sent for it
	Version     int64       `db:"version"`
	ReleaseAt   ledger.Time `db:"release_at"`
	Released    bool        `db:"released"`
	Early       bool        `db:"early"`
	Moment      ledger.Time `db:"moment"`
	UsedAt      ledger.Time `db:"used_at"`
	ChangedAt   time.Time   `db:"changed_at"`
	Now         time.Time   `db:"now"`
}

// Place is where a page of a list by time ended.
type Place struct {
	At time.Time
	ID string
}

// ClosedFilter asks for what was closed, latest first. By is how: late_agent,
// look_up, vendor_key, person, run_closed or agent; "" with Unused asks for what no
// agent has used yet, whoever decided it.
type ClosedFilter struct {
	By       string
	Unused   bool
	Tool     string
	From, To time.Time // of the last change; To is not included
	After    *Place
	Limit    int
}

const closedColumns = `e.id, r.run_id, r.agent, e.tool, COALESCE(e.business_key, '') AS business_key, e.summary,
	COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency, COALESCE(e.decimals, 0) AS decimals,
	e.state, COALESCE(e.why, '') AS why, COALESCE(e.decided_by, '') AS decided_by, COALESCE(p.name, '') AS person,
	COALESCE(d.note, '') AS note, COALESCE(e.reference, '') AS reference, e.same_as IS NOT NULL AS same, e.version,
	e.release_at, e.released, e.early, e.moment, e.used_at, e.changed_at, clock_timestamp() AS now`

const closedJoins = ` JOIN runs r ON r.id = e.run_id LEFT JOIN decisions d ON d.id = e.decision LEFT JOIN people p ON p.id = d.person_id`

// byCond is how something was closed. Constants, not a parameter: a plan made for any
// value could not use the partial index.
var byCond = map[string]string{
	"":      "e.decided_by IN ('late_agent', 'look_up', 'vendor_key', 'person', 'run_closed')",
	"agent": "e.decided_by = 'agent'", "late_agent": "e.decided_by = 'late_agent'", "look_up": "e.decided_by = 'look_up'",
	"vendor_key": "e.decided_by = 'vendor_key'", "person": "e.decided_by = 'person'", "run_closed": "e.decided_by = 'run_closed'",
}

// ClosedPage reads one page.
//
// What agents finished is walked from the effect opened last: ids are in the order of
// time, nearly every effect ends this way, and an index for this list would be paid by
// every finish.
func ClosedPage(ctx context.Context, r ledger.Reader, f ClosedFilter) ([]Closed, error) {
	by, known := byCond[f.By]
	if !known {
		return nil, nil
	}
	var c where.Conds
	order := "e.changed_at DESC, e.id DESC"
	if f.By == "agent" {
		order = "e.id DESC"
	}
	if f.Unused {
		// The words of the partial index, so that it is used.
		c.Add("e.used_at IS NULL AND e.state IN ('cleared', 'taken', 'cancelled')")
	} else {
		c.Add("e.state IN ('cleared', 'taken', 'failed', 'cancelled')")
	}
	if f.By != "" || !f.Unused {
		c.Add(by)
	}
	if f.Tool != "" {
		c.Add("e.tool = ?", f.Tool)
	}
	if !f.From.IsZero() {
		c.Add("e.changed_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("e.changed_at < ?", f.To)
	}
	switch {
	case f.After != nil && f.By == "agent":
		c.Add("e.id < ?::uuid", f.After.ID)
	case f.After != nil:
		c.Add("(e.changed_at, e.id) < (?, ?::uuid)", f.After.At, f.After.ID)
	}
	limit := c.Arg(f.Limit)
	var rows []Closed
	err := r.Select(ctx, &rows, `
		SELECT `+closedColumns+`
		FROM (SELECT * FROM effects e WHERE `+c.String()+` ORDER BY `+order+` LIMIT `+limit+`) AS e`+closedJoins+`
		ORDER BY `+order, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what was decided: %w", err)
	}
	return rows, nil
}

// CountUnused counts what is decided and not yet used, to at most n.
func CountUnused(ctx context.Context, r ledger.Reader, n int) (count int, err error) {
	err = r.Get(ctx, &count, `
		SELECT count(*) FROM (SELECT FROM effects WHERE used_at IS NULL AND state IN ('cleared', 'taken', 'cancelled') LIMIT $1) AS x`, n)
	return count, err
}
