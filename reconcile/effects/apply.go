package effects

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/runs"
	"quittance/ledger/system"
)

// Apply decides begins and finishes. Answers come in the order of ops; an error
// means that nothing is known to have been recorded. Calls that run at the same time
// share a commit; a call that is alone does not wait for others.
func (e *Engine) Apply(ctx context.Context, ops []Op) ([]Answer, error) {
	p := &pending{done: make(chan struct{}), ops: make([]*prepared, len(ops))}
	answers := make([]Answer, len(ops))
	live := false
	for i, op := range ops {
		p.ops[i] = e.prepare(op)
		p.ops[i].answer = &answers[i]
		if r := p.ops[i].refusal; r != nil {
			answers[i].Refusal = r
		} else {
			live = true
		}
	}
	if !live {
		return answers, nil
	}
	if err := e.submit(ctx, p); err != nil {
		return nil, err
	}
	return answers, nil
}

const (
	// committers is how many transactions carry shared calls at a time: while one
	// waits for its disk write the next gathers. More only split the batches.
	committers = 2
	// batchLimit bounds a batch, so that one slow commit cannot grow the next without
	// end.
	batchLimit = 256
)

// pending is one call of Apply on its way into a shared transaction.
type pending struct {
	ops  []*prepared
	err  error
	done chan struct{}
}

// submit puts the call into the queue and waits for its commit. When a committer is
// free it starts at once; what comes while all are at work is carried by whoever is
// free next.
func (e *Engine) submit(ctx context.Context, p *pending) error {
	select {
	case e.queue <- p:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// A caller that goes away must not stop what others wait for.
	e.start(context.WithoutCancel(ctx))
	<-p.done
	return p.err
}

// start sets one more committer to work, unless all are.
func (e *Engine) start(ctx context.Context) {
	select {
	case e.committers <- struct{}{}:
		go e.serve(ctx)
	default:
	}
}

// serve commits what is queued, a batch at a time, until nothing is.
func (e *Engine) serve(ctx context.Context) {
	for {
		batch := e.gather()
		if len(batch) == 0 {
			break
		}
		e.commit(ctx, batch)
		for _, p := range batch {
			close(p.done)
		}
	}
	<-e.committers
	// Who came between the last look and now found all committers at work.
	if len(e.queue) > 0 {
		e.start(ctx)
	}
}

// gather takes what is queued, at most a batch.
func (e *Engine) gather() (batch []*pending) {
	for n := 0; n < batchLimit; {
		select {
		case p := <-e.queue:
			batch = append(batch, p)
			n += len(p.ops)
		default:
			return batch
		}
	}
	return batch
}

// commit decides a batch in one transaction. When the batch cannot be committed as
// a whole, each call is tried on its own, so that one bad call fails alone.
func (e *Engine) commit(ctx context.Context, batch []*pending) {
	var ops []*prepared
	for _, p := range batch {
		ops = append(ops, p.ops...)
	}
	if len(ops) == 1 {
		if done, err := e.fastBegin(ctx, ops[0]); done || err != nil {
			batch[0].err = err
			return
		}
	}
	err := e.together(ctx, ops)
	if err == nil {
		return
	}
	if len(batch) == 1 {
		batch[0].err = err
		return
	}
	e.log.Warn("a shared transaction failed; its calls are tried one by one", "calls", len(batch), "error", err)
	for _, p := range batch {
		p.err = e.together(ctx, p.ops)
	}
}

// together decides ops in one transaction, in their order.
func (e *Engine) together(ctx context.Context, ops []*prepared) error {
	err := e.attempt(ctx, ops, false)
	if ledger.Constraint(err) == "effects_reference" || errors.Is(err, store.ErrChanged) {
		// A reference that already proves another effect: look before, this time.
		err = e.attempt(ctx, ops, true)
	}
	return err
}

func (e *Engine) attempt(ctx context.Context, ops []*prepared, careful bool) error {
	var w *work
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		for _, p := range ops {
			if p.refusal == nil {
				*p.answer = Answer{}
			}
		}
		w = e.work(ctx, tx)
		return w.apply(ctx, ops, careful)
	})
	if err == nil {
		w.tell()
	}
	return err
}

// apply reads what the ops speak about, decides each in its order, and writes.
func (w *work) apply(ctx context.Context, ops []*prepared, careful bool) error {
	var names []runName
	var ids []string
	for _, p := range ops {
		switch {
		case p.refusal != nil:
		case p.Finish != nil && p.Finish.EffectID != "":
			ids = append(ids, p.Finish.EffectID)
		default:
			names = append(names, runName{p.account(), p.runID()})
		}
	}
	if err := w.lock(ctx, names, ids, nil); err != nil {
		return err
	}
	if behind, err := w.checkPositions(ctx, ops); err != nil || behind {
		return err
	}
	if err := w.expireLeases(ctx); err != nil {
		return err
	}
	calls, err := w.loadNamed(ctx, ops, ids)
	if err != nil {
		return err
	}
	if err := w.releaseDue(ctx); err != nil {
		return err
	}
	if err := w.claimsFor(ctx, ops, calls); err != nil {
		return err
	}
	owned, err := w.ownedReferences(ctx, ops, calls, careful)
	if err != nil {
		return err
	}
	for i, p := range ops {
		if p.refusal != nil {
			continue
		}
		if p.Begin != nil {
			err = w.begin(ctx, p, calls[i])
		} else {
			err = w.finish(ctx, p, calls[i], owned)
		}
		if err != nil {
			return err
		}
	}
	w.dropUnused()
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.answer(ctx, ops)
}

// checkPositions compares every log position that the callers returned with the
// log. One that names an event this database does not hold opens a log gap; while
// one is open and not acknowledged, nobody is told anything but that.
func (w *work) checkPositions(ctx context.Context, ops []*prepared) (behind bool, err error) {
	var runs, ids []int64
	shown := map[*prepared]int64{} // the run each position belongs to; 0: there is no such run
	for _, p := range ops {
		if p.pos == nil {
			continue
		}
		shown[p] = 0
		if f := p.Finish; f != nil && f.EffectID != "" {
			shown[p] = p.pos.run // also when the effect itself is what was lost
		} else if r := w.names[runName{p.account(), p.runID()}]; r != nil {
			shown[p] = r.ID
		}
		runs, ids = append(runs, shown[p]), append(ids, p.pos.id)
	}
	if len(shown) > 0 && !w.sys.Behind() {
		found, err := store.Events(ctx, w.tx, runs, ids)
		if err != nil {
			return false, err
		}
		for p, run := range shown {
			if !p.pos.holds(found[p.pos.id], run) {
				who := fmt.Sprintf("run %q", p.runID())
				if f := p.Finish; f != nil && f.EffectID != "" {
					who = "the worker of effect " + f.EffectID
				}
				if err := w.gapFound(ctx, who); err != nil {
					return false, err
				}
				break
			}
		}
	}
	if !w.sys.Behind() {
		return false, nil
	}
	for _, p := range ops {
		if p.refusal == nil {
			p.answer.Refusal = logBehind()
		}
	}
	return true, nil
}

func (w *work) gapFound(ctx context.Context, who string) error {
	if w.sys.InGap() {
		return nil // already known, and acknowledged
	}
	if err := system.FindGap(ctx, w.tx, who+" showed a log position that this database does not hold"); err != nil {
		return err
	}
	w.e.log.Error("log gap: an agent showed a log position that this database does not hold; nothing is released until a person acknowledges it", "shown_by", who)
	w.hints[""] = struct{}{}
	sys, err := system.Read(ctx, w.tx)
	w.sys = sys
	return err
}

func logBehind() *Refusal {
	return &Refusal{Code: CodeLogBehind, Detail: "This server's log has lost events. Nothing is released until a person acknowledges it."}
}

// loadNamed computes the keys of the calls and reads every effect the ops name.
func (w *work) loadNamed(ctx context.Context, ops []*prepared, ids []string) ([]call, error) {
	calls := make([]call, len(ops))
	in, err := w.keying(ctx)
	if err != nil {
		return nil, err
	}
	want := store.Wanted{IDs: ids}
	for i, p := range ops {
		if p.refusal != nil || p.Finish != nil && p.Finish.EffectID != "" {
			continue
		}
		r := w.names[runName{p.account(), p.runID()}]
		if r == nil {
			p.refuse(&Refusal{Code: CodeNotFound, RunID: p.runID(), Detail: "There is no such run. Open it with PUT /v1/runs/{run_id} first."})
			continue
		}
		if f := p.Finish; f != nil && f.Key != "" {
			calls[i] = keyOf(r.RunID, f.Key)
			want.Runs, want.Keys = append(want.Runs, r.ID), append(want.Keys, calls[i].minted[:])
		} else {
			opened, err := w.e.policyOf(ctx, w.tx, r.Policy)
			if err != nil {
				return nil, err
			}
			var refusal *Refusal
			if b := p.Begin; b != nil {
				calls[i], refusal = w.e.callOf(r.Row, opened, in, p, b.Tool, b.Arguments, b.Occurrence, b.Key)
			} else {
				calls[i], refusal = w.e.callOf(r.Row, opened, in, p, f.Tool, f.Arguments, f.Occurrence, "")
			}
			if refusal != nil {
				p.refuse(refusal)
				continue
			}
		}
		want.Runs, want.Keys = append(want.Runs, r.ID), append(want.Keys, calls[i].key[:])
		if p.Begin != nil && p.Begin.Occurrence > 1 && p.Begin.Key == "" {
			want.Runs, want.Keys = append(want.Runs, r.ID), append(want.Keys, calls[i].before[:])
		}
	}
	for id, r := range w.runs {
		if r.State == runs.Paused {
			want.Due = append(want.Due, id)
		}
	}
	return calls, w.load(ctx, want)
}

// refuse answers an op with a refusal and takes it out of the batch's work. The
// refusal stands for this try of the transaction only.
func (p *prepared) refuse(r *Refusal) { p.answer.Refusal = r }

// open tells whether an op is still to be decided.
func (p *prepared) open() bool { return p.refusal == nil && p.answer.Refusal == nil }

// releaseDue makes visible, in the paused runs at hand, the decisions whose time has
// come, so that no answer waits for the loops.
func (w *work) releaseDue(ctx context.Context) error {
	released := false
	for _, x := range w.effects {
		if x.run != nil && x.run.State == runs.Paused && w.mayRelease(x) {
			if _, err := w.step(x, Event{Kind: KRelease}, "released", nil, nil); err != nil {
				return err
			}
			released = true
		}
	}
	if !released {
		return nil
	}
	return w.flush(ctx)
}

// mayRelease tells whether a decision may become visible now: its hold is over, the
// moment has passed, and nobody has to confirm it.
func (w *work) mayRelease(x *effect) bool {
	return !x.Released && !x.ReleaseAt.IsZero() && !x.ReleaseAt.After(w.now) && !x.Early
}
