// Package runs holds the statements about runs, their leases, checkpoints and the
// starts and begins that were refused.
package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// State is where a run stands.
type State string

const (
	Running   State = "running"
	Paused    State = "paused"
	Ready     State = "ready"
	Finished  State = "finished"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Closed tells whether the run has ended for good.
func (s State) Closed() bool { return s == Finished || s == Failed || s == Cancelled }

// Row is a run with its present lease; LeaseHash nil means that nobody holds it.
type Row struct {
	ID             int64        `db:"id"`
	Account        int64        `db:"account_id"`
	RunID          string       `db:"run_id"`
	Agent          string       `db:"agent"`
	Policy         ledger.Bytes `db:"policy"`
	State          State        `db:"state"`
	Epoch          int64        `db:"epoch"`
	LeaseHash      ledger.Bytes `db:"lease_hash"`
	LeaseUntil     ledger.Time  `db:"lease_until"`
	LeaseWorker    string       `db:"lease_worker"`
	LeaseAttempt   string       `db:"lease_attempt"`
	LeaseSeconds   int          `db:"lease_seconds"`
	Refused        int64        `db:"refused"`
	Kept           int64        `db:"kept"`
	OpenedAt       ledger.Time  `db:"opened_at"`
	ChangedAt      ledger.Time  `db:"changed_at"`
	ResumableSince ledger.Time  `db:"resumable_since"`
	ClosedAt       ledger.Time  `db:"closed_at"`
}

const columns = `r.id, r.account_id, r.run_id, r.agent, r.policy, r.state, r.epoch, r.lease_hash, r.lease_until,
	COALESCE(r.lease_worker, '') AS lease_worker, COALESCE(r.lease_attempt, '') AS lease_attempt,
	COALESCE(r.lease_seconds, 0) AS lease_seconds, r.refused, r.kept, r.opened_at, r.changed_at, r.resumable_since, r.closed_at`

// ErrLost says that a guarded write on a run met a row that had changed.
var ErrLost = errors.New("a run changed under a guarded write")

// Lock locks the named runs, in the order of their ids so that two callers cannot
// wait for each other: by (account, name), by the effects given, and by id. Every
// change to a run or to an effect of it happens under this lock.
func Lock(ctx context.Context, tx *ledger.Tx, accounts []int64, names []string, effects []string, ids []int64) ([]*Row, error) {
	var rows []*Row
	err := tx.Select(ctx, &rows, `
		SELECT `+columns+` FROM runs r
		WHERE r.id = ANY (ARRAY(
			SELECT x.id FROM unnest($1::bigint[], $2::text[]) AS w(account_id, run_id)
			JOIN runs x ON x.account_id = w.account_id AND x.run_id = w.run_id
			UNION SELECT e.run_id FROM unnest($3::uuid[]) AS w(id) JOIN effects e ON e.id = w.id
			UNION SELECT unnest($4::bigint[])))
		ORDER BY r.id FOR NO KEY UPDATE`,
		pq.Array(accounts), pq.Array(names), pq.Array(effects), pq.Array(ids))
	if err != nil {
		return nil, fmt.Errorf("couldn't lock runs: %w", err)
	}
	return rows, nil
}

// Get reads a run; [ledger.ErrNotFound] when the account has none of that name.
func Get(ctx context.Context, r ledger.Reader, account int64, name string) (*Row, error) {
	var row Row
	if err := r.Get(ctx, &row, `SELECT `+columns+` FROM runs r WHERE r.account_id = $1 AND r.run_id = $2`, account, name); err != nil {
		return nil, err
	}
	return &row, nil
}

// Add opens those runs of an account that there are not yet, and names them. A run that it
// opens is ready: nobody holds it yet.
func Add(ctx context.Context, tx *ledger.Tx, account int64, names []string, agent string, policy []byte, at time.Time) (added []string, err error) {
	err = tx.Select(ctx, &added, `
		INSERT INTO runs (account_id, run_id, agent, policy, state, epoch, opened_at, changed_at, resumable_since)
		SELECT $1, n.name, $3, $4, 'ready', i.fence_base, $5, $5, $5
		FROM (SELECT name FROM unnest($2::text[]) AS n(name) ORDER BY name) AS n, installation i
		ON CONFLICT (account_id, run_id) DO NOTHING
		RETURNING run_id`, account, pq.Array(names), agent, policy, at)
	if err != nil {
		return nil, fmt.Errorf("couldn't open runs: %w", err)
	}
	return added, nil
}

// Take gives the lease to a new holder under a higher epoch. [ErrLost] when the run
// is held.
func Take(ctx context.Context, tx *ledger.Tx, run *Row, epoch int64, hash []byte, worker, attempt string, lease time.Duration, now time.Time) error {
	n, err := tx.Exec(ctx, `
		UPDATE runs SET state = 'running', epoch = $9, lease_hash = $3, lease_until = $4, lease_worker = $5,
			lease_attempt = $6, lease_seconds = $7, changed_at = $8
		WHERE id = $1 AND epoch = $2 AND state = 'ready' AND lease_hash IS NULL`,
		run.ID, run.Epoch, hash, now.Add(lease), worker, attempt, int(lease/time.Second), now, epoch)
	if err == nil && n == 1 {
		_, err = tx.Exec(ctx, `
			INSERT INTO leases (run_id, epoch, worker, attempt_id, taken_at) VALUES ($1, $2, $3, $4, $5)`,
			run.ID, epoch, worker, attempt, now)
	}
	if err != nil {
		return fmt.Errorf("couldn't take a lease: %w", err)
	}
	if n != 1 {
		return ErrLost
	}
	run.State, run.Epoch, run.LeaseHash, run.LeaseUntil = Running, epoch, hash, ledger.At(now.Add(lease))
	run.LeaseWorker, run.LeaseAttempt, run.LeaseSeconds = worker, attempt, int(lease/time.Second)
	return nil
}

// Renew extends the present lease from now. [ErrLost] when the epoch moved on.
func Renew(ctx context.Context, tx *ledger.Tx, run *Row, now time.Time) error {
	until := now.Add(time.Duration(run.LeaseSeconds) * time.Second)
	n, err := tx.Exec(ctx, `
		UPDATE runs SET lease_until = $3 WHERE id = $1 AND epoch = $2 AND lease_until > $4`, run.ID, run.Epoch, until, now)
	if err != nil {
		return fmt.Errorf("couldn't renew a lease: %w", err)
	}
	if n != 1 {
		return ErrLost
	}
	run.LeaseUntil = ledger.At(until)
	return nil
}

// EndLease takes the lease away; how is "released", "expired", "closed" or
// "log_gap". The run must leave the state running in the same transaction: state
// says where it goes.
func EndLease(ctx context.Context, tx *ledger.Tx, run *Row, how string, state State, now time.Time) error {
	n, err := tx.Exec(ctx, `
		UPDATE runs SET lease_hash = NULL, lease_until = NULL, lease_worker = NULL, lease_attempt = NULL,
			lease_seconds = NULL, state = $3, changed_at = $4, closed_at = CASE WHEN $5 THEN $4::timestamptz END
		WHERE id = $1 AND epoch = $2 AND lease_hash IS NOT NULL`, run.ID, run.Epoch, string(state), now, state.Closed())
	if err == nil && n == 1 {
		_, err = tx.Exec(ctx, `
			UPDATE leases SET ended_at = greatest($3, taken_at), ended_by = $4
			WHERE run_id = $1 AND epoch = $2 AND ended_at IS NULL`, run.ID, run.Epoch, now, how)
	}
	if err != nil {
		return fmt.Errorf("couldn't end a lease: %w", err)
	}
	if n != 1 {
		return ErrLost
	}
	run.LeaseHash, run.LeaseUntil, run.State = nil, ledger.Time{}, state
	return nil
}

// Move changes a run's state, guarded by the one it was read in.
func Move(ctx context.Context, tx *ledger.Tx, run *Row, to State, now time.Time) error {
	n, err := tx.Exec(ctx, `
		UPDATE runs SET state = $3, changed_at = $4,
			resumable_since = CASE WHEN state = 'paused' THEN $4::timestamptz ELSE resumable_since END
		WHERE id = $1 AND state = $2`, run.ID, string(run.State), string(to), now)
	if err != nil {
		return fmt.Errorf("couldn't move a run: %w", err)
	}
	if n != 1 {
		return ErrLost
	}
	run.State = to
	return nil
}

// End closes a run that nobody holds. [ErrLost] when somebody does, or it has ended.
func End(ctx context.Context, tx *ledger.Tx, run *Row, state State, now time.Time) error {
	return endless(ctx, tx, run, state, `
		UPDATE runs SET state = $2, changed_at = $3, closed_at = $3
		WHERE id = $1 AND lease_hash IS NULL AND state IN ('ready','paused')`, now)
}

// Reopen opens a run again that has ended; only one in a log file can go on.
func Reopen(ctx context.Context, tx *ledger.Tx, run *Row, now time.Time) error {
	return endless(ctx, tx, run, Ready, `
		UPDATE runs SET state = $2, changed_at = $3, resumable_since = $3, closed_at = NULL
		WHERE id = $1 AND state IN ('finished','failed','cancelled')`, now)
}

// endless moves a run that nobody holds.
func endless(ctx context.Context, tx *ledger.Tx, run *Row, to State, query string, now time.Time) error {
	n, err := tx.Exec(ctx, query, run.ID, string(to), now)
	if err != nil {
		return fmt.Errorf("couldn't move a run: %w", err)
	}
	if n != 1 {
		return ErrLost
	}
	run.State = to
	return nil
}

// NextReady finds a ready run of one of the agents that no other transaction is
// taking and that lives in no log file, and locks it; nil when there is none.
func NextReady(ctx context.Context, tx *ledger.Tx, account int64, agents []string) (*Row, error) {
	var rows []*Row
	err := tx.Select(ctx, &rows, `
		SELECT `+columns+` FROM runs r
		WHERE r.state = 'ready' AND r.account_id = $1 AND r.agent = ANY($2::text[])
		AND NOT EXISTS (SELECT 1 FROM logfile_runs l WHERE l.run_id = r.id)
		ORDER BY r.changed_at, r.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`, account, pq.Array(agents))
	if err != nil {
		return nil, fmt.Errorf("couldn't find a ready run: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// HeldBy finds the run that this attempt_id already claimed, if it still holds it.
func HeldBy(ctx context.Context, tx *ledger.Tx, account int64, worker, attempt string, agents []string) (int64, error) {
	var ids []int64
	err := tx.Select(ctx, &ids, `
		SELECT id FROM runs WHERE account_id = $1 AND lease_until IS NOT NULL AND lease_worker = $2
		AND lease_attempt = $3 AND agent = ANY($4::text[]) AND lease_until > clock_timestamp() LIMIT 1`,
		account, worker, attempt, pq.Array(agents))
	if err != nil {
		return 0, fmt.Errorf("couldn't look for a claimed run: %w", err)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return ids[0], nil
}

// Expired lists runs whose lease has passed, at most n.
func Expired(ctx context.Context, r ledger.Reader, n int) ([]int64, error) {
	var ids []int64
	err := r.Select(ctx, &ids, `
		SELECT id FROM runs WHERE lease_until <= clock_timestamp() ORDER BY lease_until LIMIT $1`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list expired leases: %w", err)
	}
	return ids, nil
}

// Unclosed lists every run that has not ended.
func Unclosed(ctx context.Context, r ledger.Reader) ([]int64, error) {
	var ids []int64
	err := r.Select(ctx, &ids, `SELECT id FROM runs WHERE state IN ('running','paused','ready')`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list runs: %w", err)
	}
	return ids, nil
}
