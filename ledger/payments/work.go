package payments

import (
	"context"

	"quittance/ledger"
)

// Work is the effect of a payment's run, as it stands.
type Work struct {
	EffectID string `db:"id"`
	State    string `db:"state"`
	Released bool   `db:"released"`
	Fence    int64  `db:"fence"`
	Result   string `db:"result"`
}

// WorkOf reads what the payment pays for, of the run that a payment has; nil when no work
// was recorded.
func WorkOf(ctx context.Context, r ledger.Reader, account int64, run string) (*Work, error) {
	return row[Work](ctx, r, "the work of a payment", `
		SELECT e.id, e.state, e.released, e.fence, COALESCE(e.result, '') AS result
		FROM runs r JOIN effects e ON e.run_id = r.id WHERE r.account_id = $1 AND r.run_id = $2
		ORDER BY e.opened_at DESC LIMIT 1`, account, run)
}
