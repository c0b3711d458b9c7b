package samples_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"quittance/ledger"
	"quittance/ledger/books"
	"quittance/ledger/ledgertest"
	"quittance/ledger/samples"
)

// A made-up month passes every guard, adds up, and has every state; it goes into an empty
// database only.
func TestAMonthAddsUp(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	who := samples.Who{ReceiptHash: func(order string) []byte { h := sha256.Sum256([]byte(order)); return h[:] }}
	err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		if err := tx.Get(ctx, &who.Account, `INSERT INTO accounts (name) VALUES ('acme') RETURNING id`); err != nil {
			return err
		}
		for name, into := range map[string]*int64{"Ada": &who.Approver, "Ben": &who.Sender, "Cem": &who.Other} {
			if err := tx.Get(ctx, into, `INSERT INTO people (name) VALUES ($1) RETURNING id`, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := samples.Month(t.Context(), db, who, 480)
	if err != nil || n.Refunds < 100 {
		t.Fatalf("%+v, %v", n, err)
	}
	wrong, err := books.Check(t.Context(), db)
	if err != nil || len(wrong) > 0 {
		t.Errorf("%v %v", wrong, err)
	}
	var states []string
	if err := db.Select(t.Context(), &states, `SELECT DISTINCT state FROM refunds ORDER BY 1`); err != nil || len(states) != 10 {
		t.Errorf("%v %v", states, err)
	}
	var assets int
	if err := db.Get(t.Context(), &assets, `SELECT count(DISTINCT (network, asset)) FROM refunds`); err != nil || assets != 5 {
		t.Errorf("%d assets, %v", assets, err)
	}
	var backwards, codes int
	if err := db.Get(t.Context(), &backwards, `SELECT count(*) FROM (SELECT at < lag(at) OVER (ORDER BY id) AS back FROM payment_events) e WHERE back`); err != nil || backwards > 0 {
		t.Errorf("%d events stand before what came before them, %v", backwards, err)
	}
	if err := db.Get(t.Context(), &codes, `SELECT count(DISTINCT (currency, decimals)) - count(DISTINCT currency) FROM recoveries`); err != nil || codes > 0 {
		t.Errorf("%d currencies of recoveries share a name, %v", codes, err)
	}
	if _, err := samples.Month(t.Context(), db, who, 1); !errors.Is(err, samples.ErrNotEmpty) {
		t.Errorf("a second month: %v", err)
	}
}
