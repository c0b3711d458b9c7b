package effects

import (
	"context"
	"maps"

	store "quittance/ledger/effects"
	"quittance/ledger/runs"
)

// Apply decides begins and finishes. Answers come in the order of ops; an error
// means that nothing is known to have been recorded. Calls that run at the same time
// share a commit; a call that is alone does not wait for others.
func (e *Engine) Apply(ctx context.Context, ops []Op) ([]Answer, error) {
	p := &pending{done: make(chan struct{}), ops: make([]*prepared, 0, len(ops))}
	answers := make([]Answer, len(ops))
	var watched []*prepared
	live := false
	for i, op := range ops {
		x := e.prepare(op)
		x.answer = &answers[i]
		if x.refusal != nil {
			answers[i].Refusal = x.refusal
		}
		if x.Finish != nil && len(watched) > 0 {
			// It may be of a begin that stands before it in the list.
			if err := e.watch(ctx, watched); err != nil {
				return nil, err
			}
			watched = nil
		}
		seen, err := e.watches(ctx, x)
		switch {
		case err != nil:
			return nil, err
		case seen:
			watched = append(watched, x)
			continue
		}
		live = live || x.refusal == nil
		p.ops = append(p.ops, x)
	}
	if err := e.watch(ctx, watched); err != nil {
		return nil, err
	}
	if !live {
		return answers, nil
	}
	if err := e.submit(ctx, p); err != nil {
		return nil, err
	}
	return answers, e.watch(ctx, unknownFinishes(p.ops))
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
	if behind, err := w.behind(ctx, w.shownIn(ops)); err != nil || behind {
		for _, p := range ops {
			if p.refusal == nil {
				p.refuse(logBehind())
			}
		}
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
	if err := w.loadAttempts(ctx, ops, calls); err != nil {
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

// loadAttempts reads the attempts in flight that begins of the batch may repeat.
func (w *work) loadAttempts(ctx context.Context, ops []*prepared, calls []call) error {
	var ids []string
	for i, p := range ops {
		if p.Begin == nil || !p.open() {
			continue
		}
		r := w.names[runName{p.account(), p.runID()}]
		if x := w.keys[runKey{r.ID, string(calls[i].key[:])}]; x != nil && x.State == InFlight {
			ids = append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	last, err := store.LastAttempts(ctx, w.tx, ids)
	maps.Copy(w.last, last)
	return err
}

// refuse answers an op with a refusal and takes it out of the batch's work. The
// refusal stands for this try of the transaction only.
func (p *prepared) refuse(r *Refusal) { p.answer.Refusal = r }

// open tells whether an op is still to be decided.
func (p *prepared) open() bool { return p.refusal == nil && p.answer.Refusal == nil }
