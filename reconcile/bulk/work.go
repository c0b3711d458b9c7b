package bulk

import (
	"context"
	"errors"

	"quittance/ledger"
	"quittance/ledger/desk"
	store "quittance/ledger/effects"
	"quittance/reconcile/effects"
)

// Outcomes of a row.
const (
	Done    = "done"
	Waits   = "waits"    // for a second person
	LeftOut = "left_out" // refused: changed meanwhile, or decided by somebody else
)

// decideAll gives the verdict on every row that has none yet. It may be cut off
// anywhere and run again: a row's decision has an id of its own, by which the engine
// knows it.
func (s *Service) decideAll(ctx context.Context, set string) error {
	for {
		b, err := desk.BulkByID(ctx, s.db, set) // each time: it may be taken back half-way
		if errors.Is(err, ledger.ErrNotFound) || err == nil && b.OrderedAt.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := desk.BulkToDo(ctx, s.db, set, false, batch)
		if err != nil {
			return err
		}
		if len(rows) == 0 && !b.UndoneAt.IsZero() {
			return s.undoAll(ctx, set) // what was decided after the other job had looked
		}
		if len(rows) == 0 {
			return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return desk.FinishBulk(ctx, tx, set) })
		}
		done, err := s.decideSome(ctx, b, rows)
		if err != nil {
			return err
		}
		if err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return desk.BulkDone(ctx, tx, set, done) }); err != nil {
			return err
		}
	}
}

func (s *Service) decideSome(ctx context.Context, b desk.Bulk, rows []desk.Frozen) ([]desk.BulkRow, error) {
	out := make([]desk.BulkRow, len(rows))
	if !b.UndoneAt.IsZero() {
		for i, r := range rows {
			out[i] = desk.BulkRow{Effect: r.Effect, Outcome: LeftOut, Detail: "The order was taken back first."}
		}
		return out, nil
	}
	who, err := s.actor(ctx, b.Person)
	if errors.Is(err, errNoRight) {
		for i, r := range rows {
			out[i] = desk.BulkRow{Effect: r.Effect, Outcome: LeftOut, Detail: errNoRight.Error()}
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]effects.Decide, len(rows))
	for i, r := range rows {
		list[i] = effects.Decide{
			EffectID: r.Effect, DecisionID: decisionID(b), Version: r.Version, Verdict: effects.Verdict(b.Verdict),
			Note: b.Name + ": " + b.Note,
		}
	}
	results, err := s.engine.Decide(ctx, who, list)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		out[i] = desk.BulkRow{Effect: rows[i].Effect, Outcome: Done}
		switch {
		case r.Refusal != nil:
			out[i].Outcome, out[i].Detail = LeftOut, r.Refusal.Detail
		case r.Answer.Waits:
			out[i].Outcome = Waits
		}
	}
	return out, nil
}

// undoAll takes back what was decided and not used.
func (s *Service) undoAll(ctx context.Context, set string) error {
	b, err := desk.BulkByID(ctx, s.db, set)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && b.UndoneAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	who, notNow := s.actor(ctx, b.UndoneBy)
	if notNow != nil && !errors.Is(notNow, errNoRight) {
		return notNow
	}
	for {
		rows, err := desk.BulkToDo(ctx, s.db, set, true, batch)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return desk.FinishBulk(ctx, tx, set) })
		}
		for _, r := range rows {
			word := notBack + errNoRight.Error()
			if notNow == nil {
				if word, err = s.undoOne(ctx, who, b, r); err != nil {
					return err
				}
			}
			err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return desk.BulkUndone(ctx, tx, set, r.Effect, word) })
			if err != nil {
				return err
			}
		}
	}
}

// undoOne takes one row back, if its decision is still this order's.
func (s *Service) undoOne(ctx context.Context, who effects.Person, b desk.Bulk, r desk.Frozen) (string, error) {
	v, err := s.engine.Effect(ctx, 0, r.Effect)
	if err != nil {
		return "", err
	}
	past, err := store.Decisions(ctx, s.db, []string{r.Effect})
	if err != nil {
		return "", err
	}
	// What is decided after this was read has another version, and is refused.
	if !stands(past[r.Effect], decisionID(b)) {
		return notBack + "it was decided otherwise meanwhile", nil
	}
	if v.Proposal != nil {
		var res []effects.DecideResult
		res, err = s.engine.Decide(ctx, who, []effects.Decide{{EffectID: r.Effect, Version: v.Version, Verdict: effects.VerdictSendBack, Note: b.UndoNote}})
		if err == nil && res[0].Refusal != nil {
			err = res[0].Refusal
		}
	} else {
		_, err = s.engine.Undo(ctx, who, effects.Undo{EffectID: r.Effect, Version: v.Version, Note: b.UndoNote})
	}
	if refusal, refused := errors.AsType[*effects.Refusal](err); refused {
		return notBack + refusal.Detail, nil
	}
	return "taken back", err
}

// notBack begins why a row was not taken back.
const notBack = "not taken back: "

// decisionID is by what the engine knows an order's verdict on each of its effects.
func decisionID(b desk.Bulk) string { return "bulk-" + b.ID }

// stands tells whether what is decided of an effect, or waits for a second person, is
// the verdict of that id, also once somebody has confirmed it.
func stands(past []store.Decision, id string) (ours bool) {
	for _, d := range past {
		switch d.Act {
		case "propose":
			ours = d.DecisionID == id
		case "decide":
			ours = ours || d.DecisionID == id
		case "send_back", "undo", "reopen":
			ours = false
		}
	}
	return ours
}
