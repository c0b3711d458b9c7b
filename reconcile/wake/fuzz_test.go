package wake_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/lookup/inbox"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/wake"
)

// FuzzSign: what we sign, a receiver of the scheme believes (our own inbox is one), and it
// believes nothing else: not another id, time, body or secret.
func FuzzSign(f *testing.F) {
	key := []byte("a-secret-of-24-bytes-----")
	in := read.Surroundings{Getenv: func(string) (string, bool) { return "whsec_" + base64.StdEncoding.EncodeToString(key), true }}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(`
tools:
  t:
    business_key: "{id}"
    lookup:
      webhook_inbox: {name: in, signature: standard_webhooks, secrets: ["${env:KEY}"]}
      found: body.events
      match: hit.id == effect.business_key
      final: "true"
      reference: hit.id
      result: '{"id": hit.id}'
      kept_for: 1d
`))
	if p == nil {
		f.Fatal(mistakes)
	}
	receiver := p.Tool("t").Lookup().Source.(*inbox.Source)
	f.Add("01890000-0000-7000-8000-000000000001", int64(1_800_000_000), []byte(`{"type":"run.ready"}`), uint16(3))
	f.Add("a b", int64(0), []byte{}, uint16(0))
	f.Add("1", int64(1), []byte("1.2.3"), uint16(9))
	f.Fuzz(func(t *testing.T, id string, at int64, body []byte, flip uint16) {
		// Ids of ours are UUIDs. A dot would let one id and time be read as another.
		if id == "" || len(id) > 128 || strings.Contains(id, ".") || at < 0 || at > 1<<40 {
			return
		}
		now := time.Unix(at, 0)
		h := http.Header{}
		wake.Sign(h, id, now, body, [][]byte{key})
		got, err := receiver.Verify(h, body, now)
		if err != nil || got != id {
			t.Fatalf("what was signed is read as %q, %v", got, err)
		}
		refused := func(what string, h http.Header, body []byte, now time.Time) {
			t.Helper()
			if _, err := receiver.Verify(h, body, now); err == nil {
				t.Fatalf("%s is believed", what)
			}
		}
		changed := append([]byte(nil), body...)
		if len(changed) > 0 {
			changed[int(flip)%len(changed)] ^= 1 << (flip % 8)
			refused("another body", h, changed, now)
		}
		refused("a longer body", h, append(changed[:len(changed):len(changed)], 'x'), now)
		refused("an old event", h, body, now.Add(6*time.Minute))
		refused("an event of the future", h, body, now.Add(-6*time.Minute))
		other := h.Clone()
		other.Set("Webhook-Id", id+"x")
		refused("another id", other, body, now)
		other = h.Clone()
		wake.Sign(other, id, now, body, [][]byte{append([]byte("x"), key...)})
		refused("another secret", other, body, now)
	})
}
