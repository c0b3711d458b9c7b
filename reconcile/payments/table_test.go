package payments_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// situation is what is stored of a payment, and who asks.
type situation struct {
	payments.Facts
	payments.Caller
	gateway string
}

// stored builds a situation with the calls that lead there. false: there is no such one.
func (w *world) stored(x situation, id string, auth int) bool {
	none := x.Authorizations == payments.NoAuthorization
	switch {
	case none && x.Brings == payments.StoredOne,
		x.Facts.Order == payments.NoOrder && (x.Facts.State == payments.Settled || x.Facts.State == payments.Pruned),
		x.Facts.Order == payments.Unpaid && none && x.Brings == payments.AnotherDead, // it counts then
		x.Broadcast && x.BroadcastFollowsWork && (x.Facts.Work == payments.Undecided || x.Facts.Work == payments.NotTaken):
		return false // the broadcast tells of the work
	}
	a := w.asked(id, auth)
	if none {
		a = w.asked(id, 0)
	}
	a.Gateway, a.Tool = x.gateway, "fetch_page"
	c := w.claim(a)
	at := payments.Step{Name: w.step(id, 0).Name, Fence: c.Fence}
	at.Gateway = x.gateway
	ctx := w.t.Context()
	if x.Facts.Order != payments.NoOrder {
		done(w.Order(ctx, payments.NewOrder{Step: at}))(w.t)
	}
	if x.Facts.Work != payments.NoWork {
		b := done(w.Work(ctx, payments.NewWork{Step: at}))(w.t)
		if outcome := map[payments.Work]string{payments.Taken: "taken", payments.NotTaken: "failed"}[x.Facts.Work]; outcome != "" {
			done(w.effects.Apply(ctx, []effects.Op{{Finish: &effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: outcome}}}))(w.t)
		}
	}
	if x.Broadcast {
		done(w.Broadcast(ctx, payments.Sending{Step: at}))(w.t)
	}
	if x.Facts.Order == payments.Paid {
		in := w.transfer(auth, 0, "4200000")
		in.Gateway, in.PaymentID = x.gateway, id
		w.post(in, payments.Applied)
	}
	const mine = ` WHERE payment = (SELECT id FROM payments WHERE payment_id = $1)`
	if x.Authorizations == payments.AllDead {
		w.exec(`UPDATE authorizations SET dead_why = 'cancelled', dead_at = clock_timestamp(), dead_block = 7`+mine, id)
	}
	if x.Brings == payments.AnotherDead {
		w.exec(`INSERT INTO authorizations (payment, network, asset, payer, nonce, valid_before, signed, offered_at, dead_why, dead_at, dead_block)
			SELECT id, network, asset, payer, $2, 4102444800, true, clock_timestamp(), 'cancelled', clock_timestamp(), 7 FROM payments WHERE payment_id = $1`, id, nonce(auth+20_000))
	}
	if x.Facts.Order == payments.Unpaid {
		w.exec(`UPDATE orders SET state = 'expired'`+mine, id)
	}
	switch x.Facts.State {
	case payments.Unknown:
		w.exec(`UPDATE payments SET state = 'unknown' WHERE payment_id = $1`, id)
	case payments.Settled, payments.Refused, payments.Pruned:
		ended := x.Facts.State
		if ended == payments.Pruned {
			ended = payments.Settled
		}
		w.exec(`UPDATE payments SET state = $2, ended_at = clock_timestamp(), check_at = NULL WHERE payment_id = $1`, id, string(ended))
	}
	if x.Facts.State == payments.Pruned {
		w.exec(`UPDATE payments SET state = 'pruned', pruned_from = 'settled', pruned_at = clock_timestamp() WHERE payment_id = $1`, id)
	}
	if x.Age > payments.HealAfter {
		w.age(id, x.Age)
	}
	return true
}

// Every row of the table, and many situations beside them, as they are stored: what is
// answered and what is written is what the pure table says.
func TestTheTableAsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	t.Logf("seed %d", seed)
	pick := func(n int) int { return r.IntN(n) }
	rows := map[string]int{}
	for _, row := range []string{
		"other payer", "other request", "pruned", "settled", "refused", "same attempt", "young", "healed", "work undecided", "paid, not done", "never paid", "sign again", "signed again",
		"done, not sent", "done, not sent, another authorization", "may have been sent", "nothing was begun", "unknown",
	} {
		rows[row] = 0
	}
	missing := len(rows)
	for n := 1; n <= 40_000; n++ {
		x := situation{gateway: []string{"shop", "bank"}[pick(2)]}
		x.Facts = payments.Facts{
			State: payments.States[pick(5)], Order: []payments.Order{payments.NoOrder, payments.NotFinal, payments.Paid, payments.Unpaid}[pick(4)],
			Work: []payments.Work{payments.NoWork, payments.Undecided, payments.Taken, payments.NotTaken}[pick(4)], Broadcast: pick(2) == 0,
			Authorizations: []payments.Authorizations{payments.NoAuthorization, payments.AllDead, payments.SomeUsable}[pick(3)], BroadcastFollowsWork: x.gateway == "shop",
		}
		if pick(5) > 0 {
			x.Age = old
		}
		x.Caller = payments.Caller{
			SamePayer: pick(20) > 0, SameRequest: pick(20) > 0,
			Brings: []payments.Brings{payments.Nothing, payments.StoredOne, payments.AnotherDead, payments.Another}[pick(4)],
		}
		f := x.Facts
		if f.Order == payments.Unpaid && x.Brings == payments.Another && x.SamePayer && x.SameRequest {
			f.Authorizations = payments.SomeUsable // what is brought counts then
		}
		want := payments.Decide(f, x.Caller)
		if rows[want.Row] >= 3 || rows[want.Row] >= 1 && missing > 1 && pick(6) > 0 { // rows that were seen make room for those that were not
			continue
		}
		id := fmt.Sprintf("pay-as-stored-%06d", n)
		if !w.stored(x, id, n) {
			continue
		}
		if rows[want.Row] == 0 {
			missing--
		}
		rows[want.Row]++
		w.answers(x, want, id, n)
	}
	for row, n := range rows {
		if n == 0 && row != "same attempt" { // TestALostAnswerIsGivenAgain
			t.Errorf("nothing came to the row %q", row)
		}
	}
}

// answers asks, and compares what is answered and written with the decision.
func (w *world) answers(x situation, want payments.Decision, id string, auth int) {
	w.t.Helper()
	before := w.paymentOf(x.gateway, id)
	brought := map[payments.Brings]int{payments.StoredOne: auth, payments.AnotherDead: auth + 20_000, payments.Another: auth + 40_000}[x.Brings]
	a := w.asked(id, brought)
	a.Gateway, a.Tool = x.gateway, "fetch_page"
	if !x.SamePayer {
		a.Payer = bob
	}
	if !x.SameRequest {
		a.Amount = "1"
	}
	got, err := w.Claim(w.t.Context(), a)
	after := w.paymentOf(x.gateway, id)
	wrong := func(what string) {
		w.t.Helper()
		w.t.Errorf("%s: %+v\n wants %+v\n is told %+v, %v\n and stands %s, fence %d after %d", what, x, want, got, err, after.State, after.Fence, before.Fence)
	}
	r, refused := asRefusal(err)
	if err != nil && !refused {
		wrong("an error")
		return
	}
	codes := map[payments.Do]payments.Code{payments.Wait: payments.CodeInFlight, payments.Conflict: payments.CodeConflict, payments.Spent: payments.CodeSpent, payments.SignAgain: payments.CodeSignAgain}
	if code := codes[want.Do]; refused != (code != "") || refused && r.Code != code || !refused && got.Do != want.Do {
		wrong("another answer")
		return
	}
	if refused && ((r.OrderID != "") != want.ShowOrder || r.Reason != want.Reason || r.RetryAfter != want.Retry) {
		wrong("another refusal")
	}
	fence, state := before.Fence, before.State
	switch {
	case want.TakeOver:
		fence, state = before.Fence+1, "in_flight"
		if got.Fence != fence || got.Paid != want.Paid || got.Work != want.Work {
			wrong("another permission")
		}
	case want.Heal:
		state = "settled"
	case want.Refuse:
		state = "refused"
	case want.Unknown:
		state = "unknown"
	}
	if after.Fence != fence || after.State != state || want.Check && after.CheckAt.IsZero() || want.Heal != (after.Healed && !before.Healed) {
		wrong("something else is written")
	}
	keeps := x.SamePayer && x.SameRequest && x.Brings == payments.Another && x.State != payments.Pruned
	if stored := len(after.Authorizations) - len(before.Authorizations); stored != map[bool]int{true: 1}[keeps] {
		wrong(fmt.Sprintf("%d authorizations more", stored))
	}
}
