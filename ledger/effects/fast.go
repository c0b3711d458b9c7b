package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
)

// FastBegin is the first begin of a call that nothing stands against.
type FastBegin struct {
	Intent
	RunID     string
	LeaseHash []byte
	Policy    []byte
	AttemptID string
	Deadline  time.Duration
	Lands     time.Duration
	Cause     any
	Keying    int64 // the claim is made with the templates of this number

	// The log position that the caller showed; Position 0: none.
	Position int64
	Prefix   []byte
}

// FastBegun is what [Begin] recorded.
type FastBegun struct {
	Event
	Now      time.Time `db:"now"`
	Deadline time.Time `db:"deadline"`
	Fence    int64     `db:"fence"`
}

// The begin as one statement, and so one round trip and one commit. It does exactly
// what the general way does for the row "(none), begin, business key free", and
// nothing at all when any guard does not hold: then the general way finds out why.
//
// The run's row is locked as everywhere else. What another transaction wrote while
// that lock was waited for is not in this statement's snapshot: the unique keys of
// effects and business_claims refuse it instead.
const fastBegin = `
	WITH r AS MATERIALIZED (
		SELECT r.id, r.epoch, clock_timestamp() AS now FROM runs r
		WHERE r.account_id = $1 AND r.run_id = $2 AND r.state = 'running' AND r.lease_hash = $3
		AND r.lease_until > clock_timestamp() AND r.policy = $4 AND r.kept = 0
		FOR NO KEY UPDATE
	), ok AS MATERIALIZED (
		SELECT r.id, r.epoch, r.now, r.now + $5 * interval '1 microsecond' AS deadline,
			r.now + ($5 + $6) * interval '1 microsecond' AS moment, i.fence_base + 1 AS fence
		FROM r, installation i
		WHERE i.keying = $29 AND NOT EXISTS (SELECT 1 FROM log_gaps WHERE ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM effects x WHERE x.run_id = r.id AND x.key = $7)
		AND ($8::bigint = 0 OR EXISTS (
			SELECT 1 FROM effect_events v WHERE v.id = $8 AND v.run_id = r.id AND substr(v.digest, 1, length($9::bytea)) = $9))
	), c AS (
		INSERT INTO business_claims (digest, account_id, tool, business_key, effect_id, taken_at)
		SELECT $10, $1, $11, NULLIF($12, ''), $13::uuid, now FROM ok
		ON CONFLICT (digest) DO NOTHING RETURNING effect_id
	), e AS (
		INSERT INTO effects (id, account_id, run_id, key, client_key, tool, occurrence, arguments, call_digest, business_key,
			claim, call_claim, summary, amount, currency, decimals, amount_problem, call_id, client_time, context, opened_at,
			state, attempts, fence, deadline, moment, changed_at)
		SELECT c.effect_id, $1, ok.id, $7, NULLIF($14, ''), $11, $15, $16, $17, NULLIF($12, ''), $10, $18, $19,
			NULLIF($20, '')::numeric, NULLIF($21, ''), $22, NULLIF($23, ''), NULLIF($24, ''), NULLIF($25, ''),
			NULLIF($26, ''), now, 'in_flight', 1, fence, deadline, moment, now
		FROM ok, c RETURNING id
	), a AS (
		INSERT INTO attempts (effect_id, number, fence, attempt_id, epoch, begun_at, deadline)
		SELECT e.id, 1, fence, $27, epoch, now, deadline FROM ok, e
	), v AS (
		INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
		SELECT now, ok.id, e.id, 1, 'begin', d.data, sha256(
			int8send(8) || int8send(ok.id) || int8send(36) || convert_to(e.id::text, 'UTF8') || int8send(8) || int8send(1)
			|| int8send(5) || convert_to('begin', 'UTF8')
			|| int8send(8) || int8send((extract(epoch FROM now) * 1000000)::bigint)
			|| int8send(octet_length(d.data)::bigint) || convert_to(d.data, 'UTF8'))
		FROM ok, e, LATERAL (SELECT
			'{"state":"in_flight","version":1,"attempts":1,"fence":' || fence
			|| ',"deadline":"' || to_char(deadline AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
			|| '","moment":"' || to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
			|| '","changed_at":"' || to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
			|| '"' || $28 AS data) AS d
		RETURNING id, digest
	)
	SELECT v.id, ok.now AS at, ok.id AS run_id, v.digest, ok.now, ok.deadline, ok.fence FROM ok, v`

// Begin records a begin in one statement. False, with nothing written, when a guard
// does not hold or somebody was faster.
func Begin(ctx context.Context, db *ledger.DB, b *FastBegin, argumentsDigest string) (*FastBegun, bool, error) {
	tail, err := json.Marshal(struct {
		Arguments string `json:"arguments_digest"`
		Cause     any    `json:"cause,omitempty"`
	}{argumentsDigest, b.Cause})
	if err != nil {
		return nil, false, fmt.Errorf("couldn't encode an event: %w", err)
	}
	tail[0] = ','
	var out FastBegun
	err = db.Once(ctx, &out, fastBegin,
		b.Account, b.RunID, b.LeaseHash, b.Policy, b.Deadline.Microseconds(), b.Lands.Microseconds(), []byte(b.Key),
		b.Position, b.Prefix, []byte(b.Claim), b.Tool, b.BusinessKey, b.ID, b.ClientKey, b.Occurrence, b.Arguments,
		[]byte(b.CallDigest), b.CallClaim, b.Summary, b.Amount, b.Currency, b.Decimals, b.AmountProblem, b.CallID, b.ClientTime,
		b.Context, b.AttemptID, string(tail), b.Keying)
	switch {
	case errors.Is(err, ledger.ErrNotFound), ledger.Constraint(err) != "", ledger.Retryable(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("couldn't begin: %w", err)
	}
	return &out, true, nil
}
