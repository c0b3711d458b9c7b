package desk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
)

// looked is a world with a bank that can be asked.
type looked struct {
	*world
	bank *simulator.Server
}

// bankRules add tools that are looked up: wire lands at once and may be proven, slow may
// land for an hour, blunt shows nothing that proves absence.
const bankRules = `
  wire: &wire
    summary: "Wire {amount} {currency} to {to} for {invoice}"
    business_key: "{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    deadline: 60s
    lands_within: LANDS
    vendor_key: {life: 24h}
    result_example: {payment_id: tr_1}
    lookup:
      http:
        url: BANK/v1/payments?reference={business_key}
        headers: {Authorization: "Bearer ${env:BANK_TOKEN}"}
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
      absence_is_proof: ABSENCE
      visible_after: 1ms
      kept_for: 30d
      canary: BANK/v1/payments?reference=CANARY-1
      world: live
      world_seen: body.world
      allow_private: true
`

func bankTool(name, lands, absence, bank string) string {
	s := strings.NewReplacer("wire: &wire", name+":", "LANDS", lands, "ABSENCE", absence, "BANK/", bank+"/").Replace(bankRules)
	if absence == "false" {
		s = strings.Replace(s, "      canary: "+bank+"/v1/payments?reference=CANARY-1\n", "", 1)
	}
	return s
}

func newLooked(t testing.TB) *looked {
	t.Helper()
	bank, err := simulator.Start(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bank.Close)
	w := newWorldWith(t, rules+bankTool("wire", "1ms", "true", bank.URL)+bankTool("slow", "1h", "true", bank.URL)+bankTool("blunt", "1ms", "false", bank.URL))
	return &looked{w, bank}
}

func wire(invoice string, minor int) string {
	return fmt.Sprintf(`{"invoice":%q,"amount":%d,"currency":"USD","to":"DE02"}`, invoice, minor)
}

// tr is a payment as the bank booked it, for wire(invoice, minor).
func tr(id, invoice string, minor int64) simulator.Payment {
	return simulator.Payment{ID: id, Reference: invoice, Amount: minor, Currency: "USD", To: "DE02", Status: "booked", LandedAt: time.Now()}
}

// looked waits until an effect was looked at n times, and returns what was seen.
func (w *world) looked(id string, n int) effects.LooksView {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		v, err := w.engine.Looks(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(v.Looks) >= n && !v.Asking {
			return v
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d looks at %s, want %d: %+v", len(v.Looks), id, n, v)
		}
	}
}

// asks makes an effect of a tool that is looked up once, and not again by itself.
func (w *looked) asks(tool, invoice string, minor int) string {
	w.t.Helper()
	id := w.interrupted("run-"+invoice, tool, wire(invoice, minor))
	w.looked(id, 1)
	w.still(id)
	return id
}

// still keeps the schedule from asking about an effect for a day.
func (w *world) still(id string) {
	w.t.Helper()
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() + interval '1 day', step = 8 WHERE effect_id = $1::uuid`, id)
}

// over lets an effect's attempt and deadline be past, and its looks d ago.
func (w *world) over(id string, d time.Duration) {
	w.t.Helper()
	w.exec(`ALTER TABLE attempts DISABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE attempts SET begun_at = begun_at - $2 * interval '1 second', deadline = clock_timestamp() - $2 * interval '1 second' WHERE effect_id = $1::uuid`, id, d.Seconds()+60)
	w.exec(`ALTER TABLE attempts ENABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE effects SET deadline = clock_timestamp() - $2 * interval '1 second', moment = clock_timestamp() - $2 * interval '1 second' WHERE id = $1::uuid`, id, d.Seconds()+60)
	w.exec(`ALTER TABLE lookups DISABLE TRIGGER lookups_append_only`)
	w.exec(`UPDATE lookups SET asked_at = asked_at - $2 * interval '1 second', answered_at = answered_at - $2 * interval '1 second',
		read = jsonb_set(read::jsonb, '{asked_at}', to_jsonb((read::jsonb->>'asked_at')::timestamptz - $2 * interval '1 second'))::text
		WHERE effect_id = $1::uuid`, id, d.Seconds())
	w.exec(`ALTER TABLE lookups ENABLE TRIGGER lookups_append_only`)
}

// ask makes an effect's next look due, and waits for it.
func (w *world) ask(id string) effects.LooksView {
	w.t.Helper()
	before, err := w.engine.Looks(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid`, id)
	return w.looked(id, len(before.Looks)+1)
}

// looks fills the desk with an effect in every state that looking up leaves.
func (w *looked) looks() map[string]string {
	w.t.Helper()
	m := map[string]string{}
	m["not found"] = w.asks("slow", "INV-NF", 420000)
	w.bank.Put(simulator.Payment{ID: "tr_5", Reference: "INV-NO", Amount: 21500, Currency: "USD", To: "DE02", Status: "processing", LandedAt: time.Now()})
	m["not final"] = w.asks("wire", "INV-NO", 21500)
	w.bank.Put(tr("tr_615", "INV-MM", 61500))
	m["mismatch"] = w.asks("wire", "INV-MM", 224000)
	w.bank.Put(tr("ch_1", "O-31", 14500), tr("ch_2", "O-31", 14500))
	m["double"] = w.asks("wire", "O-31", 14500)
	w.bank.Put(tr("tr_1927", "1927", 7700))
	m["possible"] = w.asks("wire", "27", 7700)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Unauthorized})
	m["denied"] = w.asks("wire", "INV-401", 9900)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.BadGateway})
	m["failing"] = w.asks("wire", "INV-502", 9900)
	w.bank.Tell(simulator.Behaviour{})
	w.bank.Put(tr("tr_9", "INV-OK", 5000))
	m["taken"] = w.interrupted("run-INV-OK", "wire", wire("INV-OK", 5000))
	w.looked(m["taken"], 1)
	m["ended"] = w.asks("blunt", "INV-END", 3300)
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = NULL, step = 21, ended_at = clock_timestamp() WHERE effect_id = $1::uuid`, m["ended"])
	// Somebody else's record: the first call's reference is known.
	_, first := w.begun("run-own-1", "wire", wire("INV-OWN", 12000))
	w.finish(first, "taken", "tr_own")
	w.bank.Put(tr("tr_own", "INV-OWN", 12000))
	_, m["foreign"] = w.begun("run-own-2", "wire", wire("INV-OWN", 12000))
	w.decide(w.petra, effects.Decide{EffectID: m["foreign"], Verdict: effects.VerdictAllow})
	w.exec(`UPDATE effects SET release_at = clock_timestamp() - interval '1 second' WHERE id = $1::uuid`, m["foreign"])
	w.soon(func() bool { return w.effect(m["foreign"]).Released })
	m["foreign"] = w.interrupted("run-own-2", "wire", wire("INV-OWN", 12000))
	w.looked(m["foreign"], 1)
	w.still(m["foreign"])
	return m
}

// soon waits until something is so.
func (w *world) soon(f func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("it did not come to be")
		}
	}
}

// reasonOf is what the last look at an effect showed.
func (w *world) reasonOf(id string) lookup.Reason {
	w.t.Helper()
	v, err := w.engine.Looks(w.t.Context(), id)
	if err != nil || len(v.Looks) == 0 {
		w.t.Fatalf("%+v, %v", v, err)
	}
	return v.Looks[0].Reason
}
