package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	store "quittance/ledger/effects"
	"quittance/ledger/runs"
)

const (
	defaultLease = 60 * time.Second
	minLease     = 2 * time.Second
	maxLease     = 10 * time.Minute
)

func leaseLength(d time.Duration) (time.Duration, *Refusal) {
	if d == 0 {
		return defaultLease, nil
	}
	if d < minLease || d > maxLease || d%time.Second != 0 {
		return 0, invalid("/lease_seconds", "A lease lasts 2 to 600 whole seconds.")
	}
	return d, nil
}

// expireLeases ends the leases of locked runs that have passed.
func (w *work) expireLeases(ctx context.Context) error {
	for _, r := range w.runs {
		if r.LeaseHash != nil && !r.LeaseUntil.After(w.now) {
			if err := w.endLease(ctx, r, "expired"); err != nil {
				return err
			}
		}
	}
	return nil
}

// endLease takes the lease away: what was in flight under it is interrupted.
func (w *work) endLease(ctx context.Context, r *run, how string) error {
	ids, err := store.InFlightOf(ctx, w.tx, []int64{r.ID})
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		if err := w.load(ctx, store.Wanted{IDs: ids}); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if _, err := w.step(w.effects[id], Event{Kind: KTime, Lease: true}, "interrupted", map[string]string{"lease": how, "worker": r.LeaseWorker}, nil); err != nil {
			return err
		}
	}
	to := runs.Ready
	if r.State == runs.Paused || len(ids) > 0 {
		to = runs.Paused
	}
	if err := w.runEvent(r, "lease_"+how, map[string]any{"epoch": r.Epoch, "worker": r.LeaseWorker}); err != nil {
		return err
	}
	w.settle[r.ID] = r
	w.hint(r)
	if err := runs.EndLease(ctx, w.tx, r.Row, how, to, w.now); err != nil {
		return err
	}
	w.hintReady(r)
	return nil
}

// held runs f for the holder of a run's lease; lease_lost for anybody else.
func (e *Engine) held(ctx context.Context, account int64, runID, lease, position string, f func(ctx context.Context, w *work, r *run) (*Refusal, error)) (view RunView, err error) {
	err = e.onRun(ctx, account, runID, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		switch {
		case r == nil:
			return noRun(runID), nil
		case r.State.Closed():
			return r.refusal(CodeRunClosed, fmt.Sprintf("The run is %s.", r.State)), nil
		case !sameLease(r, hashLease(lease)):
			return r.refusal(CodeLeaseLost, "This lease does not hold the run now."), nil
		}
		refusal, err := f(ctx, w, r)
		if err == nil {
			err = w.flush(ctx)
		}
		if err == nil {
			err = w.place(ctx, r, nil)
		}
		view = RunView{RunID: runID, Agent: r.Agent, State: string(r.State), Epoch: r.Epoch, HeldBy: r.LeaseWorker, ExpiresAt: r.LeaseUntil.Time,
			OpenedAt: r.OpenedAt.Time, Refused: r.Refused, LogPosition: e.positionOf(r.Account, r.RunID, r.last)}
		return refusal, err
	})
	return view, err
}

// Heartbeat renews the lease, also while the run is paused, and tells its state.
func (e *Engine) Heartbeat(ctx context.Context, account int64, runID, lease, position string) (RunView, error) {
	return e.held(ctx, account, runID, lease, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		return nil, runs.Renew(ctx, w.tx, r.Row, w.now)
	})
}

// Release gives the lease back. What is in flight under it becomes interrupted.
func (e *Engine) Release(ctx context.Context, account int64, runID, lease, position string) (RunView, error) {
	return e.held(ctx, account, runID, lease, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		return nil, w.endLease(ctx, r, "released")
	})
}

// Close ends a run for good: outcome is finished, failed or cancelled. Refused with
// effect_open while an effect is open, not released, or cleared for same_key. A run
// that was closed with the same outcome is closed: the answer may have been lost.
func (e *Engine) Close(ctx context.Context, account int64, runID, lease, outcome, position string) (RunView, error) {
	state := runs.State(outcome)
	if !state.Closed() {
		return RunView{}, invalid("/outcome", "It is finished, failed or cancelled.")
	}
	view, err := e.held(ctx, account, runID, lease, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		if refusal, err := w.closeEffects(ctx, r, outcome); refusal != nil || err != nil {
			return refusal, err
		}
		return nil, runs.EndLease(ctx, w.tx, r.Row, "closed", state, w.now)
	})
	if r, ok := errors.AsType[*Refusal](err); ok && r.Code == CodeRunClosed && r.State == outcome {
		return e.Run(ctx, account, runID, 0)
	}
	return view, err
}
