// Package worker is the look-up by the team's own code: it pulls questions, looks where
// only it may, and brings back what it saw. What that proves is judged here, and the
// credentials it looks with never leave it.
package worker

import (
	"context"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
)

// Kind is this look-up's name in the policy.
const Kind = "worker"

type source struct {
	pool   string
	canary string
	rules  *rules.Rules
}

// Read reads a worker look-up.
func Read(b *block.Block) lookup.Source {
	f := b.Own(Kind, "pool")
	// What a worker brings are records by our key already, in the form of our choice.
	for name, expression := range map[string]string{
		"final": "hit.final", "reference": "hit.reference", "result": "hit.result", "ours": "hit.?ours.orValue(false)",
		"never": "hit.?never.orValue(false)", "reversed": "hit.?reversed.orValue(false)", "state": `hit.?state.orValue("")`,
	} {
		b.Default(name, expression)
	}
	b.Default("found", "body.hits.filter(h, h.business_key == effect.business_key)")
	b.Default("possible", "body.?possible.orValue([])")
	if b.Tool.HasAmount {
		b.Default("match", `same_amount(hit.amount, "major") && hit.currency == effect.currency && hit.recipient_matches`)
	} else {
		b.Default("match", "hit.recipient_matches")
	}
	b.Refuse(Kind, "allow_private", "not_found", "next")
	s := &source{pool: "default", rules: b.Rules()}
	if pool, ok := b.Text(f["pool"], b.KindPath(Kind)+".pool"); ok {
		s.pool = pool
	}
	s.canary, _ = b.Text(b.At("canary"))
	return s
}

// Pool names the workers that may claim the question.
func (s *source) Pool() string { return s.pool }

// Canary is the business key of a record that exists, which the worker is told to look for
// too; "" where the worker has one of its own.
func (s *source) Canary() string { return s.canary }

// Host is "": a worker is not asked, it asks.
func (s *source) Host() string { return "" }

// Mask has nothing to do: we hold no credentials of a worker's.
func (s *source) Mask(text string) string { return text }

// Ask says that nobody has answered yet: an answer comes through See.
func (s *source) Ask(context.Context, lookup.Question) lookup.Seen {
	return lookup.Seen{Problem: lookup.Unanswered, Request: "for the workers of " + s.pool}
}

// See reads what a worker brought: one JSON object with
//
//	hits         records with business_key, reference, amount, currency, recipient_matches,
//	             final, result and perhaps ours, never, reversed, state
//	possible     records that may be ours without the key
//	complete     true where everything was read
//	canary_seen  true where the canary was visible
//	world        where it looked
//	error        a sentence, where it could not look
//
// What is missing or of another kind counts as not said.
func (s *source) See(ctx context.Context, q lookup.Question, brought [][]byte) lookup.Seen {
	seen := lookup.Seen{Request: "for the workers of " + s.pool}
	if len(brought) == 0 {
		seen.Problem = lookup.Unanswered
		return seen
	}
	raw := brought[len(brought)-1]
	seen.Body(raw)
	body, err := canon.ParseObject(raw)
	if err != nil {
		seen.Problem, seen.Detail = lookup.Unreadable, err.Error()
		return seen
	}
	if problem := body.Lookup("error"); problem != nil && problem.Kind() != canon.Null {
		seen.Problem = lookup.AdapterError
		return seen
	}
	complete, _ := body.Lookup("complete").Bool()
	seen.Canary, _ = body.Lookup("canary_seen").Bool()
	seen.World, _ = body.Lookup("world").Text()
	if err := s.rules.For(q).See(ctx, rules.Answer{Status: 200, Body: body}, &seen); err != nil {
		seen.Problem, seen.Detail = lookup.RuleFailed, err.Error()
		return seen
	}
	seen.Complete = complete
	return seen
}

// Replay is See for a sample; the canary is the sample's.
func (s *source) Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, canary bool) lookup.Seen {
	seen := s.See(ctx, q, [][]byte{pages[0].Body})
	seen.Canary = seen.Canary && canary
	return seen
}
