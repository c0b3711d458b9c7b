// Package system holds the statements about the installation itself: its keys, its
// mark, log gaps, and the policies that runs were opened under.
package system

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"quittance/ledger"
)

// Secrets are the keys made at the first start.
type Secrets struct {
	Lease     []byte // derives lease tokens
	Position  []byte // signs log positions
	Redaction []byte // stands in for redacted values
	Receipts  []byte // derives the tokens of receipts
}

// LoadSecrets reads the keys, making those that are missing.
func LoadSecrets(ctx context.Context, db *ledger.DB) (s Secrets, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		for _, k := range []struct {
			name string
			dst  *[]byte
		}{{"lease", &s.Lease}, {"position", &s.Position}, {"redaction", &s.Redaction}, {"receipts", &s.Receipts}} {
			fresh := make([]byte, 32)
			if _, err := rand.Read(fresh); err != nil {
				return fmt.Errorf("couldn't make a key: %w", err)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, k.name, fresh); err != nil {
				return fmt.Errorf("couldn't store a key: %w", err)
			}
			if err := tx.Get(ctx, k.dst, `SELECT value FROM secrets WHERE name = $1`, k.name); err != nil {
				return fmt.Errorf("couldn't read a key: %w", err)
			}
		}
		return nil
	})
	return s, err
}

// Moment is the state of the installation as one transaction reads it.
type Moment struct {
	Now            time.Time   `db:"now"`
	FenceBase      int64       `db:"fence_base"`
	Gap            int64       `db:"gap"` // id of the open log gap; 0: none
	FoundBy        string      `db:"found_by"`
	FoundAt        ledger.Time `db:"found_at"`
	AcknowledgedAt ledger.Time `db:"acknowledged_at"`
	AcknowledgedBy string      `db:"acknowledged_by"`
	Keying         int64       `db:"keying"`   // number of the business_key templates in force
	Outward        bool        `db:"outward"`  // whether look-ups and deliveries may leave
	LastGap        ledger.Time `db:"last_gap"` // when a gap was last acknowledged, ended or not
}

// Touched tells whether attempts of an effect may have been lost in a gap: it was
// opened before one was acknowledged, and nothing of it has begun since.
func (m Moment) Touched(openedAt time.Time, fence int64) bool {
	return !m.LastGap.IsZero() && fence <= m.FenceBase && openedAt.Before(m.LastGap.Time)
}

// Behind tells that a gap was found and nobody has acknowledged it: nothing may be
// released.
func (m Moment) Behind() bool { return m.Gap != 0 && m.AcknowledgedAt.IsZero() }

// InGap tells that an acknowledged gap has not been ended: what would be new starts
// as interrupted.
func (m Moment) InGap() bool { return m.Gap != 0 && !m.AcknowledgedAt.IsZero() }

// Read gives the database's clock and the log gap, if one is open.
func Read(ctx context.Context, r ledger.Reader) (Moment, error) {
	var m Moment
	err := r.Get(ctx, &m, `
		SELECT clock_timestamp() AS now, i.fence_base, i.keying, i.outward, COALESCE(g.id, 0) AS gap, COALESCE(g.found_by, '') AS found_by,
			g.found_at, g.acknowledged_at, COALESCE(p.name, '') AS acknowledged_by,
			(SELECT max(acknowledged_at) FROM log_gaps) AS last_gap
		FROM installation i
		LEFT JOIN log_gaps g ON g.ended_at IS NULL
		LEFT JOIN people p ON p.id = g.acknowledged_by`)
	if err != nil {
		return m, fmt.Errorf("couldn't read the installation: %w", err)
	}
	return m, nil
}

// SavePolicy keeps a policy text for the runs opened under it.
func SavePolicy(ctx context.Context, tx *ledger.Tx, digest []byte, source string) error {
	_, err := tx.Exec(ctx, `INSERT INTO policies (digest, source) VALUES ($1, $2) ON CONFLICT DO NOTHING`, digest, source)
	if err != nil {
		return fmt.Errorf("couldn't keep the policy: %w", err)
	}
	return nil
}

// UsePolicy notes the policy that a server put in force: the last one counts for commands
// that work beside the servers.
func UsePolicy(ctx context.Context, tx *ledger.Tx, digest []byte) error {
	_, err := tx.Exec(ctx, `UPDATE installation SET policy = $1 WHERE policy IS DISTINCT FROM $1`, digest)
	if err != nil {
		return fmt.Errorf("couldn't note the policy in force: %w", err)
	}
	return nil
}

// PolicyInUse is the digest of the policy that a server put in force last; nil when none
// ever did.
func PolicyInUse(ctx context.Context, r ledger.Reader) ([]byte, error) {
	var digest ledger.Bytes
	if err := r.Get(ctx, &digest, `SELECT policy FROM installation`); err != nil {
		return nil, fmt.Errorf("couldn't read the policy in force: %w", err)
	}
	return digest, nil
}

// PolicySource reads a policy text that a run was opened under.
func PolicySource(ctx context.Context, r ledger.Reader, digest []byte) (string, error) {
	var s string
	if err := r.Get(ctx, &s, `SELECT source FROM policies WHERE digest = $1`, digest); err != nil {
		return "", fmt.Errorf("couldn't read a run's policy: %w", err)
	}
	return s, nil
}
