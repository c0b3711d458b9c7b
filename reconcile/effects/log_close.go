package effects

import (
	"context"
	"fmt"
	"slices"

	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/ledger/runs"
)

// logClosing is a line that says that its run has ended.
type logClosing struct {
	run, outcome string
	start        int64
}

// goOn lets the runs of intents go on: a closing that waits is overtaken, and a run that
// was closed is open again. Whoever writes the file acts for the run, and was not asked.
func (l *logReading) goOn(ctx context.Context) error {
	var ids []int64
	for _, it := range l.items {
		if it.p.Begin == nil || it.run == nil || slices.Contains(ids, it.run.ID) {
			continue
		}
		ids = append(ids, it.run.ID)
		if !it.run.State.Closed() {
			continue
		}
		was := it.run.State
		if err := runs.Reopen(ctx, l.tx, it.run.Row, l.now); err != nil {
			return err
		}
		if err := l.runEvent(it.run, "run_reopened", map[string]string{"was": string(was), "line": it.place}); err != nil {
			return err
		}
		l.report.warn(it.span.note("its run was closed; it is open again"))
		l.hint(it.run)
	}
	return logfiles.Closes(ctx, l.tx, l.log.ID, ids, "")
}

// closes notes the runs that lines say have ended, unless an intent stands behind.
func (l *logReading) closes(ctx context.Context) error {
	for _, x := range l.closings {
		r := l.names[runName{l.log.Account, x.run}]
		overtaken := slices.ContainsFunc(l.items, func(it *logItem) bool {
			return it.p.Begin != nil && it.run != nil && it.run == r && it.span.Start > x.start
		})
		if r == nil || r.State.Closed() || overtaken {
			continue
		}
		if err := logfiles.Closes(ctx, l.tx, l.log.ID, []int64{r.ID}, x.outcome); err != nil {
			return err
		}
	}
	return nil
}

// CloseEnded closes the runs whose files say that they have ended, once nothing in them
// is open and every decision was written to the file.
func (e *Engine) CloseEnded(ctx context.Context) error {
	list, err := logfiles.Closing(ctx, e.db, loopBatch)
	if err != nil {
		return err
	}
	for _, x := range list {
		err := e.onRun(ctx, x.Account, x.RunID, "", func(ctx context.Context, w *work, r *run) (*Refusal, error) {
			if still, err := logfiles.MayClose(ctx, w.tx, r.ID); !still || err != nil {
				return nil, err
			}
			return w.closeFileRun(ctx, r, runs.State(x.Closes))
		})
		if err != nil {
			return fmt.Errorf("couldn't close run %q of a log file: %w", x.RunID, err)
		}
	}
	return nil
}

// CloseLogRun is a person's word that a run in a log file has ended: run is its id, or ""
// for that of the lines which name none; outcome is finished, failed or cancelled. As for
// any run, an effect that is open keeps it; permissions that nobody used end with it.
func (e *Engine) CloseLogRun(ctx context.Context, log int64, runID, outcome string) error {
	state := runs.State(outcome)
	if !state.Closed() {
		return invalid("/outcome", "It is finished, failed or cancelled.")
	}
	g, err := logfiles.Known(ctx, e.db, log)
	if err != nil {
		return err
	}
	if g == nil {
		return noLogFile()
	}
	if runID == "" {
		runID = g.RunID
	}
	return e.onRun(ctx, g.Account, runID, "", func(ctx context.Context, w *work, r *run) (*Refusal, error) {
		if r == nil {
			return noRun(runID), nil
		}
		ours, err := logfiles.OfLogs(ctx, w.tx, []int64{r.ID})
		if err != nil {
			return nil, err
		}
		alarmed, err := logfiles.Alarmed(ctx, w.tx, r.ID)
		switch {
		case err != nil:
			return nil, err
		case !ours[r.ID]:
			return r.refusal(CodeNotAllowed, "This run lives in no log file: its agent closes it."), nil
		case alarmed:
			return r.refusal(CodeNotAllowed, "Its log file was changed: acknowledge that first."), nil
		case r.State == state:
			return nil, nil // the answer may have been lost
		case r.State.Closed():
			return r.refusal(CodeRunClosed, fmt.Sprintf("The run is %s.", r.State)), nil
		}
		return w.closeFileRun(ctx, r, state)
	})
}

func noLogFile() *Refusal { return &Refusal{Code: CodeNotFound, Detail: "There is no such log file."} }

func (w *work) closeFileRun(ctx context.Context, r *run, state runs.State) (*Refusal, error) {
	if refusal, err := w.closeEffects(ctx, r, string(state)); refusal != nil || err != nil {
		return refusal, err
	}
	return nil, runs.End(ctx, w.tx, r.Row, state, w.now)
}

// closeEffects ends what is unused in a run that is about to be closed; refused while an
// effect of it is open.
func (w *work) closeEffects(ctx context.Context, r *run, outcome string) (*Refusal, error) {
	open, unused, err := store.Unfinished(ctx, w.tx, r.ID)
	if err != nil {
		return nil, err
	}
	if open > 0 {
		return r.refusal(CodeRunOpen, "An effect of this run is not closed yet."), nil
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
	w.hint(r)
	return nil, w.runEvent(r, "run_closed", map[string]string{"outcome": outcome})
}
