package effects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quittance/ledger"
	"quittance/ledger/logfiles"
	"quittance/ledger/runs"
)

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
			if _, err := w.openRuns(ctx, o.Account, []string{o.RunID}, o.Agent, map[string]string{"agent": o.Agent}); err != nil {
				return nil, err
			}
			r = w.names[runName{o.Account, o.RunID}]
		}
		refusal, err := w.take(ctx, r, o.Worker, o.AttemptID, length, &lease)
		// Someone who waits for a living holder is no incident: only what a person will
		// ask about is kept.
		if refusal != nil && refusal.Code != CodeRunHeld && err == nil {
			w.refuse(r, runs.Refusal{Call: "start", Reason: string(refusal.Code), Worker: o.Worker, AttemptID: o.AttemptID})
		}
		return refusal, err
	})
	if err != nil {
		return Lease{}, err
	}
	return lease, nil
}

// openRuns opens the runs of an account that there are not yet, and locks all of them. It
// says which ones it opened.
func (w *work) openRuns(ctx context.Context, account int64, ids []string, agent string, cause map[string]string) (opened []*run, err error) {
	added, err := runs.Add(ctx, w.tx, account, ids, agent, policyDigest(w.e.Policy()), w.now)
	if err != nil {
		return nil, err
	}
	names := make([]runName, len(ids))
	for i, id := range ids {
		names[i] = runName{account, id}
	}
	if err := w.lock(ctx, names, nil, nil); err != nil {
		return nil, err
	}
	for _, n := range names {
		r := w.names[n]
		if r == nil {
			return nil, fmt.Errorf("couldn't open run %q", n.name)
		}
		if !slices.Contains(added, n.name) {
			continue
		}
		if err := w.runEvent(r, "run_opened", cause); err != nil {
			return nil, err
		}
		opened = append(opened, r)
	}
	return opened, nil
}

// take gives the run's lease, or says why not. lease is complete once the work is
// committed.
func (w *work) take(ctx context.Context, r *run, worker, attempt string, length time.Duration, lease *Lease) (*Refusal, error) {
	again := r.LeaseHash != nil && r.LeaseWorker == worker && r.LeaseAttempt == attempt
	switch {
	case r.State.Closed():
		return r.refusal(CodeRunClosed, fmt.Sprintf("The run is %s; its id is not used again.", r.State)), nil
	case r.LeaseHash != nil && !again:
		refusal := r.refusal(CodeRunHeld, "Another worker holds this run.")
		refusal.HeldBy, refusal.RetryAfter = r.LeaseWorker, r.LeaseUntil.Sub(w.now)
		return refusal, nil
	case r.State == runs.Paused && !again:
		return paused(r), nil
	}
	// Whoever writes a log file acts for the runs in it.
	if path, err := logfiles.Holder(ctx, w.tx, r.ID); path != "" || err != nil {
		refusal := r.refusal(CodeRunHeld, "This run lives in a log file: the agent that writes the file acts for it.")
		refusal.HeldBy, refusal.RetryAfter = path, time.Minute
		return refusal, err
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
	cp, damaged, err := runs.LastCheckpoint(ctx, w.tx, r.ID, false)
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
	switch {
	case cp != nil:
		lease.Checkpoint = &CheckpointInfo{Turn: cp.Turn, SavedAt: cp.SavedAt.Time}
	case len(damaged) > 0: // reading it says so: a run must not be begun anew by mistake
		lease.Checkpoint = &CheckpointInfo{Turn: damaged[0].Turn, SavedAt: damaged[0].SavedAt.Time, Damaged: true}
	}
	return nil, nil
}

// Claim gives the lease of any ready run of the agents, the one that has been ready
// longest; nil when there is none. The same worker and attempt_id get the same run
// again while they hold it. With a wait it answers when a run becomes ready, or with nil
// after it; a hint that is lost only makes it late.
func (e *Engine) Claim(ctx context.Context, c Claim) (*Lease, error) {
	length, refusal := leaseLength(c.Lease)
	if len(c.Agents) == 0 || len(c.Agents) > 100 {
		refusal = firstRefusal(refusal, invalid("/agents", "It names 1 to 100 agents."))
	}
	if r := firstRefusal(refusal, limited("/worker", c.Worker, 256), limited("/attempt_id", c.AttemptID, 256)); r != nil {
		return nil, r
	}
	until := time.Now().Add(min(c.Wait, MaxWait))
	hints, cancel := e.hub.Subscribe(readyTopic(c.Account))
	defer cancel()
	lease, err := e.claim(ctx, c, length)
	if err == nil && lease == nil {
		// A decision may have become visible that the loops have not met yet.
		if err = e.releaseLoop(ctx); err == nil {
			lease, err = e.claim(ctx, c, length)
		}
	}
	for err == nil && lease == nil && time.Now().Before(until) {
		if err = rest(ctx, hints, min(time.Until(until), reread)); err == nil {
			lease, err = e.claim(ctx, c, length)
		}
	}
	return lease, err
}

// readyTopic changes when a run of the account becomes ready.
func readyTopic(account int64) string { return fmt.Sprintf("ready:%d", account) }

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
