package effects

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// columns of [Row], NULLs as zero values, of effects e LEFT JOIN business_claims c.
const columns = `
	e.id, e.account_id, e.run_id, e.key, COALESCE(e.client_key, '') AS client_key, e.tool, e.occurrence,
	e.call_digest, COALESCE(e.business_key, '') AS business_key, e.claim, e.claim_was, e.call_claim, e.summary,
	COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency, e.decimals,
	COALESCE(e.amount_problem, '') AS amount_problem, COALESCE(e.call_id, '') AS call_id,
	COALESCE(e.client_time, '') AS client_time, COALESCE(e.repeat_of::text, '') AS repeat_of, e.opened_at,
	e.state, COALESCE(e.why, '') AS why, e.version, e.attempts, e.fence, e.deadline, e.moment, e.gap,
	COALESCE(e.decided_by, '') AS decided_by, COALESCE(e.decided_from, '') AS decided_from,
	COALESCE(e.decision::text, '') AS decision, COALESCE(e.proposal::text, '') AS proposal, e.early,
	e.release_at, e.released, e.used_at, COALESCE(e.reference, '') AS reference,
	COALESCE(e.same_as::text, '') AS same_as, COALESCE(e.result_size, 0) AS result_size, e.result_digest,
	e.contradictions, e.waiting_since, e.changed_at,
	COALESCE(c.effect_id::text, '') AS claim_owner,
	COALESCE((SELECT b.effect_id::text FROM business_claims b WHERE b.digest = e.claim_was), '') AS claim_was_owner`

// Wanted names effects by id, or by run and key.
type Wanted struct {
	IDs  []string
	Runs []int64
	Keys [][]byte // Keys[i] belongs to Runs[i]
	// Due lists runs whose decided effects that may be released by now are loaded too.
	Due []int64
}

// Load reads effects. The caller holds the lock on their runs' rows, under which
// alone they change.
func Load(ctx context.Context, tx *ledger.Tx, w Wanted) ([]*Row, error) {
	var rows []*Row
	err := tx.Select(ctx, &rows, `
		SELECT `+columns+`
		FROM (
			SELECT e.id FROM unnest($1::uuid[]) AS w(id) JOIN effects e ON e.id = w.id
			UNION
			SELECT e.id FROM unnest($2::bigint[], $3::bytea[]) AS w(run_id, key)
			JOIN effects e ON e.run_id = w.run_id AND e.key = w.key
			UNION
			SELECT e.id FROM unnest($4::bigint[]) AS w(run_id)
			JOIN effects e ON e.run_id = w.run_id
			WHERE NOT e.released AND e.release_at <= clock_timestamp() AND NOT e.early
		) AS w
		JOIN effects e ON e.id = w.id
		LEFT JOIN business_claims c ON c.digest = e.claim`,
		pq.Array(w.IDs), pq.Array(w.Runs), pq.ByteaArray(w.Keys), pq.Array(w.Due))
	if err != nil {
		return nil, fmt.Errorf("couldn't load effects: %w", err)
	}
	return rows, nil
}

// Outcome is the recorded result of a taken or failed effect.
type Outcome struct {
	ID     string `db:"id"`
	Result string `db:"result"`
	Error  string `db:"error"`
}

// Outcomes reads results and errors, which [Load] leaves out.
func Outcomes(ctx context.Context, r ledger.Reader, ids []string) (map[string]Outcome, error) {
	var rows []Outcome
	err := r.Select(ctx, &rows, `
		SELECT id, COALESCE(result, '') AS result, COALESCE(error, '') AS error
		FROM effects WHERE id = ANY($1::uuid[])`, pq.Array(ids))
	if err != nil {
		return nil, fmt.Errorf("couldn't read outcomes: %w", err)
	}
	m := make(map[string]Outcome, len(rows))
	for _, x := range rows {
		m[x.ID] = x
	}
	return m, nil
}

// LastAttempts gives each effect's last attempt, by effect id.
func LastAttempts(ctx context.Context, tx *ledger.Tx, ids []string) (map[string]Attempt, error) {
	var rows []Attempt
	err := tx.Select(ctx, &rows, `
		SELECT DISTINCT ON (effect_id) effect_id, number, fence, attempt_id, epoch, begun_at, deadline
		FROM attempts WHERE effect_id = ANY($1::uuid[]) ORDER BY effect_id, fence DESC`, pq.Array(ids))
	if err != nil {
		return nil, fmt.Errorf("couldn't read attempts: %w", err)
	}
	m := make(map[string]Attempt, len(rows))
	for _, x := range rows {
		m[x.Effect] = x
	}
	return m, nil
}

// Arguments reads what a call was made with, which [Load] leaves out.
func Arguments(ctx context.Context, r ledger.Reader, id string) (string, error) {
	var text string
	if err := r.Get(ctx, &text, `SELECT arguments FROM effects WHERE id = $1::uuid`, id); err != nil {
		return "", fmt.Errorf("couldn't read arguments: %w", err)
	}
	return text, nil
}

// OwnedReferences tells which of the references (by account and tool) already
// prove a taken effect: the result maps each to that effect's id.
func OwnedReferences(ctx context.Context, r ledger.Reader, list []Reference) (map[Reference]string, error) {
	m := make(map[Reference]string, len(list))
	if len(list) == 0 {
		return m, nil
	}
	accounts, tools, refs := make([]int64, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, x := range list {
		accounts[i], tools[i], refs[i] = x.Account, x.Tool, x.Ref
	}
	var rows []struct {
		Account int64  `db:"account_id"`
		Tool    string `db:"tool"`
		Ref     string `db:"reference"`
		ID      string `db:"id"`
	}
	err := r.Select(ctx, &rows, `
		SELECT e.account_id, e.tool, e.reference, e.id
		FROM unnest($1::bigint[], $2::text[], $3::text[]) AS w(account_id, tool, reference)
		JOIN effects e ON e.account_id = w.account_id AND e.tool = w.tool AND e.reference = w.reference`,
		pq.Array(accounts), pq.Array(tools), pq.Array(refs))
	if err != nil {
		return nil, fmt.Errorf("couldn't look up references: %w", err)
	}
	for _, x := range rows {
		m[Reference{x.Account, x.Tool, x.Ref}] = x.ID
	}
	return m, nil
}

// Reference is a downstream's own id of something that happened, unique per
// account and tool.
type Reference struct {
	Account int64
	Tool    string
	Ref     string
}

// Blocked tells which of the runs have an effect that keeps them paused: one that is
// interrupted or held, contradicted, or decided and not yet released.
func Blocked(ctx context.Context, tx *ledger.Tx, runs []int64) (map[int64]bool, error) {
	var ids []int64
	err := tx.Select(ctx, &ids, `
		SELECT DISTINCT run_id FROM effects
		WHERE run_id = ANY($1::bigint[])
		AND (state IN ('in_flight','interrupted','held') OR NOT released OR contradictions > 0)
		AND (state <> 'in_flight' OR contradictions > 0)`, pq.Array(runs))
	if err != nil {
		return nil, fmt.Errorf("couldn't see what keeps runs paused: %w", err)
	}
	m := make(map[int64]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m, nil
}

// Blocking reads the effects that keep runs paused, oldest first.
func Blocking(ctx context.Context, r ledger.Reader, runs []int64) ([]*Row, error) {
	var rows []*Row
	err := r.Select(ctx, &rows, `
		SELECT `+columns+`
		FROM effects e LEFT JOIN business_claims c ON c.digest = e.claim
		WHERE e.run_id = ANY($1::bigint[])
		AND (e.state IN ('in_flight','interrupted','held') OR NOT e.released OR e.contradictions > 0)
		AND (e.state <> 'in_flight' OR e.contradictions > 0)
		ORDER BY e.opened_at, e.id LIMIT 500`, pq.Array(runs))
	if err != nil {
		return nil, fmt.Errorf("couldn't read what keeps runs paused: %w", err)
	}
	return rows, nil
}

// OpenOfRun reads the effects of a run that are in flight, interrupted or held.
func OpenOfRun(ctx context.Context, r ledger.Reader, run int64) ([]*Row, error) {
	var rows []*Row
	err := r.Select(ctx, &rows, `
		SELECT `+columns+`
		FROM effects e LEFT JOIN business_claims c ON c.digest = e.claim
		WHERE e.run_id = $1 AND e.state IN ('in_flight','interrupted','held')
		AND (e.state IN ('in_flight','interrupted','held') OR NOT e.released OR e.contradictions > 0)
		ORDER BY e.opened_at, e.id LIMIT 500`, run)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a run's open effects: %w", err)
	}
	return rows, nil
}

// InFlight lists the effects in flight of the runs.
func InFlightOf(ctx context.Context, tx *ledger.Tx, runs []int64) ([]string, error) {
	var ids []string
	err := tx.Select(ctx, &ids, `
		SELECT id FROM effects WHERE run_id = ANY($1::bigint[]) AND state = 'in_flight'
		AND (state IN ('in_flight','interrupted','held') OR NOT released OR contradictions > 0)`, pq.Array(runs))
	if err != nil {
		return nil, fmt.Errorf("couldn't list effects in flight: %w", err)
	}
	return ids, nil
}

// PastDeadline lists effects in flight whose deadline has passed, at most n.
func PastDeadline(ctx context.Context, r ledger.Reader, n int) ([]string, error) {
	return list(ctx, r, `SELECT id FROM effects WHERE state = 'in_flight' AND deadline <= clock_timestamp() ORDER BY deadline LIMIT $1`, n)
}

// ReleaseDue lists decided effects that may become visible, at most n.
func ReleaseDue(ctx context.Context, r ledger.Reader, n int) ([]string, error) {
	return list(ctx, r, `
		SELECT id FROM effects e WHERE NOT released AND release_at IS NOT NULL AND NOT early AND release_at <= clock_timestamp()
		AND NOT EXISTS (SELECT 1 FROM lookup_schedule s WHERE s.effect_id = e.id AND s.recheck_from IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM logfile_alarms a JOIN logfile_runs l ON l.log_id = a.log_id
			WHERE a.acknowledged_at IS NULL AND l.run_id = e.run_id)
		ORDER BY release_at LIMIT $1`, n)
}

// ExpiryDue lists permissions that have stood unused for life since their run could
// resume, at most n.
func ExpiryDue(ctx context.Context, r ledger.Reader, life string, n int) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT e.id FROM effects e JOIN runs r ON r.id = e.run_id
		WHERE e.state = 'cleared' AND e.released AND e.release_at <= clock_timestamp() - $1::interval
		AND r.state IN ('running','ready') AND r.resumable_since <= clock_timestamp() - $1::interval
		ORDER BY e.release_at LIMIT $2`, life, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list unused permissions: %w", err)
	}
	return ids, nil
}

func list(ctx context.Context, r ledger.Reader, query string, n int) ([]string, error) {
	var ids []string
	if err := r.Select(ctx, &ids, query, n); err != nil {
		return nil, fmt.Errorf("couldn't list what is due: %w", err)
	}
	return ids, nil
}

// Unfinished counts what keeps a run from closing, and lists the effects that closing
// it uses up.
func Unfinished(ctx context.Context, tx *ledger.Tx, run int64) (open int, unused []string, err error) {
	err = tx.Get(ctx, &open, `
		SELECT count(*) FROM (
			SELECT 1 FROM effects WHERE run_id = $1
			AND (state IN ('in_flight','interrupted','held') OR NOT released OR contradictions > 0)
			UNION ALL
			SELECT 1 FROM effects WHERE run_id = $1 AND used_at IS NULL AND state IN ('cleared','taken','cancelled')
			AND why = 'same_key') AS x`, run)
	if err == nil {
		err = tx.Select(ctx, &unused, `
			SELECT id FROM effects WHERE run_id = $1 AND used_at IS NULL AND state IN ('cleared','taken','cancelled')`, run)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("couldn't see what is open in a run: %w", err)
	}
	return open, unused, nil
}

// OpenEverywhere lists every effect that is in flight, interrupted, held or cleared.
func OpenEverywhere(ctx context.Context, r ledger.Reader) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `SELECT id FROM effects WHERE state IN ('in_flight','interrupted','held','cleared')`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list open effects: %w", err)
	}
	return ids, nil
}
