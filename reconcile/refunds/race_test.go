package refunds_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
)

// Sixteen writers pay parts of two hundred refunds as fast as they can: no refund is ever
// paid, or reserved, more than it owes.
func TestSixteenWritersNeverPassWhatIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const count = 200
	ids := make([]string, count)
	for i := range ids {
		ids[i] = w.approved(bank, "usd", "100")
	}
	var writers sync.WaitGroup
	for n := range 16 {
		writers.Go(func() {
			by, other := w.ben, w.cem
			if n%2 == 1 {
				by, other = w.cem, w.ben
			}
			for i := range 120 {
				id := ids[rand.IntN(count)]
				amount := "0." + strconv.Itoa(10+rand.IntN(60))
				err := w.Send(t.Context(), w.act(by, id), refunds.Reference{Tx: strconv.Itoa(n) + "-" + strconv.Itoa(i), Amount: amount})
				if err == nil && rand.IntN(3) > 0 {
					_ = w.Saw(t.Context(), w.act(other, id)) // somebody else may have been faster
				}
				if err != nil {
					if _, refused := err.(*refunds.Refusal); !refused {
						t.Error(err)
					}
				}
			}
		})
	}
	writers.Wait()
	var over, paid int
	w.get(&over, `SELECT count(*) FROM refunds WHERE reserved + paid > amount`)
	w.get(&paid, `SELECT count(*) FROM refunds WHERE paid + reserved > 0`)
	if over != 0 || paid < count/2 {
		t.Errorf("%d pass what is owed, %d were paid at all", over, paid)
	}
	w.equation()
}

// Whatever happens in whatever order, the equation holds after every step, nothing internal
// fails, and no constraint had to stop what the tables allowed.
func TestAnyOrderKeepsTheEquation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			newWalk(t, seed).run(300)
		})
	}
}

// walk does random things to a few orders.
type walk struct {
	*world
	rnd    *rand.Rand
	posted []payments.Incoming
	done   map[string]int
}

func newWalk(t *testing.T, seed uint64) *walk {
	return &walk{world: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 77)), done: map[string]int{}}
}

func (w *walk) run(steps int) {
	orders := []string{}
	for i := range 3 {
		id := "payment-for-a-walk-" + strconv.Itoa(i)
		a, err := w.pay.Claim(w.t.Context(), payments.Asked{
			Account: w.account, Gateway: "shop", PaymentID: id, Payer: alice, RequestDigest: hash(i)[2:], Amount: "100", Asset: usdc, Network: chain, PayTo: payee,
		})
		w.must(err)
		_, err = w.pay.Order(w.t.Context(), payments.NewOrder{Step: payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: id}, Fence: a.Fence}})
		w.must(err)
		orders = append(orders, a.Payment.OrderID)
	}
	for n := range steps {
		w.step(n, orders)
		w.equation()
	}
	for _, what := range []string{"post", "final", "revert", "approve", "send", "arrive", "give up", "come back", "write off", "give back"} {
		if w.done[what] == 0 {
			w.t.Logf("seed never did: %s", what)
		}
	}
	if w.done["arrive"] == 0 || w.done["revert"] == 0 {
		w.t.Errorf("the walk did too little: %v", w.done)
	}
}

func (w *walk) step(n int, orders []string) {
	ctx := w.t.Context()
	switch w.rnd.IntN(12) {
	case 0, 1:
		in := payments.Incoming{
			Account: w.account, Network: chain, Tx: hash(20_000 + n), Asset: usdc, From: alice, To: payee, Amount: strconv.Itoa(10 + w.rnd.IntN(130)), Block: int64(n + 1), BlockHash: hash(n),
		}
		if w.rnd.IntN(5) > 0 {
			in.OrderID = orders[w.rnd.IntN(len(orders))]
		}
		w.tell(in, "post")
	case 2, 3:
		if in, ok := w.any(); ok {
			in.Final = true
			w.tell(in, "final")
		}
	case 4:
		if in, ok := w.any(); ok {
			in.Reverted = true
			w.tell(in, "revert")
		}
	case 5:
		if in, ok := w.any(); ok {
			w.tell(in, "again")
		}
	default:
		w.refundStep(ctx, n)
	}
}

func (w *walk) any() (payments.Incoming, bool) {
	if len(w.posted) == 0 {
		return payments.Incoming{}, false
	}
	return w.posted[w.rnd.IntN(len(w.posted))], true
}

func (w *walk) tell(in payments.Incoming, what string) {
	w.t.Helper()
	_, err := w.pay.Post(w.t.Context(), in)
	if w.note(what, err) && what == "post" {
		w.posted = append(w.posted, in)
	}
}

// note counts what was done; what is refused with a reason is fine, anything else is not.
func (w *walk) note(what string, err error) bool {
	w.t.Helper()
	switch err.(type) {
	case nil:
		w.done[what]++
		return true
	case *refunds.Refusal, *payments.Refusal:
		return false
	}
	w.t.Fatalf("%s: %v", what, err)
	return false
}
