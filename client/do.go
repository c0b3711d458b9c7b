package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Outcome is what became of a call, performed now or recorded before.
type Outcome struct {
	EffectID  string
	Key       string
	Outcome   string // OutcomeTaken or OutcomeFailed
	Replayed  bool   // nothing was performed: this is the record
	DecidedBy string // of a replay: agent, late_agent, look_up, vendor_key or person
	// Recorded is false when the server could not be told yet (the outcome is in the
	// spool and is delivered in the background), and for a tool that the policy does
	// not guard, of which nothing is recorded.
	Recorded bool

	Stored
}

// Decode unmarshals the result into v.
func (o Outcome) Decode(v any) error {
	if o.Result == nil {
		return fmt.Errorf("the result of %s is not held (%d bytes)", o.EffectID, o.ResultSize)
	}
	return json.Unmarshal(o.Result, v)
}

// Paused is returned when the run may not go on until something is decided. It wraps
// the server's [*Problem] or, where a call of this process is in doubt, what the tool
// returned.
type Paused struct {
	RunID      string
	WaitingFor []WaitingFor
	Cause      error
}

func (p *Paused) Error() string {
	if len(p.WaitingFor) == 0 {
		return fmt.Sprintf("run %q is paused", p.RunID)
	}
	w := p.WaitingFor[0]
	return fmt.Sprintf("run %q is paused: effect %s is %s (%d in all)", p.RunID, w.EffectID, w.Reason, len(p.WaitingFor))
}

// Is makes errors.Is(err, ErrPaused) true.
func (p *Paused) Is(target error) bool { return target == ErrPaused }

// Unwrap is the cause.
func (p *Paused) Unwrap() error { return p.Cause }

// asPaused gives a refusal because of a pause its type and passes others on.
func asPaused(runID string, err error) error {
	if p, ok := errors.AsType[*Problem](err); ok && p.Code == CodeRunPaused {
		return &Paused{RunID: runID, WaitingFor: p.WaitingFor, Cause: err}
	}
	return err
}

// DoOption changes one call of [Run.Do].
type DoOption func(*BeginRequest)

// CallID is the framework's id of this call. The same id with the same arguments,
// in this process, is a retry of one call; without it every call of Do that came back
// makes the next identical one a second call.
func CallID(id string) DoOption { return func(b *BeginRequest) { b.CallID = id } }

// WithKey names the call by a key of the caller's own, within its run. It replaces
// arguments and occurrence: the same key is always the same call.
func WithKey(key string) DoOption { return func(b *BeginRequest) { b.Key = key } }

// WithContext tells people about the call; it is never part of the key.
func WithContext(ctx Context) DoOption { return func(b *BeginRequest) { b.Context = &ctx } }

// Do performs a call exactly when the server clears it, and records what became of it.
// args marshals to a JSON object.
//
// It returns the outcome, replayed or new, and:
//   - nil when the call took effect, or is of a tool that the policy does not guard;
//   - the tool's own error, and nothing else, where the policy only observes the tool;
//   - a [*RefusedError] when it was refused definitely;
//   - a [*Paused] (ErrPaused) when a person or a look-up must find out first. Where the
//     call was performed just now, it wraps what the tool returned;
//   - an error wrapping a [*Problem] for every other refusal (ErrLeaseLost,
//     ErrRunClosed, ErrLogBehind, ErrConflict, ErrCancelled, ErrInFlight);
//   - an error wrapping ErrNoAnswer when the server could not be reached, or
//     ErrArguments when args is no JSON object.
//
// Where Do returns neither an outcome nor a Paused that wraps the tool's own error,
// nothing was performed. A panic in perform is recorded as unknown and goes on.
func (r *Run) Do(ctx context.Context, tool string, args any, perform Perform, opts ...DoOption) (Outcome, error) {
	raw, err := rawJSON(args)
	if err != nil {
		return Outcome{}, fmt.Errorf("couldn't begin %s: %w: %w", tool, ErrArguments, err)
	}
	begin := BeginRequest{RunID: r.id, Tool: tool, Arguments: raw}
	for _, o := range opts {
		o(&begin)
	}
	token, err := r.enter()
	if err != nil {
		return Outcome{}, err
	}
	defer r.exit()
	begin.Lease = token
	perform = actFirst(ctx, begin, perform)

	turn, err := r.takeTurn(&begin)
	if err != nil {
		return Outcome{}, err
	}
	cameBack := false
	defer func() { turn.end(cameBack) }()

	answer, sent, err := r.begin(ctx, &begin, turn)
	if err != nil {
		return Outcome{}, fmt.Errorf("couldn't begin %s: %w", tool, asPaused(r.id, r.refused(err)))
	}
	switch answer.Do {
	case DoReplay:
		cameBack = true
		return replayed(answer)
	case DoPass:
		return pass(ctx, begin, perform)
	}
	out, err := r.perform(ctx, begin, answer, sent, perform)
	cameBack = out.Outcome != ""
	return out, err
}

// takeTurn finds which of its identical calls this is.
func (r *Run) takeTurn(b *BeginRequest) (*turn, error) {
	if b.Key != "" {
		return r.calls.take("key:"+b.Key, b.Key), nil
	}
	r.mu.Lock()
	volatile := r.volatile[b.Tool]
	r.mu.Unlock()
	digest, err := CallDigest(b.Tool, b.Arguments, volatile)
	if err != nil {
		return nil, err
	}
	turn := r.calls.take(digest, b.CallID)
	b.Occurrence = turn.occurrence
	return turn, nil
}

// begin writes the intent. sent is when the request that was answered left, on this
// process's monotonic clock. Every try has the same attempt id: the server gives a
// lost answer again.
func (r *Run) begin(ctx context.Context, b *BeginRequest, t *turn) (a BeginAnswer, sent time.Time, err error) {
	b.AttemptID = t.attemptID
	err = r.c.retry(ctx, r.c.patience, func(ctx context.Context) error {
		now := time.Now()
		b.ClientTime, b.LogPosition = &now, r.Position()
		a, sent = BeginAnswer{}, now
		err := r.c.once(ctx, &request{method: http.MethodPost, path: "/v1/effects", in: b, out: &a})
		if err == nil && !a.understood() {
			return fmt.Errorf("%w: what came back is not begin's answer", ErrNoAnswer)
		}
		return err
	})
	if p, ok := errors.AsType[*Problem](err); err == nil || ok && p.Status < 500 {
		t.answered()
	} else {
		t.unanswered()
	}
	r.moved(a.LogPosition)
	return a, sent, err
}

// perform makes the call, or does not when it is too late, and records the outcome.
func (r *Run) perform(ctx context.Context, b BeginRequest, a BeginAnswer, sent time.Time, perform Perform) (Outcome, error) {
	call := Call{
		EffectID: a.EffectID, Key: a.Key, VendorKey: a.VendorKey,
		Arguments: b.Arguments, Attempt: a.Attempt,
		Deadline: sent.Add(time.Duration(a.PerformWithinMS) * time.Millisecond),
	}
	var out Outcome
	var err error
	record := func(rep report) { out, err = r.record(ctx, a, rep) }
	if a.Observed {
		// Nothing stops it, as nothing would without us: neither a deadline nor a doubt.
		call.Deadline = sent.Add(unguardedDeadline)
		perform.run(ctx, call, record)
		return out, err
	}
	if late := call.Ready(); late != nil {
		record(inDoubt(late))
		return out, err
	}
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	perform.run(ctx, call, record)
	return out, err
}

// record tells the server what became of a call, now or through the spool, and turns
// it into what Do returns.
func (r *Run) record(ctx context.Context, a BeginAnswer, rep report) (Outcome, error) {
	finish := FinishRequest{
		Fence: a.Fence, Outcome: rep.outcome, Reference: rep.reference,
		Result: rep.result, Error: rep.problem, LogPosition: r.Position(),
	}
	// What happened is recorded even though whoever asked for it has gone.
	answer, delivered, err := r.c.deliver(context.WithoutCancel(ctx), spooled{
		RunID: r.id, EffectID: a.EffectID, Key: a.Key, Finish: finish,
	})
	r.moved(answer.LogPosition)
	out := Outcome{EffectID: a.EffectID, Key: a.Key, Recorded: delivered, Stored: Stored{
		Result: rep.result, Error: rep.problem, Reference: rep.reference,
	}}
	switch {
	case rep.outcome == OutcomeTaken:
		out.Outcome = OutcomeTaken
		return out, err
	case rep.outcome == OutcomeFailed, answer.State == "failed":
		// The second: the policy's rule knows this error for a refusal.
		out.Outcome = OutcomeFailed
		refusal, ok := errors.AsType[*RefusedError](rep.err)
		if !ok {
			refusal = &RefusedError{Reason: rep.problem, cause: rep.err}
		}
		return out, errors.Join(refusal, err)
	}
	if a.Observed {
		return Outcome{}, rep.err
	}
	waiting := []WaitingFor{{EffectID: a.EffectID, Reason: "interrupted"}}
	return Outcome{}, &Paused{RunID: r.id, WaitingFor: waiting, Cause: errors.Join(rep.err, err)}
}

// understood tells an answer of begin from other JSON, such as a proxy's.
func (a BeginAnswer) understood() bool {
	return a.Do == DoPass || a.EffectID != "" && (a.Do == DoProceed || a.Do == DoReplay)
}

// pass makes a call that the policy does not guard, a read for instance. Its errors
// are the tool's own and pause nothing.
func pass(ctx context.Context, b BeginRequest, perform Perform) (Outcome, error) {
	result, err := perform(ctx, Call{Arguments: b.Arguments, Attempt: 1, Deadline: time.Now().Add(unguardedDeadline)})
	if err != nil {
		return Outcome{}, err
	}
	r := judge(result, nil)
	return Outcome{Outcome: OutcomeTaken, Stored: Stored{Result: r.result, Reference: r.reference}}, nil
}

// unguardedDeadline is what [Call.Ready] of an unguarded or only observed call goes by:
// none, in effect.
const unguardedDeadline = 24 * time.Hour

// replayed is what was recorded, returned as if the call had been made.
func replayed(a BeginAnswer) (Outcome, error) {
	out := Outcome{
		EffectID: a.EffectID, Key: a.Key, Outcome: a.Outcome, Replayed: true,
		DecidedBy: a.DecidedBy, Recorded: true, Stored: a.Stored,
	}
	if a.Outcome == OutcomeFailed {
		return out, &RefusedError{Reason: a.Error, Replayed: true}
	}
	return out, nil
}
