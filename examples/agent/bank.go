package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"quittance/client"
)

// bank is the downstream: POST /payments with an Idempotency-Key makes a payment.
type bank struct{ url string }

// pay tells the three things apart that matter: it was paid, it was refused for sure,
// or nobody knows. Only an answer of the bank itself that says so is a refusal; a
// time-out, a broken connection, a 5xx and a page that is not the bank's are not.
func (b *bank) pay(ctx context.Context, invoice Invoice, key string) (any, error) {
	body, err := json.Marshal(invoice)
	if err != nil {
		return nil, client.Refused(err) // never sent
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/payments", bytes.NewReader(body))
	if err != nil {
		return nil, client.Refused(err) // never sent
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("couldn't reach the bank: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the bank's answer: %w", err)
	}
	var answer struct {
		ID   string `json:"id"`
		Code string `json:"code"`
	}
	known := json.Unmarshal(raw, &answer) == nil
	switch {
	case resp.StatusCode/100 == 2 && known && answer.ID != "":
		return client.Reference(answer.ID, json.RawMessage(raw)), nil
	case resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusRequestTimeout && known && answer.Code != "":
		return nil, client.Refused(json.RawMessage(raw))
	}
	return nil, fmt.Errorf("the bank answered %d", resp.StatusCode)
}
