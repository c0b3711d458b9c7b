package effects_test

import (
	"testing"

	"quittance/reconcile/effects"
)

// apply sends several operations in one call.
func (w *world) apply(ops ...effects.Op) []effects.Answer {
	w.t.Helper()
	a, err := w.Apply(w.t.Context(), ops)
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return a
}

// Two moves of one effect in one transaction are two moves to the database too: the
// pair of the first state and the last may be none of the table's.
func TestTwoMovesInOneTransaction(t *testing.T) {
	t.Parallel()
	t.Run("begun by a permission and refused at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fastRelease)
		a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
		one := w.proceed(a, "send_payment", invoice)
		held := heldAnswer(w, b, "send_payment", invoice)
		w.finish(one, "taken", reference("po_1"))
		w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
		got := w.apply(
			effects.Op{Begin: &effects.Begin{Account: w.account, RunID: b.RunID, Lease: b.Token, AttemptID: "x", Tool: "send_payment", Arguments: []byte(invoice)}},
			effects.Op{Finish: &effects.Finish{Account: w.account, RunID: b.RunID, Tool: "send_payment", Arguments: []byte(invoice), Outcome: "failed"}},
		)
		if got[0].Begin == nil || got[1].Finish == nil {
			t.Fatalf("%+v", got)
		}
		w.wantState(held, effects.Failed)
	})
	t.Run("a late refusal, delivered twice at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, slowRelease)
		_, b := w.interrupted("a", "send_payment", invoice)
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
		late := &effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "failed"}
		w.apply(effects.Op{Finish: late}, effects.Op{Finish: late})
		if v := w.effect(b.EffectID); v.State == "taken" {
			t.Fatalf("the refusal was lost: %+v", v)
		}
	})
}

// A client that sends one begin twice in a batch, its first answer being unsure, gets
// the same answer twice.
func TestABeginTwiceInABatchIsTheSameAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	begin := func(attempt string) effects.Op {
		return effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: attempt, Tool: "send_payment", Arguments: []byte(invoice)}}
	}
	a, err := w.Apply(t.Context(), []effects.Op{begin("x"), begin("x"), begin("y")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if b := a[i].Begin; b == nil || b.Do != "proceed" || b.Fence != 1 || b.EffectID != a[0].Begin.EffectID || b.PerformWithin <= 0 {
			t.Errorf("answer %d: %+v %v", i, b, a[i].Refusal)
		}
	}
	w.wantRefusal(a[2], effects.CodeInFlight)
	if v := w.effect(a[0].Begin.EffectID); len(v.Attempts) != 1 {
		t.Errorf("%d attempts, want 1", len(v.Attempts))
	}
}
