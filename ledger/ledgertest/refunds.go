package ledgertest

import (
	"fmt"
	"testing"

	"quittance/ledger"
)

// Refunds fills a database as a busy installation would look: total refunds of which open
// are open, in every state that needs no payout, on two rails in five assets, opened over
// two years. It goes past the triggers, which the tests of the engines hold.
func Refunds(t testing.TB, db *ledger.DB, total, open int) {
	t.Helper()
	rail := `CASE i / 7 % 2 WHEN 0 THEN 'eip155:8453' ELSE 'bank:main' END, `
	for _, s := range []string{
		`ALTER TABLE transfers DISABLE TRIGGER USER`, `ALTER TABLE refunds DISABLE TRIGGER USER`, `ALTER TABLE payment_events DISABLE TRIGGER USER`,
		`INSERT INTO accounts (name) VALUES ('acme') ON CONFLICT DO NOTHING`,
		`INSERT INTO people (name) VALUES ('Ada of the seed')`,
		fmt.Sprintf(`CREATE UNLOGGED TABLE seed AS SELECT i, gen_random_uuid() AS transfer, gen_random_uuid() AS refund, 100 + i %% 900 AS amount,
			now() - make_interval(mins => %d) * (i::double precision / %d) AS at,
			CASE WHEN i %% %d = 0 THEN (ARRAY['owed','owed','owed','approved','held','returned','owed'])[1 + (i / %d) %% 7]
				ELSE CASE i %% 37 WHEN 5 THEN 'written_off' ELSE 'confirmed' END END AS state FROM generate_series(1, %d) AS i`,
			2*365*24*60, total, total/open, total/open, total),
		`INSERT INTO transfers (id, account_id, network, tx_hash, position, asset, sender, recipient, amount, known_by, seen_at, class, final, changed_at)
			SELECT transfer, (SELECT min(id) FROM accounts), ` + rail + `'tx-' || i, 0, 'asset-' || i / 11 % 5, 'payer-' || i % 20000, 'us', amount, 'gateway', at, 'given_back', true, at FROM seed`,
		`INSERT INTO refunds (id, transfer_id, account_id, gateway, network, asset, payer, amount, approved, paid, written_off, approved_by, approved_at, state, held_why, reason, opened_at, changed_at)
			SELECT refund, transfer, (SELECT min(id) FROM accounts), 'gateway-' || i % 7, ` + rail + `'asset-' || i / 11 % 5, 'payer-' || i % 20000, amount,
				CASE WHEN state IN ('confirmed','approved') THEN amount ELSE 0 END, CASE state WHEN 'confirmed' THEN amount ELSE 0 END, CASE state WHEN 'written_off' THEN amount ELSE 0 END,
				CASE state WHEN 'approved' THEN (SELECT max(id) FROM people) END, CASE state WHEN 'approved' THEN at END,
				state, CASE state WHEN 'held' THEN 'who is it?' END, (ARRAY['late','duplicate','over','failed_call','given_back'])[1 + i / 13 % 5], at, at FROM seed`,
		`INSERT INTO payment_events (at, transfer_id, refund_id, kind, data)
			SELECT at, transfer, refund, 'refund_owed', json_build_object('state', 'owed', 'reason', 'late', 'amount', amount::text, 'approved', '0', 'reserved', '0', 'paid', '0', 'written_off', '0')::text
			FROM seed ORDER BY at`,
		`INSERT INTO payment_events (at, transfer_id, refund_id, kind, data)
			SELECT at + interval '1 day', transfer, refund, 'refund_confirmed', json_build_object('state', state, 'reason', 'late', 'amount', amount::text,
				'approved', CASE state WHEN 'confirmed' THEN amount ELSE 0 END::text, 'reserved', '0', 'paid', CASE state WHEN 'confirmed' THEN amount ELSE 0 END::text,
				'written_off', CASE state WHEN 'written_off' THEN amount ELSE 0 END::text)::text
			FROM seed WHERE state IN ('confirmed','written_off') ORDER BY at`,
		`VACUUM ANALYZE refunds`, `VACUUM ANALYZE transfers`, `VACUUM ANALYZE payment_events`, `DROP TABLE seed`,
		`ALTER TABLE transfers ENABLE TRIGGER USER`, `ALTER TABLE refunds ENABLE TRIGGER USER`, `ALTER TABLE payment_events ENABLE TRIGGER USER`,
	} {
		if _, err := db.Pool().ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
}
