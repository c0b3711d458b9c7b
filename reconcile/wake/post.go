package wake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"quittance/ledger/wakes"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/policy"
)

// message is what is sent, in the shape that Standard Webhooks recommends. There is
// nothing in it that a log may not hold.
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      data   `json:"data"`
}

type data struct {
	RunID   string `json:"run_id"`
	Agent   string `json:"agent"`
	Account string `json:"account"`
	URL     string `json:"url"`
}

func (s *Service) body(r wakes.Ready) (string, error) {
	raw, err := json.Marshal(message{Type: "run.ready", Timestamp: r.ReadyAt.UTC().Format(time.RFC3339Nano), Data: data{
		RunID: r.RunName, Agent: r.Agent, Account: r.Account, URL: s.public + "/v1/runs/" + url.PathEscape(r.RunName),
	}})
	if err != nil {
		return "", fmt.Errorf("couldn't write a delivery: %w", err)
	}
	return string(raw), nil
}

// WebhookID is the id under which a delivery is sent, each time.
func WebhookID(delivery string) string { return "msg_" + delivery }

func (s *Service) post(ctx context.Context, h *policy.Webhook, d wakes.Delivery) (outbound.Response, error) {
	body := []byte(d.Body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return outbound.Response{}, fmt.Errorf("couldn't make a request of the endpoint's address")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Quittance")
	sign(r.Header, WebhookID(d.ID), time.Now(), body, h.Keys())
	return s.clients[h.AllowPrivate].Do(ctx, r)
}

// retryAfter is how long an endpoint asks to be left alone, within bounds: whole seconds,
// or a date.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	d := time.Duration(0)
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		d = time.Duration(min(n, int(mostWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = time.Until(at)
	}
	return max(0, min(d, mostWait))
}
