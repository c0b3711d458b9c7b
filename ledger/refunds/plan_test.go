package refunds_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/ledger/refunds"
)

// seed fills a database as a busy installation would look: total refunds of which open are
// open, on two rails in five assets, opened over two years. It goes past the triggers, that
// the tests of the engine hold.
func seed(t testing.TB, db *ledger.DB, total, open int) {
	t.Helper()
	for _, s := range []string{
		`ALTER TABLE transfers DISABLE TRIGGER USER`, `ALTER TABLE refunds DISABLE TRIGGER USER`, `ALTER TABLE payment_events DISABLE TRIGGER USER`,
		`INSERT INTO accounts (name) VALUES ('acme') ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`CREATE UNLOGGED TABLE seed AS SELECT i, gen_random_uuid() AS transfer, gen_random_uuid() AS refund, i %% %d = 0 AS open,
			now() - make_interval(mins => %d) * (i::double precision / %d) AS at FROM generate_series(1, %d) AS i`, total/open, 2*365*24*60, total, total),
		`INSERT INTO transfers (id, account_id, network, tx_hash, position, asset, sender, recipient, amount, known_by, seen_at, class, final, changed_at)
			SELECT transfer, (SELECT min(id) FROM accounts), CASE i % 2 WHEN 0 THEN 'eip155:8453' ELSE 'bank:main' END, 'tx-' || i, 0, 'asset-' || i % 5, 'payer-' || i % 20000, 'us', 100 + i % 900, 'gateway', at, 'given_back', true, at FROM seed`,
		`INSERT INTO refunds (id, transfer_id, account_id, gateway, network, asset, payer, amount, approved, paid, approved_by, approved_at, state, reason, opened_at, changed_at)
			SELECT refund, transfer, (SELECT min(id) FROM accounts), 'gateway-' || i % 7, CASE i % 2 WHEN 0 THEN 'eip155:8453' ELSE 'bank:main' END, 'asset-' || i % 5, 'payer-' || i % 20000, 100 + i % 900,
				CASE WHEN open THEN 0 ELSE 100 + i % 900 END, CASE WHEN open THEN 0 ELSE 100 + i % 900 END, NULL, NULL, CASE WHEN open THEN 'owed' ELSE 'confirmed' END, 'late', at, at FROM seed`,
		`INSERT INTO payment_events (at, transfer_id, refund_id, kind, data) SELECT at, transfer, refund, 'refund_owed', '{"state":"owed"}' FROM seed WHERE open`,
		`VACUUM ANALYZE refunds`, `VACUUM ANALYZE transfers`, `VACUUM ANALYZE payment_events`, `DROP TABLE seed`,
	} {
		if _, err := db.Pool().ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
}

// counted runs each statement once more, and adds up the pages that it reads.
type counted struct {
	*ledger.DB
	t     testing.TB
	pages int
	plan  []string
}

var hits = regexp.MustCompile(`shared hit=(\d+)(?: read=(\d+))?|shared read=(\d+)`)

func (c *counted) Select(ctx context.Context, dest any, query string, args ...any) error {
	c.plan = nil
	if err := c.DB.Select(ctx, &c.plan, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) "+query, args...); err != nil {
		c.t.Fatal(err)
	}
	for _, l := range c.plan {
		if m := hits.FindStringSubmatch(l); m != nil { // the first line of a plan holds all below it
			for _, n := range m[1:] {
				pages, _ := strconv.Atoi(n)
				c.pages += pages
			}
			break
		}
	}
	return c.DB.Select(ctx, dest, query, args...)
}

// The first page costs what it shows, not what is stored, whatever is asked; sums cost what
// is open.
func TestPagesReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	seed(t, db, 60_000, 6_000)
	now := time.Now()
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	for name, f := range map[string]refunds.Filter{
		"open": {State: "open"}, "owed": {State: "owed"}, "all": {}, "refunded": {State: "confirmed"}, "asset": {State: "open", Network: "bank:main", Asset: "asset-1"},
		"payer": {State: "open", Payer: "payer-77"}, "payer, all": {Payer: "payer-77"}, "2-7 days": {State: "open", From: day(7), To: day(1)}, "61+": {State: "open", To: day(60)},
		"gateway": {State: "open", Gateway: "gateway-3"}, "days": {From: day(40), To: day(30)},
	} {
		c := &counted{DB: db, t: t}
		f.Limit = 51
		rows, err := refunds.Page(t.Context(), c, f)
		if err != nil {
			t.Fatal(err)
		}
		if c.pages > 1500 || c.pages == 0 {
			t.Errorf("%s: %d rows cost %d pages\n%v", name, len(rows), c.pages, c.plan)
		}
	}
	c := &counted{DB: db, t: t}
	sums, err := refunds.Sums(t.Context(), c, refunds.Filter{State: "open"}, [4]time.Time{day(1), day(7), day(30), day(60)})
	if err != nil || len(sums) == 0 {
		t.Fatal(err)
	}
	if c.pages > 1000 {
		t.Errorf("the sums of what is open cost %d pages\n%v", c.pages, c.plan)
	}
	var n int64
	for _, s := range sums {
		n += s.Count
	}
	if n != 6_000 {
		t.Errorf("the buckets hold %d of 6000", n)
	}
}

// BenchmarkRefunds measures finance's list over QUITTANCE_BENCH_REFUNDS rows, a tenth open;
// by hand: go test -run none -bench Refunds ./ledger/refunds.
func BenchmarkRefunds(b *testing.B) {
	total, _ := strconv.Atoi(os.Getenv("QUITTANCE_BENCH_REFUNDS"))
	if total == 0 {
		total = 100_000
	}
	db := ledgertest.New(b)
	seed(b, db, total, total/10)
	now := time.Now()
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	bounds := [4]time.Time{day(1), day(7), day(30), day(60)}
	for _, x := range []struct {
		name string
		f    refunds.Filter
	}{
		{"open", refunds.Filter{State: "open"}}, {"asset", refunds.Filter{State: "open", Network: "bank:main", Asset: "asset-1"}}, {"payer", refunds.Filter{State: "open", Payer: "payer-77"}},
		{"gateway", refunds.Filter{State: "open", Gateway: "gateway-3"}}, {"61+", refunds.Filter{State: "open", To: day(60)}}, {"8-30", refunds.Filter{State: "open", From: day(30), To: day(7)}},
	} {
		b.Run("page/"+x.name, func(b *testing.B) {
			x.f.Limit = 51
			for b.Loop() {
				if _, err := refunds.Page(b.Context(), db, x.f); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("sums/"+x.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := refunds.Sums(b.Context(), db, x.f, bounds); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("stream", func(b *testing.B) {
		for b.Loop() {
			rows, err := refunds.Stream(b.Context(), db, refunds.Filter{})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for rows.Next() {
				var x refunds.Item
				if err := rows.StructScan(&x); err != nil {
					b.Fatal(err)
				}
				n++
			}
			if err := rows.Close(); err != nil || n != total {
				b.Fatalf("%d rows, %v", n, err)
			}
		}
	})
}
