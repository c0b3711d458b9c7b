package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
)

// watch lets what arrives at the recipient of an order be read from its rail.
func watch(ctx context.Context, tx *ledger.Tx, o Order) error {
	n, err := tx.Exec(ctx, `INSERT INTO rail_recipients (network, asset, recipient, account_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		o.Network, o.Asset, o.PayTo, o.Account)
	if err == nil && n == 1 {
		_, err = tx.Exec(ctx, `INSERT INTO rail_cursors (network, asset) VALUES ($1, $2) ON CONFLICT DO NOTHING`, o.Network, o.Asset)
	}
	if err != nil {
		return fmt.Errorf("couldn't watch an address: %w", err)
	}
	return nil
}

// Cursor is how far an asset of a rail was read.
type Cursor struct {
	Network string `db:"network"`
	Asset   string `db:"asset"`
	Next    int64  `db:"next_block"` // -1 before the first time
}

// Recipient is an address that is watched, and whose what arrives there is.
type Recipient struct {
	Address string `db:"recipient"`
	Account int64  `db:"account_id"`
}

// TakeCursor takes the cursor that was read longest ago, of a network and not
// within a pause, for a while; nil when there is none.
func TakeCursor(ctx context.Context, db *ledger.DB, network string, pause, patience time.Duration) (*Cursor, error) {
	var c Cursor
	err := db.Once(ctx, &c, `
		UPDATE rail_cursors SET read_until = clock_timestamp() + $3 * interval '1 microsecond'
		WHERE (network, asset) IN (SELECT network, asset FROM rail_cursors WHERE network = $1
			AND (read_at IS NULL OR read_at <= clock_timestamp() - $2 * interval '1 microsecond')
			AND (read_until IS NULL OR read_until <= clock_timestamp())
			ORDER BY read_at NULLS FIRST LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING network, asset, next_block`, network, pause.Microseconds(), patience.Microseconds())
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't take a cursor: %w", err)
	}
	return &c, nil
}

// Recipients are the watched addresses of an asset.
func Recipients(ctx context.Context, r ledger.Reader, network, asset string) (list []Recipient, err error) {
	err = r.Select(ctx, &list, `SELECT recipient, account_id FROM rail_recipients WHERE network = $1 AND asset = $2 ORDER BY recipient`, network, asset)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the watched addresses: %w", err)
	}
	return list, nil
}

// Read puts a cursor where reading goes on. more: there is more to read at once. problem ""
// is that all went well.
func (c Cursor) Read(ctx context.Context, tx *ledger.Tx, next int64, more bool, problem string) error {
	return exactly(ctx, tx, "put a cursor on", `
		UPDATE rail_cursors SET next_block = greatest(next_block, $3), read_at = CASE WHEN $4 THEN read_at ELSE clock_timestamp() END, read_until = NULL, problem = NULLIF($5, '')
		WHERE network = $1 AND asset = $2`, c.Network, c.Asset, next, more, problem)
}
