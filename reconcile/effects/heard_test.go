package effects_test

import (
	"testing"

	"quittance/reconcile/effects"
)

// A late "failed" reopens what a person had found to be taken. Delivered once more, as a
// spool does that got no answer, it must not close the effect behind the person's back.
func TestAFinishThatReopenedDoesNotCloseWhenItComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	if _, err := w.Release(t.Context(), w.account, l.RunID, l.Token, ""); err != nil {
		t.Fatal(err)
	}
	if _, r := w.decide(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"}); r != nil {
		t.Fatal(r)
	}
	for range 3 {
		w.wantRefusalOrState(w.finish(b, "failed"), b.EffectID, effects.Interrupted)
	}
	if v := w.effect(b.EffectID); len(v.Evidence) != 1 {
		t.Errorf("%d pieces of evidence, want the one finish: %+v", len(v.Evidence), v.Evidence)
	}
}

func (w *world) wantRefusalOrState(a effects.Answer, id string, state effects.State) {
	w.t.Helper()
	if a.Refusal != nil && a.Refusal.Code != effects.CodeStaleFence {
		w.t.Fatalf("refused: %v", a.Refusal)
	}
	w.wantState(id, state)
}
