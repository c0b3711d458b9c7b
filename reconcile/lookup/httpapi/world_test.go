package httpapi_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

// clock is the time at the bank and in the questions.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

// world is a bank and a tool that looks there.
type world struct {
	t      *testing.T
	bank   *simulator.Server
	clock  *clock
	look   *lookup.Lookup
	policy *policy.Policy
	env    map[string]string
	reads  []lookup.Read
	owned  map[string]string
}

const tool = `
tools:
  pay:
    business_key: "{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    lookup:
      http:
        url: BANK/v1/payments?reference={business_key}
        headers: {Authorization: "Bearer ${env:TOKEN}"}
      found: body.data.filter(p, p.reference == effect.business_key)
      match: same_amount(hit.amount, "minor") && hit.currency == effect.currency && hit.to == effect.arguments.to
      final: hit.status == "booked"
      ours: hit.?idempotency_key.orValue("") == effect.vendor_key
      never: hit.status == "canceled"
      reference: hit.id
      result: '{"payment_id": hit.id}'
      state: hit.status
      possible: body.data.filter(p, p.reference != effect.business_key && p.to == effect.arguments.to && same_amount(p.amount, "minor"))
      not_found: status == 404 && body.code == "order_unknown"
      next: body.next_url
      absence_is_proof: true
      visible_after: 60s
      kept_for: 30d
      canary: BANK/v1/payments?reference=CANARY-1
      world: live
      world_seen: body.world
      allow_private: true
`

// open starts a bank and reads the policy; replace is pairs of old and new in it.
func open(t *testing.T, replace ...string) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{}, env: map[string]string{"TOKEN": simulator.LiveToken}, owned: map[string]string{}}
	w.clock.at.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
	var err error
	if w.bank, err = simulator.Start(w.clock.now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.bank.Close)
	w.declare(tool, replace...)
	return w
}

func (w *world) declare(source string, replace ...string) {
	w.t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(source, replace[i]) {
			w.t.Fatalf("the policy has no %q", replace[i])
		}
		source = strings.ReplaceAll(source, replace[i], replace[i+1])
	}
	source = strings.ReplaceAll(source, "BANK", w.bank.URL)
	in := read.Surroundings{
		Getenv:   func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		ReadFile: os.ReadFile,
	}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(source))
	if err := mistakes.Err(); err != nil {
		w.t.Fatal(err)
	}
	w.policy, w.look = p, p.Tool("pay").Lookup()
}

func (w *world) tool() *policy.Tool { return w.policy.Tool("pay") }

// order is 4,200.00 USD for INV-9, sent at the clock's time.
func order() simulator.Payment {
	return simulator.Payment{Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Key: "qt_1"}
}

// question is about the order, sent at 09:00:00, with a minute to be sent and two to land.
func (w *world) question() lookup.Question {
	w.t.Helper()
	arguments, err := canon.ParseObject([]byte(`{"invoice":"INV-9","amount":420000,"currency":"USD","to":"DE02"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	usd, err := money.Currency("USD")
	if err != nil {
		w.t.Fatal(err)
	}
	amount, err := money.ParseMinor("420000", usd)
	if err != nil {
		w.t.Fatal(err)
	}
	sent := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	lands := 2 * time.Minute
	return lookup.Question{
		Effect: "e1", Account: "a", Run: "r", Tool: "pay", BusinessKey: "INV-9", VendorKey: "qt_1",
		Arguments: arguments, Amount: &amount, LandsWithin: &lands,
		Attempts: []lookup.Attempt{{Begun: sent, Deadline: sent.Add(time.Minute)}},
		AskedAt:  w.clock.now(), Owned: w.owned,
	}
}

var redactor = redact.New([]byte("key of the tests"))

// ask looks once and judges, remembering the read.
func (w *world) ask() (lookup.Answer, lookup.Seen) {
	w.t.Helper()
	return w.askAbout(w.question())
}

func (w *world) askAbout(q lookup.Question) (lookup.Answer, lookup.Seen) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	seen := w.look.Ask(ctx, redactor, q)
	a := lookup.Judge(q, w.look.Terms, seen, w.reads)
	w.reads = append(w.reads, a.Read)
	raw, err := json.Marshal([]any{seen, a})
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(raw), "zz91") {
		w.t.Errorf("a secret is in what is stored: %s", raw)
	}
	return a, seen
}

// pass moves the clock.
func (w *world) pass(d time.Duration) { w.clock.at.Add(int64(d)) }

// want fails unless the answer is that.
func want(t *testing.T, a lookup.Answer, v lookup.Verdict, r lookup.Reason) {
	t.Helper()
	if a.Verdict != v || a.Reason != r {
		t.Errorf("%q (%s: %s), want %q (%s)", a.Verdict, a.Reason, a.Why, v, r)
	}
}
