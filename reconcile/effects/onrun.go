package effects

import (
	"context"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/runs"
)

// onRun runs f on one locked run whose time rules have been applied. What f refuses
// is returned after the transaction committed: a refusal may have been recorded.
func (e *Engine) onRun(ctx context.Context, account int64, runID, position string, f func(ctx context.Context, w *work, r *run) (*Refusal, error)) error {
	if r := limited("/run_id", runID, 512); r != nil {
		return r
	}
	pos, refusal := e.parsePosition(account, runID, position)
	if refusal != nil {
		return refusal
	}
	var w *work
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		refusal = nil
		w = e.work(ctx, tx)
		name := runName{account, runID}
		if err = w.lock(ctx, []runName{name}, nil, nil); err != nil {
			return err
		}
		var list []shown
		if pos != nil {
			list = append(list, w.shownBy(pos, name))
		}
		if behind, err := w.behind(ctx, list); err != nil || behind {
			refusal = logBehind()
			return err
		}
		if err = w.catchUp(ctx); err != nil {
			return err
		}
		if refusal, err = f(ctx, w, w.names[name]); err != nil {
			return err
		}
		if err = w.flush(ctx); err != nil {
			return err
		}
		return w.place(ctx, w.names[name], refusal)
	})
	if err != nil {
		return err
	}
	w.tell()
	if refusal != nil {
		return refusal
	}
	return nil
}

// place gives a refusal its log position and what the run waits for.
func (w *work) place(ctx context.Context, r *run, refusal *Refusal) error {
	if r == nil {
		return nil
	}
	if r.last.ID == 0 {
		if err := w.lastEvents(ctx, []int64{r.ID}); err != nil {
			return err
		}
	}
	if refusal == nil {
		return nil
	}
	refusal.LogPosition = w.e.positionOf(r.Account, r.RunID, r.last)
	if refusal.Code == CodeRunPaused || refusal.Code == CodeRunOpen {
		waits, err := waitingFor(ctx, w.tx, []int64{r.ID})
		refusal.WaitingFor = waits[r.ID]
		return err
	}
	return nil
}

// catchUp applies the time rules to the locked runs: leases and deadlines that have
// passed, and decisions whose time has come.
func (w *work) catchUp(ctx context.Context) error {
	if err := w.expireLeases(ctx); err != nil {
		return err
	}
	var due []int64
	for id, r := range w.runs {
		if r.State == runs.Paused {
			due = append(due, id)
		}
	}
	if len(due) > 0 {
		if err := w.load(ctx, store.Wanted{Due: due}); err != nil {
			return err
		}
		if err := w.releaseDue(ctx); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}
