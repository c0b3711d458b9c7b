package logfiles

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Exported is an effect as a log file tells it.
type Exported struct {
	RunID      string         `db:"run_id"`
	Key        ledger.Bytes   `db:"key"`
	Tool       string         `db:"tool"`
	Arguments  string         `db:"arguments"`
	Occurrence int            `db:"occurrence"`
	State      string         `db:"state"`
	Released   bool           `db:"released"`
	DecidedBy  string         `db:"decided_by"`
	Reference  string         `db:"reference"`
	Result     string         `db:"result"`
	Error      string         `db:"error"`
	ChangedAt  ledger.Time    `db:"changed_at"`
	Begun      pq.StringArray `db:"begun"` // when each attempt began
}

// Export calls f for every effect of an account, or of one of its runs, in the order in
// which they were opened. Memory is bounded.
func Export(ctx context.Context, r ledger.Reader, account int64, run string, f func(*Exported) error) error {
	rows, err := r.Query(ctx, `
		SELECT r.run_id, e.key, e.tool, e.arguments, e.occurrence, e.state, e.released, COALESCE(e.decided_by, '') AS decided_by,
			COALESCE(e.reference, '') AS reference, COALESCE(e.result, '') AS result, COALESCE(e.error, '') AS error, e.changed_at,
			ARRAY(SELECT to_char(a.begun_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM attempts a WHERE a.effect_id = e.id ORDER BY a.fence) AS begun
		FROM effects e JOIN runs r ON r.id = e.run_id
		WHERE e.account_id = $1 AND ($2 = '' OR r.run_id = $2) ORDER BY e.opened_at, e.id`, account, run)
	if err != nil {
		return fmt.Errorf("couldn't read effects to export: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var x Exported
		if err := rows.StructScan(&x); err != nil {
			return fmt.Errorf("couldn't read an effect to export: %w", err)
		}
		if err := f(&x); err != nil {
			return err
		}
	}
	return rows.Err()
}
