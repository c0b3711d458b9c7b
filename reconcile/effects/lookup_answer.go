package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/ledger/lookups"
	"quittance/ledger/recoveries"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
)

// answered stores what a downstream showed about an effect, and what that proves. l is nil
// for a tool that has only its vendor's key. It gives back what was stored: nil where
// somebody else asks by now.
func (e *Engine) answered(ctx context.Context, t *policy.Tool, l *lookup.Lookup, asked lookups.Asked, q lookup.Question, seen lookup.Seen) (*answering, error) {
	for try := 0; ; try++ {
		var a *answering
		err := e.onEffect(ctx, asked.Effect, func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
			a = &answering{work: w, x: x, tool: t, lookup: l, asked: asked, q: q, seen: seen}
			return nil, a.store(ctx)
		})
		// Another effect was closed with the same reference meanwhile: now it owns the record.
		if ledger.Constraint(err) == "effects_reference" && try < 3 {
			continue
		}
		if err != nil || a.id == "" {
			return nil, err
		}
		return a, nil
	}
}

// answering is one answer on its way into the ledger.
type answering struct {
	*work
	x      *effect
	tool   *policy.Tool
	lookup *lookup.Lookup
	asked  lookups.Asked
	q      lookup.Question
	seen   lookup.Seen

	plan   *lookups.Scheduled
	answer lookup.Answer
	id     string // of the look-up as it is recorded: the question's own
	result kept
	shut   bool // the log file of its run was changed: nothing is released
}

func (a *answering) store(ctx context.Context) (err error) {
	if a.plan, err = lookups.Lock(ctx, a.tx, a.x.ID); err != nil {
		return err
	}
	if a.plan == nil || a.plan.AskedBy != a.asked.By {
		return nil // it took so long that somebody else asks by now
	}
	a.id = a.asked.By
	if a.lookup != nil {
		if err := a.judge(ctx); err != nil {
			return err
		}
	}
	next := goOn(a.plan, a.now, a.answer, a.seen.RetryAfter)
	if a.seen.Problem == lookup.Unanswered {
		if err := a.unanswered(ctx, &next); err != nil {
			return err
		}
	}
	next.Finding, next.Hit = a.plan.Finding, a.plan.Hit
	if a.looked() {
		next.Finding, next.Hit = finding(a.answer), a.hit()
	}
	next.Rechecked = a.rechecks() && a.clean()
	if _, err := lookups.Settle(ctx, a.tx, a.asked, next); err != nil {
		return err
	}
	if err := a.apply(ctx, next); err != nil {
		return err
	}
	a.hint(a.x.run)
	return nil
}

// judge asks what the answer proves, under the effect's lock, and records it.
func (a *answering) judge(ctx context.Context) error {
	around, err := lookups.ReadAround(ctx, a.tx, a.x.ID)
	if err != nil {
		return err
	}
	around.Gap, around.Deadline = a.x.Gap, a.x.Deadline // the row may not say so yet
	if a.answer, err = judge(ctx, a.tx, a.tool, a.lookup, around, &a.q, a.seen); err != nil {
		return err
	}
	if a.answer.Verdict == lookup.Taken {
		var r *Refusal
		if a.result, r = a.e.keep("/result", a.x.Tool, a.answer.Result); r != nil {
			return r
		}
	}
	found, err := json.Marshal(Showed{a.answer.Hits, a.answer.Conditions})
	if err != nil {
		return fmt.Errorf("couldn't encode an answer: %w", err)
	}
	read, err := json.Marshal(a.answer.Read)
	if err != nil {
		return fmt.Errorf("couldn't encode an answer: %w", err)
	}
	if a.answer.Reason == lookup.Multiple {
		if err := recoveries.Suspect(ctx, a.tx, a.x.ID, "double", true); err != nil {
			return err
		}
	}
	return lookups.Record(ctx, a.tx, lookups.Answer{
		ID: a.id, Effect: a.x.ID, Cause: a.asked.Cause, AskedAt: a.asked.At, AnsweredAt: ledger.At(a.now), Tool: a.x.Tool, Kind: a.lookup.Kind,
		Source: a.lookup.Terms.Digest, Request: storable(a.seen.Request), Status: a.seen.Status, Latency: a.seen.Latency.Seconds(), Pages: a.seen.Pages,
		BodyDigest: a.seen.Digest, Excerpt: a.seen.Excerpt, Problem: string(a.seen.Problem), Verdict: verdictWord(a.answer.Verdict), Reason: string(a.answer.Reason),
		Why: storable(a.answer.Why), Reference: a.answer.Reference, Earliest: ledger.At(a.answer.Earliest), Found: storable(string(found)), Read: storable(string(read)),
	})
}

// judge says what a look proves, with what stands around the effect now.
func judge(ctx context.Context, r ledger.Reader, t *policy.Tool, l *lookup.Lookup, around lookups.Around, q *lookup.Question, seen lookup.Seen) (a lookup.Answer, err error) {
	surround(q, t, around)
	var refs []store.Reference
	for _, ref := range seen.References() {
		refs = append(refs, store.Reference{Account: around.Account, Tool: around.Tool, Ref: ref})
	}
	owned, err := store.OwnedReferences(ctx, r, refs)
	if err != nil {
		return a, err
	}
	disputed, err := lookups.Disputed(ctx, r, around.Effect, slices.Collect(maps.Values(owned)))
	if err != nil {
		return a, err
	}
	q.Disputed = map[string]string{}
	for ref, id := range owned {
		_, denied := q.Owned[ref.Ref]
		switch {
		case id == around.Effect:
		case !disputed[id]:
			q.Owned[ref.Ref] = id
		case !denied:
			q.Disputed[ref.Ref] = id
		}
	}
	earlier, err := readsOf(around)
	if err != nil {
		return a, err
	}
	return lookup.Judge(*q, l.Terms, seen, earlier), nil
}

// looked tells whether the source could be read.
func (a *answering) looked() bool { return looked(a.answer.Reason) }

// clean tells whether it was read and showed nothing that may be this effect.
func (a *answering) clean() bool {
	switch a.answer.Reason {
	case lookup.NotYet, lookup.Absent, lookup.NeverAgain:
		return true
	}
	return false
}

// hit tells whether anything stands against a repeat: something that was found, or that an
// earlier look found and this one does not show.
func (a *answering) hit() bool {
	return len(a.answer.Stopping()) > 0 || a.answer.Reason == lookup.Vanished
}

// rechecks tells whether this is the look that a release waits for, or a later one.
func (a *answering) rechecks() bool {
	from := a.plan.RecheckFrom
	return !from.IsZero() && !a.asked.At.Before(from.Time)
}

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
