package runs

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Lockers names the transactions, of every server, that have locked a run and are not
// over: whatever decides about effects does that first, and reads afterwards.
func Lockers(ctx context.Context, r ledger.Reader) (list []string, err error) {
	err = r.Select(ctx, &list, `
		SELECT DISTINCT l.virtualtransaction FROM pg_locks l
		WHERE l.locktype = 'relation' AND l.relation = 'runs'::regclass AND l.mode <> 'AccessShareLock'
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid <> pg_backend_pid()`)
	if err != nil {
		return nil, fmt.Errorf("couldn't see who has locked runs: %w", err)
	}
	return list, nil
}

// Never tells whether no run was ever opened, and then lets none be opened until the
// transaction ends.
func Never(ctx context.Context, tx *ledger.Tx) (bool, error) {
	some := func() (some bool, err error) {
		if err = tx.Get(ctx, &some, `SELECT EXISTS (SELECT 1 FROM runs)`); err != nil {
			return false, fmt.Errorf("couldn't see whether there are runs: %w", err)
		}
		return some, nil
	}
	if some, err := some(); some || err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return false, fmt.Errorf("couldn't keep runs from being opened: %w", err)
	}
	any, err := some()
	return !any, err
}
