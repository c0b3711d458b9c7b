package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// answerLimit bounds what is read of one answer: a page of arguments and results at
// their stored limits stays far below.
const answerLimit = 64 << 20

// longestWait is the longest in seconds that a server is believed to want us to wait.
const longestWait = 24 * 60 * 60

// PositionHeader carries the log position of an answer without a body.
const PositionHeader = "Quittance-Log-Position"

// ErrNoAnswer means that it is not known whether the server acted: the connection
// failed, or what came back was not the server's. Where a begin ends with it, nothing
// was performed.
var ErrNoAnswer = errors.New("the server gave no answer")

// request is one call of the API.
type request struct {
	method string
	path   string // escaped
	in     any    // nil sends no body
	out    any    // nil drops the answer's body
	wait   time.Duration

	status   int    // of the answer
	position string // from the header, for answers without a body
}

// once sends r a single time. The error is a *[Problem] when the server refused, or
// wraps ErrNoAnswer.
func (c *Client) once(ctx context.Context, r *request) error {
	ctx, cancel := context.WithTimeout(ctx, c.tryTimeout+r.wait)
	defer cancel()
	var body io.Reader
	if r.in != nil {
		b, err := marshal(r.in)
		if err != nil {
			return fmt.Errorf("couldn't write the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, body)
	if err != nil {
		return fmt.Errorf("couldn't address the server: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if r.in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if len(answer) > answerLimit {
		return fmt.Errorf("%w: it is longer than %d bytes", ErrNoAnswer, answerLimit)
	}
	r.status, r.position = resp.StatusCode, resp.Header.Get(PositionHeader)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return problemFrom(resp, answer)
	}
	if r.out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(answer, r.out); err != nil {
		return fmt.Errorf("%w: status %d without the JSON it should hold", ErrNoAnswer, resp.StatusCode)
	}
	return nil
}

// problemFrom reads a refusal. One that is not a problem document comes from
// something between us and the server: only its status says anything.
func problemFrom(resp *http.Response, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		s := resp.StatusCode
		p = &Problem{
			Code:      "http_" + strconv.Itoa(s),
			Title:     "not an answer of Quittance",
			Retryable: s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout,
		}
		if s == http.StatusRequestEntityTooLarge {
			p.Code = CodeTooLarge
		}
	}
	p.Status = resp.StatusCode
	if p.RetryAfter == 0 {
		p.RetryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
	}
	// Whoever stands in between may say anything: a wait below zero would be no pause at
	// all between the tries, and one that overflows a duration is below zero.
	p.RetryAfter = min(max(p.RetryAfter, 0), longestWait)
	if p.RequestID == "" {
		p.RequestID = resp.Header.Get("X-Request-Id")
	}
	return p
}

// retry calls f until it gets an answer that another try would not change, patience
// is over or ctx ends. The last error is returned as it was.
func (c *Client) retry(ctx context.Context, patience time.Duration, f func(context.Context) error) error {
	start := time.Now()
	for try := 0; ; try++ {
		err := f(ctx)
		again, after := retryable(err)
		if !again || ctx.Err() != nil {
			return err
		}
		pause := backoff(try, after)
		if time.Since(start)+pause > patience {
			return err
		}
		sleep(ctx, pause)
	}
}

// sleep returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// do sends r until it is answered; see retry.
func (c *Client) do(ctx context.Context, r *request) error {
	return c.retry(ctx, c.patience, func(ctx context.Context) error { return c.once(ctx, r) })
}

// retryable tells whether the same request may be sent again by a program, and how
// long the server asked it to wait. A refusal that waits for a person, a poll or
// another holder is not one.
func retryable(err error) (again bool, after time.Duration) {
	if p, ok := errors.AsType[*Problem](err); ok {
		same := p.RetryAction == RetrySame || p.RetryAction == ""
		return p.Retryable && same, time.Duration(p.RetryAfter) * time.Second
	}
	return errors.Is(err, ErrNoAnswer), 0
}

// backoff grows from 50 ms to 5 s with full jitter, so that agents that lost the
// server together do not come back together.
func backoff(try int, after time.Duration) time.Duration {
	most := min(5*time.Second, 50*time.Millisecond<<min(try, 10))
	return after + most/4 + rand.N(most)
}

// marshal writes JSON without escaping what HTML would need.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// escape writes a name as one segment of a path. A dot segment would be cleaned away
// by servers and proxies on the way.
func escape(name string) string {
	s := url.PathEscape(name)
	if strings.Trim(s, ".") == "" {
		s = strings.ReplaceAll(s, ".", "%2E")
	}
	return s
}
