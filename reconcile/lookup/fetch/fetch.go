// Package fetch reads answers over HTTP for look-ups: one request, or page after page, with
// every way in which it can go wrong told apart.
package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/rules"
)

// Limits of one look-up, over all its pages.
const (
	maxPages = 200
	maxTime  = 60 * time.Second
)

// Fetcher asks one host. Safe for concurrent use.
type Fetcher struct {
	// Do sends a request; see [outbound.Client.Do].
	Do func(ctx context.Context, r *http.Request) (outbound.Response, error)
	// Authorize adds credentials to a request. The error is a [Failure].
	Authorize func(ctx context.Context, r *http.Request) error
}

// Failure is why something could not be read.
type Failure struct {
	Problem    lookup.Problem
	RetryAfter time.Duration
	Err        error // for the log of a test; may be nil
}

func (f *Failure) Error() string {
	if f.Err != nil {
		return string(f.Problem) + ": " + f.Err.Error()
	}
	return string(f.Problem)
}

func (f *Failure) Unwrap() error { return f.Err }

// One sends one request. It fails only where no whole answer came; what the status means
// is the caller's.
func (f *Fetcher) One(ctx context.Context, r *http.Request) (outbound.Response, *Failure) {
	if f.Authorize != nil {
		if err := f.Authorize(ctx, r); err != nil {
			if failure, ok := errors.AsType[*Failure](err); ok {
				return outbound.Response{}, failure
			}
			return outbound.Response{}, &Failure{Problem: lookup.Denied, Err: err}
		}
	}
	got, err := f.Do(ctx, r)
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, outbound.ErrTooLarge):
		return got, &Failure{Problem: lookup.TooLarge, Err: err}
	case errors.Is(err, outbound.ErrTimeout), errors.Is(err, context.Canceled):
		return got, &Failure{Problem: lookup.TimedOut, Err: err}
	case errors.Is(err, outbound.ErrCut):
		return got, &Failure{Problem: lookup.Unreadable, Err: err}
	}
	return got, &Failure{Problem: lookup.Unreachable, Err: err}
}

// Refusal says what a status means that is no answer; nil for 200.
func Refusal(got outbound.Response, now time.Time) *Failure {
	switch status := got.Status; {
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &Failure{Problem: lookup.Denied}
	case status == http.StatusTooManyRequests:
		return &Failure{Problem: lookup.Throttled, RetryAfter: retryAfter(got.Header, now)}
	case status >= 500:
		return &Failure{Problem: lookup.Failing, RetryAfter: retryAfter(got.Header, now)}
	case status >= 300 && status < 400:
		return &Failure{Problem: lookup.Redirected}
	}
	return &Failure{Problem: lookup.Unexpected}
}

// longestWait is how long a Retry-After is believed.
const longestWait = 24 * time.Hour

// retryAfter reads the header of RFC 9110, seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait := time.Duration(0)
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		wait = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestWait)
}

// tell puts a failure into what was seen. On a later page it is the page that failed: what
// the earlier ones showed stands beside it.
func (f *Failure) tell(s *lookup.Seen) {
	s.Problem, s.RetryAfter = f.Problem, f.RetryAfter
	if f.Err != nil {
		s.Detail = f.Err.Error()
	}
	if s.Pages == 0 {
		return
	}
	switch f.Problem {
	case lookup.Throttled, lookup.MorePages, lookup.RuleFailed:
	default:
		s.Problem = lookup.PageFailed
	}
	s.Detail = strings.TrimSuffix(fmt.Sprintf("page %d; %s", s.Pages+1, s.Detail), "; ")
}

// Next returns the request for the page after this one, nil for none. more says that the
// answer speaks of further pages that nobody told us how to read.
type Next func(ctx context.Context, page *http.Request, answer rules.Answer, header http.Header) (next *http.Request, more bool, err error)

// Pages reads an answer to its last page and adds what it shows to s. s.Complete is set
// only where the last page was read.
func (f *Fetcher) Pages(ctx context.Context, r *http.Request, asker rules.Asker, next Next, s *lookup.Seen) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	digest := sha256.New()
	defer func() { s.Digest = hex.EncodeToString(digest.Sum(nil)) }()
	asked := map[string]bool{}
	for r != nil {
		if asked[r.URL.String()] || len(asked) == maxPages {
			s.Problem = lookup.MorePages
			return
		}
		asked[r.URL.String()] = true
		var failure *Failure
		if r, failure = f.page(ctx, r, asker, next, s, digest); failure != nil {
			failure.tell(s)
			return
		}
		s.Pages++
	}
	s.Complete = true
}

// page reads one page and returns the request for the next.
func (f *Fetcher) page(ctx context.Context, r *http.Request, asker rules.Asker, next Next, s *lookup.Seen, digest hash.Hash) (*http.Request, *Failure) {
	begun := time.Now()
	got, failure := f.One(ctx, r)
	s.Latency += time.Since(begun)
	s.Status = got.Status
	s.Body(got.Body)
	if failure != nil {
		// An error page of 3 MB is an error page.
		if refusal := Refusal(got, time.Now()); got.Status != 0 && refusal != nil && refusal.Problem != lookup.Unexpected {
			failure = refusal
		}
		return nil, failure
	}
	digest.Write(got.Body)
	answer := rules.Answer{Status: got.Status}
	answer.Body, _ = canon.Parse(bytes.TrimPrefix(got.Body, []byte("\uFEFF"))) // nil where it is not JSON
	if s.Pages == 0 && asker.NotFound(ctx, answer) {
		return nil, nil
	}
	if failure := Refusal(got, time.Now()); failure != nil {
		return nil, failure
	}
	if answer.Body == nil {
		return nil, &Failure{Problem: lookup.Unreadable}
	}
	if err := asker.See(ctx, answer, s); err != nil {
		return nil, &Failure{Problem: lookup.RuleFailed, Err: err}
	}
	following, more, err := next(ctx, r, answer, got.Header)
	switch {
	case err != nil:
		return nil, &Failure{Problem: lookup.RuleFailed, Err: err}
	case more:
		return nil, &Failure{Problem: lookup.MorePages}
	}
	return following, nil
}

// Again is the same request for another page: its headers, no body.
func Again(r *http.Request, target string) (*http.Request, error) {
	next, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	next.Header = r.Header.Clone()
	next.Header.Del("Content-Type")
	return next, nil
}

// Repeatable gives a request a body that can be sent.
func Repeatable(r *http.Request, body []byte) {
	if body == nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}
