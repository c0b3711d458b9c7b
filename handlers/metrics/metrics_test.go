package metrics_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	err = db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO payments (account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, order_id, first_at, state, fence, claimed_at, check_at)
			SELECT id, 'shop', 'payment-000000000' || n, 'p', sha256('x'), 'bank:main', 'usd', 1, 'b', gen_random_uuid(), now(), CASE n WHEN 1 THEN 'in_flight' ELSE 'unknown' END, 1, now(),
				CASE n WHEN 2 THEN now() + interval '1 minute' WHEN 3 THEN now() - interval '6 minutes' END FROM accounts, generate_series(1, 4) n`)
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
	metrics.Register(e, metrics.Options{DB: db, Access: who, Log: log, Loops: map[string]func() time.Time{
		"payments": func() time.Time { return time.UnixMilli(1_700_000_000_500) }, "refunds": func() time.Time { return time.UnixMilli(0) },
	}})
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
		`quittance_payments_open{asked="yes",network="bank:main",state="in_flight"} 1`,
		`quittance_payments_open{asked="yes",network="bank:main",state="unknown"} 1`,
		`quittance_payments_open{asked="no",network="bank:main",state="unknown"} 2`,
		`quittance_payments_open_oldest_seconds{asked="no",network="bank:main",state="unknown"}`,
		`quittance_loop_last_timestamp_seconds{loop="payments"} 1.7000000005e+09`, `quittance_loop_last_timestamp_seconds{loop="refunds"} 0`,
		`quittance_payments_alerts_open 0`, `quittance_payments_settled_not_paid 0`,
		"go_goroutines",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
