package runs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"quittance/ledger"
)

// Checkpoint is an agent's saved state, as it sent it.
type Checkpoint struct {
	Turn        int64       `db:"turn"`
	State       string      `db:"state"`
	Occurrences string      `db:"occurrences"`
	SavedAt     ledger.Time `db:"saved_at"`
	Intact      bool        `db:"intact"` // it is what was saved, by its digest
}

// SaveCheckpoint stores the state after a turn; saving a turn again in the same
// epoch replaces it. Of all that were saved, the last so many are kept.
func SaveCheckpoint(ctx context.Context, tx *ledger.Tx, run *Row, turn int64, state, occurrences string, keep int, now time.Time) error {
	sum := sha256.Sum256([]byte(state + "\x00" + occurrences))
	_, err := tx.Exec(ctx, `
		INSERT INTO checkpoints (run_id, epoch, turn, state, occurrences, digest, saved_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (run_id, epoch, turn) DO UPDATE
		SET state = excluded.state, occurrences = excluded.occurrences, digest = excluded.digest,
			saved_at = excluded.saved_at`, run.ID, run.Epoch, turn, state, occurrences, sum[:], now)
	if err == nil {
		_, err = tx.Exec(ctx, `
			DELETE FROM checkpoints WHERE run_id = $1 AND (epoch, turn) IN (
				SELECT epoch, turn FROM checkpoints WHERE run_id = $1 ORDER BY epoch DESC, saved_at DESC, turn DESC OFFSET $2)`, run.ID, keep)
	}
	if err != nil {
		return fmt.Errorf("couldn't save a checkpoint: %w", err)
	}
	return nil
}

// LastCheckpoint is the one saved last by the highest epoch that is intact; nil when
// there is none. damaged are those after it that are not, latest first; their texts are
// left out. Without texts, State and Occurrences are left empty.
func LastCheckpoint(ctx context.Context, r ledger.Reader, run int64, texts bool) (last *Checkpoint, damaged []Checkpoint, err error) {
	for n := 0; ; n++ { // one look, nearly always: the digest of each costs reading it
		var rows []Checkpoint
		err := r.Select(ctx, &rows, `
			SELECT turn, CASE WHEN $2 THEN state ELSE '' END AS state, CASE WHEN $2 THEN occurrences ELSE '' END AS occurrences, saved_at,
				digest = sha256(convert_to(state, 'UTF8') || '\x00'::bytea || convert_to(occurrences, 'UTF8')) AS intact
			FROM checkpoints WHERE run_id = $1 ORDER BY epoch DESC, saved_at DESC, turn DESC LIMIT 1 OFFSET $3`, run, texts, n)
		if err != nil {
			return nil, nil, fmt.Errorf("couldn't read a checkpoint: %w", err)
		}
		switch {
		case len(rows) == 0:
			return nil, damaged, nil
		case rows[0].Intact:
			return &rows[0], damaged, nil
		}
		rows[0].State, rows[0].Occurrences = "", ""
		damaged = append(damaged, rows[0])
	}
}
