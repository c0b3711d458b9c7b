package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	store "quittance/ledger/refunds"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/reconcile/refunds"
)

// Two rails, and assets of 0, 2, 3, 6 and 18 decimals. The bank cannot be asked.
const rules = `
release: {hold: 0s, not_taken_hold: 0s}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
rails:
  eip155:31337:
    allow_private: true
    rpc: ["http://127.0.0.1:1"]
    assets:
      "0x1000000000000000000000000000000000000001": {code: USDC, decimals: 6}
      "0x1000000000000000000000000000000000000018": {code: WETH, decimals: 18}
  bank:main:
    assets:
      usd: {code: USD, decimals: 2}
      eur: {code: EUR, decimals: 2}
      aud: {code: AUD, decimals: 2}
      jpy: {code: JPY, decimals: 0}
      krw: {code: KRW, decimals: 0}
      bhd: {code: BHD, decimals: 3, step: 5}
      idr: {code: IDR, decimals: 2}
`

const (
	chain = "eip155:31337"
	bank  = "bank:main"
	usdc  = "0x1000000000000000000000000000000000000001"
	weth  = "0x1000000000000000000000000000000000000018"
	payee = "0x2000000000000000000000000000000000000002"
	alice = "0xa000000000000000000000000000000000000001"
)

func hash(n int) string { return fmt.Sprintf("0x%064x", n) }

// world is both engines on a database of its own, with three people of finance.
type world struct {
	*refunds.Engine
	pay     *payments.Engine
	t       testing.TB
	db      *ledger.DB
	account int64
	// Ada approves, Ben sends, Cem looks.
	ada, ben, cem access.MadeBy
	net           *network
	last          int
}

// network shows what a test says, by the reference of a payout.
type network struct {
	mu    sync.Mutex
	shows map[string]refunds.Sight
}

func (n *network) Outgoing(_ context.Context, q refunds.Question) refunds.Sight {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shows[q.Tx]
}

func (n *network) show(tx string, s refunds.Sight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shows[tx] = s
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, db: ledgertest.New(t), net: &network{shows: map[string]refunds.Sight{}}}
	p, mistakes := policy.Load("quittance.yaml", []byte(rules))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), w.db, p, notify.NewHub(), log)
	if err != nil {
		t.Fatal(err)
	}
	if w.pay, err = payments.New(t.Context(), payments.Options{DB: w.db, Effects: engine, Policy: engine.Policy, Log: log}); err != nil {
		t.Fatal(err)
	}
	w.Engine = refunds.New(refunds.Options{DB: w.db, Policy: engine.Policy, Log: log, Networks: func(n string) refunds.Network {
		if n == chain {
			return w.net
		}
		return nil
	}})
	who := access.New(w.db)
	if err := who.AddAgentToken(t.Context(), "acme", "test", "qa_a-token-for-the-tests", 0); err != nil {
		t.Fatal(err)
	}
	w.get(&w.account, `SELECT id FROM accounts`)
	person := func(name string) access.MadeBy {
		id, err := who.AddPerson(t.Context(), name, "", []string{"finance"})
		if err != nil {
			t.Fatal(err)
		}
		return access.MadeBy{Person: &access.Person{ID: id, Name: name, Roles: []string{"finance"}}}
	}
	w.ada, w.ben, w.cem = person("Ada"), person("Ben"), person("Cem")
	return w
}

func (w *world) get(dest any, query string, args ...any) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), dest, query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

func (w *world) exec(query string, args ...any) error {
	return w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
}

// owed is a refund of an amount that somebody has to give back: a transfer that names no
// order, and Cem who says so.
func (w *world) owed(network, asset, amount string) string {
	w.t.Helper()
	w.last++
	in := payments.Incoming{
		Account: w.account, Network: network, Tx: hash(1000 + w.last), Asset: asset, From: alice, To: payee, Amount: amount,
		Block: int64(w.last), BlockHash: hash(500_000 + w.last), Final: true,
	}
	m, err := w.pay.Post(w.t.Context(), in)
	if err == nil {
		m, err = w.pay.GiveBack(w.t.Context(), payments.ByHand{By: w.cem, Transfer: m.Transfer.ID, Note: "nobody ordered this"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Refund.ID
}

func (w *world) act(by access.MadeBy, id string) refunds.Act {
	return refunds.Act{By: by, Refund: id, Note: "as seen"}
}

// approved is [world.owed], approved by Ada.
func (w *world) approved(network, asset, amount string) string {
	w.t.Helper()
	id := w.owed(network, asset, amount)
	w.must(w.Approve(w.t.Context(), w.act(w.ada, id)))
	return id
}

// paid sends an amount of a refund and lets it arrive.
func (w *world) paid(id, amount string) {
	w.t.Helper()
	w.last++
	tx := hash(9000 + w.last)
	w.net.show(tx, refunds.Sight{Seen: refunds.Arrived, Final: true, Block: 7, Said: "in block 7"})
	w.must(w.Send(w.t.Context(), w.act(w.ben, id), refunds.Reference{Tx: tx, Amount: amount}))
	if w.Blind(w.refund(id).Network) {
		w.must(w.Saw(w.t.Context(), w.act(w.cem, id)))
	} else {
		w.must(w.Tick(w.t.Context()))
	}
	w.equation()
}

func (w *world) refund(id string) *rows.Refund {
	w.t.Helper()
	f, err := rows.RefundByID(w.t.Context(), w.db, id)
	if err != nil || f == nil {
		w.t.Fatal(f, err)
	}
	return f
}

func (w *world) payouts(id string) []store.Payout {
	w.t.Helper()
	list, err := store.Payouts(w.t.Context(), w.db, id)
	w.must(err)
	return list
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// refused wants an act to be refused by a code.
func (w *world) refused(err error, code refunds.Code) *refunds.Refusal {
	w.t.Helper()
	r, ok := errors.AsType[*refunds.Refusal](err)
	if !ok || r.Code != code {
		w.t.Fatalf("%v; want %s", err, code)
	}
	if r.Detail == "" {
		w.t.Errorf("%s without a reason", code)
	}
	return r
}

// stands wants a refund in a state, with figures.
func (w *world) stands(id, state, reserved, paid, writtenOff string) {
	w.t.Helper()
	f := w.refund(id)
	if f.State != state || f.Reserved.String() != reserved || f.Paid.String() != paid || f.WrittenOff.String() != writtenOff {
		w.t.Fatalf("%s: reserved %s, paid %s, written off %s; want %s %s %s %s", f.State, f.Reserved, f.Paid, f.WrittenOff, state, reserved, paid, writtenOff)
	}
	w.equation()
}

// equation checks that the money adds up, in the tables and in the postings.
func (w *world) equation() {
	w.t.Helper()
	var list []struct {
		Network, Asset string
		Difference     money.Atomic
		Posted         bool
	}
	w.must(w.db.Select(w.t.Context(), &list, `SELECT network, asset, difference, posted FROM money_equation`))
	for _, r := range list {
		if r.Difference.Sign() != 0 || !r.Posted {
			w.t.Fatalf("%s %s: off by %s, posted %v", r.Network, r.Asset, r.Difference, r.Posted)
		}
	}
}
