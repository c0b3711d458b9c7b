package payments

import (
	"context"
	"fmt"
	"math"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Moved is one incoming movement on a rail: it never changes.
type Moved struct {
	ID        string       `db:"id"`
	Account   int64        `db:"account_id"`
	Network   string       `db:"network"`
	Tx        string       `db:"tx_hash"`
	Position  int          `db:"position"`
	Asset     string       `db:"asset"`
	Sender    string       `db:"sender"`
	Recipient string       `db:"recipient"`
	Amount    money.Atomic `db:"amount"`
	Nonce     string       `db:"nonce"`
	Memo      string       `db:"memo"`
	KnownBy   string       `db:"known_by"`
	SeenAt    time.Time    `db:"seen_at"`
}

// Transfer is a movement and how it is classified.
type Transfer struct {
	Moved
	OrderID    string       `db:"order_id"`
	Class      string       `db:"class"`
	Over       money.Atomic `db:"over"`
	Block      int64        `db:"block"`
	BlockHash  string       `db:"block_hash"`
	Final      bool         `db:"final"`
	RevertedAt ledger.Time  `db:"reverted_at"`
	ChangedAt  time.Time    `db:"changed_at"`
}

// Reverted tells that it was reorganised away.
func (t *Transfer) Reverted() bool { return !t.RevertedAt.IsZero() }

const transferColumns = `t.id, t.account_id, t.network, t.tx_hash, t.position, t.asset, t.sender, t.recipient, t.amount, COALESCE(t.nonce, '') AS nonce,
	COALESCE(t.memo, '') AS memo, t.known_by, t.seen_at, COALESCE(t.order_id::text, '') AS order_id, t.class, t.over, COALESCE(t.block, 0) AS block,
	COALESCE(t.block_hash, '') AS block_hash, t.final, t.reverted_at, t.changed_at`

// TransferAt reads the transfer at a place of a rail; nil where none is known.
func TransferAt(ctx context.Context, r ledger.Reader, network, hash string, position int) (*Transfer, error) {
	return transfer(ctx, r, `SELECT `+transferColumns+` FROM transfers t WHERE t.network = $1 AND t.tx_hash = $2 AND t.position = $3`, network, hash, position)
}

// NoPlace is the position of what people told of, who know a reference and no place in it.
// No rail has one so large.
const NoPlace = math.MaxInt32

// ToldAt reads a movement that people told of, which may be the one that is shown at a
// place now: it is the first that fits, and stays it. nil where there is none.
func ToldAt(ctx context.Context, r ledger.Reader, m *Moved) (*Transfer, error) {
	return transfer(ctx, r, `SELECT `+transferColumns+` FROM transfers t WHERE t.network = $1 AND t.tx_hash = $2 AND t.position = $3 AND t.asset = $4 AND t.sender = $5
		AND t.recipient = $6 AND t.amount = $7 AND COALESCE(t.shown_position, $8) = $8`, m.Network, m.Tx, NoPlace, m.Asset, m.Sender, m.Recipient, m.Amount, m.Position)
}

// ShownAt records the place at which a movement was shown that people had told of.
func ShownAt(ctx context.Context, tx *ledger.Tx, id string, position int) error {
	return exactly(ctx, tx, "record where a transfer was shown", `UPDATE transfers SET shown_position = $2, changed_at = clock_timestamp() WHERE id = $1::uuid`, id, position)
}

// TransfersIn are the movements that are known under one reference of a network.
func TransfersIn(ctx context.Context, r ledger.Reader, network, hash string) (list []Transfer, err error) {
	err = r.Select(ctx, &list, `SELECT `+transferColumns+` FROM transfers t WHERE t.network = $1 AND t.tx_hash = $2 ORDER BY t.position`, network, hash)
	if err != nil {
		return nil, fmt.Errorf("couldn't read transfers: %w", err)
	}
	return list, nil
}

// AskSoon makes a transfer the next of its network that its rail is asked about, unless it is
// final.
func AskSoon(ctx context.Context, tx *ledger.Tx, id string) error {
	if _, err := tx.Exec(ctx, `UPDATE transfers SET asked_at = '-infinity' WHERE id = $1::uuid AND NOT final`, id); err != nil {
		return fmt.Errorf("couldn't let a transfer be asked about: %w", err)
	}
	return nil
}

// TransferByID reads a transfer; nil where there is none.
func TransferByID(ctx context.Context, r ledger.Reader, id string) (*Transfer, error) {
	return transfer(ctx, r, `SELECT `+transferColumns+` FROM transfers t WHERE t.id = $1::uuid`, id)
}

// LockTransfer locks a transfer that has no order, and so no payment to lock.
func LockTransfer(ctx context.Context, tx *ledger.Tx, id string) (*Transfer, error) {
	return transfer(ctx, tx, `SELECT `+transferColumns+` FROM transfers t WHERE t.id = $1::uuid FOR UPDATE`, id)
}

func transfer(ctx context.Context, r ledger.Reader, query string, args ...any) (*Transfer, error) {
	return row[Transfer](ctx, r, "a transfer", query, args...)
}

// TransfersOf are the transfers of an order, first to last.
func TransfersOf(ctx context.Context, r ledger.Reader, order string) (list []Transfer, err error) {
	err = r.Select(ctx, &list, `SELECT `+transferColumns+` FROM transfers t WHERE t.order_id = $1::uuid ORDER BY t.seen_at, t.id`, order)
	if err != nil {
		return nil, fmt.Errorf("couldn't read transfers: %w", err)
	}
	return list, nil
}

// AddTransfer stores a movement. False when it is known already, or somebody stores it
// just now: that one's transaction has ended then.
func AddTransfer(ctx context.Context, tx *ledger.Tx, t Transfer) (bool, error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO transfers (id, account_id, network, tx_hash, position, asset, sender, recipient, amount, nonce, memo, known_by, seen_at,
			order_id, class, over, block, block_hash, final, changed_at)
		VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, NULLIF($10, ''), NULLIF($11, ''), $12, $13,
			NULLIF($14, '')::uuid, $15, $16, NULLIF($17, 0::bigint), NULLIF($18, ''), $19, $13)
		ON CONFLICT ON CONSTRAINT transfers_once DO NOTHING`,
		t.ID, t.Account, t.Network, t.Tx, t.Position, t.Asset, t.Sender, t.Recipient, t.Amount, t.Nonce, t.Memo, t.KnownBy, t.SeenAt,
		t.OrderID, t.Class, t.Over, t.Block, t.BlockHash, t.Final)
	if err != nil {
		return false, fmt.Errorf("couldn't store a transfer: %w", err)
	}
	return n == 1, nil
}

// Classify writes how a transfer is classified now, and where it stands on its rail.
func Classify(ctx context.Context, tx *ledger.Tx, t Transfer) error {
	return exactly(ctx, tx, "classify a transfer", `
		UPDATE transfers SET order_id = COALESCE(order_id, NULLIF($2, '')::uuid), class = $3, over = $4, block = NULLIF($5, 0::bigint), block_hash = NULLIF($6, ''),
			final = $7, reverted_at = $8, changed_at = clock_timestamp()
		WHERE id = $1::uuid`, t.ID, t.OrderID, t.Class, t.Over, t.Block, t.BlockHash, t.Final, t.RevertedAt)
}

// TakeNotFinal takes transfers of a network that can still be reorganised away, those that
// were asked about longest ago first and none within a pause, at most limit. Whoever takes
// them asks: others leave them for the pause.
func TakeNotFinal(ctx context.Context, db *ledger.DB, network string, pause time.Duration, limit int) (list []Transfer, err error) {
	rows, err := db.OnceEach(ctx, `
		UPDATE transfers t SET asked_at = clock_timestamp()
		WHERE t.id IN (SELECT id FROM transfers WHERE NOT final AND network = $1 AND COALESCE(asked_at, seen_at) <= clock_timestamp() - $2 * interval '1 microsecond'
			ORDER BY COALESCE(asked_at, seen_at) LIMIT $3 FOR UPDATE SKIP LOCKED)
		RETURNING `+transferColumns, network, pause.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't take transfers that are not final: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var t Transfer
		if err := rows.StructScan(&t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

// Unplaced are transfers that a person has to place: without an order, or held since they
// are less than is asked; first to last, at most limit.
func Unplaced(ctx context.Context, r ledger.Reader, limit int) (list []Transfer, err error) {
	err = r.Select(ctx, &list, `SELECT `+transferColumns+` FROM transfers t WHERE t.class IN ('unmatched','under') AND t.reverted_at IS NULL ORDER BY t.seen_at, t.id LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("couldn't list transfers: %w", err)
	}
	return list, nil
}
