package refunds_test

import (
	"errors"
	"sync"
	"testing"

	"quittance/ledger/money"
	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
)

func TestBC061_LargeAmountsAreExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, x := range []string{"2300000000", "9223372036854775807", "9223372036854775808", "9007199254740993"} {
		id := w.approved(bank, "idr", x)
		if got := w.refund(id).Amount.String(); got != x {
			t.Errorf("%s is stored as %s", x, got)
		}
	}
	var sum money.Atomic
	w.get(&sum, `SELECT owed FROM money_equation WHERE asset = 'idr'`)
	if sum.String() != "18455751275264292608" { // the four together
		t.Errorf("their sum is %s", sum)
	}
	id := w.approved(chain, weth, "9007199254740993000000000000000001")
	w.paid(id, "9007199254740993.000000000000000001")
	w.stands(id, refunds.Confirmed, "0", "9007199254740993000000000000000001", "0")
	_, err := w.pay.Post(t.Context(), payments.Incoming{
		Account: w.account, Network: bank, Tx: "too-large", Asset: "idr", From: alice, To: payee, Amount: "100000000000000000000000000000000000000", Final: true,
	})
	if r, ok := errors.AsType[*payments.Refusal](err); !ok || r.Code != payments.CodeInvalid {
		t.Errorf("what no column holds: %v", err)
	}
}

func TestBC063_TheRestIsPaidToTheLastUnit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	usd, eur := w.approved(bank, "usd", "995"), w.approved(bank, "eur", "6410")
	w.paid(usd, "3.30")
	w.refused(w.Start(ctx, w.act(w.ben, usd), "6.66"), refunds.CodeTooMuch)
	w.refused(w.Start(ctx, w.act(w.ben, eur), "64.11"), refunds.CodeTooMuch)
	w.paid(usd, "6.65")
	w.paid(eur, "64.10")
	w.stands(usd, refunds.Confirmed, "0", "995", "0")
	w.stands(eur, refunds.Confirmed, "0", "6410", "0")
}

// One written rule: plain digits with at most as many decimals as the asset has; fewer are
// filled up, which the page shows before anything is saved.
func TestBC064_OneRuleForWhatIsTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.refund(w.owed(bank, "usd", "100000"))
	for _, bad := range []string{"9.145", "1e2", "0x10", "+5", "5.", ".5", "٥", "1,000", " ", "12.300"} {
		if _, err := w.Amount(f, bad, f.Amount); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if x, err := w.Amount(f, "12.3", f.Amount); err != nil || x.String() != "1230" {
		t.Errorf("12.3 is read as %s, %v", x, err)
	}
}

func TestBC081_TwoRecordAPaymentAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.approved(bank, "usd", "12000")
	var refused []error
	var mu sync.Mutex
	var both sync.WaitGroup
	for i, by := range []refunds.Act{w.act(w.ben, id), w.act(w.cem, id)} {
		both.Go(func() {
			err := w.Send(t.Context(), by, refunds.Reference{Tx: hash(i), Amount: "70.00"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, err)
			}
		})
	}
	both.Wait()
	if len(refused) != 1 {
		t.Fatalf("%d of 2 are refused: %v", len(refused), refused)
	}
	if r := w.refused(refused[0], refunds.CodeTooMuch); r.Rest == nil || r.Rest.String() != "50.00" {
		t.Errorf("what remains: %v", r.Rest)
	}
	w.stands(id, refunds.Sent, "7000", "0", "0")
}

func TestBC085_PartsUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.approved(bank, "aud", "845")
	w.paid(id, "8.00")
	w.paid(id, "0.45")
	w.stands(id, refunds.Confirmed, "0", "845", "0")
	w.refused(w.Send(t.Context(), w.act(w.ben, id), refunds.Reference{Tx: "third", Amount: "8.45"}), refunds.CodeNotNow)
}

func TestBC088_AReturnIsOwedAgainOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	id := w.approved(bank, "usd", "500")
	w.paid(id, "")
	back := refunds.Back{Payout: w.payouts(id)[0].ID, Tx: "return-1"}
	w.refused(w.CameBack(ctx, w.act(w.ben, id), back), refunds.CodeOwn) // Ben sent it
	for range 2 {
		w.must(w.CameBack(ctx, w.act(w.cem, id), back))
	}
	w.stands(id, refunds.Returned, "0", "0", "0")
	w.refused(w.Start(ctx, w.act(w.ben, id), ""), refunds.CodeNotNow)
	w.must(w.Approve(ctx, w.act(w.ada, id)))
	w.paid(id, "")
	w.stands(id, refunds.Confirmed, "0", "500", "0")
	var kinds []string
	w.must(w.db.Select(ctx, &kinds, `SELECT data::json->>'state' FROM payment_events WHERE refund_id = $1::uuid AND kind IN ('refund_confirmed','refund_returned') ORDER BY id`, id))
	if len(kinds) != 3 || kinds[0] != "confirmed" || kinds[1] != "returned" || kinds[2] != "confirmed" {
		t.Errorf("history: %v", kinds)
	}
}

func TestBC092_PartsInTheCurrencyThatWasPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.approved(bank, "eur", "3333")
	for range 3 {
		w.paid(id, "11.11")
	}
	w.stands(id, refunds.Confirmed, "0", "3333", "0")
	w.refused(w.Start(t.Context(), w.act(w.ben, w.approved(bank, "eur", "3333")), "36.10"), refunds.CodeTooMuch)
}

func TestBC093_CurrenciesWithoutDecimals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jpy, krw := w.approved(bank, "jpy", "6400"), w.approved(bank, "krw", "720")
	w.refused(w.Start(t.Context(), w.act(w.ben, jpy), "6400.50"), refunds.CodeInvalid)
	w.paid(jpy, "6400")
	w.paid(krw, "")
	if got := w.payouts(jpy)[0].Amount.String(); got != "6400" {
		t.Errorf("%s is sent", got)
	}
	w.stands(krw, refunds.Confirmed, "0", "720", "0")
}

func TestBC095_GroupedAmountsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jpy, eur := w.approved(bank, "jpy", "23000"), w.approved(bank, "eur", "123456")
	w.refused(w.Start(t.Context(), w.act(w.ben, jpy), "23,000"), refunds.CodeInvalid)
	w.refused(w.Start(t.Context(), w.act(w.ben, eur), "1.234,56"), refunds.CodeInvalid)
	w.stands(jpy, refunds.Approved, "0", "0", "0")
	w.stands(eur, refunds.Approved, "0", "0", "0")
}

func TestBC096_NoMoreDecimalsThanTheCurrencyHas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.approved(bank, "eur", "250")
	w.refused(w.Start(t.Context(), w.act(w.ben, id), "2.501"), refunds.CodeInvalid)
	w.refused(w.Start(t.Context(), w.act(w.ben, id), "2.500"), refunds.CodeInvalid)
	w.paid(id, "2.50")
	w.stands(id, refunds.Confirmed, "0", "250", "0")
}
