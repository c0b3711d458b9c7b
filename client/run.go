package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// RunOptions say who opens a run and for how long it is held at a time.
type RunOptions struct {
	Agent        string // what kind of agent this is; a pool claims by it
	Worker       string // this process; the client's own name for it when empty
	LeaseSeconds int    // 2 to 600; 60 when 0
	// WaitHeld is how long Open waits for a run that another process holds, such as
	// the lease of this agent's own process that was killed. 0 does not wait.
	WaitHeld time.Duration
	// WaitReady is how long Claim waits for a run to become ready. 0 does not wait.
	WaitReady time.Duration
	// AttemptID is given by whoever holds the run for this process already, with the
	// Worker that it is held as: the same lease is then given again. See [Handed].
	AttemptID string
}

// ErrNothingReady is returned by [Client.Claim] when no run waits for a worker.
var ErrNothingReady = errors.New("no run is ready")

// Run is a run that this process holds. Its lease is renewed in the background until
// [Run.Release] or [Run.Close]. Safe for concurrent use.
type Run struct {
	c     *Client
	id    string
	opts  RunOptions
	calls *occurrences

	mu         sync.Mutex
	lease      Lease
	attempt    string // by which the lease is given again
	held       bool
	over       chan struct{} // closed when the run is not held any more
	leaving    bool          // being released or closed: no new call is begun
	position   string
	volatile   map[string][]string
	checkpoint *Checkpoint
	stopBeat   context.CancelFunc
	performing int           // calls under way
	idle       chan struct{} // closed when there are none; nil while nobody waits for that
}

// Open takes the lease of a run, which is new or was left by another process, and
// reads its last checkpoint. Outcomes that an earlier process could not deliver are
// delivered first.
//
// Errors: [*Paused] (ErrPaused), ErrRunHeld, ErrRunClosed and ErrLogBehind wrap the
// server's [*Problem].
func (c *Client) Open(ctx context.Context, runID string, o RunOptions) (*Run, error) {
	c.deliverer.flush(ctx)
	r := newRun(c, runID, o)
	got, err := r.acquire(ctx)
	for end := time.Now().Add(o.WaitHeld); errors.Is(err, ErrRunHeld) && time.Now().Before(end) && ctx.Err() == nil; {
		sleep(ctx, min(holdPause, time.Until(end)))
		got, err = r.acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := r.resume(ctx, got); err != nil {
		return nil, err
	}
	return r, nil
}

// readyPoll is how long the server holds one claim while no run is ready.
const readyPoll = 30 * time.Second

// Claim takes the lease of any run of one of the kinds of agent that is ready to go
// on; [ErrNothingReady] when there is none within WaitReady. Where ctx ends while it waits
// a run may have been given that nobody heard of: a claim with the same AttemptID and
// Worker gets it again.
func (c *Client) Claim(ctx context.Context, o RunOptions, agents ...string) (*Run, error) {
	c.deliverer.flush(ctx)
	in := ClaimRequest{Agents: agents, Worker: c.workerOf(o), AttemptID: o.AttemptID, LeaseSeconds: o.LeaseSeconds}
	o.AttemptID = ""
	if in.AttemptID == "" {
		in.AttemptID = newID()
	}
	var out RunLease
	var sent time.Time
	for end := time.Now().Add(o.WaitReady); ; {
		call := &request{method: http.MethodPost, path: "/v1/runs/claim", in: in, out: &out}
		if wait := min(time.Until(end), readyPoll).Truncate(time.Millisecond); wait > 0 {
			call.wait = wait
			call.path += "?wait=" + wait.String()
		}
		if err := c.retry(ctx, c.patience, func(ctx context.Context) error {
			sent = time.Now()
			return c.once(ctx, call)
		}); err != nil {
			return nil, fmt.Errorf("couldn't claim a run: %w", asPaused("", err))
		}
		if call.status != http.StatusNoContent {
			break
		}
		if !time.Now().Before(end) {
			return nil, ErrNothingReady
		}
	}
	// The lease is younger than its request, which was held: that only makes the first
	// heartbeat come early.
	o.Agent = out.Agent
	r := newRun(c, out.RunID, o)
	r.took(out, in.AttemptID, sent)
	if err := r.resume(ctx, out); err != nil {
		return nil, err
	}
	return r, nil
}

// holdPause is how often a held run is asked for again: its holder may release it
// long before its lease ends.
const holdPause = time.Second

func newRun(c *Client, id string, o RunOptions) *Run {
	if o.LeaseSeconds == 0 {
		o.LeaseSeconds = 60
	}
	o.Worker = c.workerOf(o)
	return &Run{c: c, id: id, opts: o, calls: newOccurrences(nil)}
}

func (c *Client) workerOf(o RunOptions) string {
	if o.Worker != "" {
		return o.Worker
	}
	return c.worker
}

// acquire asks for the lease. Every try carries one attempt id, so a lost answer is
// given again instead of locking this process out by its own lease.
func (r *Run) acquire(ctx context.Context) (RunLease, error) {
	in := OpenRequest{
		Agent: r.opts.Agent, Worker: r.opts.Worker, AttemptID: r.opts.AttemptID,
		LeaseSeconds: r.opts.LeaseSeconds, LogPosition: r.Position(),
	}
	r.opts.AttemptID = "" // handed over once: a lease after it is this process's own
	if in.AttemptID == "" {
		in.AttemptID = newID()
	}
	var out RunLease
	var sent time.Time
	err := r.c.retry(ctx, r.c.patience, func(ctx context.Context) error {
		sent = time.Now()
		return r.c.once(ctx, &request{method: http.MethodPut, path: r.path(""), in: in, out: &out})
	})
	if err != nil {
		return out, fmt.Errorf("couldn't open run %q: %w", r.id, asPaused(r.id, err))
	}
	r.took(out, in.AttemptID, sent)
	return out, nil
}

// took stores a lease whose request was sent at the given time.
func (r *Run) took(l RunLease, attempt string, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease, r.attempt, r.held, r.leaving, r.volatile = l.Lease, attempt, true, false, l.Volatile
	r.over = make(chan struct{})
	if l.LogPosition != "" {
		r.position = l.LogPosition
	}
	if r.stopBeat != nil {
		r.stopBeat()
	}
	ctx, stop := context.WithCancel(r.c.deliverer.ctx) // ends with the client
	r.stopBeat = stop
	go r.beat(ctx, l.Lease, sent)
}

// resume reads the checkpoint that a lease announced. Without it the run cannot go on
// where it stood, so the lease is given back.
func (r *Run) resume(ctx context.Context, l RunLease) error {
	if l.Checkpoint == nil {
		return nil
	}
	var saved Checkpoint
	err := r.c.do(ctx, &request{method: http.MethodGet, path: r.path("/checkpoint"), out: &saved})
	if err != nil {
		_ = r.Release(context.WithoutCancel(ctx))
		return fmt.Errorf("couldn't read the checkpoint of run %q: %w", r.id, err)
	}
	r.checkpoint = &saved
	r.calls = newOccurrences(saved.Occurrences)
	return nil
}

// ID is the run's name.
func (r *Run) ID() string { return r.id }

// Epoch rises with each holder of the run.
func (r *Run) Epoch() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lease.Epoch
}

// Position is the last log position an answer gave.
func (r *Run) Position() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position
}

func (r *Run) moved(position string) {
	if position == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = position
}

func (r *Run) path(rest string) string { return "/v1/runs/" + escape(r.id) + rest }

// State unmarshals the last checkpoint into v. ok is false, and v unchanged, when
// nothing was saved yet.
func (r *Run) State(v any) (ok bool, err error) {
	r.mu.Lock()
	saved := r.checkpoint
	r.mu.Unlock()
	if saved == nil {
		return false, nil
	}
	if err := json.Unmarshal(saved.State, v); err != nil {
		return false, fmt.Errorf("couldn't read the state of run %q: %w", r.id, err)
	}
	return true, nil
}

// Turn is the turn of the last checkpoint, 0 when nothing was saved yet.
func (r *Run) Turn() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checkpoint == nil {
		return 0
	}
	return r.checkpoint.Turn
}

// Checkpoint saves state as the run's state after the given turn, with the count of
// the calls that came back, so that a resumed run neither repeats nor skips one. Save
// after a turn is complete, not while its calls are under way.
func (r *Run) Checkpoint(ctx context.Context, turn int64, state any) error {
	raw, err := rawJSON(state)
	if err != nil {
		return fmt.Errorf("couldn't write the state of run %q: %w", r.id, err)
	}
	token, err := r.token()
	if err != nil {
		return err
	}
	in := SaveCheckpoint{Lease: token, State: raw, Occurrences: r.calls.counts(), LogPosition: r.Position()}
	call := &request{method: http.MethodPut, path: fmt.Sprintf("%s/%d", r.path("/checkpoints"), turn), in: in}
	if err := r.c.do(ctx, call); err != nil {
		return fmt.Errorf("couldn't save turn %d of run %q: %w", turn, r.id, r.refused(err))
	}
	r.moved(call.position)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoint = &Checkpoint{Turn: turn, SavedAt: time.Now(), State: raw, Occurrences: in.Occurrences}
	return nil
}

// Close ends the run for good: [RunFinished], [RunFailed] or [RunCancelled]. It is
// refused while an effect is open.
func (r *Run) Close(ctx context.Context, outcome string) error {
	token, err := r.leave(ctx)
	if err != nil {
		return err
	}
	in := CloseRequest{Lease: token, Outcome: outcome, LogPosition: r.Position()}
	if err := r.c.do(ctx, &request{method: http.MethodPost, path: r.path("/close"), in: in}); err != nil {
		r.stay()
		return fmt.Errorf("couldn't close run %q: %w", r.id, r.refused(err))
	}
	r.letGo()
	return nil
}

// Wait returns when the run may go on: at once when it is not paused, else when
// everything was decided and released. Where the lease ended meanwhile it is taken
// again. It waits through outages of the server, until ctx ends. ErrRunClosed when the
// run was closed, ErrRunHeld when another process was quicker.
func (r *Run) Wait(ctx context.Context) error {
	const forever = math.MaxInt64
	for {
		var v RunView
		poll := &request{method: http.MethodGet, path: r.path("?wait=30s"), out: &v, wait: 30 * time.Second}
		err := r.c.retry(ctx, forever, func(ctx context.Context) error { return r.c.once(ctx, poll) })
		if err != nil {
			return fmt.Errorf("couldn't wait for run %q: %w", r.id, err)
		}
		r.moved(v.LogPosition)
		switch v.State {
		case RunPaused:
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		case RunFinished, RunFailed, RunCancelled:
			r.letGo()
			return fmt.Errorf("run %q is %s: %w", r.id, v.State, ErrRunClosed)
		}
		if _, err := r.token(); err == nil && v.State == RunRunning {
			return nil
		}
		_, err = r.acquire(ctx)
		return err
	}
}
