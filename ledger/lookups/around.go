package lookups

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// About is what a question is about: an effect as it was asked for.
type About struct {
	Effect      string       `db:"id"`
	Account     int64        `db:"account_id"`
	AccountName string       `db:"account_name"`
	Run         string       `db:"run_name"`
	Tool        string       `db:"tool"`
	Key         ledger.Bytes `db:"key"`
	BusinessKey string       `db:"business_key"`
	Reference   string       `db:"reference"`
	Arguments   string       `db:"arguments"`
	Amount      string       `db:"amount"` // atomic units
	Currency    string       `db:"currency"`
	Decimals    *int         `db:"decimals"`
	Gap         bool         `db:"gap"`
	Deadline    ledger.Time  `db:"deadline"`
}

// Around is an effect with what stands around the question about it: the attempts that may
// have been sent, and what else could be what is found.
type Around struct {
	About
	Attempts []Attempt
	// Shared: another effect with the same claim may have been sent and is undecided.
	Shared bool
	// Unreferenced: another one is taken, and nobody stored its reference.
	Unreferenced bool
	// Owned are references of other effects with the same claim, by the effect.
	Owned map[string]string
	// NotOurs are references that a person said are none of this effect's, with the time
	// when it was said last.
	NotOurs Denials
	// Reads are what counts of earlier looks, each JSON, the oldest first.
	Reads []json.RawMessage
}

// Denials are names of records with the time when a person said last that they are none of
// an effect's.
type Denials map[string]time.Time

// Attempt is when a try began and until when it may have been sent.
type Attempt struct {
	Begun    time.Time `json:"begun"`
	Deadline time.Time `json:"deadline"`
}

// Bounds of what is read around a question: an effect has few of each, and a source that
// repeats itself must not grow without end.
const (
	mostOwned = 1000
	mostReads = 500
)

// ReadAround reads what stands around the question about an effect.
func ReadAround(ctx context.Context, r ledger.Reader, effect string) (a Around, err error) {
	var row struct {
		About
		Attempts     string `db:"attempts"`
		Shared       bool   `db:"shared"`
		Unreferenced bool   `db:"unreferenced"`
		Owned        string `db:"owned"`
		NotOurs      string `db:"not_ours"`
		Reads        string `db:"reads"`
	}
	err = r.Get(ctx, &row, `
		SELECT e.id, e.account_id, a.name AS account_name, r.run_id AS run_name, e.tool, e.key, COALESCE(e.business_key, '') AS business_key,
			COALESCE(e.reference, '') AS reference, e.arguments, COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency,
			e.decimals, e.gap, e.deadline,
			(SELECT COALESCE(json_agg(json_build_object('begun', t.begun_at, 'deadline', t.deadline) ORDER BY t.fence), '[]')::text
				FROM attempts t WHERE t.effect_id = e.id) AS attempts,
			EXISTS (SELECT 1 FROM effects o WHERE (o.claim IN (e.claim, e.claim_was) OR o.claim_was IN (e.claim, e.claim_was))
				AND o.id <> e.id AND (o.attempts > 0 OR o.gap) AND o.state IN ('in_flight','interrupted','held','cleared')) AS shared,
			EXISTS (SELECT 1 FROM effects o WHERE (o.claim IN (e.claim, e.claim_was) OR o.claim_was IN (e.claim, e.claim_was))
				AND o.id <> e.id AND o.state = 'taken' AND o.reference IS NULL AND o.same_as IS NULL) AS unreferenced,
			(SELECT COALESCE(json_object_agg(x.reference, x.id), '{}')::text FROM (SELECT o.reference, o.id FROM effects o
				WHERE (o.claim IN (e.claim, e.claim_was) OR o.claim_was IN (e.claim, e.claim_was))
				AND o.id <> e.id AND o.reference IS NOT NULL LIMIT `+fmt.Sprint(mostOwned)+`) AS x) AS owned,
			`+notOurs("e.id")+` AS not_ours,
			(SELECT COALESCE(json_agg(x.read::json ORDER BY x.asked_at), '[]')::text FROM (
				SELECT l.read, l.asked_at FROM lookups l WHERE l.effect_id = e.id
				ORDER BY l.asked_at DESC LIMIT `+fmt.Sprint(mostReads)+`) AS x) AS reads
		FROM effects e JOIN runs r ON r.id = e.run_id JOIN accounts a ON a.id = e.account_id WHERE e.id = $1::uuid`, effect)
	if err != nil {
		return a, fmt.Errorf("couldn't read what stands around a question: %w", err)
	}
	a.About = row.About
	a.Shared, a.Unreferenced = row.Shared, row.Unreferenced
	for _, part := range []struct {
		text string
		into any
	}{{row.Attempts, &a.Attempts}, {row.Owned, &a.Owned}, {row.NotOurs, &a.NotOurs}, {row.Reads, &a.Reads}} {
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			return a, fmt.Errorf("couldn't read what stands around a question: %w", err)
		}
	}
	return a, nil
}

// Disputed are those of the effects, each the owner of a record that a look at another one
// showed, that own it by a person's word alone: they are for another call, and no look at
// them has ever shown it.
func Disputed(ctx context.Context, r ledger.Reader, effect string, owners []string) (map[string]bool, error) {
	if len(owners) == 0 {
		return nil, nil
	}
	var list []string
	err := r.Select(ctx, &list, `
		SELECT o.id::text FROM effects o, effects e
		WHERE o.id = ANY($2::uuid[]) AND e.id = $1::uuid AND o.id <> e.id AND o.decided_by = 'person'
			AND NOT (o.claim IN (e.claim, e.claim_was) OR o.claim_was IN (e.claim, e.claim_was)) IS TRUE
			AND NOT EXISTS (SELECT 1 FROM lookups l WHERE l.effect_id = o.id AND l.read::jsonb -> 'saw' ? o.reference)`,
		effect, pq.Array(owners))
	if err != nil {
		return nil, fmt.Errorf("couldn't read who owns what was found: %w", err)
	}
	disputed := map[string]bool{}
	for _, id := range list {
		disputed[id] = true
	}
	return disputed, nil
}

// notOurs are the references that decisions in force, about the effect of that name in the
// query, say are none of its own: a JSON object of the times when that was said last.
func notOurs(id string) string {
	return `(SELECT COALESCE(json_object_agg(x.name, x.at), '{}')::text FROM (
		SELECT unnest(d.not_ours) AS name, max(d.at) AS at FROM decisions d WHERE d.effect_id = ` + id + ` AND d.act IN ('decide','confirm','concur')
			AND NOT EXISTS (SELECT 1 FROM decisions u WHERE u.effect_id = ` + id + ` AND u.act = 'undo' AND u.about = d.id)
		GROUP BY 1) AS x)`
}

// NotOurs reads the references that a person said are none of the effect's.
func NotOurs(ctx context.Context, r ledger.Reader, effect string) (list Denials, err error) {
	var text string
	if err = r.Get(ctx, &text, `SELECT `+notOurs("$1::uuid"), effect); err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read what is not an effect's: %w", err)
	}
	return list, nil
}
