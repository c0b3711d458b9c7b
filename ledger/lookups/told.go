package lookups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// DueOf lists effects of an account about which a worker may be given the question: those
// of the tools, in the order of [Due]. One whose worker died is not due before that is on
// record.
func DueOf(ctx context.Context, r ledger.Reader, account int64, tools []string, n int) ([]string, error) {
	var ids []string
	err := r.Select(ctx, &ids, `
		SELECT d.effect_id FROM unnest($2::text[]) AS t(tool), generate_series(0, $4) AS k(step), LATERAL (
			SELECT s.effect_id, s.next_lookup_at FROM lookup_schedule s JOIN effects e ON e.id = s.effect_id
			WHERE s.tool = t.tool AND s.step = k.step AND s.next_lookup_at <= clock_timestamp() AND s.asked_until IS NULL
			AND e.account_id = $1
			ORDER BY s.next_lookup_at LIMIT $3) AS d
		ORDER BY k.step, d.next_lookup_at LIMIT $3`, account, pq.Array(tools), n, Steps)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what is to be asked: %w", err)
	}
	return ids, nil
}

// Question is a question that somebody was given, and the tool that it is about.
type Question struct {
	Asked
	Tool string `db:"tool"`
}

// ByID reads the question that an account's worker was given under an id; nil where there
// is none any more.
func ByID(ctx context.Context, r ledger.Reader, account int64, id string) (*Question, error) {
	q := Question{Asked: Asked{By: id}}
	err := r.Get(ctx, &q, `
		SELECT s.effect_id AS effect, s.asked_at, s.cause, s.tool FROM lookup_schedule s JOIN effects e ON e.id = s.effect_id
		WHERE s.asked_by = $2::uuid AND e.account_id = $1`, account, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a question: %w", err)
	}
	return &q, nil
}

// Recorded reads the answer to the question that an account's worker was given under an id;
// nil where there is none.
func Recorded(ctx context.Context, r ledger.Reader, account int64, id string) (*Answer, error) {
	var rows []Answer
	err := r.Select(ctx, &rows, `
		SELECT l.id, l.effect_id, COALESCE(l.body_digest, '') AS body_digest, COALESCE(l.problem, '') AS problem, l.verdict, l.reason, l.why,
			COALESCE(l.reference, '') AS reference, l.earliest
		FROM lookups l JOIN effects e ON e.id = l.effect_id WHERE l.id = $2::uuid AND e.account_id = $1`, account, id)
	if err != nil {
		return nil, fmt.Errorf("couldn't read an answer: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// Lapsed lists questions about the tools that somebody was given and did not answer in time.
func Lapsed(ctx context.Context, r ledger.Reader, tools []string, n int) ([]Question, error) {
	var list []Question
	err := r.Select(ctx, &list, `
		SELECT effect_id AS effect, asked_by AS by, asked_at, cause, tool FROM lookup_schedule
		WHERE asked_by IS NOT NULL AND asked_until <= clock_timestamp() AND tool = ANY($1::text[]) ORDER BY asked_until LIMIT $2`,
		pq.Array(tools), n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what nobody answered: %w", err)
	}
	return list, nil
}

// Unclaimed ends the schedule of questions about the tools that are due and that nobody has
// taken for so long; patience is by their step. It tells how many those are.
func Unclaimed(ctx context.Context, tx *ledger.Tx, tools []string, patience []time.Duration) (int, error) {
	seconds := make([]float64, len(patience))
	for i, d := range patience {
		seconds[i] = d.Seconds()
	}
	n, err := tx.Exec(ctx, `
		UPDATE lookup_schedule s SET ended_at = clock_timestamp(), next_lookup_at = NULL
		FROM unnest($2::float8[]) WITH ORDINALITY AS p(seconds, number)
		WHERE s.tool = ANY($1::text[]) AND s.step = p.number - 1 AND s.plan = 'unknown' AND s.ended_at IS NULL AND s.asked_until IS NULL
		AND s.next_lookup_at <= clock_timestamp() - make_interval(secs => p.seconds)`, pq.Array(tools), pq.Array(seconds))
	if err != nil {
		return 0, fmt.Errorf("couldn't end what nobody takes: %w", err)
	}
	return int(n), nil
}

// LastProblem is why the last look at an effect, but for one, could not check; "" where it
// could, or there was none.
func LastProblem(ctx context.Context, r ledger.Reader, effect, but string) (problem string, err error) {
	err = r.Get(ctx, &problem, `
		SELECT COALESCE((SELECT problem FROM lookups WHERE effect_id = $1::uuid AND id <> $2::uuid ORDER BY asked_at DESC, id DESC LIMIT 1), '')`, effect, but)
	if err != nil {
		return "", fmt.Errorf("couldn't read the last answer: %w", err)
	}
	return problem, nil
}

// Watched is an effect that an event may be about.
type Watched struct {
	Effect      string       `db:"effect"`
	Tool        string       `db:"tool"`
	Account     int64        `db:"account_id"`
	RunName     string       `db:"run_name"`
	Key         ledger.Bytes `db:"key"`
	BusinessKey string       `db:"business_key"`
	Reference   string       `db:"reference"`
}

// Watching lists the effects of the tools about which somebody still wants to know, at most
// n.
func Watching(ctx context.Context, r ledger.Reader, tools []string, n int) (list []Watched, err error) {
	err = r.Select(ctx, &list, `
		SELECT s.effect_id AS effect, s.tool, e.account_id, r.run_id AS run_name, e.key, COALESCE(e.business_key, '') AS business_key,
			COALESCE(e.reference, '') AS reference
		FROM (SELECT effect_id, tool FROM lookup_schedule WHERE tool = ANY($1::text[]) AND plan IN ('unknown','permission') LIMIT $2) AS s
		JOIN effects e ON e.id = s.effect_id JOIN runs r ON r.id = e.run_id`, pq.Array(tools), n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what events may be about: %w", err)
	}
	return list, nil
}

// Named lists effects of the tools, whatever became of them, that hold one of the claims or
// have one of the references, at most n.
func Named(ctx context.Context, r ledger.Reader, tools []string, claims [][]byte, references []string, n int) (ids []string, err error) {
	err = r.Select(ctx, &ids, `
		SELECT id FROM effects WHERE claim = ANY($2::bytea[]) AND tool = ANY($1::text[])
		UNION SELECT id FROM effects WHERE claim_was = ANY($2::bytea[]) AND tool = ANY($1::text[])
		UNION SELECT e.id FROM accounts a JOIN effects e ON e.account_id = a.id AND e.tool = ANY($1::text[]) AND e.reference = ANY($3::text[])
		LIMIT $4`, pq.Array(tools), pq.ByteaArray(claims), pq.Array(references), n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list what an event is about: %w", err)
	}
	return ids, nil
}

// Arrived makes looks due now because an event came. busy says that somebody is asking about
// one of them just now, and may have looked before the event was there.
func Arrived(ctx context.Context, tx *ledger.Tx, effects []string) (due int64, busy bool, err error) {
	var rows []struct {
		Busy bool `db:"busy"`
	}
	err = tx.Select(ctx, &rows, `
		SELECT COALESCE(asked_until > clock_timestamp(), false) AS busy FROM lookup_schedule WHERE effect_id = ANY($1::uuid[]) AND plan <> 'none'
		ORDER BY effect_id FOR UPDATE`, pq.Array(effects))
	if err != nil {
		return 0, false, fmt.Errorf("couldn't lock what an event is about: %w", err)
	}
	for _, row := range rows {
		busy = busy || row.Busy
	}
	due, err = tx.Exec(ctx, `
		UPDATE lookup_schedule SET next_lookup_at = clock_timestamp(), cause = 'event'
		WHERE effect_id = ANY($1::uuid[]) AND plan <> 'none' AND COALESCE(asked_until <= clock_timestamp(), true)
		AND COALESCE(next_lookup_at > clock_timestamp(), true)`, pq.Array(effects))
	if err != nil {
		return 0, false, fmt.Errorf("couldn't ask for a look-up: %w", err)
	}
	return due, busy, nil
}
