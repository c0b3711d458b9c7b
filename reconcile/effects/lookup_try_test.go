package effects_test

import (
	"errors"
	"strings"
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
)

// A look-up is tried on a real key, and nothing changes by it: no answer is stored, no
// schedule moves, and the effect stays what it is although the answer would prove it.
func TestATrialChangesNothing(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"), paid("INV-2", "10.00"))
	rows := func() (n int) {
		t.Helper()
		err := w.db.Get(t.Context(), &n, `SELECT (SELECT count(*) FROM lookups) + (SELECT count(*) FROM evidence) + (SELECT count(*) FROM effect_events)
			+ (SELECT count(*) FROM policies) + (SELECT count(*) FROM lookup_schedule WHERE asked_at IS NOT NULL OR step > 0)`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := rows()
	got, err := w.TryLookup(t.Context(), "send_payment", acme("INV-1"))
	if err != nil {
		t.Fatal(err)
	}
	l := got.Look
	if got.Effect != b.EffectID || l.Verdict != "taken" || l.Reference != "P-INV-1" || string(got.Result) != `{"payment_id":"P-INV-1"}` || l.Status != 200 ||
		l.Latency == 0 || l.Pages != 1 || len(l.Records) != 1 || len(l.Conditions) == 0 || !strings.Contains(l.Request, "GET ") {
		t.Errorf("%+v", got)
	}
	// By another engine of the same database, as the command line has it.
	p, mistakes := policy.Load("quittance.yaml", []byte(bank.policy("lands_within: 3s")))
	if p == nil {
		t.Fatal(mistakes)
	}
	reading, err := effects.Reading(t.Context(), w.db, p)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := reading.TryLookup(t.Context(), "send_payment", acme("INV-2"))
	if err != nil || alone.Effect != "" || alone.Look.Reason != lookup.NoCall || len(alone.Look.Records) != 1 || alone.Look.Records[0].Reference != "P-INV-2" {
		t.Errorf("a key that no call has: %+v, %v", alone, err)
	}
	if none, err := w.TryLookup(t.Context(), "send_payment", acme("INV-3")); err != nil || none.Look.Reason != lookup.NotYet || none.Look.Verdict != "inconclusive" {
		t.Errorf("a key that nobody has: %+v, %v", none, err)
	}
	if after := rows(); after != before {
		t.Errorf("%d rows changed", after-before)
	}
	w.wantState(b.EffectID, effects.Interrupted)
}

func TestATrialIsRefusedWhereNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy("limits: per_second: 1"))
	for tool, want := range map[string]effects.Code{"no_such_tool": effects.CodeNoLookup, "send_payment": effects.CodeInvalid} {
		key := "k"
		if tool == "send_payment" {
			key = strings.Repeat("k", 1025)
		}
		_, err := w.TryLookup(t.Context(), tool, key)
		if r, ok := errors.AsType[*effects.Refusal](err); !ok || r.Code != want {
			t.Errorf("%s: %v", tool, err)
		}
	}
	w.exec(`UPDATE installation SET outward = false`)
	if _, err := w.TryLookup(t.Context(), "send_payment", "k"); err == nil || bank.count() != 0 {
		t.Errorf("a copy of the database asked: %v", err)
	}
}
