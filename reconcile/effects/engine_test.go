package effects_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
)

// world is an engine on a database of its own, one account, and one person.
type world struct {
	*effects.Engine
	t   testing.TB
	dsn string
	// tampered says that a test moved times behind the engine's back.
	tampered bool
	// rekeyed says that a business_key changed: what is in flight may have come to share one.
	rekeyed bool
	db      *ledger.DB
	hub     *notify.Hub
	account int64
	person  effects.Person
	other   effects.Person
}

const fastRelease = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
  refund:
    deadline: 60s
`

func newWorld(t testing.TB, source string) *world {
	t.Helper()
	dsn := ledgertest.URL(t)
	db := openDB(t, dsn)
	w := &world{t: t, dsn: dsn, db: db, hub: notify.NewHub()}
	w.Engine = w.engine(source)
	err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		if w.account, err = access.Account(ctx, tx, "acme"); err != nil {
			return err
		}
		for _, p := range []*effects.Person{&w.person, &w.other} {
			p.Name = map[*effects.Person]string{&w.person: "Petra", &w.other: "Quentin"}[p]
			if p.ID, err = access.AddPerson(ctx, tx, p.Name, "", []string{"operator", "approver"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func openDB(t testing.TB, dsn string) *ledger.DB {
	t.Helper()
	db, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// engine is one more server on the same database.
func (w *world) engine(source string) *effects.Engine {
	w.t.Helper()
	p, mistakes := policy.Load("quittance.yaml", []byte(source))
	if p == nil {
		w.t.Fatal(mistakes)
	}
	e, err := effects.New(w.t.Context(), w.db, p, w.hub, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) open(run, worker string) effects.Lease {
	w.t.Helper()
	l, err := w.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "ap-bot", Worker: worker, AttemptID: worker + "-1"})
	if err != nil {
		w.t.Fatalf("open %s: %v", run, err)
	}
	return l
}

func (w *world) op(op effects.Op) effects.Answer {
	w.t.Helper()
	a, err := w.Apply(w.t.Context(), []effects.Op{op})
	if err != nil {
		w.t.Fatalf("apply: %v", err)
	}
	return a[0]
}

func (w *world) begin(l effects.Lease, tool, args string, edit ...func(*effects.Begin)) effects.Answer {
	w.t.Helper()
	b := effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "a-" + time.Now().String(), Tool: tool, Arguments: []byte(args)}
	for _, f := range edit {
		f(&b)
	}
	return w.op(effects.Op{Begin: &b})
}

func (w *world) proceed(l effects.Lease, tool, args string, edit ...func(*effects.Begin)) *effects.BeginAnswer {
	w.t.Helper()
	a := w.begin(l, tool, args, edit...)
	if a.Begin == nil || a.Begin.Do != "proceed" {
		w.t.Fatalf("begin %s: %+v %v, want proceed", tool, a.Begin, a.Refusal)
	}
	return a.Begin
}

func (w *world) finish(b *effects.BeginAnswer, outcome string, edit ...func(*effects.Finish)) effects.Answer {
	w.t.Helper()
	f := effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: outcome}
	for _, e := range edit {
		e(&f)
	}
	return w.op(effects.Op{Finish: &f})
}

func (w *world) effect(id string) effects.EffectView {
	w.t.Helper()
	v, err := w.Effect(w.t.Context(), 0, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) run(id string) effects.RunView {
	w.t.Helper()
	v, err := w.Run(w.t.Context(), w.account, id, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) decide(p effects.Person, d effects.Decide) (*effects.DecideAnswer, *effects.Refusal) {
	w.t.Helper()
	if d.Version == 0 {
		d.Version = w.effect(d.EffectID).Version
	}
	if d.Note == "" {
		d.Note = "looked at the bank portal"
	}
	r, err := w.Decide(w.t.Context(), p, []effects.Decide{d})
	if err != nil {
		w.t.Fatal(err)
	}
	return r[0].Answer, r[0].Refusal
}

func (w *world) wantRefusal(a effects.Answer, code effects.Code) *effects.Refusal {
	w.t.Helper()
	if a.Refusal == nil || a.Refusal.Code != code {
		w.t.Fatalf("got %+v %+v %v, want %s", a.Begin, a.Finish, a.Refusal, code)
	}
	return a.Refusal
}

func (w *world) wantState(id string, state effects.State) effects.EffectView {
	w.t.Helper()
	v := w.effect(id)
	if v.State != string(state) {
		w.t.Fatalf("effect is %s (%s), want %s", v.State, v.Why, state)
	}
	return v
}

func refusalOf(err error) *effects.Refusal {
	var r *effects.Refusal
	errors.As(err, &r)
	return r
}

const invoice = `{"vendor":"ACME Tools","invoice":"INV-9","amount":"4200.00","currency":"USD"}`

func TestMainJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run-ap-771", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	if _, err := w.Release(t.Context(), w.account, l.RunID, l.Token, b.LogPosition); err != nil {
		t.Fatal(err)
	}
	w.wantState(b.EffectID, effects.Interrupted)
	if got := w.run(l.RunID).State; got != "paused" {
		t.Fatalf("run is %s, want paused", got)
	}
	_, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: l.RunID, Agent: "ap-bot", Worker: "pod-2", AttemptID: "x"})
	if r := refusalOf(err); r == nil || r.Code != effects.CodeRunPaused || len(r.WaitingFor) != 1 {
		t.Fatalf("open while paused: %v", err)
	}
	a, r := w.decide(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1", Result: []byte(`{"payment_id":"po_1"}`)})
	if r != nil {
		t.Fatal(r)
	}
	if a.State != "taken" {
		t.Fatalf("decided: %+v", a)
	}
	l2 := w.open(l.RunID, "pod-3")
	if l2.Epoch <= l.Epoch {
		t.Fatalf("epoch %d after %d", l2.Epoch, l.Epoch)
	}
	again := w.begin(l2, "send_payment", invoice)
	if again.Begin == nil || again.Begin.Do != "replay" || string(again.Begin.Result) != `{"payment_id":"po_1"}` || again.Begin.DecidedBy != "person" {
		t.Fatalf("replay: %+v %v", again.Begin, again.Refusal)
	}
	if _, err := w.Close(t.Context(), w.account, l2.RunID, l2.Token, "finished", ""); err != nil {
		t.Fatal(err)
	}
}
