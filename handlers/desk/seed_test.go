package desk_test

import "fmt"

// seed fills the database as a busy installation would look: total effects of which
// open wait for a person, in 40 tools, 25 agents and 5 currencies, with their log.
func (w *world) seed(total, open int) {
	w.t.Helper()
	runs := max(1, total/10)
	steps := []string{
		`INSERT INTO policies (digest, source) VALUES (sha256('bench'), '') ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`INSERT INTO runs (account_id, run_id, agent, policy, state, opened_at, changed_at)
			SELECT %d, 'run-' || i, 'agent-' || i %% 25, sha256('bench'), CASE WHEN i %% 10 = 0 THEN 'paused' ELSE 'ready' END,
				now() - make_interval(secs => i), now() FROM generate_series(1, %d) AS i`, w.account, runs),
		fmt.Sprintf(`CREATE UNLOGGED TABLE seed AS
			SELECT gen_random_uuid() AS id, i, i > %[1]d - %[2]d AS open, r.id AS run
			FROM generate_series(1, %[1]d) AS i
			JOIN (SELECT id, row_number() OVER () - 1 AS n FROM runs WHERE account_id = %[3]d AND agent LIKE 'agent-%%') AS r ON r.n = i %% %[4]d`, total, open, w.account, runs),
		fmt.Sprintf(`INSERT INTO effects (id, account_id, run_id, key, tool, occurrence, arguments, call_digest, business_key, claim, call_claim, summary,
				amount, currency, decimals, opened_at, state, why, version, attempts, fence, deadline, decided_by, release_at, released, used_at, waiting_since, changed_at)
			SELECT id, %d, run, sha256(i::text::bytea), 'tool-' || i %% 40, 1, '{"vendor":"Vendor ' || i %% 5000 || '","invoice":"INV-' || i || '"}',
				sha256(('c' || i)::bytea), 'Vendor ' || i %% 5000 || '/INV-' || i, sha256(('b' || i)::bytea), false,
				'Pay 10.00 USD to Vendor ' || i %% 5000 || ' for INV-' || i, i * 100, (ARRAY['USD','EUR','GBP','CHF','ILS'])[1 + i %% 5], 2,
				now() - make_interval(secs => %d - i + 60), CASE WHEN open THEN 'interrupted' ELSE 'taken' END, CASE WHEN open THEN 'deadline' END, 2, 1, 1,
				now() - make_interval(secs => %d - i + 30), CASE WHEN open THEN NULL WHEN i %% 50 = 0 THEN 'late_agent' ELSE 'agent' END,
				CASE WHEN NOT open THEN now() END, NOT open, CASE WHEN NOT open THEN now() END,
				CASE WHEN open THEN now() - make_interval(secs => %d - i) END, now() - make_interval(secs => %d - i)
			FROM seed`, w.account, total, total, total, total),
		`INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
			SELECT now() - interval '1 day', run, id, 2, 'finish', '{"state":"taken"}', sha256(id::text::bytea) FROM seed WHERE open`,
		fmt.Sprintf(`INSERT INTO audit (at, person_id, actor, via, action, outcome, subject) SELECT now() - make_interval(secs => i), %d, 'Petra Lind', 'page', 'effect.decide', 'done', 'effect:x'
			FROM generate_series(1, %d) AS i`, w.petra.ID, max(1, total/10)),
		`INSERT INTO lookup_schedule (effect_id, tool, plan, step, next_lookup_at)
			SELECT id, 'tool-' || i % 40, 'unknown', 3, now() + interval '1 hour' FROM seed WHERE open`,
		`INSERT INTO lookups (id, effect_id, cause, asked_at, answered_at, tool, kind, source, request, status, latency, pages, verdict, reason, why, found, read)
			SELECT gen_random_uuid(), id, 'schedule', at, at, 'tool-' || i % 40, 'http', 'seed', 'GET https://bank.example/', 200, 0.1, 1, 'inconclusive', 'not_found_yet',
				'Nothing was found.', '{}', '{}' FROM seed, LATERAL (SELECT now() - make_interval(mins => k) AS at FROM generate_series(1, 3) AS k) AS t WHERE open`,
		`VACUUM ANALYZE lookups`, `VACUUM ANALYZE lookup_schedule`, `VACUUM ANALYZE effects`, `VACUUM ANALYZE waiting`, `VACUUM ANALYZE effect_events`, `VACUUM ANALYZE runs`, `VACUUM ANALYZE audit`, `ANALYZE`,
	}
	for _, s := range steps {
		w.exec(s)
	}
}
