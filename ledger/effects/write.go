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

const standingTypes = `state text, why text, version bigint, attempts integer, fence bigint, deadline timestamptz,
	moment timestamptz, gap boolean, decided_by text, decided_from text, decision uuid, proposal uuid,
	early boolean, release_at timestamptz, released boolean, used_at timestamptz, reference text, same_as uuid,
	result_size bigint, result_digest bytea, contradictions integer, waiting_since timestamptz,
	changed_at timestamptz, set_texts boolean, result text, error text`

const standingNames = `state, why, version, attempts, fence, deadline, moment, gap, decided_by, decided_from, decision,
	proposal, early, release_at, released, used_at, reference, same_as, result_size, result_digest,
	contradictions, waiting_since, changed_at`

const intentNames = `id, account_id, run_id, key, client_key, tool, occurrence, arguments, call_digest, business_key,
	claim, claim_was, call_claim, summary, amount, currency, decimals, amount_problem, call_id, client_time,
	context, repeat_of, opened_at`

// One statement, so that a batch costs one round trip whatever it holds.
const writeBatch = `
	WITH added AS (
		INSERT INTO effects (` + intentNames + `, ` + standingNames + `, result, error)
		SELECT ` + intentNames + `, ` + standingNames + `, result, error
		FROM json_to_recordset($1::json) AS x(
			id uuid, account_id bigint, run_id bigint, key bytea, client_key text, tool text, occurrence integer,
			arguments text, call_digest bytea, business_key text, claim bytea, claim_was bytea, call_claim boolean,
			summary text, amount numeric, currency text, decimals smallint, amount_problem text, call_id text,
			client_time text, context text, repeat_of uuid, opened_at timestamptz, ` + standingTypes + `)
	), changed AS (
		UPDATE effects e SET (` + standingNames + `, result, error) = (
			x.state, x.why, x.version, x.attempts, x.fence, x.deadline, x.moment, x.gap, x.decided_by, x.decided_from,
			x.decision, x.proposal, x.early, x.release_at, x.released, x.used_at, x.reference, x.same_as,
			x.result_size, x.result_digest, x.contradictions, x.waiting_since, x.changed_at,
			CASE WHEN x.set_texts THEN x.result ELSE e.result END,
			CASE WHEN x.set_texts THEN x.error ELSE e.error END)
		FROM json_to_recordset($2::json) AS x(id uuid, was bigint, ` + standingTypes + `)
		WHERE e.id = x.id AND e.version = x.was
		RETURNING 1
	), tried AS (
		INSERT INTO attempts (effect_id, number, fence, attempt_id, epoch, begun_at, deadline)
		SELECT effect_id, number, fence, attempt_id, epoch, begun_at, deadline
		FROM json_to_recordset($3::json) AS x(
			effect_id uuid, number integer, fence bigint, attempt_id text, epoch bigint, begun_at timestamptz,
			deadline timestamptz)
	), logged AS (
		INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
		SELECT at, run_id, effect_id, version, kind, data, digest
		FROM ROWS FROM (json_to_recordset($4::json) AS (
			at timestamptz, run_id bigint, effect_id uuid, version bigint, kind text, data text, digest bytea))
			WITH ORDINALITY AS x(at, run_id, effect_id, version, kind, data, digest, n)
		ORDER BY n
		RETURNING id
	)
	SELECT id, (SELECT count(*) FROM changed) FROM logged ORDER BY id`

// Write stores a batch and fills the ids of its events. [ErrChanged] when an
// update's guard did not hold; the transaction must then be given up.
func Write(ctx context.Context, tx *ledger.Tx, b *Batch) error {
	if len(b.Inserts)+len(b.Updates)+len(b.Attempts)+len(b.Events) == 0 {
		return nil
	}
	args := []any{
		encode(b.Inserts, func(o *object, v *Insert) { o.intent(&v.Intent); o.standing(&v.Standing, true); o.texts(&v.Texts) }),
		encode(b.Updates, func(o *object, v *Update) {
			o.text("id", v.ID)
			o.number("was", v.Was)
			o.standing(&v.Standing, true)
			o.texts(&v.Texts)
		}),
		encode(b.Attempts, (*object).attempt),
		encode(b.Events, (*object).event),
	}
	rows, err := tx.Query(ctx, writeBatch, args...)
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
