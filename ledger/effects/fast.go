package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"quittance/ledger"
)

// FastBegin is the first begin of a call that nothing stands against.
type FastBegin struct {
	Intent
	RunID     string
	LeaseHash []byte
	AttemptID string
	Deadline  time.Duration
	Lands     time.Duration
	Cause     any
	Shown     Shown
	// ArgumentsDigest is the SHA-256 of the arguments, in hex.
	ArgumentsDigest string
}

// Shown is the log position that a caller returned; the zero value is none.
type Shown struct {
	Event  int64
	Run    int64  // whose event it is
	Prefix []byte // of the event's digest
}

// FastBegun is what [FastBegins] recorded of one begin.
type FastBegun struct {
	Event
	Fence    int64
	Deadline time.Time
}

var fastBeginFields = parseFields(`id uuid, account_id bigint, run_id text, key bytea, client_key text, tool text, arguments text,
	call_digest bytea, business_key text, claim bytea, call_claim boolean, summary text, amount numeric, currency text, decimals smallint,
	amount_problem text, call_id text, client_time text, context text, lease bytea, attempt_id text, deadline bigint, lands bigint,
	position bigint, prefix bytea, tail text`)

// The begins as one statement, and so one round trip and one commit. It does exactly
// what the general way does for the row "(none), begin, business key free", and
// nothing at all for a begin of which any guard does not hold: then the general way
// finds out why.
//
// The runs' rows are locked as everywhere else, in the order of their ids, and the clock
// is read after that. (Subqueries and LATERAL leave the planner no choice: it would
// rather scan a table that is still small.) What
// another transaction wrote while a lock was waited for is not in this statement's
// snapshot: the unique keys of effects and business_claims refuse it instead, and with
// it all begins of the statement.
var fastBegins = fastBeginFields.cells(3, `
	WITH r AS MATERIALIZED (
		SELECT n, run, epoch, lease_until
		FROM (SELECT n, (SELECT id FROM runs WHERE account_id = {account_id} AND run_id = {run_id}) AS run
			FROM {rows} ORDER BY run) AS x
		CROSS JOIN LATERAL (SELECT epoch, lease_until FROM runs
			WHERE id = run AND state = 'running' AND lease_hash = {lease} AND policy = $1 AND kept = 0
			FOR NO KEY UPDATE) AS r
	), s AS MATERIALIZED (
		SELECT now, fence, to_char(now AT TIME ZONE 'UTC', '`+eventTime+`') AS text
		FROM (SELECT clock_timestamp() AS now, i.fence_base + 1 AS fence FROM installation i
			WHERE (SELECT count(*) FROM r) > 0 AND i.keying = $2 AND NOT EXISTS (SELECT 1 FROM log_gaps WHERE ended_at IS NULL)
			OFFSET 0) AS i
	), ok AS MATERIALIZED (
		SELECT n, run, epoch, now, fence, text, now + {deadline} * interval '1 microsecond' AS due,
			now + ({deadline} + {lands}) * interval '1 microsecond' AS moment
		FROM r, s
		WHERE lease_until > now
		AND NOT EXISTS (SELECT 1 FROM effects WHERE run_id = run AND key = {key})
		AND NOT EXISTS (SELECT 1 FROM business_claims WHERE digest = {claim})
		AND ({position} IS NULL OR EXISTS (
			SELECT 1 FROM effect_events WHERE run_id = run AND id = {position} AND substr(digest, 1, length({prefix})) = {prefix}))
	), c AS (
		INSERT INTO business_claims (digest, account_id, tool, business_key, effect_id, taken_at)
		SELECT {claim}, {account_id}, {tool}, {business_key}, {id}, now FROM ok ORDER BY 1
	), e AS (
		INSERT INTO effects (id, account_id, run_id, key, client_key, tool, occurrence, arguments, call_digest, business_key,
			claim, call_claim, summary, amount, currency, decimals, amount_problem, call_id, client_time, context, opened_at,
			state, attempts, fence, deadline, moment, changed_at)
		SELECT {id}, {account_id}, run, {key}, {client_key}, {tool}, 1, {arguments}, {call_digest}, {business_key},
			{claim}, {call_claim}, {summary}, {amount}, {currency}, {decimals}, {amount_problem}, {call_id}, {client_time}, {context}, now,
			'in_flight', 1, fence, due, moment, now
		FROM ok
	), a AS (
		INSERT INTO attempts (effect_id, number, fence, attempt_id, epoch, begun_at, deadline)
		SELECT {id}, 1, fence, {attempt_id}, epoch, now, due FROM ok
	), v AS (
		INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
		SELECT now, run, id, 1, 'begin', data, `+eventSum("'begin'", "1::bigint")+`
		FROM (SELECT now, run, {id} AS id, '{"state":"in_flight","version":1,"attempts":1,"fence":' || fence
				|| ',"deadline":"' || to_char(due AT TIME ZONE 'UTC', '`+eventTime+`')
				|| '","moment":"' || to_char(moment AT TIME ZONE 'UTC', '`+eventTime+`')
				|| '","changed_at":"' || text || '"' || {tail} AS data
			FROM ok OFFSET 0) AS d
		RETURNING id, at, run_id, effect_id, digest
	)
	SELECT v.id, v.at, v.run_id, v.effect_id, v.digest, s.fence FROM v, s`)

// eventTime is how an event writes a time, for to_char.
const eventTime = `YYYY-MM-DD"T"HH24:MI:SS.US"Z"`

// eventSum is [Event.Sum] in SQL, of columns run, id, now and data.
func eventSum(kind, version string) string {
	return `sha256(int8send(8) || int8send(run) || int8send(36) || convert_to(id::text, 'UTF8') || int8send(8) || int8send(` + version + `)
			|| int8send(octet_length(` + kind + `)::bigint) || convert_to(` + kind + `, 'UTF8')
			|| int8send(8) || int8send((extract(epoch FROM now) * 1000000)::bigint)
			|| int8send(octet_length(data)::bigint) || convert_to(data, 'UTF8'))`
}

// FastBegins records begins in one statement of its own, and returns what it recorded
// by effect id. A begin is left out, with nothing written of it, when a guard does not
// hold for it; all are when somebody was faster with one of them. The runs were opened
// under the policy, and the claims made with the templates of that number. No two of
// the begins have the same run and key, or the same claim.
func FastBegins(ctx context.Context, db *ledger.DB, policy []byte, keying int64, list []FastBegin) (map[string]FastBegun, error) {
	rows := newCells(fastBeginFields, len(list))
	deadlines := make(map[string]time.Duration, len(list))
	for i := range list {
		b := &list[i]
		tail, err := json.Marshal(struct {
			Arguments string `json:"arguments_digest"`
			Cause     any    `json:"cause,omitempty"`
		}{b.ArgumentsDigest, b.Cause})
		if err != nil {
			return nil, fmt.Errorf("couldn't encode an event: %w", err)
		}
		tail[0] = ','
		rows.text("id", b.ID)
		rows.number("account_id", b.Account)
		rows.quote("run_id", b.RunID)
		rows.bytes("key", b.Key)
		rows.text("client_key", b.ClientKey)
		rows.quote("tool", b.Tool)
		rows.quote("arguments", b.Arguments)
		rows.bytes("call_digest", b.CallDigest)
		rows.text("business_key", b.BusinessKey)
		rows.bytes("claim", b.Claim)
		rows.yes("call_claim", b.CallClaim)
		rows.quote("summary", b.Summary)
		rows.text("amount", b.Amount)
		rows.text("currency", b.Currency)
		if b.Decimals != nil {
			rows.number("decimals", int64(*b.Decimals))
		}
		rows.text("amount_problem", b.AmountProblem)
		rows.text("call_id", b.CallID)
		rows.text("client_time", b.ClientTime)
		rows.text("context", b.Context)
		rows.bytes("lease", b.LeaseHash)
		rows.quote("attempt_id", b.AttemptID)
		rows.number("deadline", b.Deadline.Microseconds())
		rows.number("lands", b.Lands.Microseconds())
		if b.Shown.Event != 0 {
			rows.number("position", b.Shown.Event)
			rows.bytes("prefix", b.Shown.Prefix)
		}
		rows.quote("tail", string(tail))
		rows.end()
		deadlines[b.ID] = b.Deadline
	}
	got := make(map[string]FastBegun, len(list))
	err := fast(ctx, db, fastBegins, rows, []any{policy, keying}, func(scan func(...any) error) error {
		v := FastBegun{Event: Event{Version: 1, Kind: "begin"}}
		if err := scan(&v.ID, &v.At.Time, &v.Run, &v.Effect, (*[]byte)(&v.Digest), &v.Fence); err != nil {
			return err
		}
		v.Deadline = v.At.Add(deadlines[v.Effect])
		got[v.Effect] = v
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("couldn't begin: %w", err)
	}
	return got, nil
}

// fast runs a statement that writes, as a transaction of its own. When another
// transaction stood in its way it wrote nothing, and f is not called.
func fast(ctx context.Context, db *ledger.DB, s statement, list *arrays, args []any, f func(scan func(...any) error) error) error {
	query, params := s.with(list, args)
	rows, err := db.OnceEach(ctx, query, params...)
	if err == nil {
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := f(rows.Scan); err != nil {
				return err
			}
		}
		err = rows.Err()
	}
	if ledger.Constraint(err) != "" || ledger.Retryable(err) {
		return nil
	}
	return err
}
