package effects_test

import (
	"testing"
	"time"

	"quittance/reconcile/effects"
)

const sameKey = "on: on_unknown: same_key\n    vendor_key: {life: 24h, checks_body: true}"

// The vendor keeps its key: the call may be made again under it, as long as the last look
// shows nothing and the key lives past the new attempt.
func TestTheVendorsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found   []payment
		down    bool
		old     bool
		cleared bool
	}{
		"nothing found":        {cleared: true},
		"no answer":            {down: true, cleared: true},
		"found, not final":     {found: []payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"}}},
		"found, another sum":   {found: []payment{paid("INV-1", "1.00")}},
		"the key is too old":   {old: true},
		"maybe somebody elses": {found: []payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked", Maybe: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bank := newDownstream(t)
			w := newWorld(t, bank.policy(sameKey))
			l := w.open("run", "pod-1")
			b := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
			if c.old {
				w.exec(`ALTER TABLE effects DISABLE TRIGGER effects_identity_fixed`)
				w.exec(`UPDATE effects SET opened_at = clock_timestamp() - interval '24 hours' WHERE id = $1::uuid`, b.EffectID)
				w.exec(`ALTER TABLE effects ENABLE TRIGGER effects_identity_fixed`)
			}
			bank.down(c.down)
			bank.pay(c.found...)
			w.die(l)
			w.look()
			v := w.effect(b.EffectID)
			if !c.cleared {
				w.wantState(b.EffectID, effects.Interrupted)
				return
			}
			if v.State != string(effects.Cleared) || v.Why != "same_key" || v.DecidedBy != "vendor_key" || len(v.Decisions) != 1 || v.Decisions[0].Verdict != "same_key" {
				t.Fatalf("%+v", v)
			}
			again := w.proceed(w.open("run", "pod-2"), "send_payment", pay("INV-1", "4200.00"))
			if again.VendorKey != b.VendorKey || again.Attempt != 2 {
				t.Fatalf("%+v", again)
			}
		})
	}
}

// A look that found something, and then one that could not look: what was found stands.
func TestTheVendorsKeyWaitsForWhatWasFound(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy(sameKey))
	l := w.open("run", "pod-1")
	b := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
	w.die(l)
	bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"})
	w.look()
	bank.down(true)
	w.lookAgain(b.EffectID, time.Minute)
	w.wantState(b.EffectID, effects.Interrupted)
	// It becomes final: taken, and nobody sends again.
	bank.down(false)
	bank.set(func() { bank.payments[0].Status = "booked" })
	w.lookAgain(b.EffectID, time.Minute)
	w.wantState(b.EffectID, effects.Taken)
}

// A tool may have its vendor's key and no look-up: it is granted at once.
func TestTheVendorsKeyWithoutALookUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    deadline: 60s
    lands_within: 10m
    on_unknown: same_key
    vendor_key: {life: 24h}
`)
	_, b := w.interrupted("run", "send_payment", pay("INV-1", "1"))
	w.look()
	if v := w.wantState(b.EffectID, effects.Cleared); v.Why != "same_key" {
		t.Fatalf("%+v", v)
	}
	if looks := w.looks(b.EffectID); !looks.Blind || len(looks.Looks) != 0 || looks.KeyEnds.Before(time.Now().Add(23*time.Hour)) {
		t.Fatalf("%+v", looks)
	}
}
