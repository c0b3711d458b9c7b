package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	store "quittance/ledger/effects"
)

// Undo takes back a decision of a person or a look-up that is not used yet.
func (e *Engine) Undo(ctx context.Context, p Person, u Undo) (DecideAnswer, error) {
	if strings.TrimSpace(u.Note) == "" || len(u.Note) > noteLimit {
		return DecideAnswer{}, noteMissing("/note", "An undo says why.")
	}
	id, err := uuid.Parse(u.EffectID)
	if err != nil {
		return DecideAnswer{}, noEffect()
	}
	var v *verdict
	err = e.onEffect(ctx, id.String(), func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		v = &verdict{work: w, Decide: Decide{Note: e.words(u.Note)}, by: p, x: x}
		if u.Version != 0 && u.Version != x.Version {
			return x.stale(), nil
		}
		allowed := x.Why == WhyAllowed
		d := v.row("undo")
		d.Verdict, d.About = "", x.Decision
		m, err := w.step(x, Event{Kind: KUndo, ClaimLost: w.claimLost(x)}, "undone", map[string]any{"decision": d.ID, "person": p.ID}, nil)
		if err != nil {
			return nil, err
		}
		if m.Refused {
			return x.refusal(CodeNotAllowed, "Only a decision of a person or a look-up that no agent has used yet can be taken back."), nil
		}
		if allowed {
			for _, c := range x.claims() {
				w.drop(c, x.ID)
			}
		}
		w.hint(x.run)
		v.finish(d)
		return nil, nil
	})
	if err != nil {
		return DecideAnswer{}, err
	}
	return v.answer, nil
}

// AddEvidence records what a person saw without deciding.
func (e *Engine) AddEvidence(ctx context.Context, p Person, a AddEvidence) (DecideAnswer, error) {
	seen := strings.TrimSpace(strings.TrimSpace(a.Seen) + "\n" + strings.TrimSpace(a.Note))
	if seen == "" || len(seen) > noteLimit {
		return DecideAnswer{}, noteMissing("/seen", fmt.Sprintf("It says what was seen, in at most %d bytes.", noteLimit))
	}
	id, err := uuid.Parse(a.EffectID)
	if err != nil {
		return DecideAnswer{}, noEffect()
	}
	var out DecideAnswer
	err = e.onEffect(ctx, id.String(), func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		data := ""
		if !a.NextLook.IsZero() {
			b, err := json.Marshal(map[string]time.Time{"next_look": a.NextLook.UTC()})
			if err != nil {
				return nil, err
			}
			data = string(b)
		}
		w.observe(store.Evidence{Effect: x.ID, Source: "person", Person: p.ID, Verdict: "inconclusive", Seen: e.words(seen), Data: data})
		w.hint(x.run)
		out = DecideAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version}
		return nil, nil
	})
	return out, err
}
