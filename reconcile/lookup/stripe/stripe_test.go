package stripe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

// object is one as Stripe's own mock server shows it (testdata), with members changed: the
// states that it cannot produce.
func object(t *testing.T, kind string, changes map[string]any) map[string]any {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	for name, v := range changes {
		o[name] = v
	}
	return o
}

// standIn is Stripe with objects in it.
type standIn struct {
	t    *testing.T
	url  string
	key  string
	live bool

	mu      sync.Mutex
	objects []map[string]any
	asked   []*http.Request
}

func start(t *testing.T, objects ...map[string]any) *standIn {
	t.Helper()
	s := &standIn{t: t, key: "rk_live_zz91", live: true, objects: objects}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer "+s.key || r.Header.Get("Stripe-Version") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error"}}`)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if len(parts) == 2 {
		for _, o := range s.objects {
			if o["id"] == parts[1] {
				_ = json.NewEncoder(w).Encode(o)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"code":"resource_missing","type":"invalid_request_error"}}`)
		return
	}
	s.list(w, r.URL.Query())
}

func (s *standIn) list(w http.ResponseWriter, query url.Values) {
	since, _ := strconv.ParseFloat(query.Get("created[gte]"), 64)
	all := []map[string]any{}
	for _, o := range s.objects {
		if o["created"].(float64) >= since {
			all = append(all, o)
		}
	}
	if after := query.Get("starting_after"); after != "" {
		i := slices.IndexFunc(all, func(o map[string]any) bool { return o["id"] == after })
		all = all[i+1:]
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	page := all[:min(limit, len(all))]
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": page, "has_more": len(page) < len(all), "url": "/v1/x"})
}

var sent = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// ask asks about a call of 10.99 USD whose own key is qt_1.
func (s *standIn) ask(stripe, more string, asked time.Time, earlier ...lookup.Read) (lookup.Answer, lookup.Seen) {
	s.t.Helper()
	source := fmt.Sprintf(`
tools:
  charge:
    business_key: "{order}"
    amount: {value: amount, currency: currency, unit: minor}
    lookup:
      stripe: {key: "${env:KEY}", url: %s, %s}
      allow_private: true
      absence_is_proof: true
      visible_after: 0s
      kept_for: 365d
      canary: pi_canary
      world: live%s
`, s.url, stripe, more)
	in := read.Surroundings{Getenv: func(string) (string, bool) { return s.key, true }}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(source))
	if err := mistakes.Err(); err != nil {
		s.t.Fatal(err)
	}
	args, err := canon.ParseObject([]byte(`{"order":"O-1","amount":1099,"currency":"USD","payment":{"intent-id":"pi_1"}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	usd, err := money.Currency("USD")
	if err != nil {
		s.t.Fatal(err)
	}
	amount, err := money.ParseMinor("1099", usd)
	if err != nil {
		s.t.Fatal(err)
	}
	lands := time.Minute
	q := lookup.Question{Effect: "e", BusinessKey: "O-1", VendorKey: "qt_1", Arguments: args, Amount: &amount, LandsWithin: &lands, AskedAt: asked,
		Attempts: []lookup.Attempt{{Begun: sent, Deadline: sent.Add(time.Minute)}}}
	look := p.Tool("charge").Lookup()
	seen := look.Ask(s.t.Context(), redact.New([]byte("k")), q)
	a := lookup.Judge(q, look.Terms, seen, earlier)
	if raw, err := json.Marshal([]any{seen, a}); err != nil || strings.Contains(string(raw), "zz91") {
		s.t.Errorf("the key is in what is stored: %s (%v)", raw, err)
	}
	return a, seen
}

const byID = `object: payment_intent, id: "{arguments.payment.intent-id}"`
const byList = `object: payment_intent, metadata: quittance_key`

func TestByID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  string
		change  map[string]any
		verdict lookup.Verdict
		reason  lookup.Reason
	}{
		{"succeeded", nil, lookup.Taken, lookup.Matched},
		{"canceled", nil, lookup.NotTaken, lookup.NeverAgain},
		{"processing", nil, lookup.Inconclusive, lookup.NotFinal},
		{"requires_action", nil, lookup.Inconclusive, lookup.NotFinal},
		{"requires_payment_method", nil, lookup.Inconclusive, lookup.NotFinal},
		{"requires_capture", nil, lookup.Inconclusive, lookup.NotFinal},
		{"succeeded", map[string]any{"amount": 1100, "amount_received": 1100}, lookup.Inconclusive, lookup.Mismatch},
		{"succeeded", map[string]any{"amount_received": 500}, lookup.Inconclusive, lookup.Mismatch}, // captured in part
		{"succeeded", map[string]any{"currency": "eur"}, lookup.Inconclusive, lookup.Mismatch},
		{"succeeded", map[string]any{"livemode": false}, lookup.Inconclusive, lookup.CouldNot}, // a live key sees no such thing
		{"succeeded", map[string]any{"id": "pi_10"}, lookup.Inconclusive, lookup.NotYet},       // another object
	} {
		change := map[string]any{"id": "pi_1", "status": c.status, "livemode": true, "amount_received": 0}
		if c.status == "succeeded" {
			change["amount_received"] = 1099
		}
		for name, v := range c.change {
			change[name] = v
		}
		s := start(t, object(t, "payment_intent", change), object(t, "payment_intent", map[string]any{"id": "pi_canary"}))
		a, seen := s.ask(byID, "", sent.Add(time.Second))
		if a.Verdict != c.verdict || a.Reason != c.reason {
			t.Errorf("%s %v: %q %s (%s %s)", c.status, c.change, a.Verdict, a.Reason, seen.Problem, seen.Detail)
		}
		if c.verdict == lookup.Taken && (a.Reference != "pi_1" || string(a.Result) != `{"id":"pi_1","status":"succeeded"}`) {
			t.Errorf("reference %q, result %s", a.Reference, a.Result)
		}
	}
}

func TestByList(t *testing.T) {
	t.Parallel()
	many := func(n int, ours ...int) (list []map[string]any) {
		for i := range n {
			change := map[string]any{"id": fmt.Sprint("pi_", i), "created": float64(sent.Unix() + int64(i)), "livemode": true}
			if slices.Contains(ours, i) {
				change["metadata"], change["status"], change["amount_received"] = map[string]any{"quittance_key": "qt_1"}, "succeeded", 1099
			}
			list = append(list, object(t, "payment_intent", change))
		}
		return append(list, object(t, "payment_intent", map[string]any{"id": "pi_canary"})) // created long ago
	}
	s := start(t, many(240, 203)...)
	a, seen := s.ask(byList, "", sent.Add(time.Second))
	if a.Verdict != lookup.Taken || a.Reference != "pi_203" || seen.Pages != 3 {
		t.Errorf("row 203 of 240: %s %s after %d pages (%s)", a.Reason, a.Reference, seen.Pages, seen.Detail)
	}
	if since := s.asked[0].URL.Query().Get("created[gte]"); since != fmt.Sprint(sent.Unix()-300) {
		t.Errorf("listed since %s", since)
	}
	s = start(t, many(240, 3, 203)...)
	if a, _ = s.ask(byList, "", sent.Add(time.Second)); a.Reason != lookup.Multiple {
		t.Errorf("two: %s", a.Reason)
	}
	s = start(t, many(5)...)
	first, _ := s.ask(byList, "", sent.Add(time.Hour))
	if a, seen = s.ask(byList, "", sent.Add(time.Hour+lookup.Apart), first.Read); a.Verdict != lookup.NotTaken || !seen.Canary {
		t.Errorf("none: %s, canary %v", a.Reason, seen.Canary)
	}
	s.objects = s.objects[:5] // the canary is not visible: another account's key
	first, _ = s.ask(byList, "", sent.Add(time.Hour))
	if a, _ = s.ask(byList, "", sent.Add(time.Hour+lookup.Apart), first.Read); a.Verdict != lookup.Inconclusive {
		t.Errorf("none, and no canary: %s", a.Reason)
	}
}

func TestASandboxKeyProvesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, object(t, "payment_intent", map[string]any{"id": "pi_1", "status": "succeeded", "amount_received": 1099}))
	s.key = "rk_test_zz91"
	if a, _ := s.ask(byID, "", sent.Add(time.Second)); a.Reason != lookup.WrongWorld {
		t.Errorf("by id: %s", a.Reason)
	}
	if a, _ := s.ask(byList, "", sent.Add(time.Hour)); a.Reason != lookup.WrongWorld {
		t.Errorf("by list: %s", a.Reason)
	}
}

func TestARefusedKeyCouldNotCheck(t *testing.T) {
	t.Parallel()
	s := start(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	s.url = refusing.URL
	if a, seen := s.ask(byID, "", sent.Add(time.Hour)); a.Reason != lookup.CouldNot || seen.Problem != lookup.Denied {
		t.Errorf("%s (%s)", a.Reason, seen.Problem)
	}
}

// The shapes of charges, refunds and of a list fit the rules as Stripe's mock server shows
// them; the states are ours.
func TestTheOtherObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		change map[string]any
		reason lookup.Reason
	}{
		{"charge", map[string]any{"status": "succeeded", "captured": true, "amount": 1099, "amount_captured": 1099, "livemode": true}, lookup.Matched},
		{"charge", map[string]any{"status": "succeeded", "captured": false, "amount": 1099, "amount_captured": 0, "livemode": true}, lookup.NotFinal},
		{"charge", map[string]any{"status": "failed", "captured": false, "amount": 1099, "livemode": true}, lookup.NotFinal},
		{"refund", map[string]any{"status": "succeeded", "amount": 1099}, lookup.Matched},
		{"refund", map[string]any{"status": "pending", "amount": 1099}, lookup.NotFinal},
		{"refund", map[string]any{"status": "canceled", "amount": 1099}, lookup.NeverAgain},
	} {
		c.change["id"] = "pi_1"
		s := start(t, object(t, c.kind, c.change))
		a, seen := s.ask(strings.Replace(byID, "payment_intent", c.kind, 1), "", sent.Add(time.Second))
		if a.Reason != c.reason {
			t.Errorf("%s %v: %s (%s %s)", c.kind, c.change, a.Reason, seen.Problem, seen.Detail)
		}
	}
	charge := object(t, "charge", map[string]any{"id": "pi_1", "status": "succeeded", "captured": true, "amount": 1099, "amount_captured": 1099, "livemode": true, "refunded": true})
	if a, _ := start(t, charge).ask(strings.Replace(byID, "payment_intent", "charge", 1), "", sent.Add(time.Second)); a.Verdict != lookup.Taken || !a.Reversed {
		t.Errorf("refunded: %q, reversed %v", a.Verdict, a.Reversed)
	}
	raw, err := os.ReadFile("testdata/payment_intents.json")
	if err != nil {
		t.Fatal(err)
	}
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(raw) }))
	t.Cleanup(whole.Close)
	s := start(t)
	s.url = whole.URL
	if a, seen := s.ask(byList, "\n      possible: '[]'", sent.Add(time.Second)); a.Reason != lookup.NotYet || !seen.Complete {
		t.Errorf("the list of the mock server: %s (%s %s)", a.Reason, seen.Problem, seen.Detail)
	}
}
