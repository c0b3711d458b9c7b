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
			if err := found(store.Damage{Block: b.Number, What: strings.Join(wrong, "; "), Before: b.At.Time}); err != nil {
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
	// One more than it can hold: what was added to it must not go unseen, nor, in any
	// number, fill the memory.
	rows, err := store.CheckedRows(ctx, w.db, s, b.After, b.Last, b.Rows+blockRows)
	if err != nil {
		return nil, err
	}
	bad, block := compare(b, rows)
	if block != "" {
		wrong = append(wrong, block)
	}
	for _, r := range bad[:min(len(bad), rowsNamed)] {
		text, err := nameRow(ctx, w.db, s, r.id, r.what)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, text)
	}
	if more := len(bad) - rowsNamed; more > 0 {
		wrong = append(wrong, fmt.Sprintf("and %d more rows of it", more))
	}
	return wrong, nil
}

// nameRow fills in the row of a sentence about it.
func nameRow(ctx context.Context, r ledger.Reader, s store.Stream, id int64, what string) (string, error) {
	about, err := store.About(ctx, r, s, id)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("row %d of %s", id, s.Table)
	if about != "" {
		name += " (" + about + ")"
	}
	return fmt.Sprintf(what, name), nil
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

// Pace of the patrol: so many rows and blocks each second, which costs some milliseconds.
// The log of ten million effects is gone round in six hours.
const (
	patrolRows   = 1000
	patrolBlocks = 100
)

// patrol goes round the chain for ever, a little each second. Once it has found
// something it hurries to the end, so that one gap covers all that is damaged.
type patrol struct {
	w      *walker
	ahead  int // rows that were looked at before their time: a block is looked at whole
	hurry  bool
	rounds int64
}

func (p *patrol) step(ctx context.Context, found func(store.Damage) error) error {
	if p.ahead = max(0, p.ahead-patrolRows); p.ahead > 0 && !p.hurry {
		return nil
	}
	for until := time.Now().Add(500 * time.Millisecond); ; {
		rows, done, err := p.w.step(ctx, patrolBlocks, patrolRows, func(d store.Damage) error {
			p.hurry = true
			return found(d)
		})
		if err != nil {
			return err
		}
		p.ahead += rows
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
