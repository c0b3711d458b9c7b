package ledgertest

import (
	"fmt"
	"testing"

	"quittance/ledger"
)

// Stored says what [Fill] makes.
type Stored struct {
	Account int64 // whose they are
	First   int   // number of the first effect; they count from 1
	Last    int
	Open    int // how many, the last ones, wait for a person; the others were taken
}

// Fill adds effects as a busy installation would have them, ten to a run, in 40 tools, 25
// agents and 5 currencies, with their claims, attempts and log. It writes the rows as they
// would stand, without going through any state on the way; a table named seed keeps their
// ids and numbers.
func Fill(t testing.TB, db *ledger.DB, s Stored) {
	t.Helper()
	runs := max(1, (s.Last-s.First+1)/10)
	for _, step := range []string{
		`INSERT INTO policies (digest, source) VALUES (sha256('bench'), '') ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`INSERT INTO runs (account_id, run_id, agent, policy, state, opened_at, changed_at)
			SELECT %[1]d, 'run-' || %[2]d + i, 'agent-' || i %% 25, sha256('bench'), CASE WHEN i %% 10 = 0 THEN 'paused' ELSE 'ready' END,
				now() - make_interval(secs => i), now() FROM generate_series(1, %[3]d) AS i`, s.Account, (s.First-1)/10, runs),
		`DROP TABLE IF EXISTS seed`,
		fmt.Sprintf(`CREATE UNLOGGED TABLE seed AS
			SELECT gen_random_uuid() AS id, i, i > %[2]d - %[3]d AS open, r.id AS run
			FROM generate_series(%[1]d, %[2]d) AS i
			JOIN (SELECT id, row_number() OVER (ORDER BY id DESC) - 1 AS n FROM runs WHERE account_id = %[4]d ORDER BY id DESC LIMIT %[5]d) AS r ON r.n = i %% %[5]d`,
			s.First, s.Last, s.Open, s.Account, runs),
		fmt.Sprintf(`INSERT INTO effects (id, account_id, run_id, key, tool, occurrence, arguments, call_digest, business_key, claim, call_claim, summary,
				amount, currency, decimals, opened_at, state, why, version, attempts, fence, deadline, moment, decided_by, release_at, released, used_at,
				reference, result, waiting_since, changed_at)
			SELECT id, %[1]d, run, sha256(i::text::bytea), 'tool-' || i %% 40, 1, '{"vendor":"Vendor ' || i %% 5000 || '","invoice":"INV-' || i || '"}',
				sha256(('c' || i)::bytea), 'Vendor ' || i %% 5000 || '/INV-' || i, sha256(('b' || i)::bytea), false,
				'Pay 10.00 USD to Vendor ' || i %% 5000 || ' for INV-' || i, i * 100, (ARRAY['USD','EUR','GBP','CHF','ILS'])[1 + i %% 5], 2,
				now() - make_interval(secs => %[2]d - i + 60), CASE WHEN open THEN 'interrupted' ELSE 'taken' END, CASE WHEN open THEN 'deadline' END, 2, 1, 1,
				now() - make_interval(secs => %[2]d - i + 30), now() - make_interval(secs => %[2]d - i + 30),
				CASE WHEN open THEN NULL WHEN i %% 50 = 0 THEN 'late_agent' ELSE 'agent' END,
				CASE WHEN NOT open THEN now() END, NOT open, CASE WHEN NOT open THEN now() END, CASE WHEN NOT open THEN 'po_' || i END,
				CASE WHEN NOT open THEN '{"payment_id":"po_' || i || '"}' END,
				CASE WHEN open THEN now() - make_interval(secs => %[2]d - i) END, now() - make_interval(secs => %[2]d - i)
			FROM seed`, s.Account, s.Last),
		fmt.Sprintf(`INSERT INTO business_claims (digest, account_id, tool, business_key, effect_id, taken_at)
			SELECT sha256(('b' || i)::bytea), %d, 'tool-' || i %% 40, 'Vendor ' || i %% 5000 || '/INV-' || i, id, now() FROM seed`, s.Account),
		`INSERT INTO attempts (effect_id, number, fence, attempt_id, epoch, begun_at, deadline)
			SELECT id, 1, 1, 'attempt-1', 1, now() - interval '2 days', now() - interval '1 day' FROM seed`,
		`INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
			SELECT now() - interval '1 day', run, id, v, CASE v WHEN 1 THEN 'begin' ELSE 'finish' END, '{"state":"taken"}', sha256(id::text::bytea)
			FROM seed, generate_series(1, 2) AS v`,
		`INSERT INTO lookup_schedule (effect_id, tool, plan, step, next_lookup_at)
			SELECT id, 'tool-' || i % 40, 'unknown', 3, now() + interval '1 hour' FROM seed WHERE open`,
		`INSERT INTO lookups (id, effect_id, cause, asked_at, answered_at, tool, kind, source, request, status, latency, pages, verdict, reason, why, found, read)
			SELECT gen_random_uuid(), id, 'schedule', at, at, 'tool-' || i % 40, 'http', 'seed', 'GET https://bank.example/', 200, 0.1, 1, 'inconclusive', 'not_found_yet',
				'Nothing was found.', '{}', '{}' FROM seed, LATERAL (SELECT now() - make_interval(mins => k) AS at FROM generate_series(1, 3) AS k) AS t WHERE open`,
		`VACUUM ANALYZE effects`, `VACUUM ANALYZE business_claims`, `VACUUM ANALYZE attempts`, `VACUUM ANALYZE effect_events`, `VACUUM ANALYZE runs`,
		`VACUUM ANALYZE lookups`, `VACUUM ANALYZE lookup_schedule`, `VACUUM ANALYZE waiting`, `ANALYZE`,
	} {
		if _, err := db.Pool().ExecContext(t.Context(), step); err != nil {
			t.Fatalf("couldn't fill the database: %v: %s", err, step[:min(len(step), 60)])
		}
	}
}
