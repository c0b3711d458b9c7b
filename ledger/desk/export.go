package desk

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Recorded is an effect as it is exported: what was asked and what came back, to the letter.
type Recorded struct {
	ID         string      `db:"id"`
	Account    string      `db:"account"`
	RunID      string      `db:"run_id"`
	Agent      string      `db:"agent"`
	Tool       string      `db:"tool"`
	Key        string      `db:"business_key"`
	Occurrence int64       `db:"occurrence"`
	Attempts   int         `db:"attempts"`
	State      string      `db:"state"`
	Why        string      `db:"why"`
	DecidedBy  string      `db:"decided_by"`
	Person     string      `db:"person"`
	Note       string      `db:"note"`
	Reference  string      `db:"reference"`
	Amount     string      `db:"amount"` // in the smallest unit
	Currency   string      `db:"currency"`
	Decimals   int         `db:"decimals"`
	Arguments  string      `db:"arguments"`
	Result     string      `db:"result"`
	Error      string      `db:"error"`
	OpenedAt   ledger.Time `db:"opened_at"`
	ChangedAt  ledger.Time `db:"changed_at"`
}

// RecordedFilter are bounds of when an effect was recorded, to exclusive; zero is none.
type RecordedFilter struct {
	Tool     string
	From, To time.Time
}

// EachRecorded reads effects in the order of their ids, which is that of their beginning.
// The caller closes the rows, which are [Recorded].
func EachRecorded(ctx context.Context, r ledger.Reader, f RecordedFilter) (*sqlx.Rows, error) {
	var c where.Conds
	c.Add("true")
	if f.Tool != "" {
		c.Add("e.tool = ?", f.Tool)
	}
	if !f.From.IsZero() {
		c.Add("e.opened_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("e.opened_at < ?", f.To)
	}
	rows, err := r.Query(ctx, `
		SELECT e.id, a.name AS account, r.run_id, r.agent, e.tool, COALESCE(e.business_key, '') AS business_key, e.occurrence, e.attempts, e.state, COALESCE(e.why, '') AS why,
			COALESCE(e.decided_by, '') AS decided_by, COALESCE(p.name, '') AS person, COALESCE(d.note, '') AS note, COALESCE(e.reference, '') AS reference,
			COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency, COALESCE(e.decimals, 0) AS decimals,
			e.arguments, COALESCE(e.result, '') AS result, COALESCE(e.error, '') AS error, e.opened_at, e.changed_at
		FROM effects e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = e.account_id
		LEFT JOIN decisions d ON d.id = e.decision LEFT JOIN people p ON p.id = d.person_id
		WHERE `+c.String()+` ORDER BY e.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read effects to export: %w", err)
	}
	return rows, nil
}
