package payments_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
)

const shopPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
  bank: {settles: before_work}
  named: {poll: shop.order.get}
rails:
  eip155:31337:
    allow_private: true
    rpc: ["http://127.0.0.1:1"]
    assets: {"0x1000000000000000000000000000000000000001": {code: USDC, decimals: 6}}
tools:
  fetch_page: {volatile: [request_time], cacheable: true}
  write_page: {business_key: "{page}", deadline: 60s}
  buy_page:
    lands_within: 1s
    lookup:
      order: {gateway: shop, payment_id: "{arguments.payment_id}"}
      match: hit.payment_id == effect.arguments.payment_id
`

const (
	network = "eip155:31337"
	token   = "0x1000000000000000000000000000000000000001"
	payee   = "0x2000000000000000000000000000000000000002"
	alice   = "0xa000000000000000000000000000000000000001"
	bob     = "0xb000000000000000000000000000000000000002"
)

// nonce is the n-th authorization of a test.
func nonce(n int) string { return fmt.Sprintf("0x%064x", n) }

// world is an engine on a database of its own, with a rail that tells what the test says.
type world struct {
	*payments.Engine
	t       *testing.T
	db      *ledger.DB
	effects *effects.Engine
	account int64
	person  effects.Person
	rail    *rail
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := ledgertest.New(t)
	p, mistakes := policy.Load("quittance.yaml", []byte(shopPolicy))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), db, p, notify.NewHub(), log)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, effects: engine, rail: &rail{sights: map[string]payments.Sight{}}}
	w.Engine, err = payments.New(t.Context(), payments.Options{
		DB: db, Effects: engine, Policy: engine.Policy, Log: log,
		Rails: func(n string) payments.Rail {
			if n == network {
				return w.rail
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	who := access.New(db)
	if err := who.AddAgentToken(t.Context(), "acme", "test", "qa_a-token-for-the-tests", 0); err != nil {
		t.Fatal(err)
	}
	w.get(&w.account, `SELECT id FROM accounts`)
	id, err := who.AddPerson(t.Context(), "Petra", "", []string{"operator"})
	if err != nil {
		t.Fatal(err)
	}
	w.person = effects.Person{ID: id, Name: "Petra"}
	return w
}

// rail says of an authorization what a test set, and counts the questions.
type rail struct {
	mu     sync.Mutex
	sights map[string]payments.Sight
	asked  int
	signer string
	hang   func(context.Context) // what an answer waits for

	incoming func(recipients []string) payments.Page
	within   map[string][]payments.Seen   // by transaction
	standing map[string]payments.Standing // by transaction; the others cannot be told
}

func (r *rail) Signer(c rows.Claimed, _ payments.Offered) (string, bool, error) {
	if r.signer == "" {
		return c.Payer, true, nil
	}
	return r.signer, true, nil
}

func (r *rail) Authorization(ctx context.Context, q payments.Question) payments.Sight {
	if r.hang != nil {
		r.hang(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.sights[q.Nonce]
}

func (r *rail) Incoming(_ context.Context, _ string, recipients []string, _ int64) (payments.Page, error) {
	if r.incoming != nil {
		return r.incoming(recipients), nil
	}
	return payments.Page{Done: true}, nil
}

func (r *rail) Still(_ context.Context, t rows.Transfer) (payments.Standing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.standing[t.Tx]; ok {
		return s, nil
	}
	return payments.Standing{}, errors.New("not asked in this test")
}

func (r *rail) Within(_ context.Context, _, _, tx string) ([]payments.Seen, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.within[tx], nil
}

func (r *rail) say(nonce string, s payments.Sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sights[nonce] = s
}

// say lets the rail say what became of an authorization.
func (w *world) say(authorization int, s payments.Sight) { w.rail.say(nonce(authorization), s) }

func (w *world) get(dest any, query string, args ...any) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), dest, query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	err := w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// age lets a payment be claimed so long ago: a fence that rose is what the database lets
// claimed_at change with, so the guard is off for it.
func (w *world) age(id string, d time.Duration) {
	w.t.Helper()
	w.exec(`ALTER TABLE payments DISABLE TRIGGER payments_fence`)
	w.exec(`UPDATE payments SET claimed_at = clock_timestamp() - $2 * interval '1 microsecond' WHERE payment_id = $1`, id, d.Microseconds())
	w.exec(`ALTER TABLE payments ENABLE TRIGGER payments_fence`)
}

// old is older than what may still be under way.
const old = payments.HealAfter + time.Second

func (w *world) asked(id string, authorization int) payments.Asked {
	a := payments.Asked{
		Account: w.account, Gateway: "shop", PaymentID: id, Payer: alice, HasRequest: true, Method: "POST", Tool: "write_page",
		Arguments: []byte(`{"page":"a"}`), Amount: "4200000", Asset: token, Network: network, PayTo: payee,
	}
	if authorization > 0 {
		a.Authorization = &payments.Offered{Nonce: nonce(authorization), ValidBefore: "4102444800", Signature: "signed"}
	}
	return a
}

// claim claims, and must be told to go on.
func (w *world) claim(a payments.Asked) *payments.Answer {
	w.t.Helper()
	got, err := w.Claim(w.t.Context(), a)
	if err != nil {
		w.t.Fatalf("claim %s: %v", a.PaymentID, err)
	}
	if got.Do != payments.Proceed {
		w.t.Fatalf("claim %s: %s, want proceed", a.PaymentID, got.Do)
	}
	return got
}

// refused claims, and must be refused by a code.
func (w *world) refused(a payments.Asked, code payments.Code) *payments.Refusal {
	w.t.Helper()
	got, err := w.Claim(w.t.Context(), a)
	return refusal(w.t, got, err, code)
}

func asRefusal(err error) (*payments.Refusal, bool) { return errors.AsType[*payments.Refusal](err) }

func refusal(t *testing.T, got any, err error, code payments.Code) *payments.Refusal {
	t.Helper()
	r, ok := asRefusal(err)
	if !ok || r.Code != code {
		t.Fatalf("%+v, %v; want %s", got, err, code)
	}
	return r
}

func (w *world) step(id string, fence int64) payments.Step {
	return payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: id}, Fence: fence}
}

func (w *world) order(id string, fence int64) *payments.Payment {
	w.t.Helper()
	return done(w.Order(w.t.Context(), payments.NewOrder{Step: w.step(id, fence), Description: "A page"}))(w.t)
}

func (w *world) broadcast(id string, fence int64) *payments.Payment {
	w.t.Helper()
	return done(w.Broadcast(w.t.Context(), payments.Sending{Step: w.step(id, fence)}))(w.t)
}

func (w *world) finish(id string, fence int64, outcome string) *payments.Payment {
	w.t.Helper()
	f := payments.Finish{Step: w.step(id, fence), Outcome: outcome}
	if outcome != "unknown" {
		f.Response = &payments.Response{Status: 200, Headers: map[string]string{"Content-Type": "text/plain"}, Body: []byte("page of " + id)}
	}
	return done(w.Finish(w.t.Context(), f))(w.t)
}

func (w *world) payment(id string) *payments.Payment {
	w.t.Helper()
	return done(w.Payment(w.t.Context(), w.step(id, 0).Name))(w.t)
}

// done is the value of a call that must not fail.
func done[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// transfer is one of an amount in a transaction of its own, by an authorization.
func (w *world) transfer(tx, authorization int, amount string) payments.Incoming {
	in := payments.Incoming{
		Account: w.account, Network: network, Tx: nonce(1000 + tx), Asset: token, From: alice, To: payee, Amount: amount, Block: int64(tx), BlockHash: nonce(5000 + tx),
	}
	if authorization > 0 {
		in.Nonce = nonce(authorization)
	}
	return in
}

// post lets the rail show a transfer, which must be classified as class.
func (w *world) post(in payments.Incoming, class string) *payments.Moved {
	w.t.Helper()
	m := done(w.Shown(w.t.Context(), in))(w.t)
	if m.Transfer.Class != class {
		w.t.Fatalf("transfer is %s, want %s", m.Transfer.Class, class)
	}
	w.equation()
	return m
}

// equation checks that the money adds up, in the tables and in the postings.
func (w *world) equation() {
	w.t.Helper()
	var rows []struct {
		Network, Asset string
		Difference     money.Atomic
		Posted         bool
	}
	if err := w.db.Select(w.t.Context(), &rows, `SELECT network, asset, difference, posted FROM money_equation`); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Difference.Sign() != 0 || !r.Posted {
			w.t.Fatalf("%s %s: off by %s, posted %v", r.Network, r.Asset, r.Difference, r.Posted)
		}
	}
}

// sold sells: claimed, ordered, broadcast, paid and settled.
func (w *world) sold(id string, authorization int) *payments.Answer {
	w.t.Helper()
	c := w.claim(w.asked(id, authorization))
	w.order(id, c.Fence)
	w.broadcast(id, c.Fence)
	w.post(w.transfer(authorization, authorization, "4200000"), payments.Applied)
	w.finish(id, c.Fence, "settled")
	return c
}

// checkNow lets the rail be asked about a payment in one round of the loops.
func (w *world) checkNow(id string) {
	w.t.Helper()
	w.exec(`UPDATE payments SET check_at = clock_timestamp(), checking_until = NULL WHERE payment_id = $1 AND state IN ('in_flight','unknown','settled')`, id)
	if err := w.Tick(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// landed is what a rail says of an authorization whose transfer is final.
func (w *world) landed(tx, authorization int, amount string) payments.Sight {
	a, err := money.AtomicOf(amount)
	if err != nil {
		w.t.Fatal(err)
	}
	return payments.Sight{Said: "landed", Landed: &payments.Seen{
		Moved: rows.Moved{Network: network, Tx: nonce(1000 + tx), Asset: token, Sender: alice, Recipient: payee, Amount: a, Nonce: nonce(authorization)},
		Block: int64(tx), BlockHash: nonce(5000 + tx), Final: true,
	}}
}

type result[T any] struct {
	v   T
	err error
}

// each calls f n times at once.
func each[T any](n int, f func(i int) (T, error)) []result[T] {
	out := make([]result[T], n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i].v, out[i].err = f(i) })
	}
	wg.Wait()
	return out
}

func upperHex(s string) string { return strings.ToUpper(strings.TrimPrefix(s, "0x")) }

// lapse runs the loops of effects until one is interrupted.
func (w *world) lapse(effect string) {
	w.t.Helper()
	w.looping(func() bool {
		var state string
		w.get(&state, `SELECT state FROM effects WHERE id = $1::uuid`, effect)
		return state == "interrupted"
	})
}

// looping runs the loops of effects until something is so.
func (w *world) looping(until func() bool) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 3*time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); w.effects.Loops(ctx) }()
	defer func() { stop(); <-ended }()
	for !until() {
		select {
		case <-ctx.Done():
			w.t.Fatal("the loops did not get there in three minutes")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
