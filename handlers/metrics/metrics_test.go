package metrics_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/handlers/metrics"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/web"
)

// Whoever has no role is told nothing; the equation is told exactly enough to alarm on.
func TestMetricsAreForPeopleWithARole(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	who := access.New(db)
	const agent, admin = "qa_an-agent-for-the-tests", "qp_an-admin-for-the-tests"
	if err := who.Bootstrap(t.Context(), admin, agent); err != nil {
		t.Fatal(err)
	}
	err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO transfers (id, account_id, network, tx_hash, position, asset, sender, recipient, amount, known_by, seen_at, class, changed_at)
			SELECT gen_random_uuid(), id, 'bank:main', 'tx-1', 0, 'usd', 'a', 'b', 9007199254740993, 'gateway', now(), 'unmatched', now() FROM accounts`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	e, err := web.New(web.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	metrics.Register(e, metrics.Options{DB: db, Access: who, Log: log})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	get := func(token string) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	for token, want := range map[string]int{"": 401, "wrong": 401, agent: 403} {
		if status, body := get(token); status != want || strings.Contains(body, "quittance_money") {
			t.Errorf("%q: %d", token, status)
		}
	}
	status, body := get(admin)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, want := range []string{
		`quittance_money_atomic{asset="usd",network="bank:main",place="unmatched"} 9.007199254740992e+15`,
		`quittance_money_difference_atomic{asset="usd",network="bank:main"} 0`,
		`quittance_money_equation_holds{asset="usd",network="bank:main"} 0`, // nobody posted it: the test did it by hand
		"go_goroutines",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
