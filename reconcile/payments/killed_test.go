package payments_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// mortal is the effects' engine of a server that is killed at its n-th call: just before the
// call did anything, or just after it did. From then on the server does nothing more.
type mortal struct {
	*effects.Engine
	left  int
	after bool
	dead  bool
}

var errKilled = errors.New("killed")

func (m *mortal) call(f func() error) error {
	if m.dead {
		return errKilled
	}
	m.left--
	if m.left > 0 {
		return f()
	}
	m.dead = true
	if m.after {
		_ = f()
	}
	return errKilled
}

func (m *mortal) Open(ctx context.Context, o effects.Open) (l effects.Lease, err error) {
	err = m.call(func() (err error) { l, err = m.Engine.Open(ctx, o); return err })
	return l, err
}

func (m *mortal) Close(ctx context.Context, account int64, run, lease, outcome, position string) (v effects.RunView, err error) {
	err = m.call(func() (err error) { v, err = m.Engine.Close(ctx, account, run, lease, outcome, position); return err })
	return v, err
}

func (m *mortal) Apply(ctx context.Context, ops []effects.Op) (list []effects.Answer, err error) {
	err = m.call(func() (err error) { list, err = m.Engine.Apply(ctx, ops); return err })
	return list, err
}

// A sale touches the work's effect and the payment in transactions of their own. Wherever
// the server is killed between two of them, what is left is answered, the work is done
// once, the money is taken once, and the payment comes to its end.
func TestAServerKilledBetweenTwoRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := 0
	for _, gateway := range []string{"shop", "bank"} {
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				number++
				name := fmt.Sprintf("%s, killed at call %d, after it: %v", gateway, n, after)
				if whole := w.killedSale(name, gateway, number, n, after); whole {
					if n < 4 {
						t.Errorf("%s: the sale was whole already: the test shows nothing", name)
					}
					break
				}
			}
		}
	}
}

// killedSale sells with a server that is killed, and again with one that is not. It tells
// that the first was not killed at all.
func (w *world) killedSale(name, gateway string, number, call int, after bool) (whole bool) {
	w.t.Helper()
	id := fmt.Sprintf("pay-killed-sale-%05d", number)
	dying := &mortal{Engine: w.effects, left: call, after: after}
	first, err := payments.New(w.t.Context(), payments.Options{DB: w.db, Effects: dying, Policy: w.effects.Policy, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &sale{world: w, id: id, gateway: gateway, auth: number}
	s.run(first, dying)
	if !dying.dead {
		if p := w.paymentOf(gateway, id); p.State != "settled" || s.performed != 1 || s.sent != 1 {
			w.t.Errorf("%s: %s, work done %d times, sent %d times", name, p.State, s.performed, s.sent)
		}
		return true
	}
	for range 6 {
		p := w.paymentOf(gateway, id)
		if p.State != "in_flight" && p.State != "unknown" {
			break
		}
		w.age(id, old)
		s.worked(p) // a look-up, or a person, finds what became of work that nobody heard of
		if s.sent > 0 {
			w.post(w.transfer(number, number, "4200000"), payments.Applied)
		} else {
			w.say(number, payments.Sight{Dead: "cancelled", DeadBlock: 1})
		}
		if err := w.Tick(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.exec(`UPDATE payments SET check_at = clock_timestamp() WHERE check_at IS NOT NULL`)
		if err := w.Tick(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		s.auth = number
		if s.sent == 0 && w.paymentOf(gateway, id).Authorizations[0].DeadWhy != "" {
			s.auth = number + 10_000
		}
		s.run(w.Engine, nil)
	}
	p := w.paymentOf(gateway, id)
	if p.State != "settled" || s.performed != 1 || s.sent != 1 || p.Order == nil || p.Order.State != "paid" || len(p.Refunds) != 0 {
		w.t.Errorf("%s: %s, order %+v, work done %d times, sent %d times, %d owed", name, p.State, p.Order, s.performed, s.sent, len(p.Refunds))
	}
	return false
}

func (w *world) paymentOf(gateway, id string) *payments.Payment {
	w.t.Helper()
	n := w.step(id, 0).Name
	n.Gateway = gateway
	return done(w.Payment(w.t.Context(), n))(w.t)
}

// sale is a gateway's way through a payment, and what it did to the world.
type sale struct {
	*world
	id, gateway     string
	auth            int
	performed, sent int
}

// run goes through the calls that the claim asks for, and gives up at the first that fails.
func (s *sale) run(e *payments.Engine, dying *mortal) {
	ctx := s.t.Context()
	a := s.asked(s.id, s.auth)
	a.Gateway, a.Tool = s.gateway, "fetch_page"
	got, err := e.Claim(ctx, a)
	if err != nil || got.Do != payments.Proceed {
		return
	}
	at := payments.Step{Name: s.step(s.id, 0).Name, Fence: got.Fence}
	at.Gateway = s.gateway
	if _, err := e.Order(ctx, payments.NewOrder{Step: at}); err != nil {
		s.t.Fatal(err)
	}
	work := func() bool {
		if got.Work == payments.Taken {
			return true
		}
		begun, err := e.Work(ctx, payments.NewWork{Step: at})
		if err != nil {
			return false
		}
		if begun.Do != "replay" {
			s.performed++
		}
		return true
	}
	pay := func() bool {
		if got.Paid {
			return true
		}
		if _, err := e.Broadcast(ctx, payments.Sending{Step: at}); err != nil {
			return false
		}
		s.sent++
		s.post(s.transfer(s.auth, s.auth, "4200000"), payments.Applied)
		return true
	}
	steps := []func() bool{work, pay}
	if s.gateway == "bank" {
		steps = []func() bool{pay, work}
	}
	for _, step := range steps {
		if !step() {
			return
		}
	}
	_, err = e.Finish(ctx, payments.Finish{Step: at, Outcome: "settled", Response: &payments.Response{Status: 200, Body: []byte("page")}})
	if err != nil && dying == nil {
		s.t.Fatalf("finish: %v", err)
	}
}

// worked lets it be found out what became of the work.
func (s *sale) worked(p *payments.Payment) {
	// The lease of its run ends when somebody else may take the payment over.
	s.exec(`UPDATE runs SET lease_until = clock_timestamp() - interval '1 millisecond' WHERE run_id = $1 AND lease_until IS NOT NULL`, payments.RunName(s.gateway, s.id))
	if p.Work == nil || p.Work.State != "in_flight" && p.Work.State != "interrupted" {
		return
	}
	s.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '1 hour', moment = clock_timestamp() - interval '1 hour' WHERE id = $1::uuid`, p.Work.EffectID)
	s.lapse(p.Work.EffectID)
	verdict := effects.VerdictNotTaken
	if s.performed > 0 {
		verdict = effects.VerdictTaken
	}
	var version int64
	s.get(&version, `SELECT version FROM effects WHERE id = $1::uuid`, p.Work.EffectID)
	got, err := s.effects.Decide(s.t.Context(), s.person, []effects.Decide{{EffectID: p.Work.EffectID, Version: version, Verdict: verdict, Note: "looked", Evidence: "seen"}})
	if err != nil || got[0].Refusal != nil {
		s.t.Fatalf("deciding: %v %+v", err, got)
	}
	s.looping(func() (released bool) {
		s.get(&released, `SELECT released FROM effects WHERE id = $1::uuid`, p.Work.EffectID)
		return released
	})
}
