package effects_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// downstream is a bank that can be looked up, and told how to answer.
type downstream struct {
	*httptest.Server
	mu       sync.Mutex
	payments []payment
	asked    []time.Time
	atOnce   int                                           // questions under way
	most     int                                           // ... at one time
	answer   func(http.ResponseWriter, *http.Request) bool // true: it answered itself
	before   func()                                        // called before each answer
}

type payment struct {
	ID       string `json:"id"`
	Key      string `json:"reference"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
	Ours     string `json:"ours,omitempty"`
	Maybe    bool   `json:"maybe,omitempty"`
}

func newDownstream(t testing.TB) *downstream {
	d := &downstream{}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *downstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("reference")
	d.mu.Lock()
	answer, before := d.answer, d.before
	if key != "CANARY" {
		d.asked = append(d.asked, time.Now())
		d.atOnce++
		d.most = max(d.most, d.atOnce)
	}
	d.mu.Unlock()
	if key != "CANARY" {
		defer func() { d.mu.Lock(); d.atOnce--; d.mu.Unlock() }()
	}
	if before != nil && key != "CANARY" {
		before()
	}
	if answer != nil && answer(w, r) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	found := []payment{}
	if key == "CANARY" {
		found = append(found, payment{ID: "canary", Key: "CANARY", Amount: "1", Currency: "USD", Status: "booked"})
	}
	for _, p := range d.payments {
		if p.Key == key {
			found = append(found, p)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": found})
}

func (d *downstream) pay(list ...payment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.payments = append(d.payments, list...)
}

func (d *downstream) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *downstream) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

// policy is one whose bank is this one; more are further lines of the tool, each beginning
// with a name.
func (d *downstream) policy(more ...string) string {
	own := map[string]string{
		"release": "{hold: 0s, not_taken_hold: 0s}", "deadline": "60s", "lands_within": "1ms", "visible_after": "1ms", "absence": "true", "on": "",
		"second": "", "limits": "",
	}
	for _, m := range more {
		name, value, _ := strings.Cut(m, ": ")
		own[name] = value
	}
	line := func(s string) string {
		if s == "" {
			return ""
		}
		return "\n    " + s
	}
	return fmt.Sprintf(`
release: %s
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: %s
    lands_within: %s%s
    lookup:
      http:
        url: %s/v1/payments?reference={business_key}
      found: body.data.filter(p, p.reference == effect.business_key && !has(p.maybe))
      possible: body.data.filter(p, has(p.maybe))
      match: same_amount(hit.amount, "major") && hit.currency == effect.currency
      final: hit.status == "booked" || hit.status == "reversed"
      ours: has(hit.ours) && hit.ours == effect.vendor_key
      never: hit.status == "cancelled"
      reversed: hit.status == "reversed"
      reference: hit.id
      result: '{"payment_id": hit.id}'
      absence_is_proof: %s
      visible_after: %s
      kept_for: 90d
      canary: {key: CANARY}
      allow_private: true%s
`, own["release"], own["deadline"], own["lands_within"], line(own["on"]), d.URL, own["absence"], own["visible_after"], limits(own["limits"]))
}

func limits(s string) string {
	if s == "" {
		return ""
	}
	return "\n      " + s
}

// acme is the business key of pay(invoice, ...).
func acme(invoice string) string { return "ACME Tools/" + invoice }

// paid is the record of pay(invoice, amount), as the bank has it.
func paid(invoice, amount string) payment {
	return payment{ID: "P-" + invoice, Key: acme(invoice), Amount: amount, Currency: "USD", Status: "booked"}
}

// look asks whatever is due, now.
func (w *world) look() {
	w.t.Helper()
	if err := w.Look(w.t.Context()); err != nil {
		w.t.Fatalf("look-ups: %v", err)
	}
}

// lookAgain lets the next look of an effect be due now, d after the last one: the earlier
// ones move back in time.
func (w *world) lookAgain(effect string, d time.Duration) {
	w.t.Helper()
	w.age(effect, d)
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid`, effect)
	w.look()
}

func (w *world) looks(effect string) effects.LooksView {
	w.t.Helper()
	v, err := w.Looks(w.t.Context(), effect)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// lost is an effect whose worker died, and whose deadline and moment have passed.
func (w *world) lost(run, args string) *effects.BeginAnswer {
	w.t.Helper()
	l := w.open(run, "pod-1")
	b := w.proceed(l, "send_payment", args)
	w.pass(b.EffectID)
	w.die(l)
	w.wantState(b.EffectID, effects.Interrupted)
	return b
}

// pass lets an attempt have begun two minutes ago, and its deadline and moment have passed
// one minute ago.
func (w *world) pass(effect string) {
	w.t.Helper()
	w.exec(`ALTER TABLE attempts DISABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE attempts SET begun_at = begun_at - interval '2 minutes', deadline = clock_timestamp() - interval '1 minute' WHERE effect_id = $1::uuid`, effect)
	w.exec(`ALTER TABLE attempts ENABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '1 minute', moment = clock_timestamp() - interval '1 minute' WHERE id = $1::uuid`, effect)
}
