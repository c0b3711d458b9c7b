package effects_test

import (
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

// A person says of the bank's payment that it is somebody else's, the agent pays again,
// and there are two: a look finds the first one again.
func TestADeniedPaymentThatIsPaidAgainContradicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  string // the amount of the denied one
		second string // what the agent says that it got
		want   int    // contradictions
	}{
		"it fits":                            {"4200.00", "P-2", 1},
		"another amount":                     {"99.00", "P-2", 0},
		"there was no second":                {"", "P-2", 0},
		"the vendor gave the first one back": {"4200.00", "P-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bank := newDownstream(t)
			w := newWorld(t, bank.policy())
			b := w.lost("run", pay("INV-1", "4200.00"))
			second := payment{ID: c.second, Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"}
			if c.first != "" {
				bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: c.first, Currency: "USD", Status: "processing"})
			}
			w.look()
			var names []string
			if c.first != "" {
				names = []string{"P-1"}
			}
			w.decideNow(b, effects.VerdictNotTaken, names...)
			w.look()
			w.settle()
			if v := w.wantState(b.EffectID, effects.Cleared); !v.Released {
				t.Fatalf("%+v", v)
			}

			l := w.open("run", "pod-2")
			again := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
			bank.set(func() {
				for i := range bank.payments {
					bank.payments[i].Status = "booked"
				}
			})
			if c.second != "P-1" {
				bank.pay(second)
			}
			w.finish(again, "taken", func(f *effects.Finish) { f.Reference = c.second })
			w.lookAgain(b.EffectID, 10*time.Minute)
			v := w.wantState(b.EffectID, effects.Taken)
			if len(v.Contradictions) != c.want || v.Reference != c.second {
				t.Fatalf("%d contradictions, want %d: %+v", len(v.Contradictions), c.want, v)
			}
			if c.want == 0 {
				return
			}
			if v.Contradictions[0].Recovery != "suspected" {
				t.Errorf("%+v", v.Contradictions[0])
			}
			for _, r := range w.looks(b.EffectID).Records() {
				if !r.Speaks() {
					t.Errorf("%s is shown as denied", r.Name())
				}
			}
			w.lookAgain(b.EffectID, time.Hour)
			if v := w.effect(b.EffectID); len(v.Contradictions) != 1 {
				t.Errorf("the same two are told %d times", len(v.Contradictions))
			}
		})
	}
}

// A person closes one call with the payment of another, which no look at that one has ever
// shown. It is no less the other's: its looks show it, no verdict passes over it, and paid
// again it is two.
func TestAPaymentThatAPersonGaveToAnotherCall(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	other := w.lost("other", pay("INV-2", "4200.00"))
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"})
	w.must(w.person, effects.Decide{EffectID: other.EffectID, Verdict: effects.VerdictTaken, Version: w.effect(other.EffectID).Version, Note: "mistaken", Reference: "P-1"})
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	if l := w.looks(b.EffectID).Last(); l == nil || l.Reason != lookup.Disputed || len(l.Records) != 1 || l.Records[0].Foreign || l.Records[0].Owner != other.EffectID {
		t.Fatalf("%+v", l)
	}
	w.refused(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken, Version: w.effect(b.EffectID).Version, Note: "by telephone"}, effects.CodeConflict)
	w.decideNow(b, effects.VerdictNotTaken, "P-1")
	w.lookAgain(b.EffectID, time.Minute)
	w.settle()
	if v := w.wantState(b.EffectID, effects.Cleared); !v.Released {
		t.Fatalf("%+v", v)
	}
	again := w.proceed(w.open("run", "pod-2"), "send_payment", pay("INV-1", "4200.00"))
	bank.pay(payment{ID: "P-2", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "booked"})
	w.finish(again, "taken", func(f *effects.Finish) { f.Reference = "P-2" })
	w.lookAgain(b.EffectID, 10*time.Minute)
	if v := w.wantState(b.EffectID, effects.Taken); len(v.Contradictions) != 1 {
		t.Errorf("%d contradictions", len(v.Contradictions))
	}
}

// What a look at the one call has shown, before a person closed it with that, is its own:
// a look at another call that finds it too leaves it out.
func TestAPaymentThatALookShowedIsItsOwn(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	other := w.lost("other", pay("INV-2", "4200.00"))
	bank.pay(payment{ID: "P-1", Key: acme("INV-2"), Amount: "99.00", Currency: "USD", Status: "booked"})
	w.look()
	w.must(w.person, effects.Decide{EffectID: other.EffectID, Verdict: effects.VerdictTaken, Version: w.effect(other.EffectID).Version, Note: "less the fee", Reference: "P-1"})
	b := w.lost("run", pay("INV-1", "99.00"))
	bank.set(func() { bank.payments[0].Key = acme("INV-1") })
	w.look()
	if l := w.looks(b.EffectID).Last(); l == nil || len(l.Records) != 1 || !l.Records[0].Foreign {
		t.Fatalf("%+v", l)
	}
}
