// Package seal keeps the log from being lost in silence: it chains the append-only
// record in blocks behind the writers, keeps the head of the chain outside the database,
// watches that what was sealed is still there, and checks all of it again on demand.
package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	store "quittance/ledger/seal"
)

// markSize is how much of a row's digest a block keeps beside the row's number: enough to
// name the row that was changed. That something was changed is told by the block's own
// digest, which covers every row's whole digest.
const markSize = 4

// none is the digest before the first block.
var none = make([]byte, sha256.Size)

// link makes the block that follows head, of rows that are not empty and in order.
func link(head store.Head, stream string, after int64, rows []store.Row) store.Block {
	last := rows[len(rows)-1]
	b := store.Block{
		Number: head.Number + 1, Stream: stream, After: after, Last: last.ID, Rows: len(rows),
		LastDigest: last.Digest, Previous: head.Digest,
	}
	if head.Number == 0 {
		b.Previous = none
	}
	before := after
	for _, r := range rows {
		b.Marks = binary.AppendUvarint(b.Marks, uint64(r.ID-before))
		b.Marks = append(b.Marks, r.Digest[:markSize]...)
		before = r.ID
	}
	return b
}

// sum is the digest that a block has over rows with these digests.
func sum(b store.Block, rows [][]byte) []byte {
	h := sha256.New()
	num := func(n int64) {
		var x [8]byte
		binary.BigEndian.PutUint64(x[:], uint64(n))
		h.Write(x[:])
	}
	text := func(t []byte) {
		num(int64(len(t)))
		h.Write(t)
	}
	text([]byte("quittance seal 1"))
	text(b.Previous)
	num(b.Number)
	num(b.At.UnixMicro())
	text([]byte(b.Stream))
	num(b.After)
	num(b.Last)
	num(int64(b.Rows))
	text(b.Marks)
	text(b.LastDigest)
	for _, r := range rows {
		h.Write(r)
	}
	return h.Sum(nil)
}

// mark is a row as its block remembers it.
type mark struct {
	id     int64
	digest [markSize]byte
}

var errMarks = errors.New("its list of rows cannot be read")

func marks(b store.Block) ([]mark, error) {
	list := make([]mark, 0, b.Rows)
	at := b.After
	for rest := []byte(b.Marks); len(rest) > 0; {
		step, n := binary.Uvarint(rest)
		if n <= 0 || step == 0 || step > 1<<62 || len(rest) < n+markSize {
			return nil, errMarks
		}
		at += int64(step)
		m := mark{id: at}
		copy(m.digest[:], rest[n:])
		rest = rest[n+markSize:]
		list = append(list, m)
	}
	if len(list) != b.Rows || at != b.Last {
		return nil, errMarks
	}
	return list, nil
}

// wrongRow is a row that is not as its block has it: what became of it, with %s where
// the row is named.
type wrongRow struct {
	id   int64
	what string
}

// compare says which rows of a block are wrong, given those that are stored now between
// its ends, the first bad one first; or, when none can be named, what is wrong with the
// block itself.
func compare(b store.Block, rows []store.Checked) (wrong []wrongRow, block string) {
	known, err := marks(b)
	if err != nil {
		return nil, fmt.Sprintf("block %d was changed: %v", b.Number, err)
	}
	digests := make([][]byte, len(rows))
	for i := range rows {
		digests[i] = rows[i].Digest
	}
	i, j := 0, 0
	for i < len(known) || j < len(rows) {
		switch {
		case j == len(rows) || i < len(known) && known[i].id < rows[j].ID:
			wrong = append(wrong, wrongRow{known[i].id, "%s is gone"})
			i++
		case i == len(known) || rows[j].ID < known[i].id:
			wrong = append(wrong, wrongRow{rows[j].ID, "%s was added after its place had been sealed"})
			j++
		default:
			r := rows[j]
			switch {
			case !bytes.Equal(r.Sum, r.Digest):
				wrong = append(wrong, wrongRow{r.ID, "%s was changed: its digest does not recompute"})
			case !bytes.HasPrefix(r.Digest, known[i].digest[:]):
				wrong = append(wrong, wrongRow{r.ID, "%s was changed: it is not the one that was sealed"})
			}
			i++
			j++
		}
	}
	if len(wrong) == 0 && !bytes.Equal(sum(b, digests), b.Digest) {
		block = fmt.Sprintf("block %d, rows %d to %d of %s, does not recompute: the block or a row in it was changed", b.Number, b.After+1, b.Last, b.Stream)
	}
	return wrong, block
}
