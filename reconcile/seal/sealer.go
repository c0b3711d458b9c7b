package seal

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"quittance/ledger"
	store "quittance/ledger/seal"
)

const (
	// every is the pace of the sealer: how long a row may stand outside the chain.
	every = time.Second
	// blockRows bounds a block, and with it the memory that sealing and checking take.
	blockRows = 5000
	// passBlocks bounds one transaction, and with it a second: a log of before the sealer is
	// taken up at 100,000 rows a second.
	passBlocks = 20
	// patience is how long a pass waits for writers who were there before it: a begin or
	// finish takes milliseconds.
	patience = 300 * time.Millisecond
)

// Sealer seals and watches one database. Every server runs one; they take turns.
type Sealer struct {
	db      *ledger.DB
	anchor  *Anchor
	log     *slog.Logger
	changed func() // tells open pages to read again
	patrol  patrol
	status  atomic.Pointer[Status]
	quiet   map[string]time.Time // when each trouble was last logged
}

// New makes a sealer that keeps the head in anchor. changed is called when a page has
// something new to show.
func New(db *ledger.DB, anchor *Anchor, changed func(), log *slog.Logger) *Sealer {
	s := &Sealer{db: db, anchor: anchor, log: log, changed: changed, quiet: map[string]time.Time{}}
	s.status.Store(&Status{})
	return s
}

// Run seals, watches and anchors each second until ctx ends.
func (s *Sealer) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.turn(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// turn is what is done each second. A part that fails keeps no other from its work.
func (s *Sealer) turn(ctx context.Context) {
	was := *s.status.Load()
	now := Status{Passed: was.Passed, Waits: was.Waits, Anchored: was.Anchored, Anchor: s.anchor.Path()}
	// One pass: a log of before the sealer is taken up beside the agents, not at their cost.
	_, waits, err := s.Seal(ctx)
	switch {
	case err == nil:
		now.Passed, now.Waits = time.Now(), since(was.Waits, waits)
	case errors.Is(err, store.ErrBusy):
		now.Passed = time.Now()
	default:
		now.Trouble = s.trouble(ctx, "sealing", err)
	}
	if err := s.Watch(ctx); err != nil {
		now.Trouble = s.trouble(ctx, "watching what is sealed", err)
	}
	if now.Head, now.Anchored, err = s.Compare(ctx, was.Anchored); err != nil {
		now.AnchorTrouble = s.trouble(ctx, "anchoring", err)
	}
	if err := s.patrolOnce(ctx, now.Head.Number); err != nil {
		now.Trouble = s.trouble(ctx, "checking the chain", err)
	}
	now.Rounds = s.patrol.rounds
	if ctx.Err() == nil {
		s.status.Store(&now)
	}
}

// troubleEvery is how often a trouble that lasts is logged.
const troubleEvery = time.Minute

func (s *Sealer) trouble(ctx context.Context, what string, err error) string {
	if ctx.Err() == nil && time.Since(s.quiet[what]) > troubleEvery {
		s.quiet[what] = time.Now()
		s.log.Error("the log is not kept safe as it should be; it is tried again each second", "doing", what, "error", err)
	}
	return what
}

// Seal chains rows that are new and behind every writer. more says that there are more
// than one pass takes, waits which tables are not sealed now since a transaction that
// may still write to them has gone on for long. [store.ErrBusy] when another server is
// at it.
func (s *Sealer) Seal(ctx context.Context) (more bool, waits []string, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		more, waits = false, nil
		head, err := store.LockHead(ctx, tx)
		if err != nil {
			return err
		}
		reach, err := store.Horizon(ctx, tx, patience)
		if err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		blocks := 0
		for _, r := range reach {
			if r.Waits {
				waits = append(waits, r.Stream.Table)
				continue
			}
			for after := r.After; after < r.To; {
				if blocks == passBlocks {
					more = true
					return nil
				}
				rows, err := store.Rows(ctx, tx, r.Stream, after, r.To, blockRows)
				if err != nil {
					return err
				}
				if len(rows) == 0 {
					break
				}
				b := link(head, r.Stream.Table, after, rows)
				b.At = ledger.At(now)
				b.Digest = sum(b, digestsOf(rows))
				if err := store.Add(ctx, tx, &b); err != nil {
					return err
				}
				blocks++
				head, after = store.Head{Number: b.Number, Digest: b.Digest}, b.Last
				if len(rows) < blockRows {
					break
				}
			}
		}
		return nil
	})
	return more, waits, err
}

func digestsOf(rows []store.Row) [][]byte {
	list := make([][]byte, len(rows))
	for i, r := range rows {
		list[i] = r.Digest
	}
	return list
}

// patrolOnce checks a little of what was sealed long ago. Servers begin at different
// places.
func (s *Sealer) patrolOnce(ctx context.Context, head int64) error {
	if head == 0 {
		return nil
	}
	if s.patrol.w == nil {
		s.patrol.w = newWalker(s.db, 1+rand.Int64N(head))
	}
	return s.patrol.step(ctx, func(d store.Damage) error { return s.found(ctx, d) })
}
