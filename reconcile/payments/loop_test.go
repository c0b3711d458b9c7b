package payments_test

import (
	"context"
	"testing"
	"time"

	"quittance/reconcile/payments"
)

// A payment that nobody asks about any more, and that may have been sent, becomes unknown by
// itself, so that its rail is asked: it would never be refused otherwise.
func TestAForgottenPaymentIsAskedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-that-nobody-asks-for"
	c := w.claim(w.asked(id, 1))
	w.order(id, c.Fence)
	w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond'`)
	w.say(1, payments.Sight{Dead: "cancelled", DeadBlock: 4})
	w.age(id, old)
	for range 3 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p := w.payment(id); p.State != string(payments.Refused) {
		t.Errorf("it is %s, its order %s; nobody would ever have told", p.State, p.Order.State)
	}
}

// However many payments nothing can be done for, the others are healed.
func TestWhatIsStuckDoesNotStarveTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-behind-many-others"
	stuck := w.claim(w.asked("pay-stuck-for-ever-1", 1))
	w.order("pay-stuck-for-ever-1", stuck.Fence)
	w.finish("pay-stuck-for-ever-1", stuck.Fence, "unknown")
	w.exec(`UPDATE orders SET state = 'expired'`)
	w.exec(`WITH p AS (INSERT INTO payments (account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, order_id, first_at, state, fence, claimed_at)
			SELECT account_id, gateway, 'pay-stuck-for-ever-' || n, payer, fingerprint, network, asset, amount, pay_to, gen_random_uuid(), first_at, 'unknown', 1, first_at - interval '1 day'
			FROM payments, generate_series(2, 500) n RETURNING *),
		a AS (INSERT INTO authorizations (payment, network, asset, payer, nonce, valid_before, signed, offered_at, taken_up_at)
			SELECT id, network, asset, payer, payment_id, 4102444800, false, first_at, first_at FROM p)
		INSERT INTO orders (id, payment, account_id, gateway, payer, network, asset, amount, pay_to, state, created_at, changed_at, receipt_hash)
			SELECT order_id, id, account_id, gateway, payer, network, asset, amount, pay_to, 'expired', first_at, first_at, sha256(payment_id::bytea) FROM p`)
	c := w.claim(w.asked(id, 2))
	w.order(id, c.Fence)
	w.broadcast(id, c.Fence)
	w.post(w.transfer(2, 2, "4200000"), payments.Applied)
	w.exec(`UPDATE payments SET work_done = true WHERE payment_id = $1`, id)
	w.age(id, old)
	for range 4 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p := w.payment(id); !p.Healed {
		t.Errorf("it is %s, and was not healed", p.State)
	}
}

// A payer who asks every moment does not make the rail be asked every moment.
func TestAPollAsksNoRail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-that-is-polled-often"
	c := w.claim(w.asked(id, 1))
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	w.age(id, old)
	w.checkNow(id)
	for range 20 {
		w.refused(w.asked(id, 1), payments.CodeInFlight)
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w.rail.asked != 1 {
		t.Errorf("the rail was asked %d times", w.rail.asked)
	}
	var soon bool
	w.get(&soon, `SELECT check_at BETWEEN clock_timestamp() AND clock_timestamp() + interval '15 seconds' FROM payments`)
	if !soon {
		t.Error("and is not asked soon")
	}
}

// A rail that does not answer holds up no expiry and no healing.
func TestAHangingRailHoldsUpNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-on-a-rail-that-hangs"
	hung := make(chan struct{})
	w.rail.hang = func(ctx context.Context) {
		select {
		case <-hung:
		default:
			close(hung)
		}
		<-ctx.Done()
	}
	c := w.claim(w.asked(id, 1))
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	w.exec(`UPDATE payments SET check_at = clock_timestamp()`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	defer func() { stop(); <-ended }()
	<-hung
	other := w.claim(w.asked("pay-that-expires-meanwhile", 2))
	w.order("pay-that-expires-meanwhile", other.Fence)
	w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond'`)
	for until := time.Now().Add(15 * time.Second); w.payment("pay-that-expires-meanwhile").Order.State != "expired"; {
		if time.Now().After(until) {
			t.Fatal("an order waits for a rail that hangs")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The same nonce signed again with a later end is not dead when the first end has passed.
func TestANonceSignedTwiceEndsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-one-nonce-two-ends"
	a := w.asked(id, 1)
	a.Authorization.ValidBefore = "2000000000"
	c := w.claim(a)
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	a.Authorization.ValidBefore = "2100000000"
	// While the rail is asked about the first end, the second is offered.
	w.rail.hang = func(context.Context) {
		w.rail.hang = nil
		w.refused(a, payments.CodeInFlight)
	}
	w.say(1, payments.Sight{Dead: "expired", DeadBlock: 4})
	w.checkNow(id)
	p := w.payment(id)
	if x := p.Authorizations[0]; x.DeadWhy != "" || x.ValidBefore != 2100000000 {
		t.Errorf("%+v", x)
	}
	a.Authorization.ValidBefore = "1900000000" // an earlier end takes nothing back
	w.refused(a, payments.CodeInFlight)
	if x := w.payment(id).Authorizations[0]; x.ValidBefore != 2100000000 {
		t.Errorf("%+v", x)
	}
}

// A movement that was read from its rail before anybody named its order is placed as soon
// as somebody does: by its gateway, or by the authorization that it used.
func TestAMovementIsPlacedWhenItIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-that-was-seen-before"
	plain, signed := w.transfer(1, 0, "4200000"), w.transfer(2, 7, "4200000")
	w.post(plain, payments.Unmatched)
	w.post(signed, payments.Unmatched)
	c := w.claim(w.asked(id, 7))
	w.order(id, c.Fence)
	plain.Gateway, plain.PaymentID = "shop", id
	m := w.post(plain, payments.Applied)
	if m.New || w.payment(id).Order.State != "paid" {
		t.Errorf("%+v, order %s", m, w.payment(id).Order.State)
	}
	if m := w.post(signed, payments.Duplicate); m.Refund == nil || m.Refund.Amount.String() != "4200000" {
		t.Errorf("%+v", m.Refund)
	}
	w.post(plain, payments.Applied)
	other := w.transfer(3, 0, "5")
	other.To = alice
	w.post(other, payments.Unmatched)
	other.Gateway, other.PaymentID = "shop", id
	w.post(other, payments.Unmatched) // to somebody else: a person looks
}

// What a rail says landed and what is not on record is asked about again.
func TestALandingThatIsNotOnRecordIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-landing-not-recorded"
	c := w.claim(w.asked(id, 1))
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	in := w.transfer(1, 0, "4200000") // the place is taken by a movement that is not the same
	in.From = bob
	w.post(in, payments.Unmatched)
	w.say(1, w.landed(1, 1, "4200000"))
	w.checkNow(id)
	if p := w.payment(id); p.CheckAt.IsZero() {
		t.Error("it is unknown for ever: nobody asks again")
	}
}

// A repeat of evidence that is kept already fills no table, nor do ever new ones.
func TestLateEvidenceHasAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-with-a-noisy-gateway"
	w.sold(id, 1)
	for i := range 40 {
		_, err := w.Finish(t.Context(), payments.Finish{Step: w.step(id, 1), Outcome: "unknown", Why: "again"})
		refusal(t, nil, err, payments.CodeStaleFence)
		_, err = w.Broadcast(t.Context(), payments.Sending{Step: w.step(id, int64(100+i))})
		refusal(t, nil, err, payments.CodeStaleFence)
	}
	var finishes, broadcasts int
	w.get(&finishes, `SELECT count(*) FROM payment_events WHERE kind = 'late_finish'`)
	w.get(&broadcasts, `SELECT count(*) FROM payment_events WHERE kind = 'late_broadcast'`)
	if finishes != 1 || broadcasts != 40 {
		t.Errorf("%d and %d lines", finishes, broadcasts)
	}
	// The holder of the fence repeats itself too.
	c := w.claim(w.asked("pay-with-a-noisy-holder", 2))
	for range 10 {
		w.broadcast("pay-with-a-noisy-holder", c.Fence)
		w.finish("pay-with-a-noisy-holder", c.Fence, "refused") // it may land: unknown
	}
	var lines int
	w.get(&lines, `SELECT count(*) FROM payment_events WHERE payment = (SELECT id FROM payments WHERE payment_id = 'pay-with-a-noisy-holder')`)
	if lines > 4 {
		t.Errorf("%d lines of one who repeats itself", lines)
	}
	w.exec(`INSERT INTO payment_events (at, payment, kind, data) SELECT clock_timestamp(), payment, kind, data || ' ' FROM payment_events, generate_series(1, 1000) WHERE kind = 'late_finish'`)
	_, err := w.Finish(t.Context(), payments.Finish{Step: w.step(id, 1), Outcome: "unknown", Why: "yet another"})
	refusal(t, nil, err, payments.CodeStaleFence)
	w.get(&finishes, `SELECT count(*) FROM payment_events WHERE kind = 'late_finish' AND data LIKE '%yet another%'`)
	if finishes != 0 {
		t.Error("there is no end to it")
	}
}

// An id takes only so many authorizations. Beyond that it still answers, and never asks for
// another one.
func TestAnIdTakesOnlySoManyAuthorizations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "pay-with-many-signatures"
	c := w.claim(w.asked(id, 1))
	w.order(id, c.Fence)
	for n := 2; n <= payments.AuthorizationLimit; n++ {
		w.refused(w.asked(id, n), payments.CodeInFlight)
	}
	r := w.refused(w.asked(id, 999), payments.CodeInFlight)
	if r.RetryAfter == 0 || len(w.payment(id).Authorizations) != payments.AuthorizationLimit {
		t.Errorf("%+v, %d stored", r, len(w.payment(id).Authorizations))
	}
	for n := 1; n <= payments.AuthorizationLimit; n++ {
		w.say(n, payments.Sight{Dead: "cancelled", DeadBlock: 1})
	}
	w.finish(id, c.Fence, "unknown")
	w.age(id, old)
	w.checkNow(id)
	w.refused(w.asked(id, 999), payments.CodeInFlight) // it cannot be stored, so it is not used
	w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond'`)
	w.checkNow(id)
	for _, n := range []int{1, 999, 1000} {
		if got := done(w.Claim(t.Context(), w.asked(id, n)))(t); got.Do != payments.Replay {
			t.Errorf("%d: %s", n, got.Do)
		}
	}
}

// An address that begins to be watched while its rail is read was not looked for in what
// was read: that is read again.
func TestAnAddressThatIsNewIsReadForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked("pay-to-the-first-address", 1))
	w.order("pay-to-the-first-address", c.Fence)
	asked := 0
	w.rail.incoming = func(recipients []string) payments.Page {
		asked++
		if asked == 1 {
			other := w.asked("pay-to-another-address", 2)
			other.PayTo = bob
			c := w.claim(other)
			w.order("pay-to-another-address", c.Fence)
		}
		return payments.Page{Next: 100, Done: true}
	}
	var next int64
	for i, want := range []int64{-1, 100} {
		w.exec(`UPDATE rail_cursors SET read_at = NULL`)
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.get(&next, `SELECT next_block FROM rail_cursors`); next != want {
			t.Errorf("after reading %d times it goes on from %d, want %d", i+1, next, want)
		}
	}
}
