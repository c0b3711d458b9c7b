package effects

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
)

// ErrChanged says that a guarded write met a row that somebody else had changed:
// nothing of the batch may be committed.
var ErrChanged = errors.New("an effect changed under a guarded write")

// Insert is a new effect: its row as it stands after the batch, with its texts.
type Insert struct {
	Intent
	Standing
	Texts
}

// Update is a changed effect; Was is the version that was read.
type Update struct {
	ID  string
	Was int64
	Standing
	Texts
}

// Batch is everything one transaction writes about effects.
type Batch struct {
	Inserts  []Insert
	Updates  []Update
	Attempts []Attempt
	Events   []Event
}

var (
	intentFields = parseFields(`id uuid, account_id bigint, run_id bigint, key bytea, client_key text, tool text,
		occurrence integer, arguments text, call_digest bytea, business_key text, claim bytea, claim_was bytea,
		call_claim boolean, summary text, amount numeric, currency text, decimals smallint, amount_problem text,
		call_id text, client_time text, context text, repeat_of uuid, opened_at timestamptz`)
	standingFields = parseFields(`state text, why text, version bigint, attempts integer, fence bigint, deadline timestamptz,
		moment timestamptz, gap boolean, decided_by text, decided_from text, decision uuid, proposal uuid, early boolean,
		release_at timestamptz, released boolean, used_at timestamptz, reference text, same_as uuid, result_size bigint,
		result_digest bytea, contradictions integer, waiting_since timestamptz, changed_at timestamptz`)
	textFields    = parseFields(`set_texts boolean, result text, error text`)
	guardFields   = parseFields(`id uuid, was bigint`)
	attemptFields = parseFields(`effect_id uuid, number integer, fence bigint, attempt_id text, epoch bigint,
		begun_at timestamptz, deadline timestamptz`)
	eventFields = parseFields(`at timestamptz, run_id bigint, effect_id uuid, version bigint, kind text, data text, digest bytea`)

	insertFields = intentFields.plus(standingFields).plus(textFields)
	updateFields = guardFields.plus(standingFields).plus(textFields)
	rowNames     = intentFields.list("") + ", " + standingFields.list("") + ", result, error"
)

// One statement, so that a batch costs one round trip whatever it holds.
var writeBatch = `
	WITH added AS (
		INSERT INTO effects (` + rowNames + `) SELECT ` + rowNames + ` FROM ` + insertFields.unnest(1) + `
	), changed AS (
		UPDATE effects e SET (` + standingFields.list("") + `, result, error) = (` + standingFields.list("x.") + `,
			CASE WHEN x.set_texts THEN x.result ELSE e.result END,
			CASE WHEN x.set_texts THEN x.error ELSE e.error END)
		FROM ` + updateFields.unnest(1+len(insertFields.names)) + `
		WHERE e.id = x.id AND e.version = x.was
		RETURNING 1
	), tried AS (
		INSERT INTO attempts (` + attemptFields.list("") + `)
		SELECT ` + attemptFields.list("") + ` FROM ` + attemptFields.unnest(1+len(insertFields.names)+len(updateFields.names)) + `
	), logged AS (
		INSERT INTO effect_events (` + eventFields.list("") + `)
		SELECT ` + eventFields.list("") + `
		FROM ` + eventFields.unnest(1+len(insertFields.names)+len(updateFields.names)+len(attemptFields.names)) + `
		ORDER BY n
		RETURNING id
	)
	SELECT id, (SELECT count(*) FROM changed) FROM logged ORDER BY id`

// params are the arguments of writeBatch.
func (b *Batch) params() []any {
	inserts, updates := newArrays(insertFields), newArrays(updateFields)
	attempts, events := newArrays(attemptFields), newArrays(eventFields)
	for i := range b.Inserts {
		v := &b.Inserts[i]
		v.Intent.to(inserts)
		v.Standing.to(inserts, true)
		v.Texts.to(inserts)
		inserts.end()
	}
	for i := range b.Updates {
		v := &b.Updates[i]
		updates.text("id", v.ID)
		updates.number("was", v.Was)
		v.Standing.to(updates, true)
		v.Texts.to(updates)
		updates.end()
	}
	for i := range b.Attempts {
		b.Attempts[i].to(attempts)
		attempts.end()
	}
	for i := range b.Events {
		b.Events[i].to(events)
		events.end()
	}
	args := make([]any, 0, len(inserts.names)+len(updates.names)+len(attempts.names)+len(events.names))
	return events.params(attempts.params(updates.params(inserts.params(args))))
}

// Write stores a batch and fills the ids of its events. [ErrChanged] when an
// update's guard did not hold; the transaction must then be given up.
func Write(ctx context.Context, tx *ledger.Tx, b *Batch) error {
	if len(b.Inserts)+len(b.Updates)+len(b.Attempts)+len(b.Events) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, writeBatch, b.params()...)
	if err != nil {
		return fmt.Errorf("couldn't write effects: %w", err)
	}
	defer func() { _ = rows.Close() }()
	i, changed := 0, 0
	for ; rows.Next(); i++ {
		if err := rows.Scan(&b.Events[i].ID, &changed); err != nil {
			return fmt.Errorf("couldn't read event ids: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("couldn't write effects: %w", err)
	}
	if i != len(b.Events) || changed != len(b.Updates) {
		return ErrChanged
	}
	return nil
}
