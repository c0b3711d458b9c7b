// Package payments holds the statements about payment ids: the authorizations that were
// offered under them, their orders, what moved on the rails and what is owed back of it.
//
// The row of a payment is the one lock of everything that hangs on it: [Lock] it before
// its order, its transfers or what is owed for them change. What may change is decided in
// reconcile/payments.
package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Claimed is what a payer asked for: it never changes.
type Claimed struct {
	Account     int64        `db:"account_id"`
	Gateway     string       `db:"gateway"`
	PaymentID   string       `db:"payment_id"`
	Payer       string       `db:"payer"`
	Fingerprint ledger.Bytes `db:"fingerprint"`
	Network     string       `db:"network"`
	Asset       string       `db:"asset"`
	Amount      money.Atomic `db:"amount"`
	PayTo       string       `db:"pay_to"`
	Quote       string       `db:"quote"`
	Method      string       `db:"method"`
	Tool        string       `db:"tool"`
	Arguments   string       `db:"arguments"`
	OrderID     string       `db:"order_id"`
}

// Row is a payment as it stands.
type Row struct {
	ID int64 `db:"id"`
	Claimed
	FirstAt       time.Time   `db:"first_at"`
	State         string      `db:"state"`
	Fence         int64       `db:"fence"`
	AttemptID     string      `db:"attempt_id"`
	ClaimedAt     time.Time   `db:"claimed_at"`
	PaidFirst     bool        `db:"paid_first"`
	WorkDone      bool        `db:"work_done"` // by the broadcast of an earlier try, which follows the work
	BroadcastAt   ledger.Time `db:"broadcast_at"`
	BroadcastHash string      `db:"broadcast_hash"`
	Tx            string      `db:"tx"`
	Why           string      `db:"why"`
	Healed        bool        `db:"healed"`
	EndedAt       ledger.Time `db:"ended_at"`
	Answer
	PrunedFrom string      `db:"pruned_from"`
	CheckAt    ledger.Time `db:"check_at"`
	CheckStep  int         `db:"check_step"`
	CheckedAt  ledger.Time `db:"checked_at"`
	CheckSaid  string      `db:"check_said"`
	Now        time.Time   `db:"now"` // the database's clock when it was read
}

// Answer is a frozen answer; the zero value is none.
type Answer struct {
	Status  int          `db:"response_status"`
	Headers string       `db:"response_headers"`
	Body    ledger.Bytes `db:"response_body"`
	Size    int64        `db:"response_size"`
	Digest  ledger.Bytes `db:"response_digest"`
}

const claimed = `p.account_id, p.gateway, p.payment_id, p.payer, p.fingerprint, p.network, p.asset, p.amount, p.pay_to,
	COALESCE(p.quote, '') AS quote, COALESCE(p.method, '') AS method, COALESCE(p.tool, '') AS tool, COALESCE(p.arguments, '') AS arguments, p.order_id`

const columns = `p.id, ` + claimed + `, p.first_at, p.state, p.fence, COALESCE(p.attempt_id, '') AS attempt_id, p.claimed_at, p.paid_first, p.work_done,
	p.broadcast_at, COALESCE(p.broadcast_hash, '') AS broadcast_hash, COALESCE(p.tx, '') AS tx, COALESCE(p.why, '') AS why, p.healed, p.ended_at,
	COALESCE(p.response_status, 0) AS response_status, COALESCE(p.response_headers, '') AS response_headers, p.response_body,
	COALESCE(p.response_size, 0) AS response_size, p.response_digest, COALESCE(p.pruned_from, '') AS pruned_from,
	p.check_at, p.check_step, p.checked_at, COALESCE(p.check_said, '') AS check_said, clock_timestamp() AS now`

// First claims a payment id that nobody has claimed, with the authorization it brings, in
// a statement of its own: one round trip and one commit. Where the id is known it writes
// nothing and gives what is stored. nil when the quote or the authorization is another
// payment's, somebody claims the id just now, or a log gap is open: then the caller finds
// out which.
func First(ctx context.Context, db *ledger.DB, c Claimed, attemptID string, a *Authorization) (row *Row, fresh bool, err error) {
	var nonce, payer any
	var before int64
	var signed bool
	if a != nil {
		nonce, payer, before, signed = a.Nonce, a.Payer, a.ValidBefore, a.Signed
	}
	var found struct {
		Row
		Fresh bool `db:"fresh"`
	}
	err = db.Once(ctx, &found, `
		WITH n AS (
			INSERT INTO payments AS p (account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, quote, method, tool, arguments,
				order_id, first_at, state, fence, attempt_id, claimed_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, NULLIF($10, ''), NULLIF($11, ''), NULLIF($12, ''), NULLIF($13, ''),
				$14::uuid, now, 'in_flight', i.fence_base + 1, NULLIF($15, ''), now
			FROM installation i, (SELECT clock_timestamp() AS now OFFSET 0) AS t
			WHERE NOT EXISTS (SELECT 1 FROM log_gaps WHERE ended_at IS NULL)
			ON CONFLICT DO NOTHING
			RETURNING `+columns+`
		), a AS (
			INSERT INTO authorizations (payment, network, asset, payer, nonce, valid_before, signed, offered_at, taken_up_at)
			SELECT id, $6, $7, $16::text, $17::text, $18, $19, claimed_at, claimed_at FROM n WHERE $17::text IS NOT NULL
		), e AS (
			INSERT INTO payment_events (at, payment, kind, data) SELECT claimed_at, id, 'claimed', json_build_object('fence', fence)::text FROM n
		)
		SELECT true AS fresh, * FROM n
		UNION ALL SELECT false AS fresh, `+columns+` FROM payments p WHERE p.account_id = $1 AND p.gateway = $2 AND p.payment_id = $3`,
		c.Account, c.Gateway, c.PaymentID, c.Payer, c.Fingerprint, c.Network, c.Asset, c.Amount, c.PayTo, c.Quote, c.Method, c.Tool, c.Arguments,
		c.OrderID, attemptID, payer, nonce, before, signed)
	switch {
	case errors.Is(err, ledger.ErrNotFound), ledger.Constraint(err) == "authorizations_once":
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("couldn't claim a payment: %w", err)
	}
	return &found.Row, found.Fresh, nil
}

// Add inserts a payment in the state it starts with, as a transaction that decided about
// it does. The row is locked by it.
func Add(ctx context.Context, tx *ledger.Tx, c Claimed, state string, fence int64, attemptID string, now time.Time) (id int64, err error) {
	err = tx.Get(ctx, &id, `
		INSERT INTO payments (account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, quote, method, tool, arguments,
			order_id, first_at, state, fence, attempt_id, claimed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULLIF($10, ''), NULLIF($11, ''), NULLIF($12, ''), NULLIF($13, ''), $14::uuid, $15, $16, $17, NULLIF($18, ''), $15)
		RETURNING id`,
		c.Account, c.Gateway, c.PaymentID, c.Payer, c.Fingerprint, c.Network, c.Asset, c.Amount, c.PayTo, c.Quote, c.Method, c.Tool, c.Arguments,
		c.OrderID, now, state, fence, attemptID)
	if err != nil {
		return 0, fmt.Errorf("couldn't add a payment: %w", err)
	}
	return id, nil
}

// Name is how a payment is asked for.
type Name struct {
	Account   int64
	Gateway   string
	PaymentID string
}

// ByName reads a payment; nil where there is none.
func ByName(ctx context.Context, r ledger.Reader, n Name) (*Row, error) {
	return one(ctx, r, `SELECT `+columns+` FROM payments p WHERE p.account_id = $1 AND p.gateway = $2 AND p.payment_id = $3`, n.Account, n.Gateway, n.PaymentID)
}

// LockByName is ByName, and locks the row until the transaction ends.
func LockByName(ctx context.Context, tx *ledger.Tx, n Name) (*Row, error) {
	return one(ctx, tx, `SELECT `+columns+` FROM payments p WHERE p.account_id = $1 AND p.gateway = $2 AND p.payment_id = $3 FOR UPDATE`, n.Account, n.Gateway, n.PaymentID)
}

// ByID reads a payment by its row's number.
func ByID(ctx context.Context, r ledger.Reader, id int64) (*Row, error) {
	return one(ctx, r, `SELECT `+columns+` FROM payments p WHERE p.id = $1`, id)
}

// Lock locks a payment and reads it.
func Lock(ctx context.Context, tx *ledger.Tx, id int64) (*Row, error) {
	return one(ctx, tx, `SELECT `+columns+` FROM payments p WHERE p.id = $1 FOR UPDATE`, id)
}

// ByQuote reads the live or settled payment of a quote.
func ByQuote(ctx context.Context, r ledger.Reader, account int64, gateway, quote string) (*Row, error) {
	return one(ctx, r, `SELECT `+columns+` FROM payments p WHERE p.account_id = $1 AND p.gateway = $2 AND p.quote = $3
		AND p.state <> 'refused' AND p.pruned_from IS DISTINCT FROM 'refused'`, account, gateway, quote)
}

// ByNonce reads the payment under which an authorization was offered, whosever it is.
func ByNonce(ctx context.Context, r ledger.Reader, network, asset, payer, nonce string) (*Row, error) {
	return one(ctx, r, `SELECT `+columns+` FROM authorizations a JOIN payments p ON p.id = a.payment
		WHERE a.network = $1 AND a.asset = $2 AND a.payer = $3 AND a.nonce = $4`, network, asset, payer, nonce)
}

func one(ctx context.Context, r ledger.Reader, query string, args ...any) (*Row, error) {
	return row[Row](ctx, r, "a payment", query, args...)
}

// TakeOver gives the payment to another try of its gateway: its fence rises, its age
// starts again. Its broadcast is kept only where the money has moved; done says that it
// meant that the work was done, which is kept for ever.
func TakeOver(ctx context.Context, tx *ledger.Tx, id, fence int64, attemptID string, paid, done bool) error {
	return exactly(ctx, tx, "take a payment over", `
		UPDATE payments SET state = 'in_flight', fence = $2, attempt_id = NULLIF($3, ''), claimed_at = clock_timestamp(), paid_first = $4, work_done = work_done OR $5, why = NULL,
			broadcast_at = CASE WHEN $4 THEN broadcast_at END, broadcast_hash = CASE WHEN $4 THEN broadcast_hash END
		WHERE id = $1 AND fence < $2 AND state IN ('in_flight','unknown')`, id, fence, attemptID, paid, done)
}

// Broadcast records that the payment is about to be sent.
func Broadcast(ctx context.Context, tx *ledger.Tx, id, fence int64, hash string) error {
	return exactly(ctx, tx, "record a broadcast", `
		UPDATE payments SET broadcast_at = COALESCE(broadcast_at, clock_timestamp()), broadcast_hash = COALESCE(NULLIF($3, ''), broadcast_hash)
		WHERE id = $1 AND fence = $2 AND state IN ('in_flight','unknown')`, id, fence, hash)
}

// Unknown leaves open what became of the payment, for the rail to tell.
func Unknown(ctx context.Context, tx *ledger.Tx, id int64, tx_, why string) error {
	return exactly(ctx, tx, "leave a payment unknown", `
		UPDATE payments SET state = 'unknown', tx = COALESCE(NULLIF($2, ''), tx), why = COALESCE(NULLIF($3, ''), why)
		WHERE id = $1 AND state IN ('in_flight','unknown')`, id, tx_, why)
}

// End settles or refuses a payment, with the answer it freezes.
func End(ctx context.Context, tx *ledger.Tx, id int64, state, tx_, why string, healed bool, a Answer) error {
	return exactly(ctx, tx, "end a payment", `
		UPDATE payments SET state = $2, tx = COALESCE(NULLIF($3, ''), tx), why = NULLIF($4, ''), healed = $5, ended_at = clock_timestamp(),
			response_status = $6, response_headers = $7, response_body = $8, response_size = $9, response_digest = $10,
			check_at = CASE WHEN $2 = 'settled' THEN check_at END, checking_until = NULL
		WHERE id = $1 AND state IN ('in_flight','unknown')`, append([]any{id, state, tx_, why, healed}, a.args()...)...)
}

// Fill freezes the answer of a payment that was settled without one.
func Fill(ctx context.Context, tx *ledger.Tx, id int64, tx_ string, a Answer) error {
	return exactly(ctx, tx, "freeze an answer", `
		UPDATE payments SET tx = COALESCE(NULLIF($2, ''), tx), response_status = $3, response_headers = $4, response_body = $5, response_size = $6, response_digest = $7
		WHERE id = $1 AND state = 'settled' AND response_digest IS NULL`, append([]any{id, tx_}, a.args()...)...)
}

// args are the columns of an answer, NULL where there is none.
func (a Answer) args() []any {
	if a.Digest == nil {
		return []any{nil, nil, nil, nil, nil}
	}
	return []any{a.Status, a.Headers, a.Body, a.Size, a.Digest}
}

// Prune leaves the tombstones of payments that ended before a time: payer, request, quote
// and authorizations stay, what was asked and answered goes. At most limit; how many.
func Prune(ctx context.Context, tx *ledger.Tx, before time.Time, limit int) (int64, error) {
	n, err := tx.Exec(ctx, `
		UPDATE payments SET pruned_from = state, state = 'pruned', pruned_at = clock_timestamp(), arguments = NULL, response_headers = NULL, response_body = NULL,
			check_at = NULL, checking_until = NULL
		WHERE id IN (SELECT id FROM payments WHERE state IN ('settled','refused') AND ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
	if err != nil {
		return 0, fmt.Errorf("couldn't prune payments: %w", err)
	}
	return n, nil
}

// InGap makes every payment in flight unknown and raises the fences of all that are open,
// since events of theirs may be lost.
func InGap(ctx context.Context, tx *ledger.Tx, base int64) error {
	_, err := tx.Exec(ctx, `
		WITH g AS (
			UPDATE payments SET state = 'unknown', fence = greatest(fence, $1) + 1, claimed_at = clock_timestamp(), check_at = clock_timestamp(), check_step = 0
			WHERE state IN ('in_flight','unknown') RETURNING id, fence
		)
		INSERT INTO payment_events (at, payment, kind, data)
		SELECT clock_timestamp(), id, 'log_gap', json_build_object('fence', fence)::text FROM g`, base)
	if err != nil {
		return fmt.Errorf("couldn't make payments unknown: %w", err)
	}
	return nil
}

// exactly runs a guarded UPDATE that must touch one row: the caller has locked it, so
// anything else is a mistake of ours.
func exactly(ctx context.Context, tx *ledger.Tx, what, query string, args ...any) error {
	n, err := tx.Exec(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("couldn't %s: %w", what, err)
	}
	if n != 1 {
		return fmt.Errorf("couldn't %s: its guard did not hold", what)
	}
	return nil
}

// ByOrder reads the payment whose order has, or will have, an id.
func ByOrder(ctx context.Context, r ledger.Reader, order string) (*Row, error) {
	if len(order) != 36 || uuid.Validate(order) != nil { // PostgreSQL does not read all that the package does
		return nil, nil
	}
	return one(ctx, r, `SELECT `+columns+` FROM payments p WHERE p.order_id = $1::uuid`, order)
}
