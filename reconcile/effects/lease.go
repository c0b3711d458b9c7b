package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
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
		if refusal, err = w.position(ctx, name, pos); refusal != nil || err != nil {
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

// position checks one returned log position; see checkPositions.
func (w *work) position(ctx context.Context, name runName, pos *position) (*Refusal, error) {
	if pos != nil && !w.sys.Behind() {
		var run int64
		if r := w.names[name]; r != nil {
			run = r.ID
		}
		found, err := store.Events(ctx, w.tx, []int64{run}, []int64{pos.id})
		if err != nil {
			return nil, err
		}
		if !pos.holds(found[pos.id], run) {
			if err := w.gapFound(ctx, fmt.Sprintf("run %q", name.name)); err != nil {
				return nil, err
			}
		}
	}
	if w.sys.Behind() {
		return logBehind(), nil
	}
	return nil, nil
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
	return runs.EndLease(ctx, w.tx, r.Row, how, to, w.now)
}

// Open gives the lease of a run to a worker, opening the run when it is new. The
// same attempt_id gets the same lease again while it holds. Refused with run_held,
// run_paused or run_closed (both kept, with time and worker), or log_behind.
func (e *Engine) Open(ctx context.Context, o Open) (Lease, error) {
	length, refusal := leaseLength(o.Lease)
	if r := firstRefusal(refusal, limited("/run_id", o.RunID, 512), limited("/agent", o.Agent, 256), limited("/worker", o.Worker, 256), limited("/attempt_id", o.AttemptID, 256)); r != nil {
		return Lease{}, r
	}
	var lease Lease
	err := e.onRun(ctx, o.Account, o.RunID, o.LogPosition, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		if r == nil {
			added, err := runs.Add(ctx, w.tx, o.Account, o.RunID, o.Agent, policyDigest(e.Policy()), w.now)
			if err == nil {
				err = w.lock(ctx, []runName{{o.Account, o.RunID}}, nil, nil)
			}
			if err != nil {
				return nil, err
			}
			if r = w.names[runName{o.Account, o.RunID}]; r == nil {
				return nil, fmt.Errorf("couldn't open run %q", o.RunID)
			}
			if added {
				err = w.runEvent(r, "run_opened", map[string]string{"agent": o.Agent})
			}
			if err != nil {
				return nil, err
			}
		}
		refusal, err := w.take(ctx, r, o.Worker, o.AttemptID, length, &lease)
		// Someone who waits for a living holder is no incident: only what a person will
		// ask about is kept.
		if refusal != nil && refusal.Code != CodeRunHeld && err == nil {
			err = runs.Refuse(ctx, w.tx, runs.Refusal{
				Run: r.ID, At: ledger.At(w.now), Call: "start", Reason: string(refusal.Code), Worker: o.Worker, AttemptID: o.AttemptID,
			})
			w.hint(r)
		}
		return refusal, err
	})
	if err != nil {
		return Lease{}, err
	}
	return lease, nil
}

// take gives the run's lease, or says why not. lease is complete once the work is
// committed.
func (w *work) take(ctx context.Context, r *run, worker, attempt string, length time.Duration, lease *Lease) (*Refusal, error) {
	again := r.LeaseHash != nil && r.LeaseWorker == worker && r.LeaseAttempt == attempt
	switch {
	case r.State.Closed():
		return &Refusal{Code: CodeRunClosed, RunID: r.RunID, State: string(r.State), Detail: fmt.Sprintf("The run is %s; its id is not used again.", r.State)}, nil
	case r.LeaseHash != nil && !again:
		return &Refusal{Code: CodeRunHeld, RunID: r.RunID, State: string(r.State), HeldBy: r.LeaseWorker,
			RetryAfter: r.LeaseUntil.Sub(w.now), Detail: "Another worker holds this run."}, nil
	case r.State == runs.Paused && !again:
		return paused(r), nil
	}
	if !again {
		epoch := max(r.Epoch, w.sys.FenceBase) + 1
		token := w.e.leaseToken(r.ID, epoch, attempt)
		if err := runs.Take(ctx, w.tx, r.Row, epoch, hashLease(token), worker, attempt, length, w.now); err != nil {
			return nil, err
		}
		if err := w.runEvent(r, "leased", map[string]any{"epoch": r.Epoch, "worker": worker}); err != nil {
			return nil, err
		}
		w.hint(r)
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	cp, err := runs.LastCheckpoint(ctx, w.tx, r.ID, false)
	if err == nil {
		err = w.place(ctx, r, nil)
	}
	if err != nil {
		return nil, err
	}
	opened, err := w.e.policyOf(ctx, w.tx, r.Policy)
	if err != nil {
		return nil, err
	}
	*lease = Lease{
		RunID: r.RunID, Agent: r.Agent, State: string(r.State), Token: w.e.leaseToken(r.ID, r.Epoch, attempt), Epoch: r.Epoch,
		ExpiresAt: r.LeaseUntil.Time, LogPosition: w.e.positionOf(r.Account, r.RunID, r.last),
		Volatile: opened.Volatile(),
	}
	if cp != nil {
		lease.Checkpoint = &CheckpointInfo{Turn: cp.Turn, SavedAt: cp.SavedAt.Time}
	}
	return nil, nil
}

// Claim gives the lease of any ready run of the agents, the one that has been ready
// longest; nil when there is none. The same worker and attempt_id get the same run
// again while they hold it.
func (e *Engine) Claim(ctx context.Context, c Claim) (*Lease, error) {
	length, refusal := leaseLength(c.Lease)
	if len(c.Agents) == 0 || len(c.Agents) > 100 {
		refusal = firstRefusal(refusal, invalid("/agents", "It names 1 to 100 agents."))
	}
	if r := firstRefusal(refusal, limited("/worker", c.Worker, 256), limited("/attempt_id", c.AttemptID, 256)); r != nil {
		return nil, r
	}
	lease, err := e.claim(ctx, c, length)
	if err == nil && lease == nil {
		// A decision may have become visible that the loops have not met yet.
		if err = e.releaseLoop(ctx); err == nil {
			lease, err = e.claim(ctx, c, length)
		}
	}
	return lease, err
}

func (e *Engine) claim(ctx context.Context, c Claim, length time.Duration) (*Lease, error) {
	var lease *Lease
	var w *work
	var refusal *Refusal
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		lease, refusal = nil, nil
		w = e.work(ctx, tx)
		r, err := w.claimable(ctx, c)
		if err != nil {
			return err
		}
		if w.sys.Behind() {
			refusal = logBehind()
			return nil
		}
		if r == nil {
			return nil
		}
		var got Lease
		if refusal, err = w.take(ctx, r, c.Worker, c.AttemptID, length, &got); err != nil || refusal != nil {
			return err
		}
		lease = &got
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.tell()
	if refusal != nil {
		return nil, refusal
	}
	return lease, nil
}

// claimable locks the run that a claim is about: the one this attempt_id holds, or
// the one that has been ready longest. nil when there is none.
func (w *work) claimable(ctx context.Context, c Claim) (*run, error) {
	id, err := runs.HeldBy(ctx, w.tx, c.Account, c.Worker, c.AttemptID, c.Agents)
	if err != nil {
		return nil, err
	}
	if id != 0 {
		if err := w.lock(ctx, nil, nil, []int64{id}); err != nil {
			return nil, err
		}
		return w.runs[id], nil
	}
	row, err := runs.NextReady(ctx, w.tx, c.Account, c.Agents)
	if err == nil {
		err = w.look(ctx)
	}
	if row == nil || err != nil {
		return nil, err
	}
	return w.keep(row), nil
}

// held runs f for the holder of a run's lease; lease_lost for anybody else.
func (e *Engine) held(ctx context.Context, account int64, runID, lease, position string, f func(ctx context.Context, w *work, r *run) (*Refusal, error)) (view RunView, err error) {
	err = e.onRun(ctx, account, runID, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		switch {
		case r == nil:
			return &Refusal{Code: CodeNotFound, RunID: runID, Detail: "There is no such run."}, nil
		case r.State.Closed():
			return &Refusal{Code: CodeRunClosed, RunID: runID, State: string(r.State), Detail: fmt.Sprintf("The run is %s.", r.State)}, nil
		case !sameLease(r, hashLease(lease)):
			return &Refusal{Code: CodeLeaseLost, RunID: runID, State: string(r.State), Detail: "This lease does not hold the run now."}, nil
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
		open, unused, err := store.Unfinished(ctx, w.tx, r.ID)
		if err != nil {
			return nil, err
		}
		if open > 0 {
			return &Refusal{Code: CodeRunOpen, RunID: runID, State: string(r.State), Detail: "An effect of this run is not closed yet."}, nil
		}
		if err := w.load(ctx, store.Wanted{IDs: unused}); err != nil {
			return nil, err
		}
		for _, id := range unused {
			if _, err := w.step(w.effects[id], Event{Kind: KClose}, "run_closed", nil, nil); err != nil {
				return nil, err
			}
		}
		if err := w.flush(ctx); err != nil {
			return nil, err
		}
		if err := w.runEvent(r, "run_closed", map[string]string{"outcome": outcome}); err != nil {
			return nil, err
		}
		w.hint(r)
		return nil, runs.EndLease(ctx, w.tx, r.Row, "closed", state, w.now)
	})
	if r, ok := errors.AsType[*Refusal](err); ok && r.Code == CodeRunClosed && r.State == outcome {
		return e.Run(ctx, account, runID, 0)
	}
	return view, err
}
