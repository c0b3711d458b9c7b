package effects

import (
	"context"
	"strings"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/payments"
	"quittance/ledger/runs"
	"quittance/ledger/system"
)

// GapView is an open log gap: this database was found not to hold an event that it
// once confirmed.
type GapView struct {
	FoundAt        time.Time
	FoundBy        string
	AcknowledgedAt time.Time // zero: nothing is released
	AcknowledgedBy string
}

// Gap is the open log gap, or nil.
func (e *Engine) Gap(ctx context.Context) (*GapView, error) {
	m, err := system.Read(ctx, e.db)
	if err != nil || m.Gap == 0 {
		return nil, err
	}
	return &GapView{m.FoundAt.Time, m.FoundBy, m.AcknowledgedAt.Time, m.AcknowledgedBy}, nil
}

// FindGap records that the log may have lost events, for a reason that no agent had
// to show: a restored database.
func (e *Engine) FindGap(ctx context.Context, why string) error {
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return system.FindGap(ctx, tx, why) })
	if err == nil {
		e.log.Error("log gap: nothing is released until a person acknowledges it", "found_by", why)
		e.hub.Changed("")
	}
	return err
}

// AcknowledgeGap is a person's word that events may be lost: every lease ends, every
// effect that is in flight, cleared or held becomes interrupted, and fences and
// epochs jump past any number that a lost attempt can have had. Payments in flight become
// unknown.
func (e *Engine) AcknowledgeGap(ctx context.Context, p Person, note string) error {
	if strings.TrimSpace(note) == "" {
		return noteMissing("/note", "An acknowledgement says what happened to the database.")
	}
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := system.AcknowledgeGap(ctx, tx, p.ID, e.words(note))
		if err != nil {
			return err
		}
		if !ok {
			return &Refusal{Code: CodeNotAllowed, Detail: "There is no log gap to acknowledge."}
		}
		m, err := system.Read(ctx, tx)
		if err != nil {
			return err
		}
		if err := payments.InGap(ctx, tx, m.FenceBase); err != nil {
			return err
		}
		w := e.work(ctx, tx)
		ids, err := runs.Unclosed(ctx, tx)
		if err != nil {
			return err
		}
		if err := w.lock(ctx, nil, nil, ids); err != nil {
			return err
		}
		open, err := store.OpenEverywhere(ctx, tx)
		if err != nil {
			return err
		}
		if err := w.load(ctx, store.Wanted{IDs: open}); err != nil {
			return err
		}
		return w.afterGap(ctx)
	})
	if err == nil {
		e.hub.Changed("")
	}
	return err
}

// afterGap makes unknown whatever an attempt that this database lost may have
// changed. Fences and epochs need no write here: whatever begins from now on starts
// above the raised base.
func (w *work) afterGap(ctx context.Context) error {
	for _, r := range w.runs {
		if r.LeaseHash == nil {
			continue
		}
		if err := w.runEvent(r, "lease_log_gap", map[string]any{"epoch": r.Epoch, "worker": r.LeaseWorker}); err != nil {
			return err
		}
		to := runs.Ready
		if r.State == runs.Paused {
			to = runs.Paused
		}
		if err := runs.EndLease(ctx, w.tx, r.Row, "log_gap", to, w.now); err != nil {
			return err
		}
	}
	for _, x := range w.effects {
		if x.run == nil {
			continue
		}
		x.run.paused = true
		again := func(Move) {
			x.Gap = true
			x.Deadline, x.Moment = w.moment(w.tool(x), w.now.Add(w.tool(x).Deadline))
		}
		m, err := w.step(x, Event{Kind: KGap}, "log_gap", nil, again)
		if err == nil && m.Refused && x.State == Interrupted {
			again(m)
			err = w.record(x, "log_gap", nil)
		}
		if err != nil {
			return err
		}
		w.settle[x.run.ID] = x.run
	}
	return w.flush(ctx)
}

// EndGap says that every effect of the time that was lost has been begun again or
// looked at: what is new may run again.
func (e *Engine) EndGap(ctx context.Context, p Person, note string) error {
	if strings.TrimSpace(note) == "" {
		return noteMissing("/note", "Ending a gap says what was looked at.")
	}
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := system.EndGap(ctx, tx, p.ID, e.words(note))
		if err == nil && !ok {
			return &Refusal{Code: CodeNotAllowed, Detail: "There is no acknowledged log gap to end."}
		}
		return err
	})
	if err == nil {
		e.hub.Changed("")
	}
	return err
}
