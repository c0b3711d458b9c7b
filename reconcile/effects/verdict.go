package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/reconcile/recoveries"
)

// verdict is one decision on its way.
type verdict struct {
	*work
	Decide
	by     Person
	x      *effect
	past   []store.Decision // acts on the effect so far
	result kept
	answer DecideAnswer
}

// judge decides in this order: an answer already given to this decision_id; what is
// said of a contradiction or a waiting verdict; an effect that is decided already;
// the version; the second person; the state table.
func (v *verdict) judge(ctx context.Context) (*Refusal, error) {
	if v.DecisionID != "" {
		for _, d := range v.past {
			if d.DecisionID == v.DecisionID {
				return v.again(d)
			}
		}
	}
	x := v.x
	switch v.Verdict {
	case VerdictAcknowledge:
		return v.acknowledge(ctx)
	case VerdictSendBack:
		return v.sendBack()
	}
	if r, done, err := v.already(ctx); done {
		return r, err
	}
	if v.Version != x.Version {
		return x.stale(), nil
	}
	if strings.TrimSpace(v.Note) == "" {
		return noteMissing("/note", "A decision says what was seen, and where."), nil
	}
	if r, err := v.denied(ctx); r != nil || err != nil {
		return r, err
	}
	if v.Verdict == VerdictTaken && len(v.Result) > 0 {
		if err := v.tool(x).CheckResult(v.Result); err != nil {
			return invalid("/result", "It does not look like what the tool returns: %v.", err), nil
		}
	}
	first, r := v.second()
	if r != nil {
		return r, nil
	}
	if first != nil && v.Reference == "" {
		v.Reference = first.Reference
	}
	ev, r, err := v.event(ctx)
	if r != nil || err != nil {
		return r, err
	}
	if m := Next(x.facts(), ev); m.Refused {
		return v.doesNotFit(ev), nil
	}
	if first == nil && v.needsSecond() {
		return nil, v.propose()
	}
	return nil, v.carryOut(ctx, ev, first)
}

// event is the verdict as the state table sees it.
func (v *verdict) event(ctx context.Context) (Event, *Refusal, error) {
	x := v.x
	ev := Event{Kind: KPerson, Verdict: v.Verdict, TwoClaim: v.twoClaim(x)}
	switch v.Verdict {
	case VerdictTaken:
		var err error
		if ev.TwoObjects, err = v.twoObjects(ctx, x, v.Reference); err != nil {
			return ev, nil, err
		}
	case VerdictAllow:
		open, err := store.OpenOverlap(ctx, v.tx, digests(x.claims()), x.ID)
		if err != nil {
			return ev, nil, err
		}
		ev.OverlapsClosed = !open
	case VerdictSameAs:
		if err := v.readOnly(ctx, missing(v.effects, v.SameAs)); err != nil {
			return ev, nil, err
		}
		o := v.effects[v.SameAs]
		if o == nil || o.Account != x.Account || o.Tool != x.Tool {
			return ev, invalid("/same_as", "There is no such effect of the same tool."), nil
		}
		ev.OtherTaken = o.State == Taken && o.SameAs == ""
	}
	return ev, nil, nil
}

func missing(have map[string]*effect, id string) []string {
	if have[id] != nil {
		return nil
	}
	return []string{id}
}

func (v *verdict) doesNotFit(ev Event) *Refusal {
	x := v.x
	r := x.refusal(CodeNotAllowed, "")
	switch {
	case v.Verdict == VerdictAllow && x.State == Held && !ev.OverlapsClosed:
		r.Detail = "Another effect with the same business key is not closed yet; decide that one first."
	case v.Verdict == VerdictSameAs && x.State == Held:
		r.Detail = "The other effect is not known to have taken effect."
	case x.State == InFlight:
		r.Detail = "An attempt is still performing this effect; its outcome may yet arrive."
	default:
		r.Detail = fmt.Sprintf("%s does not answer an effect that is %s.", v.Verdict, x.State)
	}
	return r
}

// carryOut applies a verdict that nothing stands against. first is the waiting verdict
// that this one confirms, or nil.
func (v *verdict) carryOut(ctx context.Context, ev Event, first *store.Decision) error {
	x, w := v.x, v.work
	d := v.row("decide")
	if first != nil {
		d.About = first.ID
		if v.result.text == "" && first.Result != "" {
			k, r := w.e.keep("/result", "", []byte(first.Result))
			if r != nil {
				return r
			}
			v.result = k
		}
		d.Result = v.result.text
	}
	var other store.Outcome // of the effect it is the same as: what its agent will be told
	if v.Verdict == VerdictSameAs {
		o, err := store.Outcomes(ctx, w.tx, []string{v.SameAs})
		if err != nil {
			return err
		}
		other = o[v.SameAs]
	}
	m, err := w.step(x, ev, "decided", map[string]any{"verdict": v.Verdict, "decision": d.ID, "person": v.by.ID}, func(m Move) {
		x.Decision, x.Reference, x.SameAs = d.ID, d.Reference, v.SameAs
		x.ReleaseAt, x.Early = w.releaseTime(x, v.Verdict)
		switch v.Verdict {
		case VerdictTaken:
			x.setOutcome(v.result, kept{})
		case VerdictSameAs:
			x.texts = store.Texts{Set: true, Result: other.Result}
			x.ResultSize, x.ResultDigest = v.effects[v.SameAs].ResultSize, v.effects[v.SameAs].ResultDigest
		}
	})
	if err != nil {
		return err
	}
	w.recheck(x)
	if v.Verdict == VerdictAllow {
		if err := w.moveClaim(ctx, x); err != nil {
			return err
		}
	}
	w.contradicted(x, m, d.Evidence)
	if err := v.releaseNow(ctx); err != nil {
		return err
	}
	v.finish(d)
	w.hint(x.run)
	return nil
}

// row is the decision as it is recorded.
func (v *verdict) row(act string) store.Decision {
	d := store.Decision{
		ID: newID(), Effect: v.x.ID, DecisionID: v.DecisionID, At: ledger.At(v.now), Act: act, Verdict: string(v.Verdict),
		By: "person", Person: v.by.ID, Note: v.Note, Reference: v.Reference, Result: v.result.text, SameAs: v.SameAs,
		NotOurs: v.NotOurs,
	}
	if v.Evidence != "" {
		d.Evidence = v.observe(store.Evidence{Effect: v.x.ID, Source: "person", Person: v.by.ID, Verdict: evidenceVerdict(v.Verdict), Reference: v.Reference, Seen: v.Evidence})
	}
	return d
}

func evidenceVerdict(v Verdict) string {
	switch v {
	case VerdictTaken, VerdictSameAs:
		return "taken"
	case VerdictNotTaken, VerdictStop:
		return "not_taken"
	}
	return "inconclusive"
}

// finish completes the answer and records the decision with it.
func (v *verdict) finish(d store.Decision) {
	x := v.x
	v.answer.EffectID, v.answer.State, v.answer.Version = x.ID, string(x.State), x.Version
	v.answer.ReleaseAt, v.answer.Early = x.ReleaseAt.Time, x.Early
	if x.Early {
		v.answer.Moment = x.Moment.Time
	}
	d.Version = x.Version
	if b, err := json.Marshal(v.answer); err == nil {
		d.Answer = string(b)
	}
	v.decisions = append(v.decisions, d)
}

// moveClaim gives the business key to an effect that was allowed over another.
func (w *work) moveClaim(ctx context.Context, x *effect) error {
	var free []claim
	for _, c := range x.claims() {
		switch holder := w.claims[string(c.digest)]; holder {
		case x.ID:
		case "":
			free = append(free, c)
		default:
			if err := store.MoveClaim(ctx, w.tx, c.digest, holder, x.ID); err != nil {
				return err
			}
			w.claims[string(c.digest)] = x.ID
		}
	}
	return w.takeAgain(x, free)
}

// acknowledge closes the open contradictions of an effect.
func (v *verdict) acknowledge(ctx context.Context) (*Refusal, error) {
	x := v.x
	switch {
	case x.Contradictions == 0:
		return x.refusal(CodeNotAllowed, "There is no contradiction to acknowledge."), nil
	case v.Version != x.Version:
		return x.stale(), nil
	case strings.TrimSpace(v.Note) == "":
		return noteMissing("/note", "An acknowledgement says what was found."), nil
	}
	d := v.row("acknowledge")
	d.Verdict = ""
	if _, err := store.Acknowledge(ctx, v.tx, x.ID, v.now, v.by.ID, v.Note, v.Recovery); err != nil {
		return nil, err
	}
	if err := recoveries.Acknowledged(ctx, v.tx, x.ID, v.Recovery, v.by.ID, v.Note); err != nil {
		return nil, err
	}
	x.Contradictions = 0
	v.wait(x)
	if err := v.record(x, "acknowledged", map[string]any{"decision": d.ID, "person": v.by.ID, "recovery": v.Recovery}); err != nil {
		return nil, err
	}
	v.settle[x.run.ID] = x.run
	v.hint(x.run)
	v.finish(d)
	return nil, nil
}
