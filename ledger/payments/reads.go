package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
)

// Read is a paid read that may be answered again.
type Read struct {
	ID          string       `db:"id"`
	Account     int64        `db:"account_id"`
	Gateway     string       `db:"gateway"`
	Payer       string       `db:"payer"`
	Fingerprint ledger.Bytes `db:"fingerprint"`
	Payment     int64        `db:"payment"`
	Outcome     string       `db:"outcome"`
	Status      int          `db:"response_status"`
	Headers     string       `db:"response_headers"`
	Body        ledger.Bytes `db:"response_body"`
}

const readColumns = `id, account_id, gateway, payer, fingerprint, COALESCE(payment, 0) AS payment, COALESCE(outcome, '') AS outcome,
	COALESCE(response_status, 0) AS response_status, COALESCE(response_headers, '') AS response_headers, response_body`

// LatestRead is the payer's last read of the same kind that came back within an age, with
// an answer; nil when there is none.
func LatestRead(ctx context.Context, r ledger.Reader, want Read, within time.Duration) (*Read, error) {
	return readOne(ctx, r, `SELECT `+readColumns+` FROM paid_reads WHERE account_id = $1 AND gateway = $2 AND payer = $3 AND fingerprint = $4
		AND outcome = 'taken' AND response_status IS NOT NULL AND asked_at > clock_timestamp() - $5 * interval '1 microsecond'
		ORDER BY asked_at DESC LIMIT 1`, want.Account, want.Gateway, want.Payer, want.Fingerprint, within.Microseconds())
}

// ReadByID reads a read of an account; nil where there is none.
func ReadByID(ctx context.Context, r ledger.Reader, account int64, id string) (*Read, error) {
	return readOne(ctx, r, `SELECT `+readColumns+` FROM paid_reads WHERE account_id = $1 AND id = $2::uuid`, account, id)
}

func readOne(ctx context.Context, r ledger.Reader, query string, args ...any) (*Read, error) {
	var x Read
	err := r.Get(ctx, &x, query, args...)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a paid read: %w", err)
	}
	return &x, nil
}

// AddRead records a read that is charged.
func AddRead(ctx context.Context, tx *ledger.Tx, x Read) error {
	_, err := tx.Exec(ctx, `INSERT INTO paid_reads (id, account_id, gateway, payer, fingerprint, asked_at) VALUES ($1::uuid, $2, $3, $4, $5, clock_timestamp())`,
		x.ID, x.Account, x.Gateway, x.Payer, x.Fingerprint)
	if err != nil {
		return fmt.Errorf("couldn't record a read: %w", err)
	}
	return nil
}

// FinishRead records what a read came back with, once; false when it is recorded already.
func FinishRead(ctx context.Context, tx *ledger.Tx, x Read) (bool, error) {
	var status, headers, body any
	if x.Status != 0 {
		status, headers, body = x.Status, x.Headers, x.Body
	}
	n, err := tx.Exec(ctx, `
		UPDATE paid_reads SET outcome = $3, payment = NULLIF($4, 0::bigint), response_status = $5, response_headers = $6, response_body = $7, finished_at = clock_timestamp()
		WHERE account_id = $1 AND id = $2::uuid AND outcome IS NULL`, x.Account, x.ID, x.Outcome, x.Payment, status, headers, body)
	if err != nil {
		return false, fmt.Errorf("couldn't finish a read: %w", err)
	}
	return n == 1, nil
}

// PruneReads takes out reads older than an age.
func PruneReads(ctx context.Context, tx *ledger.Tx, age time.Duration) error {
	_, err := tx.Exec(ctx, `DELETE FROM paid_reads WHERE asked_at < clock_timestamp() - $1 * interval '1 microsecond'`, age.Microseconds())
	return err
}
