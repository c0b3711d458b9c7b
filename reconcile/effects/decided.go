package effects

import (
	"context"
	"encoding/json"
	"fmt"

	"quittance/ledger"
	store "quittance/ledger/effects"
)

// again gives the first answer to a decision_id once more.
func (v *verdict) again(d store.Decision) (*Refusal, error) {
	if d.Person != v.by.ID || d.Verdict != "" && d.Verdict != string(v.Verdict) {
		return &Refusal{Code: CodeConflict, Reason: "decision_id", EffectID: v.x.ID, Pointer: "/decision_id", Version: v.x.Version,
			Detail: "This decision_id was used for another verdict, or by somebody else."}, nil
	}
	if err := json.Unmarshal([]byte(d.Answer), &v.answer); err != nil {
		return nil, fmt.Errorf("couldn't read a recorded answer: %w", err)
	}
	return nil, nil
}

// already answers a verdict on an effect that is decided; done is false where a new
// decision may still be made.
func (v *verdict) already(ctx context.Context) (r *Refusal, done bool, err error) {
	x := v.x
	if x.State == InFlight || x.State == Interrupted || x.State == Held {
		return nil, false, nil
	}
	same := x.DecidedBy == ByPerson && verdictOf(x) == v.Verdict && x.SameAs == v.SameAs &&
		(v.Reference == "" || v.Reference == x.Reference)
	if same {
		return nil, true, v.agree(ctx)
	}
	// An unused permission may still be decided otherwise; a person's, by who has seen it.
	again := x.State == Cleared && (v.Verdict == VerdictTaken || v.Verdict == VerdictStop)
	if again && (x.DecidedBy != ByPerson || v.Version == x.Version) {
		return nil, false, nil
	}
	r = x.refusal(CodeDecided, "Somebody has decided this already.")
	r.Decided = decidedBy(x.Row, v.past)
	return r, true, nil
}

func verdictOf(x *effect) Verdict {
	switch x.State {
	case Cleared:
		if x.Why == WhyAllowed {
			return VerdictAllow
		}
		return VerdictNotTaken
	case Cancelled:
		return VerdictStop
	case Taken:
		if x.SameAs != "" {
			return VerdictSameAs
		}
		return VerdictTaken
	}
	return ""
}

// agree is the same verdict once more: a confirmation when the first was made too
// early and the moment has passed, a second opinion from somebody else, or a double
// click.
func (v *verdict) agree(ctx context.Context) error {
	x := v.x
	var first store.Decision
	for _, d := range v.past {
		if d.ID == x.Decision {
			first = d
		}
	}
	switch {
	case x.Early && !x.Moment.After(v.now):
		v.answer.Confirmed = true
		x.Early = false
		if at := ledger.At(v.now); x.ReleaseAt.Before(at.Time) {
			x.ReleaseAt = at
		}
		v.wait(x)
		v.recheck(x)
		d := v.row("confirm")
		if err := v.record(x, "confirmed", map[string]any{"decision": d.ID, "person": v.by.ID}); err != nil {
			return err
		}
		v.settle[x.run.ID] = x.run
		v.hint(x.run)
		if err := v.releaseNow(ctx); err != nil {
			return err
		}
		v.finish(d)
	case first.Person != v.by.ID:
		v.answer.Concurring = true
		v.finish(v.row("concur"))
	default:
		v.answer = DecideAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version, ReleaseAt: x.ReleaseAt.Time, Early: x.Early}
	}
	return nil
}
