package effects

import (
	"context"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"quittance/ledger"
)

// Detail is an effect with the texts that [Load] leaves out, and what names its run.
type Detail struct {
	Row
	ArgumentText string `db:"argument_text"`
	ContextText  string `db:"context_text"`
	Result       string `db:"result"`
	Error        string `db:"error"`
	RunName      string `db:"run_name"`
	Agent        string `db:"agent"`
	AccountName  string `db:"account_name"`
}

// Get reads one effect whole; account 0 is any account. [ledger.ErrNotFound] when
// there is none.
func Get(ctx context.Context, r ledger.Reader, account int64, id string) (*Detail, error) {
	var d Detail
	err := r.Get(ctx, &d, `
		SELECT `+columns+`, e.arguments AS argument_text, COALESCE(e.context, '') AS context_text,
			COALESCE(e.result, '') AS result, COALESCE(e.error, '') AS error, r.run_id AS run_name, r.agent,
			a.name AS account_name
		FROM effects e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = e.account_id
		LEFT JOIN business_claims c ON c.digest = e.claim
		WHERE e.id = $1::uuid AND ($2::bigint = 0 OR e.account_id = $2)`, id, account)
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// AttemptOf is an attempt with the worker that made it.
type AttemptOf struct {
	Attempt
	Worker string `db:"worker"`
}

// AttemptsOf reads an effect's attempts, oldest first.
func AttemptsOf(ctx context.Context, r ledger.Reader, effect string) ([]AttemptOf, error) {
	var rows []AttemptOf
	err := r.Select(ctx, &rows, `
		SELECT t.effect_id, t.number, t.fence, t.attempt_id, t.epoch, t.begun_at, t.deadline,
			COALESCE(l.worker, (SELECT 'The agent of ' || regexp_replace(g.path, '.*/', '') FROM logfile_runs f JOIN logfiles g ON g.id = f.log_id
				WHERE f.run_id = e.run_id ORDER BY g.id LIMIT 1), '') AS worker
		FROM attempts t JOIN effects e ON e.id = t.effect_id
		LEFT JOIN leases l ON l.run_id = e.run_id AND l.epoch = t.epoch
		WHERE t.effect_id = $1::uuid ORDER BY t.fence`, effect)
	if err != nil {
		return nil, fmt.Errorf("couldn't read attempts: %w", err)
	}
	return rows, nil
}

// Overlap is another effect with the same business key.
type Overlap struct {
	Row
	ArgumentText string `db:"argument_text"`
	RunName      string `db:"run_name"`
}

// OverlapsOf reads the other effects with an effect's business key, or with the same
// call where the tool has none, latest first, at most n.
func OverlapsOf(ctx context.Context, r ledger.Reader, effect string, n int) ([]Overlap, error) {
	var rows []Overlap
	err := r.Select(ctx, &rows, `
		SELECT `+columns+`, left(e.arguments, 65536) AS argument_text, r.run_id AS run_name
		FROM effects x JOIN effects e ON e.id <> x.id AND (e.claim IN (x.claim, x.claim_was) OR e.claim_was IN (x.claim, x.claim_was))
		JOIN runs r ON r.id = e.run_id
		LEFT JOIN business_claims c ON c.digest = e.claim
		WHERE x.id = $1::uuid ORDER BY e.opened_at DESC, e.id DESC LIMIT $2`, effect, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read overlapping effects: %w", err)
	}
	return rows, nil
}

// AccountIDs lists all accounts.
func AccountIDs(ctx context.Context, r ledger.Reader) ([]int64, error) {
	var ids []int64
	if err := r.Select(ctx, &ids, `SELECT id FROM accounts ORDER BY id`); err != nil {
		return nil, fmt.Errorf("couldn't list accounts: %w", err)
	}
	return ids, nil
}

// LatestWith finds the latest effect of a tool with one of the claims, one that may have
// been sent before one that was not; "" for none.
func LatestWith(ctx context.Context, r ledger.Reader, tool string, claims [][]byte) (id string, err error) {
	err = r.Get(ctx, &id, `
		SELECT id FROM effects WHERE (claim = ANY($1::bytea[]) OR claim_was = ANY($1::bytea[])) AND tool = $2
		ORDER BY attempts > 0 OR gap DESC, opened_at DESC, id DESC LIMIT 1`, pq.ByteaArray(claims), tool)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("couldn't find the latest effect with a business key: %w", err)
	}
	return id, nil
}
