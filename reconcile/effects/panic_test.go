package effects_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
)

// breaking is a log that panics on a contradiction: in the middle of a transaction.
type breaking struct{ slog.Handler }

func (breaking) Enabled(context.Context, slog.Level) bool { return true }

func (breaking) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "contradiction" {
		panic("the log is broken")
	}
	return nil
}

// Calls share a transaction in a goroutine of nobody's: a panic there must end neither
// the server nor a connection, and every caller must be told that nothing is known.
func TestAPanicInASharedTransactionEndsNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	p, _ := policy.Load("quittance.yaml", []byte(fastRelease))
	broken, err := effects.New(t.Context(), w.db, p, w.hub, slog.New(breaking{slog.DiscardHandler}))
	if err != nil {
		t.Fatal(err)
	}
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "failed")
	taken := effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "taken", Reference: "po_1"}}
	for range 20 { // more than there are connections
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := broken.Apply(ctx, []effects.Op{taken})
		cancel()
		if err == nil {
			t.Fatal("a call whose transaction broke down was answered")
		}
	}
	if v := w.effect(b.EffectID); len(v.Contradictions) != 0 || len(v.Evidence) != 0 {
		t.Fatalf("half of a broken transaction was kept: %+v", v)
	}
	if a := w.op(taken); a.Refusal == nil || a.Refusal.Code != effects.CodeStaleFence {
		t.Fatalf("afterwards: %+v", a)
	}
	if v := w.effect(b.EffectID); len(v.Contradictions) != 1 {
		t.Fatalf("%d contradictions, want 1", len(v.Contradictions))
	}
}
