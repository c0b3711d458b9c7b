package effects_test

import (
	"net/http"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// downBy makes the bank answer nothing.
func (d *downstream) down(on bool) {
	d.set(func() {
		d.answer = nil
		if on {
			d.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
		}
	})
}

// silent lets the time pass that a decision waits for its look-up.
func (w *world) silent(effect string) {
	w.t.Helper()
	w.exec(`UPDATE lookup_schedule SET recheck_until = clock_timestamp() WHERE effect_id = $1::uuid AND recheck_from IS NOT NULL`, effect)
	w.settle()
}

func (w *world) decideNow(b *effects.BeginAnswer, verdict effects.Verdict, notOurs ...string) *effects.DecideAnswer {
	w.t.Helper()
	return w.must(w.person, effects.Decide{
		EffectID: b.EffectID, Verdict: verdict, Version: w.effect(b.EffectID).Version, Note: "asked by telephone", NotOurs: notOurs,
	})
}

// A person's "not taken" or "stop" is released only after one more look.
func TestADecisionWaitsForOneMoreLook(t *testing.T) {
	t.Parallel()
	for _, verdict := range []effects.Verdict{effects.VerdictNotTaken, effects.VerdictStop} {
		for name, c := range map[string]struct {
			found    []payment
			down     bool
			released bool
			open     bool // it is a person's question again
		}{
			"nothing found":      {released: true},
			"found":              {found: []payment{paid("INV-1", "4200.00")}, open: true},
			"found, another sum": {found: []payment{paid("INV-1", "4200.01")}, open: true},
			"found, not final":   {found: []payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"}}, open: true},
			"cancelled for good": {found: []payment{{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "cancelled"}}, released: true},
			"no answer":          {down: true},
		} {
			t.Run(string(verdict)+", "+name, func(t *testing.T) {
				t.Parallel()
				bank := newDownstream(t)
				w := newWorld(t, bank.policy())
				b := w.lost("run", pay("INV-1", "4200.00"))
				bank.down(true)
				w.look() // nobody knows anything when it is decided
				bank.down(c.down)
				w.decideNow(b, verdict)
				w.settle()
				if v := w.effect(b.EffectID); v.Released {
					t.Fatal("released before anybody looked")
				}
				w.wantRun("run", "paused")
				bank.pay(c.found...)
				w.look()
				w.settle()
				v := w.effect(b.EffectID)
				switch {
				case c.open:
					// Opened again; the next look may have closed it by proof at once.
					if v.State != string(effects.Interrupted) && v.DecidedBy != "look_up" {
						t.Fatalf("%+v", v)
					}
				case v.Released != c.released:
					t.Fatalf("released %v, want %v", v.Released, c.released)
				}
				if c.down {
					// It was decided after the moment: silence lets it go on, in a minute.
					w.silent(b.EffectID)
					if v := w.effect(b.EffectID); !v.Released {
						t.Fatalf("%+v", v)
					}
				}
			})
		}
	}
}

// What a person named as somebody else's stops nothing; anything else does.
func TestWhatIsNotOursStopsNothing(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(payment{ID: "P-other", Key: acme("INV-1"), Amount: "99.00", Currency: "USD", Status: "booked"})
	w.look()
	w.decideNow(b, effects.VerdictNotTaken, "P-other")
	w.look()
	w.settle()
	if v := w.wantState(b.EffectID, effects.Cleared); !v.Released {
		t.Fatalf("%+v", v)
	}
	bank.pay(payment{ID: "P-new", Key: acme("INV-1"), Amount: "99.00", Currency: "USD", Status: "booked"})
	w.lookAgain(b.EffectID, time.Minute)
	w.wantState(b.EffectID, effects.Interrupted)
}

// Decided before a request can have landed and be seen: silence does not release it, a
// clean look after the moment does, and so does a person who confirms it then.
func TestAnEarlyDecision(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*downstream, *world, *effects.BeginAnswer) {
		bank := newDownstream(t)
		w := newWorld(t, bank.policy("lands_within: 10m"))
		l := w.open("run", "pod-1")
		b := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
		w.die(l)
		if a := w.decideNow(b, effects.VerdictNotTaken); !a.Early || time.Until(a.Moment) < 10*time.Minute {
			t.Fatalf("%+v", a)
		}
		w.look()
		w.settle()
		if v := w.effect(b.EffectID); v.Released {
			t.Fatal("released before the moment, by a look that proves nothing yet")
		}
		return bank, w, b
	}
	passMoment := func(w *world, b *effects.BeginAnswer) {
		w.pass(b.EffectID)
		w.passHold(b.EffectID)
		w.exec(`UPDATE lookup_schedule SET recheck_from = clock_timestamp(), recheck_until = clock_timestamp() + interval '1 minute',
			next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid AND recheck_from IS NOT NULL`, b.EffectID)
	}
	t.Run("a clean look releases it", func(t *testing.T) {
		t.Parallel()
		_, w, b := start(t)
		passMoment(w, b)
		w.look()
		w.settle()
		if v := w.wantState(b.EffectID, effects.Cleared); !v.Released || v.Early {
			t.Fatalf("%+v", v)
		}
	})
	t.Run("a hit stops it", func(t *testing.T) {
		t.Parallel()
		bank, w, b := start(t)
		passMoment(w, b)
		bank.pay(payment{ID: "P-1", Key: acme("INV-1"), Amount: "4200.00", Currency: "USD", Status: "processing"})
		w.look()
		w.wantState(b.EffectID, effects.Interrupted)
	})
	t.Run("silence does not, a confirmation does, after one more look", func(t *testing.T) {
		t.Parallel()
		bank, w, b := start(t)
		bank.down(true)
		passMoment(w, b)
		w.look()
		w.silent(b.EffectID)
		w.settle()
		v := w.wantState(b.EffectID, effects.Cleared)
		if v.Released || !v.Early {
			t.Fatalf("released by silence: %+v", v)
		}
		if a := w.decideNow(b, effects.VerdictNotTaken); !a.Confirmed {
			t.Fatalf("%+v", a)
		}
		w.settle()
		if v := w.effect(b.EffectID); v.Released {
			t.Fatal("released by the confirmation without a look")
		}
		w.look()
		w.silent(b.EffectID)
		w.settle()
		if v := w.effect(b.EffectID); !v.Released {
			t.Fatalf("%+v", v)
		}
	})
	t.Run("a later look releases it although nobody confirmed", func(t *testing.T) {
		t.Parallel()
		bank, w, b := start(t)
		bank.down(true)
		passMoment(w, b)
		w.look()
		w.silent(b.EffectID)
		bank.down(false)
		w.lookAgain(b.EffectID, time.Hour)
		w.settle()
		if v := w.wantState(b.EffectID, effects.Cleared); !v.Released {
			t.Fatalf("%+v", v)
		}
	})
}

// Undone while it waits for the look: the look releases nothing.
func TestUndoneWhileItWaitsForTheLook(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.down(true)
	w.look()
	bank.down(false)
	w.decideNow(b, effects.VerdictStop)
	bank.before = func() {
		if _, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: b.EffectID, Note: "a slip"}); err != nil {
			t.Error(err)
		}
		bank.set(func() { bank.before = nil })
	}
	w.look()
	w.settle()
	w.wantState(b.EffectID, effects.Interrupted)
}

// An effect that never had an attempt has nothing to be looked up: its verdict waits for
// nobody, and no look decides it.
func TestWithoutAnAttemptNobodyIsAsked(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.down(true)
	w.look()
	n := bank.count()
	held := heldAnswer(w, w.open("two", "pod-2"), "send_payment", pay("INV-1", "4200.00"))
	w.look()
	if _, err := w.LookNow(t.Context(), held); refusalOf(err) == nil {
		t.Fatalf("asked about what was never sent: %v", err)
	}
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictStop, Version: w.effect(held).Version, Note: "the same"})
	w.settle()
	if v := w.wantState(held, effects.Cancelled); !v.Released || len(w.looks(held).Looks) != 0 || bank.count() != n {
		t.Fatalf("%+v", v)
	}
	_ = b
}

// The policy loses its look-up while a decision waits for one: it goes on as for a blind tool.
func TestALookUpThatIsTakenAway(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.down(true)
	w.look()
	w.decideNow(b, effects.VerdictNotTaken)
	w.Engine = w.engine(fastRelease)
	w.silent(b.EffectID)
	w.settle()
	if v := w.wantState(b.EffectID, effects.Cleared); !v.Released {
		t.Fatalf("%+v", v)
	}
}

// The moment, after which silence says something, is the same whichever way an attempt
// began: its deadline, what a request may take to land, and what the source takes to show it.
func TestTheMomentCountsWhatTheSourceTakesToShow(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy("lands_within: 10m", "visible_after: 5m"))
	l := w.open("run", "pod-1")
	one := w.proceed(l, "send_payment", pay("INV-1", "1")) // alone: one statement
	var ops []effects.Op
	for _, invoice := range []string{"INV-2", "INV-2b"} {
		ops = append(ops, effects.Op{Begin: &effects.Begin{Account: w.account, RunID: "run", Lease: l.Token, AttemptID: "a", Tool: "send_payment", Arguments: []byte(pay(invoice, "1"))}})
	}
	answers, err := w.Apply(t.Context(), ops) // together: the general way
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{one.EffectID, answers[0].Begin.EffectID, answers[1].Begin.EffectID} {
		v := w.effect(id)
		if d := v.Moment.Sub(v.Attempts[0].Deadline); d != 15*time.Minute {
			t.Errorf("the moment is %v after the deadline, want 15m", d)
		}
	}
}
