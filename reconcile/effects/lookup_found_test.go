package effects_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

// What is found and proves nothing stays a person's question, says why, and is shown.
func TestWhatIsFoundAndProvesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found  []payment
		reason lookup.Reason
	}{
		"another amount":   {[]payment{paid("INV-1", "4200.01")}, lookup.Mismatch},
		"another currency": {[]payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "EUR", Status: "booked"}}, lookup.Mismatch},
		"not final":        {[]payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"}}, lookup.NotFinal},
		"twice":            {[]payment{paid("INV-1", "4200.00"), {ID: "P-2", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"}}, lookup.Multiple},
		"maybe":            {[]payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked", Maybe: true}}, lookup.Possible},
		"without a name":   {[]payment{{Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"}}, lookup.NoReference},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bank := newDownstream(t)
			w := newWorld(t, bank.policy())
			b := w.lost("run", pay("INV-1", "4200.00"))
			before := w.effect(b.EffectID).Version
			bank.pay(c.found...)
			w.look()
			v := w.wantState(b.EffectID, effects.Interrupted)
			looks := w.looks(b.EffectID)
			if len(looks.Looks) != 1 || looks.Looks[0].Reason != c.reason || looks.Looks[0].Verdict != "inconclusive" || len(looks.Looks[0].Records) != len(c.found) {
				t.Fatalf("%+v", looks.Looks)
			}
			if v.Version == before {
				t.Error("whoever read the page before may decide without having seen it")
			}
			// Twice more, as long apart as may be: still nothing is proven, and nothing is new.
			w.lookAgain(b.EffectID, time.Hour)
			w.lookAgain(b.EffectID, time.Hour)
			if again := w.wantState(b.EffectID, effects.Interrupted); again.Version != v.Version {
				t.Errorf("version %d, then %d, though nothing changed", v.Version, again.Version)
			}
			// "It did not happen" has to name what was found.
			d := effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken, Version: v.Version, Note: "the bank says so"}
			if r := w.refused(w.person, d, effects.CodeConflict); r.Reason != "found" || r.Pointer != "/not_ours" {
				t.Fatalf("%+v", r)
			}
			for _, h := range looks.Looks[0].Records {
				d.NotOurs = append(d.NotOurs, h.Name())
			}
			w.must(w.person, d)
			w.look()
			w.wantState(b.EffectID, effects.Cleared)
		})
	}
}

// Twice 401, 403, an undeclared 404, 410, 429 or 502 is no answer, and a full day of none
// proves nothing.
func TestNoAnswerProvesNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 401, 403, 404, 410, 429, 500, 502, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			bank := newDownstream(t)
			w := newWorld(t, bank.policy())
			b := w.lost("run", pay("INV-1", "4200.00"))
			before := w.effect(b.EffectID).Version
			bank.answer = func(rw http.ResponseWriter, r *http.Request) bool {
				if status == 429 {
					rw.Header().Set("Retry-After", "30")
				}
				rw.WriteHeader(status)
				_, _ = rw.Write([]byte("<html><script>x()</script>" + strings.Repeat("y", 10_000)))
				return true
			}
			w.look()
			if next := w.looks(b.EffectID).Next; status == 429 && time.Until(next) < 20*time.Second {
				t.Fatalf("the bank asked for 30 s, and is asked again at %v", next)
			}
			for range 5 {
				w.lookAgain(b.EffectID, 24*time.Hour)
			}
			v := w.wantState(b.EffectID, effects.Interrupted)
			looks := w.looks(b.EffectID)
			if status != 429 && len(looks.Looks) != 6 || v.Version != before {
				t.Fatalf("%d looks, version %d then %d", len(looks.Looks), before, v.Version)
			}
			for _, l := range looks.Looks {
				if l.Reason != lookup.CouldNot || l.Status != status || len(l.Excerpt) > 4000 {
					t.Fatalf("%+v", l)
				}
			}
			if status == 429 && len(looks.Looks) != 1 {
				t.Fatalf("the bank asked for 30 s, and was asked %d times", len(looks.Looks))
			}
			// A person still can, with a reason.
			w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Version: v.Version, Note: "seen in the statement"})
		})
	}
}

// One record never proves two effects, also where both are asked about at one time.
func TestOneRecordProvesOneEffect(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, strings.Replace(bank.policy(), `business_key: "{vendor}/{invoice}"`, `business_key: "{vendor}"`, 1))
	// Two runs paid the same vendor; the second was allowed over the first, which was closed
	// and is opened again.
	a := w.lost("one", pay("INV-1", "4200.00"))
	w.must(w.person, effects.Decide{EffectID: a.EffectID, Verdict: effects.VerdictTaken, Version: w.effect(a.EffectID).Version, Note: "by the statement"})
	l := w.open("two", "pod-1")
	held := heldAnswer(w, l, "send_payment", pay("INV-2", "4200.00"))
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow, Version: w.effect(held).Version, Note: "two invoices"})
	b := w.proceed(l, "send_payment", pay("INV-2", "4200.00"))
	w.pass(b.EffectID)
	w.die(l)
	bank.pay(payment{ID: "P-1", Key: "ACME Tools", Amount: "4200.00", Currency: "USD", Status: "booked"})
	w.look()
	// The first is taken and nobody stored its reference: the record may be its.
	w.wantState(b.EffectID, effects.Interrupted)
	if looks := w.looks(b.EffectID); looks.Looks[0].Reason != lookup.Unreferenced {
		t.Fatalf("%+v", looks.Looks[0])
	}
	// A record that carries our own key is ours, whatever else has the same business key.
	bank.set(func() { bank.payments[0].Ours = b.VendorKey })
	w.lookAgain(b.EffectID, time.Minute)
	if v := w.wantState(b.EffectID, effects.Taken); v.Reference != "P-1" {
		t.Fatalf("%+v", v)
	}
	// Now it is owned: nothing else is proven by it.
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid`, a.EffectID)
	w.look()
	if v := w.effect(a.EffectID); v.Reference != "" || len(v.Contradictions) != 0 {
		t.Fatalf("%+v", v)
	}
	if looks := w.looks(a.EffectID); !looks.Looks[0].Records[0].Foreign || looks.Looks[0].Records[0].Owner != b.EffectID {
		t.Fatalf("%+v", looks.Looks[0])
	}
}

// A finish with the same reference comes while the downstream answers: one of the two
// stays open.
func TestAReferenceTakenWhileTheDownstreamAnswers(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	other := w.proceed(w.open("other", "pod-2"), "send_payment", pay("INV-2", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	bank.before = func() { w.finish(other, "taken", reference("P-INV-1")) }
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	if looks := w.looks(b.EffectID); len(looks.Looks) != 1 || !looks.Looks[0].Records[0].Foreign {
		t.Fatalf("%+v", looks.Looks)
	}
	w.wantState(other.EffectID, effects.Taken)
}

// The agent comes back and says it took effect; the bank agrees, later. Then it disagrees:
// an incident, once, and nothing is overwritten.
func TestLateAnswersConfirmAndContradict(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.finish(b, "taken", reference("P-INV-1"), result(`{"payment_id":"P-INV-1"}`))
	v := w.wantState(b.EffectID, effects.Taken)
	if looks := w.looks(b.EffectID); time.Until(looks.Next) < 9*time.Minute || time.Until(looks.Next) > 12*time.Minute {
		t.Fatalf("looked at again at %v, want after ten minutes", looks.Next)
	}
	bank.pay(paid("INV-1", "4200.00"))
	w.lookAgain(b.EffectID, time.Minute)
	v = w.wantState(b.EffectID, effects.Taken)
	if len(v.Contradictions) != 0 || v.Reference != "P-INV-1" || v.DecidedBy != "late_agent" {
		t.Fatalf("%+v", v)
	}
	if looks := w.looks(b.EffectID); looks.Looks[0].Verdict != "taken" {
		t.Fatalf("%+v", looks.Looks[0])
	}
	bank.pay(payment{ID: "P-2", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"})
	w.lookAgain(b.EffectID, time.Hour)
	w.lookAgain(b.EffectID, 24*time.Hour)
	v = w.wantState(b.EffectID, effects.Taken)
	if len(v.Contradictions) != 1 || v.Contradictions[0].Kind != "other_reference" {
		t.Fatalf("%+v", v.Contradictions)
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictAcknowledge, Version: v.Version, Note: "paid twice", Recovery: true})
	// Seen once more by somebody who asks: no second incident.
	if _, err := w.LookNow(t.Context(), b.EffectID); err != nil {
		t.Fatal(err)
	}
	w.look()
	if v = w.effect(b.EffectID); len(v.Contradictions) != 1 {
		t.Fatalf("%+v", v.Contradictions)
	}
}

// A record turns up after the effect was cleared on proof: the permission is withdrawn.
func TestALateHitWithdrawsAPermission(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.look()
	w.lookAgain(b.EffectID, 40*time.Second)
	w.wantState(b.EffectID, effects.Cleared)
	w.wantRun("run", "ready")
	bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"})
	w.lookAgain(b.EffectID, time.Minute)
	v := w.wantState(b.EffectID, effects.Interrupted)
	if v.Why != "hit" {
		t.Fatalf("%+v", v)
	}
	w.wantRun("run", "paused")
	if n := len(v.Decisions); v.Decisions[n-1].Act != "reopen" || v.Decisions[n-1].By != "look_up" {
		t.Fatalf("%+v", v.Decisions)
	}
	w.wantRefusal(w.begin(w.open("other", "p"), "send_payment", pay("INV-1", "4200.00")), effects.CodeRunPaused)
}

// A refused payment that took effect all the same is found: nobody looked for ten minutes.
func TestARefusedEffectThatTookEffect(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.proceed(w.open("run", "pod-1"), "send_payment", pay("INV-1", "4200.00"))
	w.finish(b, "failed")
	w.wantState(b.EffectID, effects.Failed)
	w.look()
	if n := bank.count(); n != 0 {
		t.Fatalf("asked %d times at once", n)
	}
	bank.pay(paid("INV-1", "4200.00"))
	w.lookAgain(b.EffectID, 10*time.Minute)
	if v := w.wantState(b.EffectID, effects.Failed); len(v.Contradictions) != 1 || v.Contradictions[0].Kind != "failed_but_taken" {
		t.Fatalf("%+v", v)
	}
}

// It took effect and the money came back: a person says what that means.
func TestReversed(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "reversed"})
	w.look()
	v := w.wantState(b.EffectID, effects.Interrupted)
	if n := len(v.Evidence); n == 0 || v.Evidence[n-1].Verdict != "reversed" {
		t.Fatalf("%+v", v.Evidence)
	}
}

// Cancelled for good at the bank, under our own key: one answer is proof.
func TestCancelledForGoodIsProofAtOnce(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy("absence: false"))
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "cancelled", Ours: b.VendorKey})
	w.look()
	w.wantState(b.EffectID, effects.Cleared)
}

// A result that the tool could not have returned is not given to an agent, and the record
// stays a person's question.
func TestAFoundResultMustLookLikeTheTools(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, strings.Replace(bank.policy(), "    deadline:", "    result_example: {payment_id: P-1, note: paid}\n    deadline:", 1))
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	if l := w.looks(b.EffectID).Looks[0]; l.Verdict != "inconclusive" || l.Problem != lookup.RuleFailed {
		t.Fatalf("%+v", l)
	}
}
