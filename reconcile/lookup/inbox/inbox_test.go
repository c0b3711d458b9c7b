package inbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/inbox"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

var env = map[string]string{
	"OLD": "whsec_" + base64.StdEncoding.EncodeToString([]byte("old-secret-of-letters")),
	"DOC": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"NEW": "whsec_" + base64.StdEncoding.EncodeToString([]byte("new-secret-of-letters")),
}

func open(t testing.TB, signature string) *lookup.Lookup {
	t.Helper()
	in := read.Surroundings{Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(`
tools:
  send_letter:
    business_key: "{letter}"
    lookup:
      webhook_inbox: {name: letters, signature: `+signature+`, secrets: ["${env:OLD}", "${env:NEW}", "${env:DOC}"]}
      found: body.events.filter(e, e.data.letter == effect.business_key)
      match: hit.data.to == effect.arguments.to
      final: hit.type == "letter.delivered"
      reference: hit.data.id
      result: '{"id": hit.data.id}'
      kept_for: 365d
`))
	if err := mistakes.Err(); err != nil {
		t.Fatal(err)
	}
	return p.Tool("send_letter").Lookup()
}

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func TestStandardWebhooks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	source := open(t, "standard_webhooks").Source.(*inbox.Source)
	body := `{"test": 2432232314}`
	sign := func(key, id string, at time.Time, body string) http.Header {
		stamp := strconv.FormatInt(at.Unix(), 10)
		h := http.Header{}
		h.Set("Webhook-Id", id)
		h.Set("Webhook-Timestamp", stamp)
		h.Set("Webhook-Signature", "v1a,ignored v1,"+base64.StdEncoding.EncodeToString(mac(key, id+"."+stamp+"."+body)))
		return h
	}
	for _, key := range []string{"old-secret-of-letters", "new-secret-of-letters"} {
		if id, err := source.Verify(sign(key, "msg_1", now, body), []byte(body), now); err != nil || id != "msg_1" {
			t.Errorf("%s: %q, %v", key, id, err)
		}
	}
	// The example that the scheme's documentation computes by hand.
	h := http.Header{}
	h.Set("Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("Webhook-Timestamp", "1614265330")
	h.Set("Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if _, err := source.Verify(h, []byte(body), time.Unix(1614265330, 0)); err != nil {
		t.Errorf("the documented example: %v", err)
	}
	moved := sign("old-secret-of-letters", "msg_1", now, body)
	moved.Set("Webhook-Id", "msg_2")
	unsigned := sign("old-secret-of-letters", "msg_1", now, body)
	unsigned.Del("Webhook-Signature")
	for name, h := range map[string]http.Header{
		"another's key": sign("another", "msg_1", now, body), "another body": sign("old-secret-of-letters", "msg_1", now, body+" "),
		"another id": moved, "no signature": unsigned, "no headers": {},
		"too old":       sign("old-secret-of-letters", "msg_1", now.Add(-5*time.Minute-time.Second), body),
		"of the future": sign("old-secret-of-letters", "msg_1", now.Add(5*time.Minute+time.Second), body),
		"an empty key":  sign("", "msg_1", now, body),
	} {
		if _, err := source.Verify(h, []byte(body), now); !errors.Is(err, inbox.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStripeSignatures(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	source := open(t, "stripe").Source.(*inbox.Source)
	body := `{"id":"evt_1"}`
	sign := func(key string, at time.Time) http.Header {
		h := http.Header{}
		signature := hex.EncodeToString(mac(key, fmt.Sprintf("%d.%s", at.Unix(), body)))
		h.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=00ff,v1=%s,v0=%s", at.Unix(), signature, signature))
		return h
	}
	if _, err := source.Verify(sign(env["NEW"], now), []byte(body), now); err != nil {
		t.Error(err)
	}
	onlyOld := http.Header{}
	onlyOld.Set("Stripe-Signature", fmt.Sprintf("t=%d,v0=%s", now.Unix(), hex.EncodeToString(mac(env["NEW"], fmt.Sprintf("%d.%s", now.Unix(), body)))))
	for name, h := range map[string]http.Header{
		"another's key": sign("whsec_another", now), "too old": sign(env["NEW"], now.Add(-6*time.Minute)), "no header": {}, "only v0": onlyOld,
	} {
		if _, err := source.Verify(h, []byte(body), now); !errors.Is(err, inbox.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := source.Verify(sign(env["NEW"], now), []byte(body+" "), now); !errors.Is(err, inbox.ErrSignature) {
		t.Errorf("another body: %v", err)
	}
}

// Events show that something happened, and never that it did not.
func TestEventsAreHits(t *testing.T) {
	t.Parallel()
	l := open(t, "standard_webhooks")
	args, err := canon.ParseObject([]byte(`{"letter":"L-1","to":"ACME"}`))
	if err != nil {
		t.Fatal(err)
	}
	sent, lands := time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC), time.Minute
	q := lookup.Question{Effect: "e", BusinessKey: "L-1", Arguments: args, LandsWithin: &lands, AskedAt: sent.Add(time.Hour),
		Attempts: []lookup.Attempt{{Begun: sent, Deadline: sent.Add(time.Minute)}}}
	event := func(kind, letter, to string) []byte {
		return fmt.Appendf(nil, `{"type":%q,"data":{"id":"l_7","letter":%q,"to":%q}}`, kind, letter, to)
	}
	for _, c := range []struct {
		events [][]byte
		reason lookup.Reason
	}{
		{nil, lookup.NotYet},
		{[][]byte{event("letter.delivered", "L-10", "ACME")}, lookup.NotYet},
		{[][]byte{event("letter.accepted", "L-1", "ACME")}, lookup.NotFinal},
		{[][]byte{event("letter.delivered", "L-1", "ACME")}, lookup.Matched},
		{[][]byte{event("letter.delivered", "L-1", "ACME"), event("letter.delivered", "L-1", "ACME")}, lookup.Matched}, // sent again
		{[][]byte{event("letter.accepted", "L-1", "ACME"), event("letter.delivered", "L-1", "ACME")}, lookup.Matched},
		{[][]byte{event("letter.delivered", "L-1", "ACME"), event("letter.accepted", "L-1", "ACME")}, lookup.NotFinal}, // in the wrong order
		{[][]byte{event("letter.delivered", "L-1", "Other")}, lookup.Mismatch},
		{[][]byte{[]byte("not json")}, lookup.CouldNot},
	} {
		var reads []lookup.Read
		for range 3 {
			q.AskedAt = q.AskedAt.Add(time.Minute)
			seen := l.See(t.Context(), redact.New([]byte("k")), q, c.events)
			a := lookup.Judge(q, l.Terms, seen, reads)
			reads = append(reads, a.Read)
			if a.Reason != c.reason {
				t.Errorf("%s: %s (%s %s), want %s", c.events, a.Reason, seen.Problem, seen.Detail, c.reason)
			}
		}
	}
}
