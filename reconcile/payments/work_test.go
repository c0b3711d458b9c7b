package payments_test

import (
	"testing"

	"quittance/reconcile/payments"
)

// A gateway that sends only after the work says by its broadcast that the work was done.
// Later tries must not forget it, however many of them die before they send.
func TestWorkThatWasSentForIsNeverDoneAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-work-behind-broadcast"
	c := w.claim(w.asked(id, 1))
	w.order(id, c.Fence)
	w.broadcast(id, c.Fence)
	for n := 2; n <= 4; n++ {
		w.age(id, old)
		w.say(n-1, payments.Sight{Dead: "cancelled", DeadBlock: int64(n)})
		w.checkNow(id)
		again := w.claim(w.asked(id, n))
		if again.Work != payments.Taken {
			t.Fatalf("take-over %d is told that the work is %s", n, again.Work)
		}
		if _, err := w.Work(t.Context(), payments.NewWork{Step: w.step(id, again.Fence)}); err == nil {
			t.Fatal("and may do it again")
		}
	}
	w.post(w.transfer(9, 4, "4200000"), payments.Applied)
	w.age(id, old)
	if got, err := w.Claim(t.Context(), w.asked(id, 4)); err != nil || !got.Payment.Healed {
		t.Fatalf("%+v, %v; want it healed", got, err)
	}
}

// A gateway that was too slow with its work, and then tells what became of it, has said it:
// nobody is asked about that work any more.
func TestAFinishTellsOfWorkThatLapsed(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]string{"settled": "taken", "refused": "failed"} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const id = "pay-work-that-lapsed"
			c := w.claim(w.asked(id, 1))
			w.order(id, c.Fence)
			begun := done(w.Work(t.Context(), payments.NewWork{Step: w.step(id, c.Fence)}))(t)
			w.exec(`UPDATE effects SET deadline = clock_timestamp() WHERE id = $1::uuid`, begun.EffectID)
			w.lapse(begun.EffectID)
			w.finish(id, c.Fence, outcome)
			var state string
			w.get(&state, `SELECT state FROM effects WHERE id = $1::uuid`, begun.EffectID)
			if state != want {
				t.Errorf("its work is %s, want %s", state, want)
			}
		})
	}
}

// What is sent after the work was done, and what is refused after that, says that it was.
func TestABroadcastTellsOfWorkThatLapsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-sent-after-it-lapsed"
	c := w.claim(w.asked(id, 1))
	w.order(id, c.Fence)
	begun := done(w.Work(t.Context(), payments.NewWork{Step: w.step(id, c.Fence)}))(t)
	w.exec(`UPDATE effects SET deadline = clock_timestamp() WHERE id = $1::uuid`, begun.EffectID)
	w.lapse(begun.EffectID)
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "refused")
	if p := w.payment(id); p.WorkKnown() != payments.Taken || p.State != string(payments.Unknown) {
		t.Errorf("work %s, payment %s", p.WorkKnown(), p.State)
	}
}

// The same try may ask again, but not with another authorization: both could be sent.
func TestTheSameTryBringsTheSameAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-same-try-other-auth"
	a := w.asked(id, 1)
	a.AttemptID = "try-1"
	w.claim(a)
	if again := w.claim(a); again.Fence != 1 {
		t.Errorf("fence %d", again.Fence)
	}
	b := w.asked(id, 2)
	b.AttemptID = "try-1"
	w.refused(b, payments.CodeInFlight)
}

// An order that is over is not refused to a payer while the authorization that it brings
// just now could still be sent by whoever saw it.
func TestWhatIsBroughtCountsBeforeARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-brought-to-what-is-over"
	c := w.claim(w.asked(id, 1))
	w.order(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	w.say(1, payments.Sight{Dead: "cancelled", DeadBlock: 1})
	w.checkNow(id)
	w.exec(`UPDATE orders SET state = 'expired'`)
	w.age(id, old)
	w.refused(w.asked(id, 2), payments.CodeInFlight)
	w.say(2, payments.Sight{Dead: "cancelled", DeadBlock: 2})
	w.exec(`UPDATE payments SET checked_at = NULL`)
	w.checkNow(id)
	if got := done(w.Claim(t.Context(), w.asked(id, 2)))(t); got.Do != payments.Replay || got.Payment.State != string(payments.Refused) {
		t.Errorf("%s, %s", got.Do, got.Payment.State)
	}
}
