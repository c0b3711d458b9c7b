package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
)

// reread is how often a waiter reads again whatever it heard: a hint may be lost.
const reread = 5 * time.Second

// MaxWait bounds a long poll.
const MaxWait = 60 * time.Second

// Run reads a run. With wait > 0 a paused run is answered when it may go on, or as
// it is after wait; a release that is due meanwhile is applied at its time.
func (e *Engine) Run(ctx context.Context, account int64, runID string, wait time.Duration) (RunView, error) {
	if r := limited("/run_id", runID, 512); r != nil {
		return RunView{}, r
	}
	until := time.Now().Add(min(wait, MaxWait))
	for {
		row, err := runs.Get(ctx, e.db, account, runID)
		if errors.Is(err, ledger.ErrNotFound) {
			return RunView{}, noRun(runID)
		}
		if err != nil {
			return RunView{}, err
		}
		hints, cancel := e.hub.Subscribe(topic(row))
		view, next, err := e.runView(ctx, account, runID)
		if err != nil || view.State != string(runs.Paused) || !time.Now().Before(until) {
			cancel()
			return view, err
		}
		err = rest(ctx, hints, min(time.Until(until), reread, next))
		cancel()
		if err != nil {
			return RunView{}, err
		}
	}
}

// rest waits for a hint or until d has passed.
func rest(ctx context.Context, hints <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(max(d, time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hints:
	case <-t.C:
	}
	return nil
}

// runView reads a run; next is how long until its earliest release. A release whose
// time has come is applied first.
func (e *Engine) runView(ctx context.Context, account int64, runID string) (view RunView, next time.Duration, err error) {
	next = MaxWait
	row, err := runs.Get(ctx, e.db, account, runID)
	if err != nil {
		return view, next, err
	}
	blocking, err := store.Blocking(ctx, e.db, []int64{row.ID})
	if err != nil {
		return view, next, err
	}
	if row.State == runs.Paused {
		var due []string
		now, err := e.db.Now(ctx)
		if err != nil {
			return view, next, err
		}
		for _, x := range blocking {
			if x.Released || x.ReleaseAt.IsZero() || x.Early {
				continue
			}
			if d := x.ReleaseAt.Sub(now); d <= 0 {
				due = append(due, x.ID)
			} else {
				next = min(next, d)
			}
		}
		// Also when nothing blocks any more: another server may have stopped half-way.
		if len(due) > 0 || len(blocking) == 0 {
			err := e.onRun(ctx, account, runID, "", func(ctx context.Context, w *work, r *run) (*Refusal, error) {
				w.settle[r.ID] = r
				return nil, nil
			})
			var behind *Refusal
			if err != nil && !errors.As(err, &behind) {
				return view, next, err
			}
			if row, err = runs.Get(ctx, e.db, account, runID); err != nil {
				return view, next, err
			}
			if blocking, err = store.Blocking(ctx, e.db, []int64{row.ID}); err != nil {
				return view, next, err
			}
			next = max(next, 50*time.Millisecond)
		}
	}
	open, err := store.OpenOfRun(ctx, e.db, row.ID)
	if err != nil {
		return view, next, err
	}
	view = RunView{
		RunID: row.RunID, Agent: row.Agent, State: string(row.State), Epoch: row.Epoch, HeldBy: row.LeaseWorker, ExpiresAt: row.LeaseUntil.Time,
		OpenedAt: row.OpenedAt.Time, ClosedAt: row.ClosedAt.Time, Refused: row.Refused,
	}
	for _, x := range blocking {
		view.WaitingFor = append(view.WaitingFor, waitingOf(x))
	}
	for _, x := range open {
		view.Open = append(view.Open, OpenEffect{EffectID: x.ID, Tool: x.Tool, Key: canon.Key(x.Key).String(), State: string(x.State), Since: x.ChangedAt.Time})
	}
	last, err := store.LastEvents(ctx, e.db, []int64{row.ID})
	view.LogPosition = e.positionOf(row.Account, row.RunID, last[row.ID])
	return view, next, err
}

// SaveCheckpoint stores an agent's state after a turn, for the holder of the lease;
// state and occurrences are JSON and kept as sent.
func (e *Engine) SaveCheckpoint(ctx context.Context, account int64, runID, lease string, turn int64, state, occurrences []byte, position string) (string, error) {
	if turn < 0 {
		return "", invalid("/turn", "Turns count from 0.")
	}
	if len(occurrences) == 0 {
		occurrences = []byte("{}")
	}
	for _, t := range []struct {
		at  string
		raw []byte
	}{{"/state", state}, {"/occurrences", occurrences}} {
		if _, err := canon.Parse(t.raw); err != nil {
			return "", badJSON(t.at, err)
		}
	}
	state, _, err := e.redact.JSON(state, e.Policy().CheckpointRedact(), nil)
	if err != nil {
		return "", badJSON("/state", err)
	}
	view, err := e.held(ctx, account, runID, lease, position, func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		return nil, runs.SaveCheckpoint(ctx, w.tx, r.Row, turn, string(state), string(occurrences), e.Policy().CheckpointsKept(), w.now)
	})
	return view.LogPosition, err
}

// Checkpoint reads the one saved last by the highest epoch that is what was saved.
// Refused with checkpoint_damaged where none of those that are kept is.
func (e *Engine) Checkpoint(ctx context.Context, account int64, runID string) (Checkpoint, error) {
	if r := limited("/run_id", runID, 512); r != nil {
		return Checkpoint{}, r
	}
	row, err := runs.Get(ctx, e.db, account, runID)
	if errors.Is(err, ledger.ErrNotFound) {
		return Checkpoint{}, noRun(runID)
	}
	if err != nil {
		return Checkpoint{}, err
	}
	c, damaged, err := runs.LastCheckpoint(ctx, e.db, row.ID, true)
	switch {
	case err != nil:
		return Checkpoint{}, err
	case c == nil && len(damaged) > 0:
		e.log.Error("no checkpoint of a run is what was saved", "run", runID, "damaged", len(damaged))
		return Checkpoint{}, &Refusal{Code: CodeDamaged, RunID: runID, Detail: fmt.Sprintf("%d checkpoints are kept, and none is what was saved: its digest is another. Its effects can be decided all the same.", len(damaged))}
	case c == nil:
		return Checkpoint{}, &Refusal{Code: CodeNotFound, RunID: runID, Detail: "The run has no checkpoint."}
	}
	out := Checkpoint{CheckpointInfo{Turn: c.Turn, SavedAt: c.SavedAt.Time}, []byte(c.State), []byte(c.Occurrences), nil}
	for _, d := range damaged {
		e.log.Error("a checkpoint is not what was saved; an earlier one is read", "run", runID, "turn", d.Turn)
		out.Skipped = append(out.Skipped, CheckpointInfo{Turn: d.Turn, SavedAt: d.SavedAt.Time, Damaged: true})
	}
	return out, nil
}
