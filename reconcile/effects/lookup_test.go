package effects_test

import (
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

// The bank has it: nobody need be asked, and the agent is given what the bank says.
func TestALookUpProvesTaken(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	w.look()
	v := w.wantState(b.EffectID, effects.Taken)
	if v.DecidedBy != "look_up" || v.Reference != "P-INV-1" || string(v.Result) != `{"payment_id":"P-INV-1"}` {
		t.Fatalf("%+v", v)
	}
	w.wantRun("run", "ready")
	if n := len(v.Decisions); n != 1 || v.Decisions[0].Verdict != "taken" || v.Decisions[0].By != "look_up" || len(v.Evidence) == 0 {
		t.Fatalf("%+v %+v", v.Decisions, v.Evidence)
	}
	l := w.open("run", "pod-2")
	if a := w.begin(l, "send_payment", pay("INV-1", "4200.00")); a.Begin == nil || a.Begin.Do != "replay" || string(a.Begin.Result) != `{"payment_id":"P-INV-1"}` {
		t.Fatalf("%+v %v", a.Begin, a.Refusal)
	}
}

// The bank does not have it, twice, at least 30 s apart and past the moment: it may be
// sent again, and not before.
func TestALookUpProvesNotTaken(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	v := w.looks(b.EffectID)
	if len(v.Looks) != 1 || v.Looks[0].Reason != lookup.NotYet || v.Looks[0].Earliest.IsZero() || !v.Next.Equal(v.Looks[0].Earliest.Truncate(time.Microsecond)) && v.Next.After(v.Looks[0].Earliest) {
		t.Fatalf("%+v", v)
	}
	w.lookAgain(b.EffectID, 20*time.Second)
	w.wantState(b.EffectID, effects.Interrupted)
	w.lookAgain(b.EffectID, 11*time.Second)
	if v := w.wantState(b.EffectID, effects.Cleared); v.DecidedBy != "look_up" || v.Why != "not_taken" {
		t.Fatalf("%+v", v)
	}
	l := w.open("run", "pod-2")
	again := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
	if again.Attempt != 2 || again.VendorKey != b.VendorKey {
		t.Fatalf("%+v", again)
	}
	if v := w.looks(b.EffectID); !v.Next.IsZero() {
		t.Fatalf("it is asked while it is in flight: %+v", v)
	}
}
