package effects

import (
	"context"
	"errors"
	"fmt"

	store "quittance/ledger/effects"
	"quittance/ledger/recoveries"
	"quittance/ledger/runs"
)

// flush writes everything that was decided. The order matters: rows and events
// first, then what speaks about them, then claims that fall back, then the runs.
func (w *work) flush(ctx context.Context) error {
	for round := 0; ; round++ {
		if err := w.write(ctx); err != nil {
			return err
		}
		if err := w.letGo(ctx); err != nil {
			return err
		}
		if len(w.withdraw) == 0 {
			break
		}
		if round == 10 {
			return errors.New("couldn't settle the effects that share a business key")
		}
		if err := w.withdrawAllows(ctx); err != nil {
			return err
		}
	}
	return w.settleRuns(ctx)
}

func (w *work) write(ctx context.Context) error {
	for _, x := range w.order {
		if x.isNew {
			x.Intent.Arguments, x.Intent.Context = x.text, x.ctx
			w.batch.Inserts = append(w.batch.Inserts, store.Insert{Intent: x.Intent, Standing: x.Standing, Texts: x.texts})
		} else {
			w.batch.Updates = append(w.batch.Updates, store.Update{ID: x.ID, Was: x.was, Standing: x.Standing, Texts: x.texts})
		}
		x.isNew, x.dirty, x.was, x.texts = false, false, x.Version, store.Texts{}
	}
	w.order = nil
	w.batch.Attempts = w.attempts
	w.attempts = nil
	if err := store.Write(ctx, w.tx, &w.batch); err != nil {
		return err
	}
	for _, v := range w.batch.Events {
		if r := w.runs[v.Run]; r != nil && v.ID > r.last.ID {
			r.last = v
		}
	}
	w.batch = store.Batch{}
	err := store.Record(ctx, w.tx, w.evidence, w.decisions, w.contradictions)
	for _, c := range w.contradictions {
		if err == nil {
			err = recoveries.Suspect(ctx, w.tx, c.Effect, "contradiction", false)
		}
	}
	if err == nil {
		err = runs.Refuse(ctx, w.tx, w.refusals)
	}
	w.evidence, w.decisions, w.contradictions, w.refusals = nil, nil, nil, nil
	if err != nil {
		return err
	}
	return w.schedule(ctx)
}

// settleRuns brings the state of every touched run in line with its effects.
func (w *work) settleRuns(ctx context.Context) error {
	var check []int64
	for id, r := range w.settle {
		if r.State == runs.Paused || r.paused {
			check = append(check, id)
		}
	}
	w.settle = map[int64]*run{}
	if len(check) == 0 {
		return nil
	}
	blocked, err := store.Blocked(ctx, w.tx, check)
	if err != nil {
		return err
	}
	for _, id := range check {
		r := w.runs[id]
		if r.State.Closed() {
			continue
		}
		to := runs.Running
		switch {
		case blocked[id]:
			to = runs.Paused
		case r.LeaseHash == nil:
			to = runs.Ready
		}
		r.paused = false
		if to == r.State {
			continue
		}
		if err := runs.Move(ctx, w.tx, r.Row, to, w.now); err != nil {
			return fmt.Errorf("couldn't settle run %q: %w", r.RunID, err)
		}
		w.hint(r)
		w.hintReady(r)
	}
	return nil
}

// hint wakes those who wait for the run, and open pages, once this is committed.
func (w *work) hint(r *run) { w.hints[topic(r.Row)] = struct{}{} }

// hintReady wakes those who wait for any run to become ready, where this one has.
func (w *work) hintReady(r *run) {
	if r.State == runs.Ready {
		w.hints[readyTopic(r.Account)] = struct{}{}
	}
}

func (w *work) tell() {
	w.e.lookSoon(w.planned)
	if len(w.hints) == 0 {
		return
	}
	topics := make([]string, 0, len(w.hints))
	for t := range w.hints {
		topics = append(topics, t)
	}
	w.e.hub.Changed(topics...)
}

func topic(r *runs.Row) string { return fmt.Sprintf("run:%d", r.ID) }
