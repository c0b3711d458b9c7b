// Package templates holds the statements about business_templates: which business_key
// template every tool's claims are made with, and how far a change of it has come.
package templates

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
)

// Change is a tool's change from one template to another; "" is no business key.
type Change struct {
	ID        int64       `db:"id"`
	Tool      string      `db:"tool"`
	Template  string      `db:"template"`
	Earlier   string      `db:"earlier"`
	InForceAt ledger.Time `db:"in_force_at"`
	RekeyedAt ledger.Time `db:"rekeyed_at"`
	SettledAt ledger.Time `db:"settled_at"`
	Upto      string      `db:"upto"`
	Scanned   string      `db:"scanned"`
}

// Waits tells that an earlier change of the tool is not settled yet.
func (c *Change) Waits() bool { return c.InForceAt.IsZero() }

const columns = `t.id, t.tool, t.template, t.earlier, t.in_force_at, t.rekeyed_at, t.settled_at,
	COALESCE(t.upto::text, '') AS upto, COALESCE(t.scanned::text, '') AS scanned`

// latest is each tool's last change that came into force.
const latest = `
	SELECT DISTINCT ON (tool) * FROM business_templates WHERE in_force_at IS NOT NULL ORDER BY tool, id DESC`

// InForce reads what begins are checked under: the last change of every tool that has
// one, and the number that rises with each such change. Both are of one moment.
func InForce(ctx context.Context, r ledger.Reader) (keying int64, list []Change, err error) {
	var rows []struct {
		Keying int64 `db:"keying"`
		Found  bool  `db:"found"`
		Change
	}
	err = r.Select(ctx, &rows, `
		SELECT i.keying, t.id IS NOT NULL AS found, COALESCE(t.id, 0) AS id, COALESCE(t.tool, '') AS tool,
			COALESCE(t.template, '') AS template, COALESCE(t.earlier, '') AS earlier, t.in_force_at, t.rekeyed_at, t.settled_at
		FROM installation i LEFT JOIN (`+latest+`) AS t ON true`)
	if err != nil {
		return 0, nil, fmt.Errorf("couldn't read the business_key templates: %w", err)
	}
	for _, row := range rows {
		keying = row.Keying
		if row.Found {
			list = append(list, row.Change)
		}
	}
	return keying, list, nil
}

// Waiting reads the changes that an earlier one of the same tool keeps waiting.
func Waiting(ctx context.Context, r ledger.Reader) (list []Change, err error) {
	if err = r.Select(ctx, &list, `SELECT `+columns+` FROM business_templates t WHERE in_force_at IS NULL`); err != nil {
		return nil, fmt.Errorf("couldn't read the waiting business_key templates: %w", err)
	}
	return list, nil
}

// Lock lets nobody else change anything here until the transaction ends. It must be
// the first lock of its transaction: those who re-key hold one here for all of theirs.
func Lock(ctx context.Context, tx *ledger.Tx) error {
	if _, err := tx.Exec(ctx, `LOCK TABLE business_templates IN EXCLUSIVE MODE`); err != nil {
		return fmt.Errorf("couldn't lock the business_key templates: %w", err)
	}
	return nil
}

// Begin records a change and says how it starts: waiting for an earlier one, in force,
// or, where nothing is stored that could be re-keyed, settled.
func Begin(ctx context.Context, tx *ledger.Tx, c Change, inForce, settled bool) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO business_templates (tool, template, earlier, in_force_at, rekeyed_at, settled_at)
		SELECT $1, $2, $3, CASE WHEN $4 THEN now END, CASE WHEN $5 THEN now END, CASE WHEN $5 THEN now END
		FROM clock_timestamp() AS now`, c.Tool, c.Template, c.Earlier, inForce, settled)
	if err != nil {
		return fmt.Errorf("couldn't record a business_key template: %w", err)
	}
	return nil
}

// Forget drops a change that waits and is not wanted any more.
func Forget(ctx context.Context, tx *ledger.Tx, id int64) error {
	if _, err := tx.Exec(ctx, `DELETE FROM business_templates WHERE id = $1 AND in_force_at IS NULL`, id); err != nil {
		return fmt.Errorf("couldn't forget a business_key template: %w", err)
	}
	return nil
}

// Announce makes every server read the templates again before its next begin.
func Announce(ctx context.Context, tx *ledger.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE installation SET keying = keying + 1`); err != nil {
		return fmt.Errorf("couldn't announce the business_key templates: %w", err)
	}
	return nil
}

// Open lists the changes in force that are not settled.
func Open(ctx context.Context, r ledger.Reader) (list []Change, err error) {
	err = r.Select(ctx, &list, `
		SELECT `+columns+` FROM business_templates t WHERE in_force_at IS NOT NULL AND settled_at IS NULL ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the open business_key templates: %w", err)
	}
	return list, nil
}

// Take locks an open change for the transaction; nil when another server is at work on
// it, or it is settled.
func Take(ctx context.Context, tx *ledger.Tx, id int64) (*Change, error) {
	var c Change
	err := tx.Get(ctx, &c, `
		SELECT `+columns+` FROM business_templates t
		WHERE id = $1 AND in_force_at IS NOT NULL AND settled_at IS NULL FOR UPDATE SKIP LOCKED`, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't lock a business_key template: %w", err)
	}
	return &c, nil
}

// Advance records how far the pass over the stored effects has come.
func Advance(ctx context.Context, tx *ledger.Tx, c *Change) error {
	if _, err := tx.Exec(ctx, `UPDATE business_templates SET upto = $2::uuid, scanned = $3::uuid WHERE id = $1`, c.ID, c.Upto, c.Scanned); err != nil {
		return fmt.Errorf("couldn't record how far re-keying has come: %w", err)
	}
	return nil
}

// Rekeyed ends the first pass: begins are no more checked under the earlier template.
func Rekeyed(ctx context.Context, tx *ledger.Tx, id int64) error {
	_, err := tx.Exec(ctx, `UPDATE business_templates SET rekeyed_at = clock_timestamp(), upto = NULL, scanned = NULL WHERE id = $1`, id)
	if err != nil {
		return fmt.Errorf("couldn't end re-keying: %w", err)
	}
	return Announce(ctx, tx)
}

// Settle ends the second pass, and with it the change. The one that waits for it comes
// into force.
func Settle(ctx context.Context, tx *ledger.Tx, c *Change) error {
	_, err := tx.Exec(ctx, `UPDATE business_templates SET settled_at = clock_timestamp(), upto = NULL, scanned = NULL WHERE id = $1`, c.ID)
	if err != nil {
		return fmt.Errorf("couldn't settle a business_key template: %w", err)
	}
	n, err := tx.Exec(ctx, `UPDATE business_templates SET in_force_at = clock_timestamp() WHERE tool = $1 AND in_force_at IS NULL`, c.Tool)
	if err != nil {
		return fmt.Errorf("couldn't put a business_key template in force: %w", err)
	}
	if n == 0 {
		return nil
	}
	return Announce(ctx, tx)
}
