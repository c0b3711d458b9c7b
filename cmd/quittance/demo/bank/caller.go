package bank

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Pay sends an order to the bank at base and returns its answer. key is passed on as
// the Idempotency-Key unless it is empty. An error that is no [*Refusal] says nothing
// about whether the order was booked.
func Pay(ctx context.Context, base, key string, o Order) (Payment, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return Payment{}, fmt.Errorf("couldn't write the order: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/payments", bytes.NewReader(body))
	if err != nil {
		return Payment{}, fmt.Errorf("couldn't address the bank: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return ask[Payment](r)
}

// Find asks the bank at base for the payments of a reference.
func Find(ctx context.Context, base, reference string) ([]Payment, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, FindURL(base, reference), nil)
	if err != nil {
		return nil, fmt.Errorf("couldn't address the bank: %w", err)
	}
	found, err := ask[Found](r)
	return found.Payments, err
}

// FindURL is where [Find] looks, for people to repeat it.
func FindURL(base, reference string) string {
	return base + "/v1/payments?reference=" + url.QueryEscape(reference)
}

func ask[T any](r *http.Request) (out T, err error) {
	// Without keep-alive, net/http never sends a request a second time by itself.
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return out, fmt.Errorf("the bank gave no answer: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return out, fmt.Errorf("the bank's answer broke off: %w", err)
	}
	if resp.StatusCode >= 300 {
		refusal := &Refusal{Status: resp.StatusCode}
		if err := json.Unmarshal(body, refusal); err != nil || resp.StatusCode >= 500 {
			return out, fmt.Errorf("the bank answered %d", resp.StatusCode)
		}
		return out, refusal
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("couldn't read the bank's answer: %w", err)
	}
	return out, nil
}
