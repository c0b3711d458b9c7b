// Package lookups holds the statements about asking downstreams: who is asked when, and
// what they answered.
package lookups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// Plan is for what an effect's downstream is asked; see the table's comment.
type Plan string

const (
	None       Plan = "none"
	Unknown    Plan = "unknown"
	Permission Plan = "permission"
	Closed     Plan = "closed"
)

// Cause is why a question is asked when it is.
type Cause string

const (
	BySchedule Cause = "schedule"
	ByRelease  Cause = "release" // a decision is about to be released
	ByPage     Cause = "page"    // somebody opened the effect's page
	ByPerson   Cause = "person"  // somebody asked for it
	ByEvent    Cause = "event"   // an event arrived, or a worker was free
)

// Steps bounds how many steps a plan may have.
const Steps = 63

// Scheduled is a row of the schedule.
type Scheduled struct {
	Effect       string      `db:"effect_id"`
	Tool         string      `db:"tool"`
	Plan         Plan        `db:"plan"`
	Step         int         `db:"step"`
	Next         ledger.Time `db:"next_lookup_at"`
	Pulled       bool        `db:"pulled"`
	Cause        Cause       `db:"cause"`
	RecheckFrom  ledger.Time `db:"recheck_from"`
	RecheckUntil ledger.Time `db:"recheck_until"`
	AskedAt      ledger.Time `db:"asked_at"`
	AskedBy      string      `db:"asked_by"`
	AskedUntil   ledger.Time `db:"asked_until"`
	Finding      string      `db:"finding"`
	Hit          bool        `db:"hit"`
	EndedAt      ledger.Time `db:"ended_at"`
}

const scheduleColumns = `effect_id, tool, plan, step, next_lookup_at, pulled, cause, recheck_from, recheck_until, asked_at,
	COALESCE(asked_by::text, '') AS asked_by, asked_until, finding, hit, ended_at`

// Get reads an effect's row; nil where nobody was ever to ask.
func Get(ctx context.Context, r ledger.Reader, effect string) (*Scheduled, error) {
	return get(ctx, r, effect, "")
}

// Lock is Get under the row's lock.
func Lock(ctx context.Context, tx *ledger.Tx, effect string) (*Scheduled, error) {
	return get(ctx, tx, effect, " FOR UPDATE")
}

func get(ctx context.Context, r ledger.Reader, effect, lock string) (*Scheduled, error) {
	var s Scheduled
	err := r.Get(ctx, &s, `SELECT `+scheduleColumns+` FROM lookup_schedule WHERE effect_id = $1::uuid`+lock, effect)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read when a downstream is asked: %w", err)
	}
	return &s, nil
}

// Change puts an effect under a plan from its first step on. Whoever is asking just now
// goes on.
type Change struct {
	Effect, Tool string
	Plan         Plan
	Next         ledger.Time // zero: never
	// Recheck, if not zero, keeps a decision unreleased until somebody has asked at or after
	// it, or until RecheckUntil.
	RecheckFrom, RecheckUntil ledger.Time
}

// Set stores changes of plans.
func Set(ctx context.Context, tx *ledger.Tx, list []Change) error {
	for _, c := range list { // mostly one
		if c.Plan == None {
			if err := stop(ctx, tx, c.Effect); err != nil {
				return err
			}
			continue
		}
		cause := BySchedule
		if !c.RecheckFrom.IsZero() {
			cause = ByRelease
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO lookup_schedule AS s (effect_id, tool, plan, next_lookup_at, cause, recheck_from, recheck_until)
			VALUES ($1::uuid, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (effect_id) DO UPDATE SET plan = excluded.plan, step = 0, pulled = false, cause = excluded.cause,
				next_lookup_at = excluded.next_lookup_at, recheck_from = excluded.recheck_from, recheck_until = excluded.recheck_until,
				ended_at = NULL`,
			c.Effect, c.Tool, c.Plan, c.Next, cause, c.RecheckFrom, c.RecheckUntil)
		if err != nil {
			return fmt.Errorf("couldn't say when a downstream is asked: %w", err)
		}
	}
	return nil
}

// stop ends the plan of an effect, if it has one.
func stop(ctx context.Context, tx *ledger.Tx, effect string) error {
	_, err := tx.Exec(ctx, `
		UPDATE lookup_schedule SET plan = 'none', next_lookup_at = NULL, recheck_from = NULL, recheck_until = NULL, ended_at = NULL
		WHERE effect_id = $1::uuid`, effect)
	if err != nil {
		return fmt.Errorf("couldn't say that a downstream is not asked: %w", err)
	}
	return nil
}

// Due lists effects of a tool about which it is time to ask, and nobody does: those that
// were asked about least come first, and of them the one that has waited longest.
func Due(ctx context.Context, r ledger.Reader, tool string, n int) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT d.effect_id FROM generate_series(0, $3) AS k(step), LATERAL (
			SELECT effect_id, next_lookup_at FROM lookup_schedule
			WHERE tool = $1 AND step = k.step AND next_lookup_at <= clock_timestamp()
			AND (asked_until IS NULL OR asked_until <= clock_timestamp())
			ORDER BY next_lookup_at LIMIT $2) AS d
		ORDER BY k.step, d.next_lookup_at LIMIT $2`, tool, n, Steps)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what is to be asked: %w", err)
	}
	return ids, nil
}

// Asked is a question that nobody else may ask meanwhile.
type Asked struct {
	Effect string
	By     string      // who asks
	At     ledger.Time `db:"asked_at"`
	Cause  Cause       `db:"cause"`
}

// Ask takes the question about an effect for whoever asks, for at most patience, if it is
// due and nobody has it. It is committed when it returns: the question may leave.
func Ask(ctx context.Context, db *ledger.DB, effect, by string, patience time.Duration) (a Asked, ok bool, err error) {
	a = Asked{Effect: effect, By: by}
	err = db.Once(ctx, &a, `
		UPDATE lookup_schedule SET asked_at = clock_timestamp(), asked_by = $2::uuid,
			asked_until = clock_timestamp() + make_interval(secs => $3)
		WHERE effect_id = $1::uuid AND next_lookup_at <= clock_timestamp()
		AND (asked_until IS NULL OR asked_until <= clock_timestamp())
		RETURNING asked_at, cause`, effect, by, patience.Seconds())
	if errors.Is(err, ledger.ErrNotFound) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("couldn't take a question: %w", err)
	}
	return a, true, nil
}

// GiveBack lets go of a question that has no answer to be stored; it is due again after
// that long.
func GiveBack(ctx context.Context, tx *ledger.Tx, a Asked, after time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE lookup_schedule SET asked_at = NULL, asked_by = NULL, asked_until = NULL,
			next_lookup_at = CASE WHEN next_lookup_at IS NOT NULL THEN greatest(next_lookup_at, clock_timestamp() + make_interval(secs => $3)) END
		WHERE effect_id = $1::uuid AND asked_by = $2::uuid`, a.Effect, a.By, after.Seconds())
	if err != nil {
		return fmt.Errorf("couldn't give a question back: %w", err)
	}
	return nil
}

// Settled is how the schedule goes on after an answer.
type Settled struct {
	Step      int
	Next      ledger.Time // zero: never
	Pulled    bool
	Finding   string
	Hit       bool
	Ended     bool
	Rechecked bool // the decision may be released as far as this goes
}

// Settle stores how the schedule goes on and lets go of the question. False where somebody
// else has it by now.
func Settle(ctx context.Context, tx *ledger.Tx, a Asked, s Settled) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE lookup_schedule SET asked_at = NULL, asked_by = NULL, asked_until = NULL, step = $3, next_lookup_at = $4, pulled = $5,
			finding = $6, hit = $7, ended_at = CASE WHEN $8 THEN COALESCE(ended_at, clock_timestamp()) END,
			recheck_from = CASE WHEN $9 THEN NULL ELSE recheck_from END,
			recheck_until = CASE WHEN $9 THEN NULL ELSE recheck_until END,
			cause = CASE WHEN $9 OR recheck_from IS NULL THEN 'schedule' ELSE 'release' END
		WHERE effect_id = $1::uuid AND asked_by = $2::uuid`,
		a.Effect, a.By, s.Step, s.Next, s.Pulled, s.Finding, s.Hit, s.Ended, s.Rechecked)
	if err != nil {
		return false, fmt.Errorf("couldn't say when a downstream is asked again: %w", err)
	}
	return n == 1, nil
}

// Sooner makes a look due now, unless one was asked less than fresh ago or is under way.
// False where it was left as it is.
func Sooner(ctx context.Context, tx *ledger.Tx, c Change, cause Cause, fresh time.Duration) (bool, error) {
	n, err := tx.Exec(ctx, `
		INSERT INTO lookup_schedule AS s (effect_id, tool, plan, next_lookup_at, cause)
		SELECT $1::uuid, $2, $3, clock_timestamp(), $4
		WHERE NOT EXISTS (SELECT 1 FROM lookups WHERE effect_id = $1::uuid AND asked_at > clock_timestamp() - make_interval(secs => $5))
		ON CONFLICT (effect_id) DO UPDATE SET next_lookup_at = clock_timestamp(), cause = excluded.cause
		WHERE (s.asked_until IS NULL OR s.asked_until <= clock_timestamp())
		AND (s.next_lookup_at IS NULL OR s.next_lookup_at > clock_timestamp())`,
		c.Effect, c.Tool, c.Plan, cause, fresh.Seconds())
	if err != nil {
		return false, fmt.Errorf("couldn't ask for a look-up: %w", err)
	}
	return n == 1, nil
}

// Rechecking tells which of the effects wait for the look-up before their release.
func Rechecking(ctx context.Context, r ledger.Reader, effects []string) (map[string]bool, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT effect_id FROM lookup_schedule WHERE effect_id = ANY($1::uuid[]) AND recheck_from IS NOT NULL`, pq.Array(effects))
	if err != nil {
		return nil, fmt.Errorf("couldn't see what waits for a look-up: %w", err)
	}
	m := make(map[string]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m, nil
}

// GiveUp lets decisions be released, as far as this goes, whose look-up before release got
// no answer in time.
func GiveUp(ctx context.Context, tx *ledger.Tx) error {
	_, err := tx.Exec(ctx, `
		UPDATE lookup_schedule SET recheck_from = NULL, recheck_until = NULL, cause = 'schedule'
		WHERE recheck_from IS NOT NULL AND recheck_until <= clock_timestamp()`)
	if err != nil {
		return fmt.Errorf("couldn't give look-ups up: %w", err)
	}
	return nil
}

// Adopt puts effects under a plan that are open and have none, because their tool had no
// look-up when they were interrupted.
func Adopt(ctx context.Context, tx *ledger.Tx, tools []string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lookup_schedule (effect_id, tool, plan, next_lookup_at)
		SELECT e.id, e.tool, 'unknown', clock_timestamp()
		FROM waiting w JOIN effects e ON e.id = w.effect_id
		WHERE w.tool = ANY($1::text[]) AND e.state = 'interrupted' AND (e.attempts > 0 OR e.gap)
		ON CONFLICT (effect_id) DO NOTHING`, pq.Array(tools))
	if err != nil {
		return fmt.Errorf("couldn't put effects under a plan: %w", err)
	}
	return nil
}
