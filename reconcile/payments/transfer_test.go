package payments_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quittance/reconcile/payments"
)

// The nasty one: A's settle "fails", B is signed once A's is thought dead and pays, A lands
// later: one refund owed, for A.
func TestTheNastyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.finish(p1, c.Fence, "unknown")
	w.age(p1, old)
	// While A may land nothing else is taken up, and it is never 402.
	w.refused(w.asked(p1, 2), payments.CodeInFlight)
	// B pays all the same: whoever saw it submits it.
	w.post(w.transfer(2, 2, "4200000"), payments.Applied)
	w.rail.say(nonce(1), w.landed(1, 1, "4200000"))
	for range 3 {
		w.checkNow(p1)
	}
	p := w.payment(p1)
	if len(p.Refunds) != 1 || p.Refunds[0].Amount.String() != "4200000" || p.Order.State != "paid" || p.State != "settled" {
		t.Fatalf("%s, order %s, %+v", p.State, p.Order.State, p.Refunds)
	}
	for _, x := range p.Transfers {
		if want := map[string]string{nonce(1): payments.Duplicate, nonce(2): payments.Applied}[x.Nonce]; x.Class != want {
			t.Errorf("%s is %s, want %s", x.Nonce, x.Class, want)
		}
	}
	w.equation()
}

func TestTransfersAreClassified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := func(n int) string { return fmt.Sprintf("payment-000000%04d", n) }
	owe := func(n int, want string) {
		t.Helper()
		sum := ""
		for _, r := range w.payment(id(n)).Refunds {
			sum += r.Reason + " " + r.Amount.String() + ";"
		}
		if sum != want {
			t.Errorf("payment %d owes %q, want %q", n, sum, want)
		}
	}
	open := func(n int) int64 {
		t.Helper()
		c := w.claim(w.asked(id(n), n*10))
		w.order(id(n), c.Fence)
		return c.Fence
	}
	// Over: what is above is owed.
	open(1)
	w.post(w.transfer(10, 10, "4200001"), payments.Applied)
	owe(1, "over 1;")
	// Under, topped up: all of it applies, and the rest is over.
	open(2)
	in := w.transfer(20, 20, "4000000")
	w.post(in, payments.Under)
	if got := w.payment(id(2)).Order.State; got != "paying" {
		t.Errorf("order is %s", got)
	}
	more := w.transfer(21, 0, "200005")
	more.OrderID = w.payment(id(2)).OrderID
	w.post(more, payments.Applied)
	owe(2, "over 5;")
	if got := w.payment(id(2)).Order.State; got != "paid" {
		t.Errorf("order is %s", got)
	}
	// Late and over hold both: what is owed is all of it.
	fence := open(3)
	w.finish(id(3), fence, "refused")
	w.post(w.transfer(30, 30, "5000000"), payments.Late)
	owe(3, "late 5000000;")
	// Held money is given back when the order ends.
	fence = open(4)
	w.post(w.transfer(40, 40, "7"), payments.Under)
	w.finish(id(4), fence, "refused")
	owe(4, "late 7;")
	// A call that failed after the money came gives all of it back.
	fence = open(5)
	w.post(w.transfer(50, 50, "4200009"), payments.Applied)
	owe(5, "over 9;")
	w.finish(id(5), fence, "refused")
	owe(5, "failed_call 4200009;")
	// No order, and an order of another recipient: for a person.
	w.post(w.transfer(60, 60, "1"), payments.Unmatched)
	open(7)
	astray := w.transfer(70, 70, "4200000")
	astray.To = bob
	w.post(astray, payments.Unmatched)
	// The nonce of a payment without an order opens it.
	w.claim(w.asked(id(8), 80))
	w.post(w.transfer(80, 80, "4200000"), payments.Applied)
	// Two in one transaction are two.
	open(9)
	w.post(w.transfer(90, 90, "4200000"), payments.Applied)
	second := w.transfer(90, 0, "4200000")
	second.Position, second.OrderID = 1, w.payment(id(9)).OrderID
	w.post(second, payments.Duplicate)
	owe(9, "duplicate 4200000;")
}

func TestWhatIsReorganisedAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sold(p1, 1)
	a := w.transfer(1, 1, "4200000")
	b := w.transfer(2, 2, "4200000")
	b.OrderID = w.payment(p1).OrderID
	w.post(b, payments.Duplicate)
	away := b
	away.Reverted = true
	m := w.post(away, payments.Duplicate)
	if m.Refund.State != "void" || m.Refund.Amount.Sign() != 0 {
		t.Errorf("%+v", m.Refund)
	}
	away = a
	away.Reverted = true
	w.post(away, payments.Applied)
	if got := w.payment(p1); got.Order.State != "paying" || got.State != "settled" {
		t.Errorf("order %s, payment %s", got.Order.State, got.State)
	}
	// B is back first, and pays; A is back, in its own row, and is the double now.
	w.post(b, payments.Applied)
	moved := a
	moved.Block, moved.BlockHash = 77, nonce(77)
	m = w.post(moved, payments.Duplicate)
	if m.New || m.Refund.Amount.String() != "4200000" || m.Transfer.Block != 77 {
		t.Errorf("%+v", m)
	}
	// What is final stays.
	final := b
	final.Final = true
	w.post(final, payments.Applied)
	away = b
	away.Reverted = true
	_, err := w.Shown(t.Context(), away)
	refusal(t, nil, err, payments.CodeConflict)
	w.equation()
}

func TestOrdersEndByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.claim(w.asked(p1, 1)), w.claim(w.asked(p2, 2))
	w.order(p1, a.Fence)
	w.order(p2, b.Fence)
	w.broadcast(p2, b.Fence)
	w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond'`)
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.payment(p1).Order.State; got != "expired" {
		t.Errorf("an order that nobody paid is %s", got)
	}
	if got := w.payment(p2).Order.State; got != "paying" {
		t.Errorf("an order whose payment may land is %s", got)
	}
	// Its authorization is proven dead: now it may end, and the payment is refused.
	w.rail.say(nonce(2), payments.Sight{Dead: "expired", DeadBlock: 9, Said: "unused at a final block past its end"})
	w.checkNow(p2)
	w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond' WHERE state = 'paying'`)
	w.age(p2, old)
	for range 2 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.payment(p2); got.Order.State != "expired" || got.State != "refused" {
		t.Errorf("order %s, payment %s", got.Order.State, got.State)
	}
	w.post(w.transfer(1, 1, "4200000"), payments.Late)
}

// That an end passed which only the gateway told proves nothing: the payer may have signed
// another one. A signature makes it good.
func TestAnEndThatNobodySigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.Authorization.Signature, a.Authorization.ValidBefore = "", "1000"
	c := w.claim(a)
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.finish(p1, c.Fence, "unknown")
	w.age(p1, old)
	w.rail.say(nonce(1), payments.Sight{Dead: "expired", DeadBlock: 9})
	w.checkNow(p1)
	w.refused(a, payments.CodeInFlight)
	w.refused(w.asked(p1, 1), payments.CodeInFlight) // signed, and its end is another
	if got := w.payment(p1).Authorizations; len(got) != 1 || !got[0].Signed || got[0].ValidBefore != 4102444800 || got[0].DeadWhy != "" {
		t.Fatalf("%+v", got)
	}
	w.checkNow(p1)
	w.refused(w.asked(p1, 1), payments.CodeSignAgain)
}

// A new signature is right only once every stored one is dead, and then it takes over.
func TestSigningAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.finish(p1, c.Fence, "unknown")
	w.age(p1, old)
	w.refused(w.asked(p1, 1), payments.CodeInFlight)
	w.rail.say(nonce(1), payments.Sight{Dead: "cancelled", DeadBlock: 9})
	w.checkNow(p1)
	w.refused(w.asked(p1, 1), payments.CodeSignAgain)
	got := w.claim(w.asked(p1, 2))
	if got.Fence <= c.Fence || got.Paid {
		t.Errorf("%+v", got)
	}
	_, err := w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, c.Fence), Nonce: nonce(1)})
	refusal(t, nil, err, payments.CodeStaleFence)
	_, err = w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, got.Fence), Nonce: nonce(1)})
	refusal(t, nil, err, payments.CodeInvalid)
	done(w.Broadcast(t.Context(), payments.Sending{Step: w.step(p1, got.Fence), Nonce: nonce(2)}))(t)
}

// Whatever arrives, in whatever order, twice, reorganised away or back, with orders ending
// in between: the money adds up, and no order is paid by more than it asks.
func TestAnyOrderOfTransfersAddsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 7))
	t.Logf("seed %d", seed)
	fences := map[string]int64{}
	var ids []string
	for i := range 6 {
		id := fmt.Sprintf("payment-000000%04d", i)
		ids = append(ids, id)
		fences[id] = w.claim(w.asked(id, i+1)).Fence
	}
	for i := range 400 {
		id := ids[r.IntN(len(ids))]
		switch r.IntN(12) {
		case 0:
			_, _ = w.Order(t.Context(), payments.NewOrder{Step: w.step(id, fences[id])})
		case 1:
			_, _ = w.Finish(t.Context(), payments.Finish{Step: w.step(id, fences[id]), Outcome: []string{"settled", "refused", "unknown"}[r.IntN(3)]})
		case 2:
			_, _ = w.Cancel(t.Context(), w.step(id, 0).Name)
		case 3:
			w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond' WHERE payment = (SELECT id FROM payments WHERE payment_id = $1) AND state IN ('created','paying')`, id)
			if err := w.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			in := w.transfer(r.IntN(20), 1+r.IntN(8), []string{"4200000", "4200001", "1", "2100000", "4199999"}[r.IntN(5)])
			in.Reverted = r.IntN(4) == 0
			in.Final = !in.Reverted && r.IntN(6) == 0
			_, err := w.Post(t.Context(), in)
			if _, ok := asRefusal(err); err != nil && !ok {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		w.equation()
	}
	var n int
	w.get(&n, `SELECT count(*) FROM orders o WHERE state = 'paid' AND amount <> (SELECT sum(amount - over) FROM transfers t WHERE t.order_id = o.id AND class = 'applied' AND reverted_at IS NULL)`)
	if n != 0 {
		t.Errorf("%d orders are paid by another amount", n)
	}
	w.get(&n, `SELECT count(*) FROM transfers`)
	if n < 5 {
		t.Errorf("only %d transfers: the test shows nothing", n)
	}
}

// 2,000 stale ids and 16 callers at once: each healed or taken over exactly once.
func TestStaleIdsAreTakenOverOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const ids, callers = 2000, 16
	asked := func(n int) payments.Asked { return w.asked(fmt.Sprintf("stale-payment-%06d", n), n+1) }
	for _, a := range each(ids, func(n int) (*payments.Answer, error) {
		a := asked(n)
		a.Authorization = nil
		return w.Claim(t.Context(), a)
	}) {
		if a.err != nil {
			t.Fatal(a.err)
		}
	}
	// Every second one is paid, and its work is done: it heals.
	w.exec(`UPDATE payments SET broadcast_at = claimed_at WHERE payment_id ~ '[02468]$'`)
	w.exec(`INSERT INTO orders (id, payment, account_id, gateway, payer, network, asset, amount, pay_to, state, created_at, changed_at, receipt_hash)
		SELECT order_id, id, account_id, gateway, payer, network, asset, amount, pay_to, 'created', claimed_at, claimed_at, sha256(order_id::text::bytea) FROM payments WHERE broadcast_at IS NOT NULL`)
	for _, m := range each(ids/2, func(n int) (*payments.Moved, error) {
		in := w.transfer(n, 0, "4200000")
		in.Gateway, in.PaymentID = "shop", asked(2*n).PaymentID
		return w.Post(t.Context(), in)
	}) {
		if m.err != nil || m.v.Transfer.Class != payments.Applied {
			t.Fatal(m.v, m.err)
		}
	}
	w.exec(`ALTER TABLE payments DISABLE TRIGGER payments_fence`)
	w.exec(`UPDATE payments SET claimed_at = claimed_at - interval '1 hour'`)
	w.exec(`ALTER TABLE payments ENABLE TRIGGER payments_fence`)
	took := make([]int, ids)
	replays := 0
	for _, per := range each(callers, func(k int) ([]int, error) {
		said := make([]int, ids)
		for i := range ids {
			n := (i + k*131) % ids
			a := asked(n)
			a.Authorization = nil
			got, err := w.Claim(t.Context(), a)
			switch r, refused := asRefusal(err); {
			case err == nil && got.Do == payments.Proceed:
				said[n] = 1
			case err == nil:
				said[n] = 2
			case !refused || r.Code != payments.CodeInFlight:
				return nil, fmt.Errorf("payment %d: %w", n, err)
			}
		}
		return said, nil
	}) {
		if per.err != nil {
			t.Fatal(per.err)
		}
		for n, said := range per.v {
			switch said {
			case 1:
				took[n]++
			case 2:
				replays++
			}
		}
	}
	for n, k := range took {
		if want := n % 2; k != want {
			t.Fatalf("payment %d was taken over %d times, want %d", n, k, want)
		}
	}
	if replays != callers*ids/2 {
		t.Errorf("%d replays, want %d", replays, callers*ids/2)
	}
	var healed, fences int
	w.get(&healed, `SELECT count(*) FROM payments WHERE healed AND state = 'settled'`)
	w.get(&fences, `SELECT count(*) FROM payments WHERE fence = 2`)
	if healed != ids/2 || fences != ids/2 {
		t.Errorf("%d healed, %d with the next fence", healed, fences)
	}
}

// One order an id under racing claims.
func TestRacingClaimsMakeOneOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 20 {
		id := fmt.Sprintf("racing-payment-%04d", round)
		orders := map[string]bool{}
		proceeds := 0
		for i, a := range each(16, func(i int) (*payments.Answer, error) {
			a := w.asked(id, round*16+1)
			a.Quote = "quote-" + id
			if i%4 == 3 { // another id for the same quote
				a.PaymentID, a.Authorization.Nonce = id+"-other", nonce(100_000+round*16+i)
			}
			return w.Claim(t.Context(), a)
		}) {
			switch r, refused := asRefusal(a.err); {
			case a.err == nil:
				proceeds++
				orders[a.v.Payment.OrderID] = true
			case !refused || r.Code != payments.CodeInFlight:
				t.Fatalf("caller %d: %v", i, a.err)
			default:
				orders[r.OrderID] = true
			}
		}
		if proceeds != 1 || len(orders) != 1 {
			t.Fatalf("round %d: %d may proceed, %d orders", round, proceeds, len(orders))
		}
	}
}

// The same try gets its answer again while it holds the payment, and nobody else does.
func TestALostAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.asked(p1, 1)
	a.AttemptID = "try-1"
	first := w.claim(a)
	if again := w.claim(a); again.Fence != first.Fence || again.Payment.OrderID != first.Payment.OrderID {
		t.Errorf("%+v", again)
	}
	other := a
	other.AttemptID = "try-2"
	w.refused(other, payments.CodeInFlight)
	w.order(p1, first.Fence)
	w.broadcast(p1, first.Fence)
	w.refused(a, payments.CodeInFlight)
	w.age(p1, time.Hour)
	w.refused(a, payments.CodeInFlight)
}
