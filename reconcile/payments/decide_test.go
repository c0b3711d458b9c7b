package payments_test

import (
	"strconv"
	"testing"
	"time"

	"quittance/ledger"
	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/payments"
)

// blind is a network that nobody can ask.
const blind = "eip155:4"

// pair are two people of finance.
func (w *world) pair() (a, b access.MadeBy) {
	w.t.Helper()
	who := access.New(w.db)
	make := func(name string) access.MadeBy {
		id := done(who.AddPerson(w.t.Context(), name, "", []string{"finance"}))(w.t)
		return access.MadeBy{Person: &access.Person{ID: id, Name: name, Roles: []string{"finance"}}}
	}
	return make("Fay"), make("Gil")
}

// unknown is a payment that was sent on a network and of which nobody knows what became;
// what was signed for it ended long ago.
func (w *world) unknown(id, on string, authorization int, ends string) *payments.Payment {
	w.t.Helper()
	in := w.asked(id, authorization)
	in.Network = on
	if in.Authorization != nil {
		in.Authorization.ValidBefore = ends
		if on == blind {
			in.Authorization.Signature = ""
		}
	}
	c := w.claim(in)
	w.order(id, c.Fence)
	w.broadcast(id, c.Fence)
	w.finish(id, c.Fence, "unknown")
	w.age(id, time.Hour)
	w.exec(`UPDATE payments SET broadcast_at = broadcast_at - interval '2 hours' WHERE payment_id = $1`, id)
	return w.payment(id)
}

func (w *world) deciding(by access.MadeBy, p *payments.Payment, v payments.Verdict, tx string) payments.Deciding {
	w.t.Helper()
	return payments.Deciding{By: by, Order: p.OrderID, Verdict: v, Tx: tx, Note: "statement of today", Version: done(rows.LastEvent(w.t.Context(), w.db, p.ID))(w.t)}
}

const longAgo = "1700000000"

// Two people say that an unknown was not taken: it is refused, its order is over, and money
// that comes after all is owed back and alerts.
func TestTwoPeopleDecideThatNothingWasTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fay, gil := w.pair()
	p := w.unknown(p1, blind, 1, longAgo)
	if done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictNotTaken, "")))(t) {
		t.Fatal("nothing was waited for")
	}
	if got := w.payment(p1); got.State != "unknown" {
		t.Fatalf("one person decided: %s", got.State)
	}
	_, err := w.LetGo(t.Context(), w.deciding(fay, p, "", ""))
	refusal(t, nil, err, payments.CodeConflict)
	stale := w.deciding(gil, p, "", "")
	stale.Version--
	_, err = w.LetGo(t.Context(), stale)
	refusal(t, nil, err, payments.CodeConflict)
	silent := w.deciding(gil, p, "", "")
	silent.Note = " "
	_, err = w.LetGo(t.Context(), silent)
	refusal(t, nil, err, payments.CodeConflict)
	done(w.LetGo(t.Context(), w.deciding(gil, p, "", "")))(t)
	got := w.payment(p1)
	if got.State != "refused" || got.Order.State != "failed" || got.Authorizations[0].DeadWhy != "person" {
		t.Fatalf("%s, order %s, authorization %q", got.State, got.Order.State, got.Authorizations[0].DeadWhy)
	}
	a := done(w.Claim(t.Context(), func() payments.Asked {
		in := w.asked(p1, 1)
		in.Network, in.Authorization.ValidBefore, in.Authorization.Signature = blind, longAgo, ""
		return in
	}()))(t)
	if a.Do != payments.Replay {
		t.Errorf("its payer is told %s", a.Do)
	}
	late := w.transfer(1, 1, "4200000")
	late.Network = blind
	m := done(w.Post(t.Context(), late))(t)
	if m.Transfer.Class != payments.Late || m.Refund == nil || m.Refund.Amount.String() != "4200000" {
		t.Errorf("%+v", m)
	}
	if n := done(rows.OpenAlerts(t.Context(), w.db, p.ID))(t); n != 1 {
		t.Errorf("%d alerts of what contradicts two people", n)
	}
	if err := w.SeeAlerts(t.Context(), w.deciding(gil, p, "", "")); err != nil {
		t.Fatal(err)
	}
	if n := done(rows.OpenAlerts(t.Context(), w.db, p.ID))(t); n != 0 {
		t.Errorf("%d alerts are open that somebody saw", n)
	}
	w.equation()
}

// Two people say by which reference it was settled: the order is paid by it, once, wherever
// the same movement is shown later.
func TestTwoPeopleDecideThatItWasSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fay, gil := w.pair()
	p := w.unknown(p1, blind, 1, "4102444800") // a settled one need not have ended
	hash := nonce(77)
	done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictSettled, hash)))(t)
	done(w.LetGo(t.Context(), w.deciding(gil, p, "", "")))(t)
	got := w.payment(p1)
	if got.Order.State != "paid" || len(got.Transfers) != 1 || got.Transfers[0].KnownBy != "person" || !got.Transfers[0].Final {
		t.Fatalf("order %s, %+v", got.Order.State, got.Transfers)
	}
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.payment(p1); got.State != "settled" || !got.Healed {
		t.Errorf("%s, healed %v", got.State, got.Healed)
	}
	shown := w.transfer(0, 1, "4200000")
	shown.Network, shown.Tx, shown.Position = blind, hash, 3
	for range 2 {
		if m := done(w.Post(t.Context(), shown))(t); m.New || m.Refund != nil {
			t.Fatalf("the same movement counts twice: %+v", m)
		}
	}
	shown.Position, shown.Nonce, shown.OrderID = 5, "", p.OrderID // another one of the same transaction
	if m := done(w.Post(t.Context(), shown))(t); !m.New || m.Transfer.Class != payments.Duplicate {
		t.Errorf("a second movement is not counted: %+v", m)
	}
	w.equation()
	q := w.unknown(p2, blind, 2, longAgo)
	_, err := w.AskDecision(t.Context(), w.deciding(fay, q, payments.VerdictSettled, hash))
	refusal(t, nil, err, payments.CodeConflict)
}

// What may still land is never decided, nor what its gateway is still at work on, nor what is
// over; the database refuses the same.
func TestWhatPeopleMayNotDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fay, gil := w.pair()
	ask := func(p *payments.Payment, v payments.Verdict) {
		t.Helper()
		_, err := w.AskDecision(t.Context(), w.deciding(fay, p, v, nonce(900)))
		refusal(t, nil, err, payments.CodeConflict)
	}
	live := w.unknown(p1, blind, 1, "4102444800")
	ask(live, payments.VerdictNotTaken)
	ended := w.unknown(p2, blind, 2, strconv.FormatInt(time.Now().Add(-time.Minute).Unix(), 10))
	ask(ended, payments.VerdictNotTaken) // a final block that shows it may lag behind
	insert := func(p *payments.Payment, verdict, constraint string) {
		t.Helper()
		_, err := w.db.Pool().ExecContext(t.Context(), `INSERT INTO payment_decisions (id, payment, verdict, note, fence, made_by, made_at, ready_at, state)
			VALUES (gen_random_uuid(), $1, $2, 'n', $3, $4, now(), now(), 'waiting')`, p.ID, verdict, p.Fence, fay.Person.ID)
		if got := ledger.Constraint(err); got != constraint {
			t.Errorf("the database says %q, not %q: %v", got, constraint, err)
		}
	}
	insert(live, "not_taken", "payment_decisions_may_land")
	in := w.asked("payment-young-000000", 3)
	in.Network, in.Authorization.ValidBefore, in.Authorization.Signature = blind, longAgo, ""
	c := w.claim(in)
	w.order(in.PaymentID, c.Fence)
	young := w.payment(in.PaymentID)
	ask(young, payments.VerdictSettled)
	insert(young, "not_taken", "payment_decisions_unknown")
	w.finish(in.PaymentID, c.Fence, "unknown")
	ask(w.payment(in.PaymentID), payments.VerdictNotTaken) // unknown, and not 180 s old
	insert(young, "not_taken", "payment_decisions_unknown")

	// An authorization that is offered after one person decided is not dead with the others.
	p := w.unknown("payment-offered-0001", blind, 4, longAgo)
	done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictNotTaken, "")))(t)
	again := w.asked("payment-offered-0001", 5)
	again.Network, again.Authorization.Signature = blind, ""
	w.refused(again, payments.CodeInFlight)
	_, err := w.LetGo(t.Context(), w.deciding(gil, p, "", ""))
	refusal(t, nil, err, payments.CodeConflict)
	if got := w.payment("payment-offered-0001"); got.State != "unknown" {
		t.Errorf("it is %s with an authorization that lives", got.State)
	}
	if err := w.DropDecision(t.Context(), w.deciding(gil, p, "", "")); err != nil {
		t.Fatal(err)
	}
	_, err = w.LetGo(t.Context(), w.deciding(gil, p, "", ""))
	refusal(t, nil, err, payments.CodeConflict)
}

// A rail that can be asked is asked first, and what it shows is recorded: people decide only
// what it leaves open.
func TestTheRailIsAskedBeforePeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fay, gil := w.pair()
	// It cannot tell: nobody may say that nothing was taken.
	p := w.unknown(p1, network, 1, longAgo)
	w.say(1, payments.Sight{Said: "the node does not answer"})
	_, err := w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictNotTaken, ""))
	refusal(t, nil, err, payments.CodeConflict)
	// It landed: that is recorded, and nothing is to be decided.
	w.say(1, w.landed(1, 1, "4200000"))
	if !done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictNotTaken, "")))(t) {
		t.Error("a person may decide what landed")
	}
	if got := w.payment(p1); got.Order.State != "paid" {
		t.Errorf("order %s", got.Order.State)
	}
	// A reference is looked for, not believed.
	p = w.unknown(p2, network, 2, "4102444800")
	w.say(2, payments.Sight{Said: "unused"})
	_, err = w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictSettled, nonce(1002)))
	refusal(t, nil, err, payments.CodeConflict)
	w.rail.within = map[string][]payments.Seen{nonce(1002): {*w.landed(2, 2, "4200000").Landed}}
	if !done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictSettled, nonce(1002))))(t) {
		t.Error("what the rail shows waits for a person")
	}
	if got := w.payment(p2); got.Order.State != "paid" {
		t.Errorf("order %s", got.Order.State)
	}
	// An end that nobody signed proves nothing by itself; people may say it, while the rail
	// shows the same to both of them.
	const p3 = "payment-unsigned-001"
	in := w.asked(p3, 3)
	in.Authorization.Signature, in.Authorization.ValidBefore = "", longAgo
	c := w.claim(in)
	w.order(p3, c.Fence)
	w.broadcast(p3, c.Fence)
	w.finish(p3, c.Fence, "unknown")
	w.age(p3, time.Hour)
	p = w.payment(p3)
	w.say(3, payments.Sight{Dead: "expired", DeadBlock: 9, Said: "unused at block 9"})
	done(w.AskDecision(t.Context(), w.deciding(fay, p, payments.VerdictNotTaken, "")))(t)
	w.say(3, payments.Sight{Said: "the node does not answer"})
	_, err = w.LetGo(t.Context(), w.deciding(gil, p, "", ""))
	refusal(t, nil, err, payments.CodeConflict)
	w.say(3, payments.Sight{Dead: "expired", DeadBlock: 11, Said: "unused at block 11"})
	done(w.LetGo(t.Context(), w.deciding(gil, p, "", "")))(t)
	if got := w.payment(p3); got.State != "refused" {
		t.Errorf("%s", got.State)
	}
}

// Where the rail can be asked, a gateway's word alone makes nothing final, and takes nothing
// back.
func TestAGatewaysWordIsNotTheRails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	in := w.transfer(1, 1, "4200000")
	in.Final = true
	if m := done(w.Post(t.Context(), in))(t); m.Transfer.Final || m.Transfer.Class != payments.Applied {
		t.Errorf("final by its gateway's word: %+v", m.Transfer)
	}
	in.Final, in.Reverted = false, true
	if m := done(w.Post(t.Context(), in))(t); m.Transfer.Reverted() {
		t.Error("taken back by its gateway's word")
	}
	w.rail.standing = map[string]payments.Standing{in.Tx: {Gone: true}}
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.payment(p1); !got.Transfers[0].Reverted() || got.Order.State != "paying" {
		t.Fatalf("the rail was not asked: %+v", got.Transfers[0])
	}
	in.Reverted = false
	if m := done(w.Post(t.Context(), in))(t); !m.Transfer.Reverted() {
		t.Error("there again by its gateway's word")
	}
	there := *w.landed(1, 1, "4200000").Landed
	w.rail.standing = map[string]payments.Standing{in.Tx: {There: &there}}
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.payment(p1); got.Transfers[0].Reverted() || !got.Transfers[0].Final || got.Order.State != "paid" {
		t.Errorf("%+v", got.Transfers[0])
	}
	w.equation()
}

// A gateway that settled what nobody can pay any more gave it away: that alerts, once.
func TestSettledAndNeverPaidAlerts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.claim(w.asked(p1, 1))
	w.order(p1, c.Fence)
	w.broadcast(p1, c.Fence)
	w.finish(p1, c.Fence, "settled")
	w.say(1, payments.Sight{Said: "unused"})
	w.checkNow(p1)
	id := w.payment(p1).ID
	if n := done(rows.OpenAlerts(t.Context(), w.db, id))(t); n != 0 {
		t.Errorf("%d alerts while it may still land", n)
	}
	w.say(1, payments.Sight{Dead: "expired", DeadBlock: 9, Said: "unused at block 9"})
	for range 2 {
		w.checkNow(p1)
	}
	if n := done(rows.OpenAlerts(t.Context(), w.db, id))(t); n != 1 {
		t.Errorf("%d alerts of what was settled and never paid", n)
	}
}
