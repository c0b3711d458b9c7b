package payments_test

import (
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// An agent that died after paying a gateway of this very installation is told by the order:
// paid for good is taken, over with everything dead is not taken, all between is open.
func TestTheOrderLookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lease, err := w.effects.Open(t.Context(), effects.Open{Account: w.account, RunID: "buyer", Agent: "buyer", Worker: "w", AttemptID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	buy := func(id string) string {
		t.Helper()
		answers, err := w.effects.Apply(t.Context(), []effects.Op{{Begin: &effects.Begin{
			Account: w.account, RunID: "buyer", Lease: lease.Token, AttemptID: id, Tool: "buy_page", Arguments: []byte(`{"payment_id":"` + id + `"}`),
		}}})
		if err != nil || answers[0].Refusal != nil {
			t.Fatal(err, answers[0].Refusal)
		}
		return answers[0].Begin.EffectID
	}
	paid, dead, open := buy(p1), buy(p2), buy("payment-0000000003")
	w.sold(p1, 1)
	c := w.claim(w.asked(p2, 2))
	w.order(p2, c.Fence)
	w.finish(p2, c.Fence, "refused")
	c = w.claim(w.asked("payment-0000000003", 3))
	w.order("payment-0000000003", c.Fence)
	state := func(effect string) (s string) {
		w.get(&s, `SELECT state || ' ' || COALESCE(decided_by, '') FROM effects WHERE id = $1::uuid`, effect)
		return s
	}
	// Neither a transfer that is not final nor an authorization that may live proves anything.
	w.exec(`UPDATE effects SET deadline = clock_timestamp(), moment = clock_timestamp()`)
	w.lapse(open)
	w.looked(3)
	for _, effect := range []string{paid, dead, open} {
		if got := state(effect); got != "interrupted " {
			t.Errorf("%s too soon", got)
		}
	}
	final := w.transfer(1, 1, "4200000")
	final.Final = true
	w.post(final, payments.Applied)
	w.exec(`UPDATE authorizations SET dead_why = 'expired', dead_at = clock_timestamp(), dead_block = 9 WHERE payment = (SELECT id FROM payments WHERE payment_id = $1)`, p2)
	// Whoever was asking just now puts the next look off: it is asked for until it is heard.
	w.looping(func() bool {
		w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE next_lookup_at > clock_timestamp()`)
		return state(paid) != "interrupted " && state(dead) != "interrupted "
	})
	for effect, want := range map[string]string{paid: "taken look_up", dead: "cleared look_up", open: "interrupted "} {
		if got := state(effect); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// looked runs the loops of effects until so many looks are answered.
func (w *world) looked(n int) {
	w.t.Helper()
	w.looping(func() bool {
		var got int
		w.get(&got, `SELECT count(*) FROM lookups`)
		return got >= n
	})
}
