package effects

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Kept is a finish without an intent.
type Kept struct {
	Run       int64        `db:"run_id"`
	Key       ledger.Bytes `db:"key"`
	At        ledger.Time  `db:"at"`
	Tool      string       `db:"tool"`
	Outcome   string       `db:"outcome"`
	Reference string       `db:"reference"`
	Body      string       `db:"body"`
}

// KeepFinish stores a finish without an intent and counts it on its run.
func KeepFinish(ctx context.Context, tx *ledger.Tx, k Kept) error {
	_, err := tx.Exec(ctx, `
		WITH counted AS (UPDATE runs SET kept = kept + 1 WHERE id = $1)
		INSERT INTO kept_finishes (run_id, key, at, tool, outcome, reference, body)
		VALUES ($1, $2, $3, NULLIF($4, ''), $5, NULLIF($6, ''), $7)`,
		k.Run, []byte(k.Key), k.At.Time, k.Tool, k.Outcome, k.Reference, k.Body)
	if err != nil {
		return fmt.Errorf("couldn't keep a finish: %w", err)
	}
	return nil
}

// KeptFinish tells whether a finish of this key came before its intent.
func KeptFinish(ctx context.Context, r ledger.Reader, run int64, key []byte) (bool, error) {
	var found bool
	err := r.Get(ctx, &found, `SELECT EXISTS (SELECT 1 FROM kept_finishes WHERE run_id = $1 AND key = $2)`, run, key)
	if err != nil {
		return false, fmt.Errorf("couldn't look for a kept finish: %w", err)
	}
	return found, nil
}
