package seal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"quittance/ledger"
	"quittance/ledger/effects"
	store "quittance/ledger/seal"
	"quittance/reconcile/seal"
)

// writer is a transaction that has written an event and not ended.
type writer struct {
	event effects.Event
	end   chan error
	ended chan error
}

var errGiveUp = errors.New("given up")

// write takes the next number of the log and stays open until it is told how to end.
func (w *world) write(db *ledger.DB, run int64, data string) *writer {
	w.t.Helper()
	x := &writer{end: make(chan error), ended: make(chan error, 1)}
	ready := make(chan error, 1)
	go func() {
		x.ended <- db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
			now, err := tx.Now(ctx)
			if err == nil {
				x.event = effects.Event{At: ledger.At(now), Run: run, Kind: "a test"}
				x.event.SealData(data)
				b := effects.Batch{Events: []effects.Event{x.event}}
				err = effects.Write(ctx, tx, &b)
				x.event = b.Events[0]
			}
			ready <- err
			if err != nil {
				return err
			}
			return <-x.end
		})
	}()
	if err := <-ready; err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *world) finish(x *writer, with error) {
	w.t.Helper()
	x.end <- with
	if err := <-x.ended; !errors.Is(err, with) {
		w.t.Fatal(err)
	}
}

// A transaction takes a number, a later one takes the next and commits: neither may be
// sealed before the first has ended, or it would commit behind the seal.
func TestALateCommitDoesNotFallBehindTheSeal(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"committed": nil, "given up": errGiveUp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.effect()
			before := w.seal()
			var run int64
			w.get(&run, `SELECT max(id) FROM runs`)

			late := w.write(w.db, run, `{"n":"late"}`)
			soon := w.write(w.open(), run, `{"n":"soon"}`)
			w.finish(soon, nil)
			if late.event.ID >= soon.event.ID {
				t.Fatalf("late has %d, soon %d: this test proves nothing", late.event.ID, soon.event.ID)
			}
			for range 2 {
				_, waits, err := w.sealer.Seal(t.Context())
				if err != nil || len(waits) != 1 || waits[0] != "effect_events" {
					t.Fatalf("waits for %v, %v", waits, err)
				}
				if to := w.sealedTo(t); to >= late.event.ID {
					t.Fatalf("sealed to %d with %d open", to, late.event.ID)
				}
			}
			// Nobody waits for the sealer meanwhile, and other tables are sealed.
			w.effect()
			w.finish(late, end)
			if w.seal() <= before || w.sealedTo(t) < soon.event.ID {
				t.Fatal("nothing was sealed after it ended")
			}
			w.clean()
			var n int
			w.get(&n, `SELECT count(*) FROM effect_events WHERE id = $1`, late.event.ID)
			if (n == 1) != (end == nil) {
				t.Fatalf("%d late rows", n)
			}
		})
	}
}

func (w *world) sealedTo(t *testing.T) int64 {
	t.Helper()
	s, _ := store.Find("effect_events")
	to, err := store.SealedTo(t.Context(), w.db, s)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// What a sealing transaction has locked at its end keeps no writer waiting: none of its
// locks conflicts with theirs.
func TestSealingLocksNothingThatWritersWant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.judged()
	w.seal()
	w.effect()
	err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		head, err := store.LockHead(ctx, tx)
		if err != nil {
			return err
		}
		reach, err := store.Horizon(ctx, tx, 0)
		if err != nil || len(reach) == 0 {
			return fmt.Errorf("%v, %w", reach, err)
		}
		rows, err := store.Rows(ctx, tx, reach[0].Stream, reach[0].After, reach[0].To, 10)
		if err != nil {
			return err
		}
		b := store.Block{Number: head.Number + 1, At: ledger.At(w.now(t)), Stream: "effect_events", After: reach[0].After, Last: rows[len(rows)-1].ID, Rows: 1,
			Marks: make([]byte, 5), LastDigest: make([]byte, 32), Previous: head.Digest, Digest: make([]byte, 32)}
		if err := store.Add(ctx, tx, &b); err != nil {
			return err
		}
		var locks []string
		err = tx.Select(ctx, &locks, `
			SELECT relation::regclass || ' ' || mode FROM pg_locks
			WHERE pid = pg_backend_pid() AND (locktype = 'relation' AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
			OR locktype = 'tuple')`)
		if err == nil && len(locks) > 0 {
			t.Errorf("the sealer holds %v", locks)
		}
		// With all of it held, a begin and a finish go through.
		w.effect()
		return errors.Join(err, errGiveUp)
	})
	if !errors.Is(err, errGiveUp) {
		t.Fatal(err)
	}
	w.seal()
	w.clean()
}

// Two servers seal while agents work: one chain, every row in it once.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan struct{})
	var sealers, agents sync.WaitGroup
	for range 3 {
		s := seal.New(w.open(), seal.NewAnchor(""), func() {}, quiet)
		sealers.Go(func() {
			for {
				if _, _, err := s.Seal(t.Context()); err != nil && !errors.Is(err, store.ErrBusy) {
					t.Error(err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 4 {
		a := *w
		a.n = (i + 1) * 1000
		agents.Go(func() {
			for range 40 {
				a.effect()
			}
			a.judged()
		})
	}
	agents.Wait()
	close(done)
	sealers.Wait()
	if blocks := w.seal(); blocks < 10 {
		t.Errorf("%d blocks: the sealers hardly worked beside the agents", blocks)
	}
	w.clean()
	var sealed, all int64
	w.get(&sealed, `SELECT sum(rows) FROM seal_blocks`)
	w.get(&all, `SELECT (SELECT count(*) FROM effect_events) + (SELECT count(*) FROM evidence) + (SELECT count(*) FROM decisions) + (SELECT count(*) FROM kept_finishes) + (SELECT count(*) FROM audit)`)
	if sealed != all {
		t.Errorf("%d rows are sealed of %d", sealed, all)
	}
}

// A sequence that hands out numbers in advance breaks the order that sealing rests on.
func TestNumbersInAdvanceAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.effect()
	w.exec(`ALTER TABLE effect_events ALTER COLUMN id SET CACHE 10`)
	if _, _, err := w.sealer.Seal(t.Context()); err == nil {
		t.Fatal("sealed with a sequence that hands out numbers in advance")
	}
	w.exec(`ALTER TABLE effect_events ALTER COLUMN id SET CACHE 1`)
	w.seal()
}
