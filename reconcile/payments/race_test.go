package payments_test

import (
	"fmt"
	"testing"

	"quittance/reconcile/payments"
)

// Two of everything at once, over and over: whoever comes first, nothing fails in a way that
// nobody expected, the money adds up, and what must not be both is not.
func TestTwoOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	// prepared is a payment that was sent: its fence.
	prepared := func(id string, n int) int64 {
		c := w.claim(w.asked(id, n))
		w.order(id, c.Fence)
		w.broadcast(id, c.Fence)
		return c.Fence
	}
	finish := func(id string, fence int64, outcome string) func() error {
		return func() error {
			_, err := w.Finish(ctx, payments.Finish{Step: w.step(id, fence), Outcome: outcome, Response: map[string]*payments.Response{"settled": {Status: 200}, "refused": {Status: 402}}[outcome]})
			return err
		}
	}
	post := func(n int, reverted bool) func() error {
		return func() error {
			in := w.transfer(n, n, "4200000")
			in.Reverted = reverted
			_, err := w.Post(ctx, in)
			return err
		}
	}
	expire := func(id string) func() error {
		w.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond' WHERE payment = (SELECT id FROM payments WHERE payment_id = $1)`, id)
		return func() error { return w.Tick(ctx) }
	}
	claim := func(id string, n int, tell func(*payments.Answer)) func() error {
		return func() error {
			got, err := w.Claim(ctx, w.asked(id, n))
			if err == nil {
				tell(got)
			}
			return err
		}
	}
	none := func(*payments.Answer) {}
	n := 0
	for name, make := range map[string]func(id string, n int) (calls []func() error, then func() string){
		"a finish and a take-over": func(id string, n int) ([]func() error, func() string) {
			fence := prepared(id, n)
			w.age(id, old)
			w.say(n, payments.Sight{Dead: "cancelled", DeadBlock: 1})
			w.checkNow(id)
			var over int64
			return []func() error{finish(id, fence, "settled"), claim(id, 500+n, func(a *payments.Answer) { over = a.Fence })}, func() string {
				p := w.payment(id)
				if (p.State == "settled") == (over > fence) {
					return fmt.Sprintf("%s, and the take-over has fence %d", p.State, over)
				}
				return ""
			}
		},
		"a transfer and a refusal": func(id string, n int) ([]func() error, func() string) {
			c := w.claim(w.asked(id, n))
			w.order(id, c.Fence)
			return []func() error{post(n, false), finish(id, c.Fence, "refused")}, func() string {
				p := w.payment(id)
				if p.State != "refused" || p.Order.State != "failed" || len(p.Refunds) != 1 || p.Refunds[0].Amount.String() != "4200000" {
					return fmt.Sprintf("%s, order %s, %d owed", p.State, p.Order.State, len(p.Refunds))
				}
				return ""
			}
		},
		"a transfer and the order's end": func(id string, n int) ([]func() error, func() string) {
			c := w.claim(w.asked(id, n))
			w.order(id, c.Fence)
			return []func() error{post(n, false), expire(id)}, func() string {
				p := w.payment(id)
				if (p.Order.State == "paid") != (len(p.Refunds) == 0) || p.Order.State == "created" {
					return fmt.Sprintf("order %s, %d owed", p.Order.State, len(p.Refunds))
				}
				return ""
			}
		},
		"a transfer, again, and away": func(id string, n int) ([]func() error, func() string) {
			prepared(id, n)
			return []func() error{post(n, false), post(n, false), post(n, true), post(n, true)}, func() string {
				p := w.payment(id)
				if len(p.Transfers) != 1 || p.Transfers[0].Reverted() != (p.Order.State == "paying") {
					return fmt.Sprintf("order %s, %+v", p.Order.State, p.Transfers)
				}
				return ""
			}
		},
		"a month's end and a claim": func(id string, n int) ([]func() error, func() string) {
			fence := prepared(id, n)
			w.post(w.transfer(n, n, "4200000"), payments.Applied)
			w.finish(id, fence, "settled")
			w.exec(`UPDATE payments SET ended_at = ended_at - interval '40 days' WHERE payment_id = $1`, id)
			return []func() error{func() error { return w.Prune(ctx) }, claim(id, n, func(a *payments.Answer) {
				if a.Do != payments.Replay {
					t.Errorf("a month later it is told to %s", a.Do)
				}
			}), claim(id, 600+n, none)}, func() string { return "" }
		},
		"a match by hand and a name": func(id string, n int) ([]func() error, func() string) {
			c := w.claim(w.asked(id, n))
			w.order(id, c.Fence)
			m := w.post(w.transfer(n, 0, "4200000"), payments.Unmatched)
			named := w.transfer(n, 0, "4200000")
			named.Gateway, named.PaymentID = "shop", id
			return []func() error{
					func() error { _, err := w.Match(ctx, w.byHand(m.Transfer.ID, c.Payment.OrderID)); return err },
					func() error { _, err := w.Post(ctx, named); return err },
					func() error { _, err := w.GiveBack(ctx, w.byHand(m.Transfer.ID, "")); return err },
				}, func() string {
					p := w.payment(id)
					var class string
					w.get(&class, `SELECT class FROM transfers WHERE id = $1::uuid`, m.Transfer.ID)
					if (class == "applied") != (p.Order.State == "paid") || class == "unmatched" {
						return fmt.Sprintf("order %s, transfer %s", p.Order.State, class)
					}
					return ""
				}
		},
		"one quote under two ids": func(id string, n int) ([]func() error, func() string) {
			var proceeds [2]bool
			ask := func(i int) func() error {
				a := w.asked(fmt.Sprint(id, "-", i), n*2+i+100_000)
				a.Quote = "quote of " + id
				return func() error {
					got, err := w.Claim(ctx, a)
					proceeds[i] = err == nil && got.Do == payments.Proceed
					return err
				}
			}
			return []func() error{ask(0), ask(1)}, func() string {
				if proceeds[0] == proceeds[1] {
					return fmt.Sprint(proceeds)
				}
				return ""
			}
		},
		"one authorization under two ids": func(id string, n int) ([]func() error, func() string) {
			var proceeds [2]bool
			ask := func(i int) func() error {
				return claim(fmt.Sprint(id, "-", i), n, func(a *payments.Answer) { proceeds[i] = a.Do == payments.Proceed })
			}
			return []func() error{ask(0), ask(1)}, func() string {
				if proceeds[0] == proceeds[1] {
					return fmt.Sprint(proceeds)
				}
				return ""
			}
		},
		"work and a broadcast": func(id string, n int) ([]func() error, func() string) {
			c := w.claim(w.asked(id, n))
			w.order(id, c.Fence)
			work := func() error {
				in := payments.NewWork{Step: w.step(id, c.Fence), Tool: "fetch_page", Arguments: []byte(`{}`)}
				if begun, err := w.Work(ctx, in); err != nil || begun.Do == "proceed" {
					return err
				}
				return nil
			}
			return []func() error{work, work, func() error { _, err := w.Broadcast(ctx, payments.Sending{Step: w.step(id, c.Fence)}); return err }}, func() string { return "" }
		},
	} {
		for range 6 {
			n++
			id := fmt.Sprintf("pay-two-at-once-%05d", n)
			calls, then := make(id, n)
			for _, got := range each(len(calls), func(i int) (struct{}, error) { return struct{}{}, calls[i]() }) {
				if _, refused := asRefusal(got.err); got.err != nil && !refused {
					t.Errorf("%s: %v", name, got.err)
				}
			}
			if what := then(); what != "" {
				t.Errorf("%s: %s", name, what)
			}
			w.equation()
		}
	}
	var deadlocks int
	w.get(&deadlocks, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
	if deadlocks != 0 {
		t.Errorf("%d deadlocks", deadlocks)
	}
}
