package effects

import (
	"context"
	"fmt"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
)

// What an answer of a downstream does to its effect: the state table says it, of what
// lookup_answer.go found it to prove.

// event is the answer as the state table sees it.
func (a *answering) event(ctx context.Context) (Event, error) {
	x := a.x
	ev := Event{Kind: KLookup, Hit: a.hit(), Many: a.answer.Free > 1, TwoClaim: a.twoClaim(x), ClaimLost: a.claimLost(x)}
	switch {
	case a.answer.Verdict == lookup.Taken && a.answer.Reversed:
		ev.Found = FoundReversed
	case a.answer.Verdict == lookup.Taken:
		ev.Found = FoundTaken
	case a.answer.Verdict == lookup.NotTaken:
		ev.Found = FoundNotTaken
	}
	for _, h := range a.answer.Hits {
		if !h.Foreign && !h.Possible && !h.Never && h.Reference != "" && x.Reference != "" && h.Reference != x.Reference {
			ev.OtherRef = true
		}
	}
	if n := len(a.q.Attempts); n > 0 && a.q.Attempts[n-1].Begun.After(a.asked.At.Time) {
		ev.AskedEarly = true
	}
	var err error
	if ev.Found == FoundTaken {
		ev.TwoObjects, err = a.twoObjects(ctx, x, a.answer.Reference)
	}
	return ev, err
}

// apply lets the state table say what becomes of the effect.
func (a *answering) apply(ctx context.Context, next lookups.Settled) error {
	before := a.x.Version
	var err error
	if a.shut, err = logfiles.Alarmed(ctx, a.tx, a.x.Run); err != nil {
		return err
	}
	if a.lookup != nil {
		if err := a.prove(ctx); err != nil {
			return err
		}
		if err := a.beforeRelease(); err != nil {
			return err
		}
	}
	if err := a.sameKey(next.Hit); err != nil {
		return err
	}
	if a.x.Version == before && next.Finding != a.plan.Finding {
		// Whoever decides must have seen it.
		return a.record(a.x, "looked_up", map[string]string{"lookup": a.id, "reason": string(a.answer.Reason)})
	}
	return nil
}

// prove applies what the answer proves, with its evidence.
func (a *answering) prove(ctx context.Context) error {
	ev, err := a.event(ctx)
	if err != nil {
		return err
	}
	if known, err := a.toldBefore(ctx, ev); known || err != nil {
		return err
	}
	if a.shut && !a.x.Released && Next(a.x.facts(), ev).Release {
		return nil // the answer is on record; acknowledging the alarm asks again
	}
	x, was := a.x, a.x.Standing
	d := store.Decision{ID: newID(), Effect: x.ID, At: ledger.At(a.now), Act: "decide", By: "look_up", Reference: a.answer.Reference, Note: a.answer.Why}
	m, err := a.step(x, ev, "looked_up", map[string]string{"lookup": a.id, "reason": string(a.answer.Reason)}, func(m Move) {
		if m.By == ByLookup && was.DecidedBy != ByLookup {
			x.Decision = d.ID
			if m.To == Taken {
				x.Reference = a.answer.Reference
				x.setOutcome(a.result, kept{})
			}
		}
	})
	if err != nil {
		return err
	}
	moved := x.State != was.State
	if !moved && m.Contradiction == "" && !(ev.Found != FoundInconclusive && finding(a.answer) != a.plan.Finding) {
		return nil
	}
	d.Evidence = a.evidenceOf(ev)
	a.contradicted(x, m, d.Evidence)
	switch {
	case !moved:
		return nil
	case x.DecidedBy == ByLookup:
		d.Verdict, d.Result = string(ev.Found), a.result.text
	default:
		d.Act, d.Reference, d.About = "reopen", "", was.Decision
	}
	d.Version = x.Version
	a.decisions = append(a.decisions, d)
	return nil
}

// evidenceOf keeps what the answer showed as evidence.
func (a *answering) evidenceOf(ev Event) string {
	verdict := "inconclusive"
	if ev.Found != FoundInconclusive {
		verdict = string(ev.Found)
	}
	return a.observe(store.Evidence{
		Effect: a.x.ID, Source: "look_up", Verdict: verdict, Reference: a.answer.Reference, Seen: storable(a.answer.Why), Data: `{"lookup":"` + a.id + `"}`,
	})
}

// toldBefore tells whether the answer only repeats a contradiction that is on record: the
// same records are no second incident.
func (a *answering) toldBefore(ctx context.Context, ev Event) (bool, error) {
	if Next(a.x.facts(), ev).Contradiction == "" || finding(a.answer) != a.plan.Finding {
		return false, nil
	}
	return store.ContradictedByLookup(ctx, a.tx, a.x.ID)
}

// beforeRelease is the look-up before a person's "not taken" or "stop" becomes visible:
// whatever was found and not named as somebody else's stops it. Nothing found lets it go
// on, also one that was made too early to be released by silence.
func (a *answering) beforeRelease() error {
	x := a.x
	if x.Released || x.DecidedBy != ByPerson || !(x.State == Cleared || x.State == Cancelled) {
		return nil
	}
	late := !a.asked.At.Before(x.Moment.Time)
	switch {
	case a.hit():
		return a.stopRelease()
	case a.clean() && late && x.Early:
		x.Early = false
		a.wait(x)
		if err := a.record(x, "rechecked", map[string]string{"lookup": a.id}); err != nil {
			return err
		}
	}
	if a.clean() && a.rechecks() && a.holdIsOver(x) && !a.shut {
		_, err := a.step(x, Event{Kind: KRelease}, "released", nil, nil)
		return err
	}
	return nil
}

func (a *answering) stopRelease() error {
	x, was := a.x, a.x.Standing
	ev := Event{Kind: KReopen, ClaimLost: a.claimLost(x)}
	m, err := a.step(x, ev, "reopened", map[string]string{"lookup": a.id, "reason": string(a.answer.Reason)}, nil)
	if err != nil || m.Refused {
		return err
	}
	a.decisions = append(a.decisions, store.Decision{
		ID: newID(), Effect: x.ID, At: ledger.At(a.now), Act: "reopen", By: "look_up", Note: a.answer.Why, About: was.Decision,
		Evidence: a.evidenceOf(Event{}), Version: x.Version,
	})
	return nil
}

// sameKey lets the agent send again under the vendor's own key, where the policy says that
// the vendor keeps it and the last look showed nothing.
func (a *answering) sameKey(hit bool) error {
	x, t := a.x, a.tool
	if a.shut || x.State != Interrupted || t.OnUnknown != policy.OnUnknownSameKey || t.VendorKey == nil {
		return nil
	}
	d := store.Decision{ID: newID(), Effect: x.ID, At: ledger.At(a.now), Act: "decide", Verdict: "same_key", By: "vendor_key",
		Note: fmt.Sprintf("The vendor keeps its key for %s, so a repeat with it changes nothing that happened.", t.VendorKey.Life)}
	ev := Event{Kind: KSameKey, Hit: hit, KeyDead: a.keyOutlived(x, t)}
	m, err := a.step(x, ev, "same_key", nil, func(Move) { x.Decision = d.ID })
	if err != nil || m.Refused {
		return err
	}
	d.Evidence = a.observe(store.Evidence{Effect: x.ID, Source: "vendor_key", Verdict: "inconclusive", Seen: d.Note})
	d.Version = x.Version
	a.decisions = append(a.decisions, d)
	return nil
}
