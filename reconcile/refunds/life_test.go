package refunds_test

import (
	"testing"

	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
)

// A refund is approved by one, sent by another, and counts as paid when its network shows it.
func TestARefundFromOwedToConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.owed(chain, usdc, "4200000")
	w.refused(w.Send(ctx, w.act(w.ben, id), refunds.Reference{Tx: hash(1)}), refunds.CodeNotNow)
	w.refused(w.Approve(ctx, w.act(w.cem, id)), refunds.CodeOwn) // Cem gave it back
	w.must(w.Approve(ctx, w.act(w.ada, id)))
	w.stands(id, refunds.Approved, "0", "0", "0")
	w.refused(w.Send(ctx, w.act(w.ada, id), refunds.Reference{Tx: hash(1)}), refunds.CodeOwn)
	w.must(w.Send(ctx, w.act(w.ben, id), refunds.Reference{Tx: hash(1)}))
	w.stands(id, refunds.Sent, "4200000", "0", "0")
	w.must(w.Tick(ctx)) // the network shows nothing yet
	w.stands(id, refunds.Sent, "4200000", "0", "0")
	w.refused(w.Saw(ctx, w.act(w.cem, id)), refunds.CodeNotNow) // the network is asked, people are not
	w.net.show(hash(1), refunds.Sight{Seen: refunds.Arrived, Said: "not final yet"})
	w.due(id)
	w.must(w.Tick(ctx))
	w.stands(id, refunds.Sent, "4200000", "0", "0")
	w.net.show(hash(1), refunds.Sight{Seen: refunds.Arrived, Final: true, Block: 9, Said: "in block 9"})
	w.due(id)
	w.must(w.Tick(ctx))
	w.stands(id, refunds.Confirmed, "0", "4200000", "0")
	if p := w.payouts(id); len(p) != 1 || p[0].State != "confirmed" || p[0].Block != 9 || p[0].Key == "" {
		t.Errorf("%+v", p)
	}
}

// due makes the next look at the payouts of a refund due now.
func (w *world) due(id string) {
	w.t.Helper()
	w.must(w.exec(`UPDATE payouts SET check_at = clock_timestamp() WHERE refund_id = $1::uuid AND check_at IS NOT NULL`, id))
}

// What may not be recorded is refused with a reason, and nothing of it stays.
func TestReferencesOfOtherPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	one, two := w.approved(chain, usdc, "10"), w.approved(chain, usdc, "10")
	w.must(w.Send(ctx, w.act(w.ben, one), refunds.Reference{Tx: hash(1)}))
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: "0x" + hash(1)[2:]}), refunds.CodeUsed)
	w.stands(two, refunds.Approved, "0", "0", "0")
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: hash(1001)}), refunds.CodeUsed) // the transfer that came in
	w.net.show(hash(2), refunds.Sight{Seen: refunds.Elsewhere, Said: "it went to somebody else"})
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: hash(2)}), refunds.CodeInvalid)
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: "soon"}), refunds.CodeInvalid)
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{}), refunds.CodeInvalid)
	w.stands(two, refunds.Approved, "0", "0", "0")
	if n := len(w.payouts(two)); n != 0 {
		t.Errorf("%d payouts are left of what was refused", n)
	}
	// One that shows itself as another payment only later is no payment of this.
	w.must(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: hash(3)}))
	w.net.show(hash(3), refunds.Sight{Seen: refunds.Elsewhere, Final: true, Block: 4, Said: "it went to somebody else"})
	w.due(two)
	w.must(w.Tick(ctx))
	w.stands(two, refunds.Approved, "0", "0", "0")
	w.refused(w.Send(ctx, w.act(w.ben, two), refunds.Reference{Tx: hash(3)}), refunds.CodeInvalid)
}

// The start of sending keeps everybody else out; whoever started says that it did not go
// out, and nobody else can while they are at it.
func TestSendingIsOnePersonsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.approved(chain, usdc, "100")
	w.must(w.Start(ctx, w.act(w.ben, id), "0.000060"))
	r := w.refused(w.Start(ctx, w.act(w.cem, id), "0.000060"), refunds.CodeTooMuch)
	if r.Rest == nil || r.Rest.String() != "0.000040" {
		t.Errorf("what remains: %v", r.Rest)
	}
	w.refused(w.Hold(ctx, w.act(w.ada, id)), refunds.CodeNotNow)
	w.refused(w.Redirect(ctx, w.act(w.ada, id), "0xb000000000000000000000000000000000000002"), refunds.CodeNotNow)
	w.refused(w.GiveUp(ctx, w.act(w.cem, id)), refunds.CodeOwn)
	w.must(w.Doubt(ctx, w.act(w.cem, id)))
	w.stands(id, refunds.Unknown, "60", "0", "0")
	w.refused(w.GiveUp(ctx, w.act(w.ben, id)), refunds.CodeOwn) // now it takes somebody who looked
	w.must(w.GiveUp(ctx, w.act(w.cem, id)))
	w.stands(id, refunds.Approved, "0", "0", "0")
	w.must(w.Start(ctx, w.act(w.ben, id), ""))
	if p := w.payouts(id); len(p) != 2 || p[0].Key == p[1].Key || p[1].Attempt != 2 {
		t.Errorf("%+v", p)
	}
}

// A payment that a person gave up and that arrives after all is not paid once more: it pays
// what is owed, or is to be claimed back.
func TestAPaymentThatWasGivenUpLands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	once, twice := w.approved(chain, usdc, "10"), w.approved(chain, usdc, "10")
	for i, id := range []string{once, twice} {
		w.must(w.Send(ctx, w.act(w.ben, id), refunds.Reference{Tx: hash(i + 1)}))
		w.must(w.GiveUp(ctx, w.act(w.cem, id)))
		w.stands(id, refunds.Approved, "0", "0", "0")
	}
	w.paid(twice, "")
	for i, id := range []string{once, twice} {
		w.net.show(hash(i+1), refunds.Sight{Seen: refunds.Arrived, Final: true, Block: 5})
		w.due(id)
	}
	w.must(w.Tick(ctx))
	w.stands(once, refunds.Confirmed, "0", "10", "0")
	w.stands(twice, refunds.Confirmed, "0", "10", "0")
	var found struct {
		State, Currency, Amount string
	}
	w.get(&found, `SELECT v.state, v.currency, v.amount::text AS amount FROM recoveries v JOIN payouts p ON p.id = v.payout_id WHERE p.refund_id = $1::uuid`, twice)
	if found.State != "confirmed" || found.Currency != "USDC" || found.Amount != "10" {
		t.Errorf("%+v", found)
	}
	var n int
	if w.get(&n, `SELECT count(*) FROM recoveries`); n != 1 {
		t.Errorf("%d recoveries", n)
	}
}

// Writing off takes two people; what is paid stays paid.
func TestWritingOffTakesTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.approved(bank, "eur", "1000")
	w.paid(id, "4.00")
	w.refused(w.AskWriteOff(ctx, w.act(w.ben, id), "6.01"), refunds.CodeNotNow)
	w.must(w.AskWriteOff(ctx, w.act(w.ben, id), "5.99"))
	w.refused(w.WriteOff(ctx, w.act(w.ben, id)), refunds.CodeOwn)
	w.refused(w.Start(ctx, w.act(w.ben, id), ""), refunds.CodeNotNow)
	w.must(w.WriteOff(ctx, w.act(w.cem, id)))
	w.stands(id, refunds.Approved, "0", "400", "599")
	w.paid(id, "0.01")
	w.stands(id, refunds.Confirmed, "0", "401", "599")
	other := w.owed(bank, "eur", "5")
	w.must(w.AskWriteOff(ctx, w.act(w.ben, other), ""))
	w.must(w.DropWriteOff(ctx, w.act(w.ben, other)))
	w.must(w.AskWriteOff(ctx, w.act(w.cem, other), ""))
	w.must(w.WriteOff(ctx, w.act(w.ben, other)))
	w.stands(other, refunds.WrittenOff, "0", "0", "5")
	w.refused(w.Approve(ctx, w.act(w.ada, other)), refunds.CodeNotNow)
}

// A destination that one person sets holds once another approved it.
func TestAnotherDestination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	const there = "0xb000000000000000000000000000000000000002"
	id := w.approved(chain, usdc, "10")
	w.refused(w.Redirect(ctx, w.act(w.ben, id), payee), refunds.CodeInvalid)
	w.must(w.Redirect(ctx, w.act(w.ben, id), "0xB000000000000000000000000000000000000002"))
	w.stands(id, refunds.Owed, "0", "0", "0")
	w.refused(w.Approve(ctx, w.act(w.ben, id)), refunds.CodeOwn)
	w.must(w.Approve(ctx, w.act(w.ada, id)))
	w.paid(id, "")
	if p := w.payouts(id); p[0].Recipient != there {
		t.Errorf("it went to %s", p[0].Recipient)
	}
}

// Held is not paid; a stale page changes nothing; nothing that is not final is approved.
func TestHeldStaleAndNotFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.owed(bank, "usd", "100")
	w.refused(w.Hold(ctx, refunds.Act{By: w.ben, Refund: id}), refunds.CodeInvalid)
	w.must(w.Hold(ctx, w.act(w.ben, id)))
	w.refused(w.Approve(ctx, w.act(w.ada, id)), refunds.CodeNotNow)
	a := w.act(w.ada, id)
	a.Version = 1
	w.refused(w.Release(ctx, a), refunds.CodeStale)
	w.must(w.Release(ctx, w.act(w.ada, id)))
	w.must(w.Approve(ctx, w.act(w.ada, id)))
	w.refused(w.Approve(ctx, refunds.Act{By: w.ada, Refund: "nonsense"}), refunds.CodeNotFound)
	m, err := w.pay.Post(ctx, payments.Incoming{Account: w.account, Network: chain, Tx: hash(77), Asset: usdc, From: alice, To: payee, Amount: "5", Block: 3, BlockHash: hash(78)})
	w.must(err)
	m, err = w.pay.GiveBack(ctx, payments.ByHand{By: w.cem, Transfer: m.Transfer.ID, Note: "not ordered"})
	w.must(err)
	w.refused(w.Approve(ctx, w.act(w.ada, m.Refund.ID)), refunds.CodeNotNow)
	if err := w.exec(`UPDATE refunds SET approved = 1, approved_by = $2, approved_at = now(), state = 'approved', version = version + 1 WHERE id = $1::uuid`, m.Refund.ID, w.ada.Person.ID); err == nil {
		t.Error("the database lets money be approved that is not final")
	}
	_, err = w.pay.GiveBack(ctx, payments.ByHand{By: w.cem, Transfer: m.Transfer.ID, Note: "again"})
	if err == nil {
		t.Error("it is given back twice")
	}
	// Not declared: shown in raw units, and not payable.
	odd := w.owed(bank, "xyz", "100")
	w.refused(w.Approve(ctx, w.act(w.ada, odd)), refunds.CodeInvalid)
	if got := w.Blocks(w.refund(odd), true); got != "Asset not declared: not payable" {
		t.Error(got)
	}
	step := w.approved(bank, "bhd", "1003")
	w.refused(w.Start(ctx, w.act(w.ben, step), ""), refunds.CodeInvalid)
	w.paid(step, "1.000")
	if got := w.Blocks(w.refund(step), true); got != "Below the step of its rail: not payable" {
		t.Error(got)
	}
}
