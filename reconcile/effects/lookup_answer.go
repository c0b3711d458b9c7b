package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
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
