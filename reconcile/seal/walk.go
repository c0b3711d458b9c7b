package seal

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
	store "quittance/ledger/seal"
)

// walker goes through the chain from block to block.
type walker struct {
	db   *ledger.DB
	next int64            // number of the next block
	prev []byte           // digest of the one before it; nil: not read yet
	ends map[string]int64 // where each stream stands, as far as it was met
	// from is whether the walk began at the first block, so that a stream that was not
	// met has no block before.
	whole bool
}

func newWalker(db *ledger.DB, from int64) *walker {
	return &walker{db: db, next: max(1, from), ends: map[string]int64{}, whole: from <= 1}
}

// rowsNamed is how many bad rows of one block a finding names.
const rowsNamed = 20

// step checks up to n blocks, as many as hold about budget rows, and calls found for each
// that is bad. done says that the end of the chain was reached.
func (w *walker) step(ctx context.Context, n, budget int, found func(store.Damage) error) (rows int, done bool, err error) {
	list, err := store.Blocks(ctx, w.db, w.next, n)
	if err != nil {
		return 0, false, err
	}
	for _, b := range list {
		wrong, err := w.check(ctx, b)
		if err != nil {
			return rows, false, err
		}
		if len(wrong) > 0 {
			what := strings.Join(wrong[:min(len(wrong), rowsNamed)], "; ")
			if more := len(wrong) - rowsNamed; more > 0 {
				what += fmt.Sprintf("; and %d more", more)
			}
			if err := found(store.Damage{Block: b.Number, What: what, Before: b.At.Time}); err != nil {
				return rows, false, err
			}
		}
		w.next, w.prev = b.Number+1, b.Digest
		w.ends[b.Stream] = b.Last
		if rows += b.Rows; rows >= budget {
			return rows, false, nil
		}
	}
	return rows, len(list) < n, nil
}

// check says what is wrong with a block and its place in the chain.
func (w *walker) check(ctx context.Context, b store.Block) (wrong []string, err error) {
	if b.Number > w.next {
		wrong = append(wrong, fmt.Sprintf("blocks %d to %d are gone", w.next, b.Number-1))
	} else {
		if w.prev == nil {
			if w.prev, err = w.before(ctx, b.Number); err != nil {
				return nil, err
			}
		}
		if !bytes.Equal(w.prev, b.Previous) {
			wrong = append(wrong, fmt.Sprintf("block %d does not follow block %d: one of them was changed", b.Number, b.Number-1))
		}
	}
	s, ok := store.Find(b.Stream)
	if !ok {
		return append(wrong, fmt.Sprintf("block %d is of %q, which this program does not know", b.Number, b.Stream)), nil
	}
	end, met := w.ends[b.Stream]
	continues := met && end == b.After || !met && w.whole && b.After == 0
	if !met && !w.whole {
		if continues, err = store.Continues(ctx, w.db, b); err != nil {
			return nil, err
		}
	}
	if !continues {
		wrong = append(wrong, fmt.Sprintf("block %d does not go on where the sealed part of %s ended", b.Number, b.Stream))
	}
	rows, err := store.CheckedRows(ctx, w.db, s, b.After, b.Last)
	if err != nil {
		return nil, err
	}
	return append(wrong, compare(b, rows)...), nil
}

func (w *walker) before(ctx context.Context, number int64) ([]byte, error) {
	if number == 1 {
		return none, nil
	}
	digest, err := store.DigestAt(ctx, w.db, number-1)
	if digest == nil {
		digest = []byte{}
	}
	return digest, err
}

// Pace of the patrol: so many rows each second, in at most so many blocks, which costs
// some milliseconds. All of ten million effects are seen in six hours.
const (
	patrolRows   = 1000
	patrolBlocks = 100
)

// patrol goes round the chain for ever, a little each second. Once it has found
// something it hurries to the end, so that one gap covers all that is damaged.
type patrol struct {
	w      *walker
	hurry  bool
	rounds int64
}

func (p *patrol) step(ctx context.Context, found func(store.Damage) error) error {
	for until := time.Now().Add(500 * time.Millisecond); ; {
		_, done, err := p.w.step(ctx, patrolBlocks, patrolRows, func(d store.Damage) error {
			p.hurry = true
			return found(d)
		})
		if err != nil {
			return err
		}
		if done {
			p.hurry = false
			p.rounds++
			p.w = newWalker(p.w.db, 1)
			return nil
		}
		if !p.hurry || time.Now().After(until) {
			return nil
		}
	}
}
