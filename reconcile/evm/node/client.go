// Package node asks a node of an Ethereum-like chain over JSON-RPC: one question at a
// time, each answer bounded, nothing followed elsewhere, every member that counts checked.
// An answer that does not fit its question is no answer.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/outbound"
)

// Client asks one node. Safe for concurrent use. Its errors are [*fetch.Failure] and hold
// nothing of its URL, which mostly has a key in it.
type Client struct {
	target  func() string // a function, so that nothing prints it
	host    string
	fetcher *fetch.Fetcher
}

// New is a client of the node at a URL.
func New(target string, o outbound.Options) *Client {
	c := &Client{target: func() string { return target }, fetcher: &fetch.Fetcher{Do: outbound.New(o).Do}}
	if u, err := url.Parse(target); err == nil {
		c.host = u.Host
	}
	return c
}

// Host is the host and port that are asked.
func (c *Client) Host() string { return c.host }

// failed is an answer that is none.
func failed(method string, problem lookup.Problem, format string, args ...any) error {
	return &fetch.Failure{Problem: problem, Err: fmt.Errorf(method+": "+format, args...)}
}

// busy is the code by which nodes say that they were asked too much (EIP-1474).
const busy = -32005

// call asks one question. The result is nil for the null by which a node says that it has
// none.
func (c *Client) call(ctx context.Context, method string, params ...any) (*canon.Value, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, failed(method, lookup.AdapterError, "the question is not JSON")
	}
	r, err := http.NewRequest(http.MethodPost, c.target(), nil)
	if err != nil {
		return nil, failed(method, lookup.Unaskable, "the URL is none")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	fetch.Repeatable(r, body)
	got, failure := c.fetcher.One(ctx, r)
	if failure == nil {
		failure = fetch.Refusal(got, time.Now())
	}
	if failure != nil {
		return nil, &fetch.Failure{Problem: failure.Problem, RetryAfter: failure.RetryAfter, Err: fmt.Errorf("%s: %w", method, cause(failure))}
	}
	answer, err := canon.ParseObject(got.Body)
	if err != nil {
		return nil, failed(method, lookup.Unreadable, "not one JSON object")
	}
	if id, _ := answer.Lookup("id").Number(); id != "1" {
		return nil, failed(method, lookup.Unreadable, "the answer is to another question")
	}
	if problem := answer.Lookup("error"); problem != nil && problem.Kind() != canon.Null {
		code, _ := problem.Lookup("code").Number()
		if code == fmt.Sprint(busy) {
			return nil, failed(method, lookup.Throttled, "error %s", code)
		}
		return nil, failed(method, lookup.Failing, "error %s", code)
	}
	result := answer.Lookup("result")
	switch {
	case result == nil:
		return nil, failed(method, lookup.Unreadable, "neither result nor error")
	case result.Kind() == canon.Null:
		return nil, nil
	}
	return result, nil
}

func cause(f *fetch.Failure) error {
	if f.Err != nil {
		return f.Err
	}
	return errors.New(string(f.Problem))
}
