package stripe

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/lookup/secret"
)

// Host is where Stripe is asked.
func (s *source) Host() string { return s.host }

// Mask replaces the key.
func (s *source) Mask(text string) string { return s.secrets.Mask(text) }

// Ask reads the object, or the list since our first attempt, to its end.
func (s *source) Ask(ctx context.Context, q lookup.Question) lookup.Seen {
	seen := s.look(ctx, q, s.fetcher)
	if s.absence && q.Absent(&seen) {
		s.askCanary(ctx, &seen)
	}
	return seen
}

// Replay is Ask with the answers given.
func (s *source) Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, canary bool) lookup.Seen {
	seen := s.look(ctx, q, fetch.Replay(pages))
	seen.Canary = canary
	return seen
}

func (s *source) look(ctx context.Context, q lookup.Question, f *fetch.Fetcher) lookup.Seen {
	target, err := s.target(q)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
	}
	r, err := s.request(target)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
	}
	seen := lookup.Seen{Request: describe(r), World: s.world}
	f.Pages(ctx, r, s.rules.For(q), next, &seen)
	return seen
}

func (s *source) target(q lookup.Question) (string, error) {
	if s.id != nil {
		id, err := block.Fill(s.id, q, func(v string) (string, error) { return v, checkID(v) })
		return s.base + "/v1/" + s.path + "/" + id, err
	}
	if len(q.Attempts) == 0 || q.Attempts[0].Begun.IsZero() {
		return "", errors.New("it is not on record when the first attempt began")
	}
	if q.VendorKey == "" {
		return "", errors.New("this call has no vendor_key")
	}
	since := q.Attempts[0].Begun.Add(-skew).Unix()
	return s.base + "/v1/" + s.path + "?limit=100&created%5Bgte%5D=" + strconv.FormatInt(since, 10), nil
}

// checkID refuses what is not an id of Stripe's, such as a path.
func checkID(v string) error {
	for _, c := range v {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return errors.New("is not an id of Stripe's")
		}
	}
	return nil
}

func (s *source) request(target string) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return nil, errors.New("the question does not make a URL")
	}
	r.Header.Set("Authorization", "Bearer "+s.key.Reveal())
	r.Header.Set("Stripe-Version", version)
	if s.account != "" {
		r.Header.Set("Stripe-Account", s.account)
	}
	return r, nil
}

func describe(r *http.Request) string {
	return "GET " + r.URL.String() + "\nAuthorization: " + secret.Mask + "\nStripe-Version: " + version
}

// next goes on after the last object of a list.
func next(_ context.Context, page *http.Request, answer rules.Answer, _ http.Header) (*http.Request, bool, error) {
	if more, _ := answer.Body.Lookup("has_more").Bool(); !more {
		return nil, false, nil
	}
	last := ""
	for _, object := range answer.Body.Lookup("data").Items() {
		last, _ = object.Lookup("id").Text()
	}
	if last == "" {
		return nil, true, nil
	}
	u := *page.URL
	query := u.Query()
	query.Set("starting_after", last)
	u.RawQuery = query.Encode()
	following, err := fetch.Again(page, u.String())
	return following, false, err
}

// askCanary reads an object that exists, in the same world.
func (s *source) askCanary(ctx context.Context, seen *lookup.Seen) {
	r, err := s.request(s.base + "/v1/" + s.path + "/" + url.PathEscape(s.canary))
	if err != nil {
		seen.Problem = lookup.CanaryFailed
		return
	}
	seen.Request += "\ncanary: GET " + r.URL.String()
	got, failure := s.fetcher.One(ctx, r)
	if failure == nil && got.Status != http.StatusNotFound {
		failure = fetch.Refusal(got, time.Now())
	}
	if failure != nil {
		seen.Problem, seen.Detail, seen.Status, seen.RetryAfter = lookup.CanaryFailed, string(failure.Problem), got.Status, failure.RetryAfter
		return
	}
	body, _ := canon.Parse(got.Body) // nil where it is not JSON: then it has no id
	id, _ := body.Lookup("id").Text()
	seen.Canary = got.Status == http.StatusOK && id == s.canary
}
