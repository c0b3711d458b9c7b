// Package queue reads the list of effects that wait for a person.
package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Filter narrows the queue; zero values filter nothing.
type Filter struct {
	Account, Tool, Agent, RunID, BusinessKey string
	// State is interrupted, held, contradicted, second (a verdict waits for a second
	// person) or confirm (decided too early, to be confirmed).
	State string
	// Words must all stand in the business key, the summary or the run's name.
	Words string
	// Currency with Least or Most bounds the amount at stake, in whole smallest units as
	// a decimal number; "" is no bound.
	Currency, Least, Most string
	// Older is how long it has waited at least.
	Older time.Duration
	// Overdue, when not nil, asks for what has waited longer than its tool may.
	Overdue *Overdue
	// After continues behind this place.
	After *Place
	Limit int
}

// Overdue says how long effects may wait: Default, or by the name of the tool.
type Overdue struct {
	Default time.Duration
	Tools   map[string]time.Duration
}

// Empty tells whether nothing is filtered.
func (f Filter) Empty() bool {
	f.After, f.Limit = nil, 0
	return f == Filter{}
}

// Place is where a page ended; the order is by waiting time, longest first.
type Place struct {
	Since time.Time
	ID    string
}

// Item is one row of the queue.
type Item struct {
	ID             string      `db:"id"`
	RunID          string      `db:"run_id"`
	Agent          string      `db:"agent"`
	Account        string      `db:"account"`
	Tool           string      `db:"tool"`
	BusinessKey    string      `db:"business_key"`
	Summary        string      `db:"summary"`
	Amount         string      `db:"amount"`
	Currency       string      `db:"currency"`
	Decimals       *int        `db:"decimals"`
	State          string      `db:"state"`
	Why            string      `db:"why"`
	DecidedBy      string      `db:"decided_by"`
	Version        int64       `db:"version"`
	Attempts       int         `db:"attempts"`
	Refused        int64       `db:"refused"`
	Contradictions int         `db:"contradictions"`
	Proposed       bool        `db:"proposed"`
	Early          bool        `db:"early"`
	WaitingSince   ledger.Time `db:"waiting_since"`
	Now            time.Time   `db:"now"`

	// Of the last look at its downstream; "" and zero where nobody has looked.
	Reason   string      `db:"look_reason"`
	LookWhy  string      `db:"look_why"`
	Earliest ledger.Time `db:"look_earliest"`
	Ended    bool        `db:"looks_ended"` // the schedule ended without proof
}

// where gives the conditions of the filter on waiting w, which hides what is only to
// be confirmed later.
func (f Filter) where() (c where.Conds) {
	c.Add("w.since <= clock_timestamp()")
	for _, x := range []struct{ column, value string }{ // in one order: each text is a prepared statement
		{"account", f.Account}, {"tool", f.Tool}, {"agent", f.Agent}, {"run_id", f.RunID}, {"business_key", f.BusinessKey},
		{"currency", f.Currency},
	} {
		if x.value != "" {
			c.Add("w."+x.column+" = ?", x.value)
		}
	}
	switch f.State {
	case "interrupted", "held":
		c.Add("w.state = ?", f.State)
	case "contradicted":
		c.Add("w.contradicted")
	case "second":
		c.Add("w.second")
	case "confirm":
		c.Add("w.early")
	}
	if f.Words != "" {
		c.Add("w.words @> waiting_words(?, NULL, NULL)", f.Words)
	}
	if f.Least != "" {
		c.Add("w.amount >= ?::numeric", f.Least)
	}
	if f.Most != "" {
		c.Add("w.amount <= ?::numeric", f.Most)
	}
	if f.Older > 0 {
		c.Add("w.since <= clock_timestamp() - make_interval(secs => ?)", f.Older.Seconds())
	}
	if o := f.Overdue; o != nil {
		tools, seconds := make([]string, 0, len(o.Tools)), make([]float64, 0, len(o.Tools))
		for tool, d := range o.Tools {
			tools, seconds = append(tools, tool), append(seconds, d.Seconds())
		}
		c.Add(`w.since <= clock_timestamp() - make_interval(secs => COALESCE((
			SELECT u.s FROM unnest(?::text[], ?::float8[]) AS u(tool, s) WHERE u.tool = w.tool), ?))`,
			pq.Array(tools), pq.Array(seconds), o.Default.Seconds())
	}
	if f.After != nil {
		c.Add("(w.since, w.effect_id) > (?, ?::uuid)", f.After.Since, f.After.ID)
	}
	return c
}

// Page reads one page, longest waiting first. Rows are found by keyset, so that pages
// neither skip nor repeat what does not itself change.
func Page(ctx context.Context, r ledger.Reader, f Filter) ([]Item, error) {
	c := f.where()
	limit := c.Arg(f.Limit)
	var items []Item
	err := r.Select(ctx, &items, `
		SELECT e.id, w.run_id, w.agent, w.account, e.tool, COALESCE(e.business_key, '') AS business_key, e.summary,
			COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency, e.decimals, e.state,
			COALESCE(e.why, '') AS why, COALESCE(e.decided_by, '') AS decided_by, e.version, e.attempts, r.refused,
			e.contradictions, e.proposal IS NOT NULL AS proposed, e.early, w.since AS waiting_since, clock_timestamp() AS now,
			COALESCE(l.reason, '') AS look_reason, COALESCE(l.why, '') AS look_why, l.earliest AS look_earliest,
			s.ended_at IS NOT NULL AS looks_ended
		FROM (SELECT w.effect_id, w.since, w.run_id, w.agent, w.account FROM waiting w
			WHERE `+c.String()+` ORDER BY w.since, w.effect_id LIMIT `+limit+`) AS w
		JOIN effects e ON e.id = w.effect_id JOIN runs r ON r.id = e.run_id
		LEFT JOIN lookup_schedule s ON s.effect_id = w.effect_id
		LEFT JOIN LATERAL (SELECT reason, why, earliest FROM lookups WHERE effect_id = w.effect_id
			ORDER BY asked_at DESC, id DESC LIMIT 1) AS l ON true
		ORDER BY w.since, w.effect_id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the queue: %w", err)
	}
	return items, nil
}
