package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const inboxPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    lookup:
      webhook_inbox: {name: the bank, signature: standard_webhooks, secrets: ["${env:BANK_OLD}", "${env:BANK_NEW}"]}
      found: body.events.filter(e, e.data.reference == effect.business_key)
      match: same_amount(hit.data.amount, "major") && hit.data.currency == effect.currency
      final: hit.type == "payment.booked"
      reference: hit.data.id
      result: '{"payment_id": hit.data.id}'
  charge_card:
    business_key: "{order}"
    lookup:
      webhook_inbox: {name: stripe, signature: stripe, secrets: ["${env:STRIPE}"]}
      found: body.events.filter(e, e.data.order == effect.business_key)
      match: "true"
      final: "true"
      reference: hit.data.id
      result: "{}"
`

func mac(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// standard signs as Standard Webhooks does.
func standard(secret, id, body string, at time.Time) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return map[string]string{
		"Webhook-Id": id, "Webhook-Timestamp": stamp,
		"Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac(secret, id+"."+stamp+"."+body)),
	}
}

func stripes(secret, body string, at time.Time) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return map[string]string{"Stripe-Signature": "t=" + stamp + ",v1=" + hex.EncodeToString(mac(secret, stamp+"."+body))}
}

// event sends one as the downstream does: without a token.
func (l *live) event(path, body string, headers map[string]string) (int, string) {
	l.t.Helper()
	req, err := http.NewRequest(http.MethodPost, l.url+path, strings.NewReader(body))
	must(l.t, err)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	must(l.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(l.t, err)
	return resp.StatusCode, string(b)
}

const (
	bankInbox   = "/v1/inbox/the%20bank"
	bookedEvent = `{"type":"payment.booked","data":{"id":"po_1","reference":"ACME Tools/INV-9","amount":"4200.00","currency":"USD"}}`
)

func TestAnEventLetsTheRunGoOn(t *testing.T) {
	t.Parallel()
	l := startUnder(t, inboxPolicy)
	l.lose(l.open("run"), "send_payment", inv9)
	for i, repeated := range []string{"false", "true", "true"} {
		status, body := l.event(bankInbox, bookedEvent, standard("old-secret-of-the-bank", "evt_1", bookedEvent, time.Now()))
		if status != 200 || strings.TrimSpace(body) != `{"event_id":"evt_1","repeated":`+repeated+`}` {
			t.Errorf("%d: %d %s", i, status, body)
		}
	}
	r := l.openWhenReady("run")
	out, err := r.Do(t.Context(), "send_payment", inv9, unexpected(t))
	if err != nil || string(out.Result) != `{"payment_id":"po_1"}` {
		t.Errorf("%s %v", out.Result, err)
	}
	var n int
	must(t, l.db.Get(t.Context(), &n, `SELECT count(*) FROM inbox_events`))
	if n != 1 {
		t.Errorf("%d events are stored, want 1", n)
	}
}

func TestEventsAreSignedByTheOldAndTheNewSecret(t *testing.T) {
	t.Parallel()
	l := startUnder(t, inboxPolicy)
	for id, secret := range map[string]string{"evt_1": "old-secret-of-the-bank", "evt_2": "new-secret-of-the-bank"} {
		if status, body := l.event(bankInbox, bookedEvent, standard(secret, id, bookedEvent, time.Now())); status != 200 {
			t.Errorf("%s: %d %s", secret, status, body)
		}
	}
	// Stripe names its event in the body.
	body := `{"id":"evt_3","data":{"id":"ch_1","order":"O-1"}}`
	status, answer := l.event("/v1/inbox/stripe", body, stripes(liveSecrets["STRIPE"], body, time.Now()))
	if status != 200 || !strings.Contains(answer, `"event_id":"evt_3"`) {
		t.Errorf("%d %s", status, answer)
	}
	nameless := `{"data":{"id":"ch_2","order":"O-2"}}`
	status, answer = l.event("/v1/inbox/stripe", nameless, stripes(liveSecrets["STRIPE"], nameless, time.Now()))
	if status != 200 || !strings.Contains(answer, `"event_id":"sha256:`) {
		t.Errorf("%d %s", status, answer)
	}
}

func TestEventsOverHTTPThatAreRefused(t *testing.T) {
	t.Parallel()
	l := startUnder(t, inboxPolicy)
	id := l.lose(l.open("run"), "send_payment", inv9)
	ours, now := "new-secret-of-the-bank", time.Now()
	large := `{"x":"` + strings.Repeat("x", 2<<20) + `"}`
	for _, c := range []struct {
		name, path, body string
		headers          map[string]string
		status           int
		code             string
	}{
		{"no such inbox", "/v1/inbox/bank", bookedEvent, standard(ours, "e", bookedEvent, now), 404, "not_found"},
		{"not signed", bankInbox, bookedEvent, nil, 401, "unsigned"},
		{"a token in place of a signature", bankInbox, bookedEvent, map[string]string{"Authorization": "Bearer " + agentToken}, 401, "unsigned"},
		{"another's secret", bankInbox, bookedEvent, standard("another-secret", "e", bookedEvent, now), 401, "unsigned"},
		{"another body", bankInbox, strings.Replace(bookedEvent, "4200", "9999", 1), standard(ours, "e", bookedEvent, now), 401, "unsigned"},
		{"another scheme", bankInbox, bookedEvent, stripes(ours, bookedEvent, now), 401, "unsigned"},
		{"another inbox's secret", "/v1/inbox/stripe", bookedEvent, stripes(ours, bookedEvent, now), 401, "unsigned"},
		{"too old", bankInbox, bookedEvent, standard(ours, "e", bookedEvent, now.Add(-6*time.Minute)), 401, "unsigned"},
		{"of the future", bankInbox, bookedEvent, standard(ours, "e", bookedEvent, now.Add(6*time.Minute)), 401, "unsigned"},
		{"not JSON", bankInbox, "zz-91", standard(ours, "e", "zz-91", now), 422, "invalid"},
		{"2 MB", bankInbox, large, standard(ours, "e", large, now), 413, "too_large"},
	} {
		status, body := l.event(c.path, c.body, c.headers)
		if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
		for _, secret := range []string{"secret-of", "whsec_", "zz-91", "INV-9", id} {
			if strings.Contains(body, secret) {
				t.Errorf("%s: the answer says %q: %s", c.name, secret, body)
			}
		}
	}
	if status, _ := l.send(http.MethodGet, "", bankInbox, ""); status != 405 {
		t.Errorf("GET: %d", status)
	}
	var n int
	must(t, l.db.Get(t.Context(), &n, `SELECT count(*) FROM inbox_events`))
	if n != 0 {
		t.Errorf("%d events are stored", n)
	}
	if v, err := l.operator.Effect(t.Context(), id); err != nil || v.State != "interrupted" {
		t.Errorf("%s %v", v.State, err)
	}
}
