// Package httpapi is the look-up over HTTP and JSON that a policy describes with
// expressions.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/secret"
)

// source asks one API.
type source struct {
	host    string
	request request
	rules   *rules.Rules
	canary  *canary
	absence bool
	secrets *secret.Set
	fetcher *fetch.Fetcher
}

// Host is the host and port that are asked.
func (s *source) Host() string { return s.host }

// Mask replaces the source's secrets.
func (s *source) Mask(text string) string { return s.secrets.Mask(text) }

// Ask reads the whole answer, and the canary where nothing of ours was found and absence is proof.
func (s *source) Ask(ctx context.Context, q lookup.Question) lookup.Seen {
	seen := s.look(ctx, q, s.fetcher)
	if s.absence && s.canary != nil && q.Absent(&seen) {
		s.askCanary(ctx, q, &seen)
	}
	return seen
}

// Replay is Ask with the answers given.
func (s *source) Replay(ctx context.Context, q lookup.Question, answers []fetch.Canned, canary bool) lookup.Seen {
	seen := s.look(ctx, q, fetch.Replay(answers))
	seen.Canary = canary
	return seen
}

func (s *source) look(ctx context.Context, q lookup.Question, f *fetch.Fetcher) lookup.Seen {
	r, err := s.request.build(q)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
	}
	seen := lookup.Seen{Request: s.request.describe(r)}
	f.Pages(ctx, r, s.rules.For(q), s.next, &seen)
	return seen
}

// askCanary looks for a record that exists, with the same credentials: an account that may
// not see it, or another world, shows nothing at all and looks like absence.
func (s *source) askCanary(ctx context.Context, q lookup.Question, seen *lookup.Seen) {
	q = q.As(s.canary.key)
	r, err := s.canary.request(s.request, q)
	if err != nil {
		seen.Problem, seen.Detail = lookup.CanaryFailed, err.Error()
		return
	}
	var found lookup.Seen
	s.fetcher.Pages(ctx, r, s.rules.ForCanary(q), s.next, &found)
	seen.Request += "\ncanary: " + s.request.describe(r)
	seen.Latency += found.Latency
	switch {
	case found.Problem != lookup.NoProblem:
		seen.Problem, seen.Detail, seen.RetryAfter, seen.Status = lookup.CanaryFailed, string(found.Problem), found.RetryAfter, found.Status
	case found.World != seen.World && found.World != "" && seen.World != "":
		seen.Problem, seen.Detail = lookup.CanaryFailed, "it is in another world"
	default:
		seen.Canary = len(found.Hits) > 0
		seen.World = cmp.Or(seen.World, found.World) // a "not found" rarely says where
	}
}

// next follows the declared rule. Without one, an answer that speaks of further pages is
// not whole.
func (s *source) next(ctx context.Context, page *http.Request, answer rules.Answer, header http.Header) (*http.Request, bool, error) {
	target, declared, err := s.rules.For(lookup.Question{}).Next(ctx, answer)
	switch {
	case err != nil:
		return nil, false, err
	case !declared:
		return nil, speaksOfMore(answer.Body) || strings.Contains(header.Get("Link"), `rel="next"`), nil
	case target == "":
		return nil, false, nil
	}
	u, err := page.URL.Parse(target)
	if err != nil || u.User != nil || u.Scheme != page.URL.Scheme || !sameHost(u, page.URL) {
		return nil, false, errors.New("next: it leads to another host")
	}
	following, err := fetch.Again(page, u.String())
	return following, false, err
}

func sameHost(a, b *url.URL) bool { return strings.EqualFold(a.Host, b.Host) }
