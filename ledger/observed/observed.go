// Package observed holds the statements about calls of tools that are only observed.
package observed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Call is one attempt at a call of an observed tool; zero values are NULL.
type Call struct {
	ID            string       `db:"id"`
	Account       int64        `db:"account_id"`
	Run           int64        `db:"run_id"`
	Key           ledger.Bytes `db:"key"`
	CallDigest    ledger.Bytes `db:"call_digest"`
	Tool          string       `db:"tool"`
	Occurrence    int          `db:"occurrence"`
	Arguments     string       `db:"arguments"`
	Claim         ledger.Bytes `db:"claim"`
	CallClaim     bool         `db:"call_claim"`
	ClaimedBy     string       `db:"claimed_by"`
	BusinessKey   string       `db:"business_key"`
	Summary       string       `db:"summary"`
	Amount        string       `db:"amount"` // atomic units
	Currency      string       `db:"currency"`
	Decimals      *int         `db:"decimals"`
	AmountProblem string       `db:"amount_problem"`
	Attempt       int          `db:"attempt"`
	AttemptID     string       `db:"attempt_id"`
	Epoch         int64        `db:"epoch"`
	Worker        string       `db:"worker"`
	BegunAt       ledger.Time  `db:"begun_at"`
	Deadline      ledger.Time  `db:"deadline"`
	Would         Would        `db:"would"`
	Why           string       `db:"why"`
	MetCall       string       `db:"met_call"`
	MetEffect     string       `db:"met_effect"`
	FinishedAt    ledger.Time  `db:"finished_at"`
	Outcome       string       `db:"outcome"` // "" | "taken" | "failed" | "unknown"
	Said          string       `db:"said"`
	Reference     string       `db:"reference"`
}

// Would is what enforcing would have answered a begin; see the column's comment.
type Would string

const (
	Proceed Would = "proceed"
	Replay  Would = "replay"
	Hold    Would = "hold"
	Pause   Would = "pause"
	Wait    Would = "wait"
	Refuse  Would = "refuse"
)

const columns = `o.id, o.account_id, o.run_id, o.key, o.call_digest, o.tool, o.occurrence, '' AS arguments, o.claim, o.call_claim, o.claimed_by,
	COALESCE(o.business_key, '') AS business_key, o.summary, COALESCE(o.amount::text, '') AS amount,
	COALESCE(o.currency, '') AS currency, o.decimals, COALESCE(o.amount_problem, '') AS amount_problem, o.attempt, o.attempt_id,
	o.epoch, COALESCE(o.worker, '') AS worker, o.begun_at, o.deadline, o.would, COALESCE(o.why, '') AS why,
	COALESCE(o.met_call::text, '') AS met_call, COALESCE(o.met_effect::text, '') AS met_effect, o.finished_at,
	COALESCE(o.outcome, '') AS outcome, COALESCE(o.said, '') AS said, COALESCE(o.reference, '') AS reference`

// Tools lists the tools of which a call was ever observed.
func Tools(ctx context.Context, r ledger.Reader) (list []string, err error) {
	if err = r.Select(ctx, &list, `SELECT tool FROM observed_tools`); err != nil {
		return nil, fmt.Errorf("couldn't list the observed tools: %w", err)
	}
	return list, nil
}

// AddTool remembers that calls of a tool are observed; false when that was known.
func AddTool(ctx context.Context, tx *ledger.Tx, tool string) (bool, error) {
	n, err := tx.Exec(ctx, `INSERT INTO observed_tools (tool) VALUES ($1) ON CONFLICT DO NOTHING`, tool)
	if err != nil {
		return false, fmt.Errorf("couldn't remember an observed tool: %w", err)
	}
	return n == 1, nil
}

// Add stores a call as it begins.
func Add(ctx context.Context, tx *ledger.Tx, c *Call) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO observed_calls (id, account_id, run_id, key, call_digest, tool, occurrence, arguments, claim, call_claim, claimed_by,
			business_key, summary, amount, currency, decimals, amount_problem, attempt, attempt_id, epoch, worker,
			begun_at, deadline, would, why, met_call, met_effect)
		VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, NULLIF($12, ''), $13, NULLIF($14, '')::numeric, NULLIF($15, ''), $16,
			NULLIF($17, ''), $18, $19, $20, NULLIF($21, ''), $22, $23, $24, NULLIF($25, ''), NULLIF($26, '')::uuid,
			NULLIF($27, '')::uuid)`,
		c.ID, c.Account, c.Run, []byte(c.Key), []byte(c.CallDigest), c.Tool, c.Occurrence, c.Arguments, []byte(c.Claim), c.CallClaim, c.ClaimedBy,
		c.BusinessKey, c.Summary, c.Amount, c.Currency, c.Decimals, c.AmountProblem, c.Attempt, c.AttemptID, c.Epoch, c.Worker,
		c.BegunAt.Time, c.Deadline.Time, string(c.Would), c.Why, c.MetCall, c.MetEffect)
	if err != nil {
		return fmt.Errorf("couldn't store an observed call: %w", err)
	}
	return nil
}

// one reads one call; nil where there is none.
func one(ctx context.Context, r ledger.Reader, what, query string, args ...any) (*Call, error) {
	var c Call
	err := r.Get(ctx, &c, query, args...)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't look for %s: %w", what, err)
	}
	return &c, nil
}

// Last is the last attempt at a call of a run; nil when it was never observed.
func Last(ctx context.Context, r ledger.Reader, run int64, key []byte) (*Call, error) {
	return one(ctx, r, "an earlier attempt", `
		SELECT `+columns+` FROM observed_calls o WHERE o.run_id = $1 AND o.key = $2 ORDER BY o.attempt DESC LIMIT 1`, run, key)
}

// Held is the latest other call that would hold one of the claims: it was not refused
// definitely, and a claim on tool and arguments alone also ends with taken. Those of the
// run itself count only where sameRun says so.
func Held(ctx context.Context, r ledger.Reader, run int64, key []byte, claims [][]byte, sameRun bool) (*Call, error) {
	return one(ctx, r, "an observed call with the same business key", `
		SELECT `+columns+` FROM observed_calls o
		WHERE o.claim = ANY($3::bytea[]) AND o.outcome IS DISTINCT FROM 'failed'
		AND NOT (o.call_claim AND o.outcome IS NOT DISTINCT FROM 'taken')
		AND CASE WHEN o.run_id = $1 THEN $4 AND o.key <> $2 ELSE true END
		ORDER BY o.begun_at DESC, o.id DESC LIMIT 1`, run, key, pq.ByteaArray(claims), sameRun)
}

// Waits is the latest call of a run that would keep it paused: what became of it is not
// known, by its agent's word or since nobody said in time, or it would have been held.
func Waits(ctx context.Context, r ledger.Reader, run, epoch int64, key []byte, now time.Time) (*Call, error) {
	return one(ctx, r, "a call that keeps its run", `
		SELECT `+columns+` FROM observed_calls o
		WHERE o.run_id = $1 AND (o.outcome IS NULL OR o.outcome = 'unknown' OR o.would = 'hold') AND o.key <> $3
		AND (o.would = 'hold' OR o.outcome = 'unknown' OR o.deadline <= $4 OR o.epoch <> $2)
		ORDER BY o.begun_at DESC LIMIT 1`, run, epoch, key, now)
}

// Finished is what an agent said of a call.
type Finished struct {
	At                       time.Time
	Outcome, Said, Reference string
}

// Finish stores what became of a call: the first word of its agent stands, but one that
// did not know may still learn. It returns the call as it is then; nil when the account
// has none with that id.
func Finish(ctx context.Context, tx *ledger.Tx, account int64, id string, f Finished) (*Call, error) {
	_, err := tx.Exec(ctx, `
		UPDATE observed_calls SET finished_at = $3, outcome = $4, said = $5, reference = NULLIF($6, '')
		WHERE id = $1::uuid AND account_id = $2 AND (outcome IS NULL OR outcome = 'unknown')`,
		id, account, f.At, f.Outcome, f.Said, f.Reference)
	if err != nil {
		return nil, fmt.Errorf("couldn't finish an observed call: %w", err)
	}
	return one(ctx, tx, "an observed call", `SELECT `+columns+` FROM observed_calls o WHERE o.id = $1::uuid AND o.account_id = $2`, id, account)
}

// ByKey finds the last attempt at a call by the readings of its key, where no effect of
// that run has it.
func ByKey(ctx context.Context, r ledger.Reader, account int64, run string, keys [][]byte) (*Call, error) {
	return one(ctx, r, "an observed call", `
		SELECT `+columns+` FROM runs r JOIN observed_calls o ON o.run_id = r.id AND o.key = ANY($3::bytea[])
		WHERE r.account_id = $1 AND r.run_id = $2
		AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.run_id = r.id AND e.key = ANY($3::bytea[]))
		ORDER BY o.begun_at DESC LIMIT 1`, account, run, pq.ByteaArray(keys))
}
