package effects_test

import (
	"testing"

	"quittance/reconcile/effects"
)

// stopped closes an interrupted effect with a stop that is visible.
func stopped(w *world, id string) {
	w.t.Helper()
	w.passDeadline(id)
	w.must(w.person, effects.Decide{EffectID: id, Verdict: effects.VerdictStop})
	if v := w.effect(id); v.State != "cancelled" || !v.Released {
		w.t.Fatalf("stop: %s, released %v", v.State, v.Released)
	}
}

func TestOverlapHoldsAnotherRunAndAnotherAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a := w.open("a", "pod-1")
	first := w.proceed(a, "send_payment", pay("INV-1", "90.00"))
	b := w.open("b", "pod-2")
	second := heldAnswer(w, b, "send_payment", pay("INV-1", "900.00"))
	w.wantRun("b", "paused")
	w.wantRun("a", "running")
	w.wantOwner(second, first.EffectID)
	v := w.effect(second)
	if len(v.Overlaps) != 1 || v.Overlaps[0].EffectID != first.EffectID || !v.Overlaps[0].Owner || v.Why != "overlap" || len(v.Attempts) != 0 {
		t.Fatalf("view of the held effect: %+v", v)
	}
	// Another invoice is nobody's business.
	c := w.open("c", "pod-3")
	w.proceed(c, "send_payment", pay("INV-2", "90.00"))
}

func TestRepeatInTheSameRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease+`
  buy_voucher:
    business_key: "{value}"
    repeat: allow
    deadline: 60s
`)
	l := w.open("a", "pod-1")
	// By default a tool without a business key allows a repeat, and marks it.
	one := w.proceed(l, "refund", `{"order":"O-1"}`)
	two := w.proceed(l, "refund", `{"order":"O-1"}`, occurrence(2))
	if got := w.effect(two.EffectID).RepeatOf; got != one.EffectID {
		t.Fatalf("repeat of %q, want %q", got, one.EffectID)
	}
	// So does one with a business key that says so.
	one = w.proceed(l, "buy_voucher", `{"value":"25.00"}`)
	two = w.proceed(l, "buy_voucher", `{"value":"25.00"}`, occurrence(2))
	if got := w.effect(two.EffectID).RepeatOf; got != one.EffectID {
		t.Fatalf("repeat of %q, want %q", got, one.EffectID)
	}
	// ... but only within the run.
	m := w.open("b", "pod-2")
	heldAnswer(w, m, "buy_voucher", `{"value":"25.00"}`)
	// A business key holds a repeat, whether the first is open or taken.
	one = w.proceed(l, "send_payment", invoice)
	w.finish(one, "taken", reference("po_1"))
	held := heldAnswer(w, l, "send_payment", invoice, occurrence(2))
	if got := w.effect(held).RepeatOf; got != one.EffectID {
		t.Fatalf("repeat of %q, want %q", got, one.EffectID)
	}
}

func TestCallClaimIsFreedByTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "refund", `{"order":"O-1"}`)
	held := heldAnswer(w, b, "refund", `{"order":"O-1"}`)
	w.finish(one, "taken", reference("r_1"))
	w.wantOwner(held, held) // it falls back to the one that waits
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.wantRun("b", "running")
	w.proceed(b, "refund", `{"order":"O-1"}`)
	c := w.open("c", "pod-3")
	heldAnswer(w, c, "refund", `{"order":"O-1"}`)
}

func TestClaimOfFailedFallsBackToTheLatestOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b, c := w.open("a", "pod-1"), w.open("b", "pod-2"), w.open("c", "pod-3")
	one := w.proceed(a, "send_payment", invoice)
	heldAnswer(w, b, "send_payment", invoice)
	latest := heldAnswer(w, c, "send_payment", invoice)
	w.finish(one, "failed")
	w.wantOwner(one.EffectID, latest)
	// With everything failed or cancelled and released it is free.
	for _, run := range []string{"b", "c"} {
		for _, x := range w.run(run).Open {
			w.must(w.person, effects.Decide{EffectID: x.EffectID, Verdict: effects.VerdictStop})
		}
	}
	w.wantOwner(one.EffectID, "")
	d := w.open("d", "pod-4")
	w.proceed(d, "send_payment", invoice)
}

func TestStopFreesTheKeyOnlyAtItsRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	w.passDeadline(one.EffectID)
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictStop})
	w.wantOwner(one.EffectID, one.EffectID)
	b := w.open("b", "pod-2")
	held := heldAnswer(w, b, "send_payment", invoice)
	// Nor may anybody be allowed over a stop that can still be taken back.
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow}, effects.CodeNotAllowed)
	w.passHold(one.EffectID)
	w.settle()
	w.wantOwner(one.EffectID, held)
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.wantState(held, effects.Cleared)
}

func TestUndoOfAStopTakesItsKeyAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	stopped(w, one.EffectID)
	w.wantOwner(one.EffectID, "")
	w.undo(one.EffectID)
	w.wantState(one.EffectID, effects.Interrupted)
	w.wantOwner(one.EffectID, one.EffectID)
	w.wantRun("a", "paused")

	// Somebody else has it meanwhile: held, not interrupted.
	_, two := w.interrupted("b", "send_payment", pay("INV-2", "1.00"))
	stopped(w, two.EffectID)
	c := w.open("c", "pod-3")
	other := w.proceed(c, "send_payment", pay("INV-2", "1.00"))
	w.undo(two.EffectID)
	w.wantState(two.EffectID, effects.Held)
	w.wantOwner(two.EffectID, other.EffectID)
}

func (w *world) undo(id string) effects.DecideAnswer {
	w.t.Helper()
	a, err := w.Undo(w.t.Context(), w.person, effects.Undo{EffectID: id, Note: "pressed the wrong one"})
	if err != nil {
		w.t.Fatalf("undo: %v", err)
	}
	return a
}

func TestAllow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "send_payment", invoice)
	held := heldAnswer(w, b, "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow}, effects.CodeNotAllowed) // in flight
	w.die(a)
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow}, effects.CodeNotAllowed) // interrupted
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"})
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.wantOwner(held, held)
	w.wantRun("b", "running")
	second := w.proceed(b, "send_payment", invoice)
	if second.EffectID != held || second.Attempt != 1 {
		t.Fatalf("begin after allow: %+v", second)
	}
	if got := w.finish(second, "taken", reference("po_2")); got.Finish == nil {
		t.Fatal(got.Refusal)
	}
	if v := w.effect(held); len(v.Contradictions) != 0 {
		t.Fatalf("an honest second payment is no contradiction: %+v", v.Contradictions)
	}
	w.wantRun("b", "running")
}

// More effects wait for one business key than any list shows: the one that is still
// in flight must be seen all the same.
func TestAllowSeesTheOldestOfManyOverlaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a := w.open("a", "pod-1")
	w.proceed(a, "send_payment", invoice)
	w.exec(`
		INSERT INTO effects (id, account_id, run_id, key, tool, occurrence, arguments, call_digest, claim, call_claim, summary,
			opened_at, state, why, attempts, fence, changed_at)
		SELECT gen_random_uuid(), account_id, run_id, sha256(n::text::bytea), tool, n, arguments, call_digest, claim, call_claim, summary,
			clock_timestamp(), 'held', 'overlap', 0, 0, clock_timestamp()
		FROM effects, generate_series(2, 300) AS n`)
	b := w.open("b", "pod-2")
	held := heldAnswer(w, b, "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow}, effects.CodeNotAllowed)
}

func TestUndoOfAnAllowGivesTheKeyBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "send_payment", invoice)
	held := heldAnswer(w, b, "send_payment", invoice)
	w.finish(one, "taken", reference("po_1"))
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.undo(held)
	w.wantState(held, effects.Held)
	w.wantOwner(held, one.EffectID)
	w.wantRun("b", "paused")
}

// With the overlapped one failed nobody else wants the key: it stays with the held
// effect and is not free under it.
func TestUndoOfAnAllowKeepsAKeyNobodyElseHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "send_payment", invoice)
	held := heldAnswer(w, b, "send_payment", invoice)
	w.finish(one, "failed")
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.undo(held)
	w.wantState(held, effects.Held)
	w.wantOwner(held, held)
}

func TestAllowIsWithdrawnWhenTheOverlappedOneIsReopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	b := w.open("b", "pod-2")
	held := heldAnswer(w, b, "send_payment", invoice)
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"})
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.wantRun("b", "running")
	w.undo(one.EffectID) // in another run
	w.wantState(one.EffectID, effects.Interrupted)
	w.wantState(held, effects.Held)
	w.wantRun("b", "paused")
	w.wantOwner(held, one.EffectID)
	w.wantRefusal(w.begin(b, "send_payment", invoice), effects.CodeRunPaused)
}

func TestAllowIsWithdrawnWhenTheOverlappedOneIsContradicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a := w.open("a", "pod-1")
	one := w.proceed(a, "send_payment", invoice)
	w.finish(one, "failed")
	b := w.open("b", "pod-2")
	two := w.proceed(b, "send_payment", invoice)
	c := w.open("c", "pod-3")
	held := heldAnswer(w, c, "send_payment", invoice)
	w.finish(two, "failed")
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.wantRun("c", "running")
	// The tool said no, and took the money all the same.
	w.wantRefusal(w.finish(one, "taken", reference("po_1")), effects.CodeStaleFence)
	if got := w.effect(one.EffectID); len(got.Contradictions) != 1 {
		t.Fatalf("contradictions: %+v", got.Contradictions)
	}
	w.wantState(held, effects.Held)
	w.wantRun("c", "paused")
}

// A used allow is past being withdrawn: the reopened effect waits behind it.
func TestUsedAllowKeepsTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	b := w.open("b", "pod-2")
	held := heldAnswer(w, b, "send_payment", invoice)
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"})
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.proceed(b, "send_payment", invoice)
	w.undo(one.EffectID)
	w.wantState(one.EffectID, effects.Held)
	w.wantState(held, effects.InFlight)
	w.wantOwner(held, held)
}

// A cleared effect whose key went to somebody else may not run.
func TestClearedWithoutItsKeyIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	w.passDeadline(one.EffectID)
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictNotTaken})
	b := w.open("b", "pod-2")
	other := heldAnswer(w, b, "send_payment", invoice)
	w.exec(`UPDATE business_claims SET effect_id = $1::uuid`, other)
	l := w.open("a", "pod-3")
	w.wantRefusal(w.begin(l, "send_payment", invoice), effects.CodeRunPaused)
	w.wantState(one.EffectID, effects.Held)
}

func TestHeldForAMissingBusinessKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	id := heldAnswer(w, l, "send_payment", `{"vendor":"ACME","amount":"1.00","currency":"USD"}`)
	if v := w.effect(id); v.Why != "no_business_key" || v.BusinessKey != "" {
		t.Fatalf("%+v", v)
	}
	w.must(w.person, effects.Decide{EffectID: id, Verdict: effects.VerdictAllow})
	w.wantRun("a", "running")
	w.proceed(l, "send_payment", `{"vendor":"ACME","amount":"1.00","currency":"USD"}`)
}

func TestSameAs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "send_payment", invoice)
	held := heldAnswer(w, b, "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictSameAs, SameAs: one.EffectID}, effects.CodeNotAllowed)
	w.finish(one, "taken", reference("po_1"), result(`{"payment_id":"po_1"}`))
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictTaken}, effects.CodeNotAllowed)
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictSameAs, SameAs: one.EffectID})
	got := w.begin(b, "send_payment", invoice).Begin
	if got == nil || got.Do != "replay" || string(got.Result) != `{"payment_id":"po_1"}` || got.DecidedBy != "person" {
		t.Fatalf("replay: %+v", got)
	}
	v := w.effect(held)
	if v.SameAs != one.EffectID || v.Reference != "" || len(v.Contradictions) != 0 {
		t.Fatalf("%+v", v)
	}
	// The key stays with the one that did it.
	w.wantOwner(held, one.EffectID)
	// What is only the same as something is no proof for a third.
	c := w.open("c", "pod-3")
	third := heldAnswer(w, c, "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: third, Verdict: effects.VerdictSameAs, SameAs: held}, effects.CodeNotAllowed)
}

// The worker of an effect that lost its key finishes late, with the very reference
// that the other one has: that agrees with the person who said they are the same.
func TestSameAsAgreesWithALateFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "send_payment", invoice)
	w.passDeadline(one.EffectID)
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictNotTaken})
	b := w.open("b", "pod-2")
	other := heldAnswer(w, b, "send_payment", invoice)
	w.exec(`UPDATE business_claims SET effect_id = $1::uuid`, other)
	l := w.open("a", "pod-3")
	w.wantRefusal(w.begin(l, "send_payment", invoice), effects.CodeRunPaused)
	w.wantState(one.EffectID, effects.Held)

	c := w.open("c", "pod-4")
	proof := w.proceed(c, "send_payment", pay("INV-77", "4200.00"))
	w.finish(proof, "taken", reference("po_1"))
	w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictSameAs, SameAs: proof.EffectID})
	if a := w.finish(one, "taken", reference("po_1")); a.Refusal != nil && a.Refusal.Code != effects.CodeStaleFence {
		t.Fatal(a.Refusal)
	}
	if v := w.effect(one.EffectID); len(v.Contradictions) != 0 {
		t.Fatalf("it agrees: %+v", v.Contradictions)
	}
	w.finish(one, "taken", reference("po_other"))
	if v := w.effect(one.EffectID); len(v.Contradictions) != 1 {
		t.Fatalf("another reference disagrees: %+v", v.Contradictions)
	}
}
