package refunds_test

import (
	"strconv"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/reconcile/refunds"
)

func units(n int) money.Atomic {
	a, err := money.AtomicOf(strconv.Itoa(n))
	if err != nil {
		panic(err)
	}
	return a
}

// every row that the database can hold with figures up to 4, in every state.
func everyRow() (list []rows.Refund) {
	const most = 4
	for _, state := range refunds.States {
		for amount := range most + 1 {
			for written := range amount + 1 {
				for paid := range amount - written + 1 {
					for reserved := range amount - written - paid + 1 {
						for approved := paid + reserved; approved <= amount-written; approved++ {
							f := rows.Refund{State: state, Amount: units(amount), WrittenOff: units(written), Paid: units(paid), Reserved: units(reserved), Approved: units(approved)}
							if approved > paid {
								f.ApprovedBy, f.ApprovedAt = 1, ledger.At(time.Unix(1, 0))
							}
							if state == refunds.Held {
								f.HeldWhy = "why"
							}
							if broken(f) == "" {
								list = append(list, f)
							}
						}
					}
				}
			}
		}
	}
	return list
}

// broken says which of the table's constraints a row breaks, by name.
func broken(f rows.Refund) string {
	sum := f.Reserved.Plus(f.Paid).Plus(f.WrittenOff)
	live := refunds.Live(f.State)
	for name, holds := range map[string]bool{
		"refunds_never_over":   sum.Cmp(f.Amount) <= 0,
		"refunds_void":         (f.State == refunds.Void) == (f.Amount.Sign() == 0),
		"refunds_closed":       f.State != refunds.Confirmed && f.State != refunds.WrittenOff || f.Rest().Sign() == 0,
		"refunds_approved":     f.Paid.Plus(f.Reserved).Cmp(f.Approved) <= 0 && f.Approved.Plus(f.WrittenOff).Cmp(f.Amount) <= 0,
		"refunds_approval":     (f.ApprovedBy == 0) == f.ApprovedAt.IsZero() && (f.Approved.Cmp(f.Paid) <= 0 || f.ApprovedBy != 0),
		"refunds_not_approved": f.Approved.Cmp(f.Paid) == 0 || f.State != refunds.Owed && f.State != refunds.Returned && f.State != refunds.Held && f.State != refunds.Void,
		"refunds_may_be_paid":  f.State != refunds.Approved || f.Approved.Cmp(f.Paid) > 0 && f.Reserved.Sign() == 0,
		"refunds_under_way":    (f.Reserved.Sign() > 0) == live,
		"refunds_open":         f.Rest().Sign() > 0 || f.State == refunds.Confirmed || f.State == refunds.WrittenOff || f.State == refunds.Void,
		"refunds_held":         (f.HeldWhy != "") == (f.State == refunds.Held),
		"refunds_write_off":    f.WriteOff.Sign() == 0 || f.Reserved.Sign() == 0,
	} {
		if !holds {
			return name
		}
	}
	return ""
}

// Whatever happens to whatever row: it is refused with a reason and nothing is changed, or
// it leads to a row that the database can hold, by a move that the database knows.
func TestEveryEventOnEveryRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := map[string]bool{}
	moves := map[string]bool{}
	refusals := 0
	list := everyRow()
	if len(list) < 100 {
		t.Fatalf("only %d rows", len(list))
	}
	for _, f := range list {
		for _, e := range refunds.Events {
			for n := range 6 {
				x := units(n)
				after, why := refunds.Next(f, e, x)
				if why != "" {
					if after != f {
						t.Fatalf("event %d on %+v is refused and changes it", e, f)
					}
					refusals++
					continue
				}
				if e == refunds.Approve && after.Approved.Cmp(after.Paid) > 0 { // the engine says who
					after.ApprovedBy, after.ApprovedAt = 1, ledger.At(time.Unix(1, 0))
				}
				if e == refunds.Hold {
					after.HeldWhy = "why"
				}
				if name := broken(after); name != "" {
					t.Fatalf("event %d with %d on %+v breaks %s: %+v", e, n, f, name, after)
				}
				if after.Paid.Cmp(f.Paid) > 0 && e != refunds.Arrive && e != refunds.Landed {
					t.Fatalf("event %d pays", e)
				}
				if f.State != after.State {
					moves[f.State+">"+after.State] = true
				}
			}
		}
	}
	for m := range moves {
		known[m] = true
		var ok bool
		w.get(&ok, `SELECT refund_move(split_part($1, '>', 1), split_part($1, '>', 2))`, m)
		if !ok {
			t.Errorf("the database does not know the move %s", m)
		}
	}
	// And the database lets nothing happen that the table never does, but for batches.
	for _, from := range refunds.States {
		for _, to := range refunds.States {
			var ok bool
			w.get(&ok, `SELECT refund_move($1, $2)`, from, to)
			if ok && !known[from+">"+to] && from != refunds.Batched && to != refunds.Batched {
				t.Errorf("the database knows the move %s>%s, which never happens", from, to)
			}
		}
	}
	if refusals == 0 {
		t.Error("nothing is ever refused")
	}
}
