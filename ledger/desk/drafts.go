// Package desk holds the statements that only pages need: drafts, attachments, lists
// of runs and of what was decided, and bulk decisions.
package desk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
)

// Draft is what somebody has typed about an effect and not sent. Form is JSON.
type Draft struct {
	Form    string    `db:"form"`
	SavedAt time.Time `db:"saved_at"`
}

// DraftOf reads a person's own draft; nil when there is none.
func DraftOf(ctx context.Context, r ledger.Reader, effect string, person int64) (*Draft, error) {
	var d Draft
	err := r.Get(ctx, &d, `SELECT form, saved_at FROM drafts WHERE effect_id = $1::uuid AND person_id = $2`, effect, person)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a draft: %w", err)
	}
	return &d, nil
}

// SaveDraft keeps a draft in place of the one before.
func SaveDraft(ctx context.Context, db *ledger.DB, effect string, person int64, form string) error {
	return db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO drafts (effect_id, person_id, form) VALUES ($1::uuid, $2, $3)
			ON CONFLICT (effect_id, person_id) DO UPDATE SET form = EXCLUDED.form, saved_at = clock_timestamp()`, effect, person, form)
		if err != nil {
			return fmt.Errorf("couldn't keep a draft: %w", err)
		}
		return nil
	})
}

// DropDraft forgets a draft once it was sent.
func DropDraft(ctx context.Context, db *ledger.DB, effect string, person int64) error {
	return db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM drafts WHERE effect_id = $1::uuid AND person_id = $2`, effect, person)
		return err
	})
}
