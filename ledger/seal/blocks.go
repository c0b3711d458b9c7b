package seal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"quittance/ledger"
)

// Block is one link of the chain.
type Block struct {
	Number     int64        `db:"number"`
	At         ledger.Time  `db:"at"`
	Stream     string       `db:"stream"`
	After      int64        `db:"after_id"`
	Last       int64        `db:"last_id"`
	Rows       int          `db:"rows"`
	Marks      ledger.Bytes `db:"marks"`
	LastDigest ledger.Bytes `db:"last_digest"`
	Previous   ledger.Bytes `db:"previous"`
	Digest     ledger.Bytes `db:"digest"`
}

// Head is the last block's number and digest; number 0 before the first.
type Head struct {
	Number int64        `db:"number"`
	Digest ledger.Bytes `db:"digest"`
}

// ErrBusy says that another server is sealing.
var ErrBusy = errors.New("another server is sealing")

// turnLock is the advisory lock of whoever seals. Locking the head's row would write, and
// wait for the disk, each second in which there is nothing to seal.
const turnLock = 0x5EA1

// LockHead makes this transaction the one that seals; [ErrBusy] when there is one.
func LockHead(ctx context.Context, tx *ledger.Tx) (h Head, err error) {
	var mine bool
	if err := tx.Get(ctx, &mine, `SELECT pg_try_advisory_xact_lock($1)`, turnLock); err != nil {
		return h, fmt.Errorf("couldn't take a turn at sealing: %w", err)
	}
	if !mine {
		return h, ErrBusy
	}
	return ReadHead(ctx, tx)
}

// ReadHead reads the head; number 0 when there is none, also where it was deleted.
func ReadHead(ctx context.Context, r ledger.Reader) (h Head, err error) {
	err = r.Get(ctx, &h, `SELECT COALESCE(number, 0) AS number, digest FROM seal_head`)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return h, fmt.Errorf("couldn't read the head of the chain: %w", err)
	}
	return h, nil
}

// Add appends a block to the head that was read under [LockHead].
func Add(ctx context.Context, tx *ledger.Tx, b *Block) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO seal_blocks (number, at, stream, after_id, last_id, rows, marks, last_digest, previous, digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		b.Number, b.At, b.Stream, b.After, b.Last, b.Rows, b.Marks, b.LastDigest, b.Previous, b.Digest)
	if err != nil {
		return fmt.Errorf("couldn't add a block: %w", err)
	}
	n, err := tx.Exec(ctx, `
		INSERT INTO seal_head AS h (number, digest) VALUES ($1, $2)
		ON CONFLICT (one) DO UPDATE SET number = $1, digest = $2 WHERE COALESCE(h.number, 0) = $1 - 1`, b.Number, b.Digest)
	if err == nil && n != 1 {
		err = errors.New("the head is another")
	}
	if err != nil {
		return fmt.Errorf("couldn't move the head of the chain: %w", err)
	}
	return nil
}

// DigestAt is the digest of the block of a number, nil when there is no such block.
func DigestAt(ctx context.Context, r ledger.Reader, number int64) (digest ledger.Bytes, err error) {
	err = r.Get(ctx, &digest, `SELECT digest FROM seal_blocks WHERE number = $1`, number)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a block: %w", err)
	}
	return digest, nil
}

// Blocks reads up to n blocks from a number on, in their order.
func Blocks(ctx context.Context, r ledger.Reader, from int64, n int) (list []Block, err error) {
	err = r.Select(ctx, &list, `
		SELECT number, at, stream, after_id, last_id, rows, marks, last_digest, previous, digest
		FROM seal_blocks WHERE number >= $1 ORDER BY number LIMIT $2`, from, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read blocks: %w", err)
	}
	return list, nil
}

// Row is a sealed row, or one to be sealed.
type Row struct {
	ID     int64        `db:"id"`
	Digest ledger.Bytes `db:"digest"` // the one it carries
}

// Rows reads a stream's rows numbered above after and up to last, at most n, in their
// order.
func Rows(ctx context.Context, r ledger.Reader, s Stream, after, last int64, n int) ([]Row, error) {
	all, err := packed(ctx, r, s, s.digest, after, last, n)
	if err != nil {
		return nil, err
	}
	const size = 8 + sha256.Size
	list := make([]Row, 0, len(all)/size)
	for ; len(all) >= size; all = all[size:] {
		row := Row{ID: int64(binary.BigEndian.Uint64(all)), Digest: all[8:size:size]}
		if len(list) > 0 && row.ID <= list[len(list)-1].ID {
			return nil, fmt.Errorf("couldn't read rows of %s: they came out of order", s.Table)
		}
		list = append(list, row)
	}
	return list, nil
}

// Checked is a row as a check reads it: with the digest that it should carry.
type Checked struct {
	Row
	Sum ledger.Bytes
}

// CheckedRows is [Rows] with the digests computed again from the rows' columns.
func CheckedRows(ctx context.Context, r ledger.Reader, s Stream, after, last int64, n int) ([]Checked, error) {
	all, err := packed(ctx, r, s, "("+s.digest+") || ("+s.sum+")", after, last, n)
	if err != nil {
		return nil, err
	}
	const size = 8 + 2*sha256.Size
	list := make([]Checked, 0, len(all)/size)
	for ; len(all) >= size; all = all[size:] {
		list = append(list, Checked{
			Row: Row{ID: int64(binary.BigEndian.Uint64(all)), Digest: all[8 : 8+sha256.Size : 8+sha256.Size]},
			Sum: all[8+sha256.Size : size : size],
		})
	}
	return list, nil
}

// packed reads rows as one value, each as its number and what: read one by one they would
// cost more than all else that is done with them. Digests are of one length (a CHECK).
func packed(ctx context.Context, r ledger.Reader, s Stream, what string, after, last int64, n int) (all ledger.Bytes, err error) {
	err = r.Get(ctx, &all, `
		SELECT string_agg(int8send(id) || what, ''::bytea)
		FROM (SELECT `+s.id+` AS id, `+what+` AS what FROM `+s.Table+`
			WHERE `+s.id+` > $1 AND `+s.id+` <= $2 ORDER BY `+s.id+` LIMIT $3) AS x`, after, last, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read rows of %s: %w", s.Table, err)
	}
	return all, nil
}

// About names a row for people, "" when there is none of the number.
func About(ctx context.Context, r ledger.Reader, s Stream, id int64) (about string, err error) {
	err = r.Get(ctx, &about, `SELECT `+s.about+` FROM `+s.Table+` WHERE `+s.id+` = $1`, id)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return "", fmt.Errorf("couldn't read a row of %s: %w", s.Table, err)
	}
	return about, nil
}

// SealedTo is the last number of a stream that is sealed.
func SealedTo(ctx context.Context, r ledger.Reader, s Stream) (last int64, err error) {
	err = r.Get(ctx, &last, `SELECT COALESCE((SELECT last_id FROM seal_blocks WHERE stream = $1 ORDER BY last_id DESC LIMIT 1), 0)`, s.Table)
	if err != nil {
		return 0, fmt.Errorf("couldn't read how far is sealed: %w", err)
	}
	return last, nil
}
