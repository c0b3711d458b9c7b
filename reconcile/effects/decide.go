package effects

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
)

// DecideResult is what became of one verdict: exactly one field is set.
type DecideResult struct {
	Answer  *DecideAnswer
	Refusal *Refusal
}

const (
	noteLimit     = 20_000 // bytes
	decisionLimit = 500    // verdicts in one call
)

// Decide records verdicts, one result each in order. A list with a missing or
// repeated effect is refused whole and changes nothing; otherwise each verdict
// stands alone.
func (e *Engine) Decide(ctx context.Context, p Person, list []Decide) ([]DecideResult, error) {
	if len(list) == 0 || len(list) > decisionLimit {
		return nil, invalid("", "A list holds 1 to %d decisions.", decisionLimit)
	}
	seen := map[string]int{}
	for i := range list {
		id, err := uuid.Parse(list[i].EffectID)
		if err != nil {
			return nil, invalid(fmt.Sprintf("/%d/effect_id", i), "Each decision names its effect.")
		}
		list[i].EffectID = id.String()
		if j, twice := seen[list[i].EffectID]; twice {
			return nil, invalid(fmt.Sprintf("/%d/effect_id", i), "The effect is decided at %d already.", j)
		}
		seen[list[i].EffectID] = i
	}
	out := make([]DecideResult, len(list))
	for i, d := range list {
		a, err := e.decide(ctx, p, d)
		var r *Refusal
		switch {
		case errors.As(err, &r):
			out[i].Refusal = r
		case err != nil:
			return out, err
		default:
			out[i].Answer = &a
		}
	}
	return out, nil
}

func (e *Engine) decide(ctx context.Context, p Person, d Decide) (DecideAnswer, error) {
	result, refusal := e.checkDecide(&d)
	if refusal != nil {
		return DecideAnswer{}, refusal
	}
	var v *verdict
	err := e.onEffect(ctx, d.EffectID, func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		past, err := store.Decisions(ctx, w.tx, []string{x.ID})
		if err != nil {
			return nil, err
		}
		v = &verdict{work: w, Decide: d, by: p, x: x, past: past[x.ID], result: result}
		return v.judge(ctx)
	})
	if ledger.Constraint(err) == "effects_reference" {
		return DecideAnswer{}, &Refusal{Code: CodeConflict, Reason: "reference", EffectID: d.EffectID, Pointer: "/reference",
			Detail: "This reference already proves another effect of the same tool: one record never proves two."}
	}
	if err != nil {
		return DecideAnswer{}, err
	}
	return v.answer, nil
}

func (e *Engine) checkDecide(d *Decide) (kept, *Refusal) {
	if len(d.Note) > noteLimit || len(d.Evidence) > noteLimit {
		return kept{}, invalid("/note", "It is longer than %d bytes.", noteLimit)
	}
	if d.DecisionID != "" {
		if r := limited("/decision_id", d.DecisionID, 256); r != nil {
			return kept{}, r
		}
	}
	if d.Reference != "" {
		if r := limited("/reference", d.Reference, 1024); r != nil {
			return kept{}, r
		}
	}
	switch d.Verdict {
	case VerdictTaken, VerdictNotTaken, VerdictStop, VerdictAllow, VerdictSameAs, VerdictAcknowledge, VerdictSendBack:
	default:
		return kept{}, invalid("/verdict", "It is taken, not_taken, stop, allow, same_as, acknowledge or send_back.")
	}
	if d.Verdict != VerdictTaken && (d.Reference != "" || len(d.Result) > 0) {
		return kept{}, invalid("/verdict", "Only taken carries a reference or a result.")
	}
	if (d.Verdict == VerdictSameAs) != (d.SameAs != "") {
		return kept{}, invalid("/same_as", "It names the other effect, and only for same_as.")
	}
	if d.SameAs != "" {
		id, err := uuid.Parse(d.SameAs)
		if err != nil || id.String() == d.EffectID {
			return kept{}, invalid("/same_as", "It names another effect.")
		}
		d.SameAs = id.String()
	}
	d.Note, d.Evidence = e.words(d.Note), e.words(d.Evidence)
	if len(d.Result) > ResultLimit {
		return kept{}, &Refusal{Code: CodeTooLarge, Pointer: "/result", Detail: fmt.Sprintf("A result a person gives has at most %d bytes.", ResultLimit)}
	}
	return e.keep("/result", "", d.Result)
}

// onEffect runs f on one effect whose run is locked and caught up with time.
func (e *Engine) onEffect(ctx context.Context, id string, f func(ctx context.Context, w *work, x *effect) (*Refusal, error)) error {
	var w *work
	var refusal *Refusal
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		refusal = nil
		w = e.work(ctx, tx)
		if err = w.lock(ctx, nil, []string{id}, nil); err != nil {
			return err
		}
		if w.sys.Behind() {
			refusal = logBehind()
			return nil
		}
		if err = w.load(ctx, store.Wanted{IDs: []string{id}}); err != nil {
			return err
		}
		x := w.effects[id]
		if x == nil {
			refusal = noEffect()
			return nil
		}
		if err = w.catchUp(ctx); err != nil {
			return err
		}
		if x.State == InFlight && !x.Deadline.After(w.now) {
			if _, err = w.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "deadline"}, nil); err != nil {
				return err
			}
		}
		if err = w.lockClaims(ctx, digests(x.claims())...); err != nil {
			return err
		}
		if refusal, err = f(ctx, w, x); err != nil {
			return err
		}
		return w.flush(ctx)
	})
	if err != nil {
		return err
	}
	w.tell()
	if refusal != nil {
		return refusal
	}
	return nil
}
