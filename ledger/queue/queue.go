// Package queue reads the list of effects that wait for a person.
package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
)

// Filter narrows the queue; zero values filter nothing.
type Filter struct {
	Account, Tool, Agent, RunID, BusinessKey string
	// State is interrupted, held, contradicted, second (a verdict waits for a second
	// person) or confirm (decided too early, to be confirmed).
	State string
	// After continues behind this place.
	After *Place
	Limit int
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
}

// Page reads one page, longest waiting first. Rows are found by keyset, so that pages
// neither skip nor repeat what does not itself change.
func Page(ctx context.Context, r ledger.Reader, f Filter) ([]Item, error) {
	where := []string{"e.waiting_since <= clock_timestamp()"}
	var args []any
	add := func(cond string, arg any) {
		args = append(args, arg)
		where = append(where, strings.ReplaceAll(cond, "?", fmt.Sprintf("$%d", len(args))))
	}
	if f.Account != "" {
		add("a.name = ?", f.Account)
	}
	if f.Tool != "" {
		add("e.tool = ?", f.Tool)
	}
	if f.Agent != "" {
		add("r.agent = ?", f.Agent)
	}
	if f.RunID != "" {
		add("r.run_id = ?", f.RunID)
	}
	if f.BusinessKey != "" {
		add("e.business_key = ?", f.BusinessKey)
	}
	switch f.State {
	case "interrupted", "held":
		add("e.state = ?", f.State)
	case "contradicted":
		where = append(where, "e.contradictions > 0")
	case "second":
		where = append(where, "e.proposal IS NOT NULL")
	case "confirm":
		where = append(where, "e.early")
	}
	if f.After != nil {
		args = append(args, f.After.Since, f.After.ID)
		where = append(where, fmt.Sprintf("(e.waiting_since, e.id) > ($%d, $%d::uuid)", len(args)-1, len(args)))
	}
	args = append(args, f.Limit)
	var items []Item
	err := r.Select(ctx, &items, `
		SELECT e.id, r.run_id, r.agent, a.name AS account, e.tool, COALESCE(e.business_key, '') AS business_key, e.summary,
			COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency, e.decimals, e.state,
			COALESCE(e.why, '') AS why, COALESCE(e.decided_by, '') AS decided_by, e.version, e.attempts, r.refused,
			e.contradictions, e.proposal IS NOT NULL AS proposed, e.early, e.waiting_since, clock_timestamp() AS now
		FROM effects e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = e.account_id
		WHERE `+strings.Join(where, " AND ")+`
		ORDER BY e.waiting_since, e.id LIMIT $`+fmt.Sprint(len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the queue: %w", err)
	}
	return items, nil
}
