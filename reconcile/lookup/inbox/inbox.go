// Package inbox is the look-up in events that a downstream sent us, for systems that only
// tell and cannot be asked.
package inbox

import (
	"bytes"
	"context"
	"slices"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/secret"
)

// Kind is this look-up's name in the policy.
const Kind = "webhook_inbox"

// Source is an inbox. Events are stored by whoever receives them, once [Source.Verify] let
// them in.
type Source struct {
	name    string // the inbox's, part of the address that events are sent to
	scheme  scheme
	keys    []secret.Text // any may have signed: the old and the new, while one is replaced
	rules   *rules.Rules
	secrets *secret.Set
}

// Read reads a webhook inbox.
func Read(b *block.Block) lookup.Source {
	path := b.KindPath(Kind)
	f := b.Own(Kind, "name", "signature", "secrets")
	s := &Source{secrets: secret.NewSet()}
	for _, name := range []string{"name", "signature", "secrets"} {
		if f != nil && f[name] == nil {
			b.Mistake(b.Kind, path, "%s is missing", name)
		}
	}
	name, given := b.Text(f["name"], path+".name")
	if s.name = name; given && (name == "" || len(name) > 256) {
		b.Mistake(f["name"], path+".name", "must be a name of 1 to 256 bytes")
	}
	s.scheme = scheme(b.Choice(f["signature"], path+".signature", string(standard), string(standard), string(stripe)))
	for _, n := range b.Items(f["secrets"], path+".secrets") {
		key := secret.Need(b.Reader, n, path+".secrets", s.secrets)
		if err := s.scheme.check(key.Reveal()); err != nil && !b.Stored && key.Reveal() != "" {
			b.Mistake(n, path+".secrets", "%s", err)
		}
		s.keys = append(s.keys, key)
	}
	if absence, at := b.At("absence_is_proof"); b.AbsenceIsProof {
		b.Mistake(absence, at, "an event that did not come proves nothing: it may have been lost")
	}
	b.Refuse(Kind, "allow_private", "canary", "not_found", "next")
	s.rules = b.Rules()
	return s
}

// Inbox is the inbox's name, part of the address that events are sent to.
func (s *Source) Inbox() string { return s.name }

// Host is "": an inbox asks nobody.
func (s *Source) Host() string { return "" }

// Mask replaces the signing secrets.
func (s *Source) Mask(text string) string { return s.secrets.Mask(text) }

// Ask says that events are brought through See.
func (s *Source) Ask(context.Context, lookup.Question) lookup.Seen {
	return lookup.Seen{Problem: lookup.Unanswered, Request: "inbox " + s.name}
}

// See looks through the events that came, as the answer {"events": [...]}. Events can show
// that something happened and never that it did not.
func (s *Source) See(ctx context.Context, q lookup.Question, events [][]byte) lookup.Seen {
	raw := append(append([]byte(`{"events":[`), bytes.Join(events, []byte(","))...), "]}"...)
	return s.see(ctx, q, raw)
}

func (s *Source) see(ctx context.Context, q lookup.Question, raw []byte) lookup.Seen {
	seen := lookup.Seen{Request: "inbox " + s.name}
	s.rules.For(q).Document(ctx, raw, &seen) // complete of what came; without a canary absence proves nothing
	seen.Hits = latest(seen.Hits)
	return seen
}

// latest leaves out what an event said of a record that a later event speaks of again:
// accepted, then delivered. What was final, or never to be, stays: whatever disagrees with it
// later came in the wrong order or is a contradiction, and proves nothing.
func latest(hits []lookup.Hit) (list []lookup.Hit) {
	for i, h := range hits {
		again := h.Reference != "" && slices.ContainsFunc(hits[i+1:], func(x lookup.Hit) bool {
			return x.Reference == h.Reference && x.Possible == h.Possible
		})
		if !again || h.Final || h.Never {
			list = append(list, h)
		}
	}
	return list
}

// Replay is See with the events given, as {"events": [...]}.
func (s *Source) Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, _ bool) lookup.Seen {
	return s.see(ctx, q, pages[0].Body)
}
