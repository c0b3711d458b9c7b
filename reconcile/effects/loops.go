package effects

import (
	"context"
	"fmt"
	"sync"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/lookups"
	"quittance/ledger/runs"
)

// loopEvery is the pace of the time rules; loopBatch how many rows one transaction
// takes.
const (
	loopEvery = time.Second
	loopBatch = 200
)

// Loops drives the time rules until ctx ends: leases and deadlines that pass,
// decisions that become visible, permissions that expire. Every server runs them;
// they are idempotent, and their cost follows what is open, not what is stored.
//
// What is stored is gone through only after a business_key template has changed, and
// beside the others: they must not wait for it.
func (e *Engine) Loops(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { e.rekeyLoop(ctx) })
	beside.Go(func() { e.lookupLoop(ctx) })
	beside.Go(func() { e.toldLoop(ctx) })
	tick := time.NewTicker(loopEvery)
	defer tick.Stop()
	for {
		ok := true
		for name, loop := range map[string]func(context.Context) error{
			"leases": e.leaseLoop, "deadlines": e.deadlineLoop, "releases": e.releaseLoop, "permissions": e.expiryLoop,
			"closings": e.CloseEnded, "the database": e.Attend,
		} {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				ok = false
				e.log.Error("a loop failed; it is tried again in a second", "loop", name, "error", err)
			}
		}
		if ok {
			e.lastLoop.Store(time.Now().UnixMilli())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// onEffects runs f on effects in one transaction, after their runs are locked and
// read again: what a list said is only a hint. In a log gap that nobody has
// acknowledged it does nothing and says so.
func (e *Engine) onEffects(ctx context.Context, ids []string, f func(w *work, x *effect) error) (behind bool, err error) {
	var w *work
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		w = e.work(ctx, tx)
		if err = w.lock(ctx, nil, ids, nil); err != nil || w.sys.Behind() {
			return err
		}
		if err = w.load(ctx, store.Wanted{IDs: ids}); err != nil {
			return err
		}
		for _, id := range ids {
			if x := w.effects[id]; x != nil && x.run != nil {
				if err = f(w, x); err != nil {
					return err
				}
			}
		}
		return w.flush(ctx)
	})
	if err != nil {
		return false, err
	}
	w.tell()
	return w.sys.Behind(), nil
}

func (e *Engine) deadlineLoop(ctx context.Context) error {
	return e.drain(ctx, store.PastDeadline, func(w *work, x *effect) error {
		if x.State != InFlight || x.Deadline.After(w.now) {
			return nil
		}
		w.hint(x.run)
		_, err := w.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "deadline"}, nil)
		return err
	})
}

func (e *Engine) releaseLoop(ctx context.Context) error {
	if err := e.db.InTx(ctx, lookups.GiveUp); err != nil {
		return err
	}
	return e.drain(ctx, store.ReleaseDue, func(w *work, x *effect) error {
		may, err := w.mayRelease(w.ctx, x)
		if !may || err != nil {
			return err
		}
		w.hint(x.run)
		_, err = w.step(x, Event{Kind: KRelease}, "released", nil, nil)
		return err
	})
}

func (e *Engine) expiryLoop(ctx context.Context) error {
	life := fmt.Sprintf("%d microseconds", e.Policy().PermissionLife().Microseconds())
	due := func(ctx context.Context, r ledger.Reader, n int) ([]string, error) {
		return store.ExpiryDue(ctx, r, life, n)
	}
	return e.drain(ctx, due, func(w *work, x *effect) error {
		if x.State != Cleared || x.run.State == runs.Paused {
			return nil
		}
		w.hint(x.run)
		_, err := w.expire(x)
		return err
	})
}

// drain works through what is due, a batch at a time.
func (e *Engine) drain(ctx context.Context, due func(context.Context, ledger.Reader, int) ([]string, error), f func(w *work, x *effect) error) error {
	for {
		ids, err := due(ctx, e.db, loopBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		behind, err := e.onEffects(ctx, ids, f)
		if err != nil {
			return err
		}
		if behind || len(ids) < loopBatch {
			return nil
		}
	}
}

func (e *Engine) leaseLoop(ctx context.Context) error {
	for {
		ids, err := runs.Expired(ctx, e.db, loopBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		var w *work
		err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
			w = e.work(ctx, tx)
			if err = w.lock(ctx, nil, nil, ids); err != nil || w.sys.Behind() {
				return err
			}
			if err = w.expireLeases(ctx); err != nil {
				return err
			}
			return w.flush(ctx)
		})
		if err != nil {
			return err
		}
		w.tell()
		if len(ids) < loopBatch || w.sys.Behind() {
			return nil
		}
	}
}
