package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Evidence is an immutable observation about an effect.
type Evidence struct {
	ID        string      `db:"id" json:"id"`
	Effect    string      `db:"effect_id" json:"effect_id"`
	At        ledger.Time `db:"at" json:"at"`
	Source    string      `db:"source" json:"source"`
	Person    int64       `db:"person_id" json:"person_id,omitempty"`
	Fence     int64       `db:"fence" json:"fence,omitempty"`
	Verdict   string      `db:"verdict" json:"verdict"`
	Reference string      `db:"reference" json:"reference,omitempty"`
	Seen      string      `db:"seen" json:"seen,omitempty"`
	Data      string      `db:"data" json:"data,omitempty"`

	PersonName string `db:"person_name" json:"-"`
}

// Decision is one act on an effect; see the table's comment.
type Decision struct {
	ID         string      `db:"id" json:"id"`
	Effect     string      `db:"effect_id" json:"effect_id"`
	DecisionID string      `db:"decision_id" json:"decision_id,omitempty"`
	At         ledger.Time `db:"at" json:"at"`
	Act        string      `db:"act" json:"act"`
	Verdict    string      `db:"verdict" json:"verdict,omitempty"`
	By         string      `db:"decided_by" json:"decided_by"`
	Person     int64       `db:"person_id" json:"person_id,omitempty"`
	Note       string      `db:"note" json:"note,omitempty"`
	Reference  string      `db:"reference" json:"reference,omitempty"`
	Result     string      `db:"result" json:"result,omitempty"`
	SameAs     string      `db:"same_as" json:"same_as,omitempty"`
	NotOurs    []string    `db:"-" json:"not_ours,omitempty"`
	Evidence   string      `db:"evidence_id" json:"evidence_id,omitempty"`
	Version    int64       `db:"version" json:"version"`
	Answer     string      `db:"answer" json:"answer,omitempty"` // JSON; given again to the same decision_id
	About      string      `db:"about" json:"about,omitempty"`
	PersonName string      `db:"person_name" json:"-"`
}

// Contradiction is evidence that disagrees with a decision.
type Contradiction struct {
	ID             string      `db:"id" json:"id"`
	Effect         string      `db:"effect_id" json:"effect_id"`
	At             ledger.Time `db:"at" json:"at"`
	Kind           string      `db:"kind" json:"kind"`
	Evidence       string      `db:"evidence_id" json:"evidence_id,omitempty"`
	Recovery       string      `db:"recovery" json:"-"`
	AcknowledgedAt ledger.Time `db:"acknowledged_at" json:"-"`
	AcknowledgedBy string      `db:"acknowledged_by" json:"-"`
	Note           string      `db:"note" json:"-"`
}

// Record stores evidence, decisions and contradictions, in that order.
func Record(ctx context.Context, tx *ledger.Tx, ev []Evidence, ds []Decision, cs []Contradiction) error {
	insert := func(what, query string, n int, list any) error {
		if n == 0 {
			return nil
		}
		j, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("couldn't encode %s: %w", what, err)
		}
		if _, err := tx.Exec(ctx, query, string(j)); err != nil {
			return fmt.Errorf("couldn't record %s: %w", what, err)
		}
		return nil
	}
	if err := insert("evidence", `
		INSERT INTO evidence (id, effect_id, at, source, person_id, fence, verdict, reference, seen, data)
		SELECT id, effect_id, at, source, person_id, fence, verdict, reference, seen, data
		FROM json_to_recordset($1::json) AS x(id uuid, effect_id uuid, at timestamptz, source text, person_id bigint,
			fence bigint, verdict text, reference text, seen text, data text)`, len(ev), ev); err != nil {
		return err
	}
	if err := insert("decisions", `
		INSERT INTO decisions (id, effect_id, decision_id, at, act, verdict, decided_by, person_id, note, reference,
			result, same_as, not_ours, evidence_id, version, answer, about)
		SELECT id, effect_id, decision_id, at, act, verdict, decided_by, person_id, note, reference, result, same_as,
			ARRAY(SELECT json_array_elements_text(not_ours)), evidence_id, version, answer, about
		FROM json_to_recordset($1::json) AS x(id uuid, effect_id uuid, decision_id text, at timestamptz, act text,
			verdict text, decided_by text, person_id bigint, note text, reference text, result text, same_as uuid,
			not_ours json, evidence_id uuid, version bigint, answer text, about uuid)`, len(ds), ds); err != nil {
		return err
	}
	return insert("contradictions", `
		INSERT INTO contradictions (id, effect_id, at, kind, evidence_id)
		SELECT id, effect_id, at, kind, evidence_id
		FROM json_to_recordset($1::json) AS x(id uuid, effect_id uuid, at timestamptz, kind text, evidence_id uuid)`,
		len(cs), cs)
}

// Contradicted tells whether evidence with the same fence, verdict and reference has
// contradicted the effect before.
func Contradicted(ctx context.Context, r ledger.Reader, v Evidence) (found bool, err error) {
	err = r.Get(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM contradictions k JOIN evidence v ON v.id = k.evidence_id
			WHERE k.effect_id = $1::uuid AND v.source IN ('agent','late_agent') AND COALESCE(v.fence, 0) = $2
			AND v.verdict = $3 AND COALESCE(v.reference, '') = $4)`, v.Effect, v.Fence, v.Verdict, v.Reference)
	if err != nil {
		return false, fmt.Errorf("couldn't look for a contradiction: %w", err)
	}
	return found, nil
}

// ContradictedByLookup tells whether an answer of the downstream has contradicted the
// effect before.
func ContradictedByLookup(ctx context.Context, r ledger.Reader, effect string) (found bool, err error) {
	err = r.Get(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM contradictions k JOIN evidence v ON v.id = k.evidence_id
			WHERE k.effect_id = $1::uuid AND v.source = 'look_up')`, effect)
	if err != nil {
		return false, fmt.Errorf("couldn't look for a contradiction: %w", err)
	}
	return found, nil
}

// TakenBefore tells whether a finish by an earlier attempt than the one of this fence
// is on record, taken and under another reference.
func TakenBefore(ctx context.Context, r ledger.Reader, effect string, fence int64, reference string) (found bool, err error) {
	err = r.Get(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM evidence v WHERE v.effect_id = $1::uuid AND v.source IN ('agent','late_agent')
			AND v.verdict = 'taken' AND v.fence < $2 AND v.reference <> $3)`, effect, fence, reference)
	if err != nil {
		return false, fmt.Errorf("couldn't look for an earlier finish: %w", err)
	}
	return found, nil
}

// Acknowledge closes every open contradiction of an effect and says how many.
func Acknowledge(ctx context.Context, tx *ledger.Tx, effect string, at time.Time, person int64, note string, recovery bool) (int, error) {
	word := "no"
	if recovery {
		word = "yes"
	}
	n, err := tx.Exec(ctx, `
		UPDATE contradictions SET acknowledged_at = $2, acknowledged_by = $3, note = $4, recovery = $5
		WHERE effect_id = $1::uuid AND acknowledged_at IS NULL`, effect, at, person, note, word)
	if err != nil {
		return 0, fmt.Errorf("couldn't acknowledge: %w", err)
	}
	return int(n), nil
}

const decisionColumns = `
	d.id, d.effect_id, COALESCE(d.decision_id, '') AS decision_id, d.at, d.act, COALESCE(d.verdict, '') AS verdict,
	d.decided_by, COALESCE(d.person_id, 0) AS person_id, COALESCE(d.note, '') AS note,
	COALESCE(d.reference, '') AS reference, COALESCE(d.result, '') AS result, COALESCE(d.same_as::text, '') AS same_as,
	COALESCE(d.evidence_id::text, '') AS evidence_id, d.version, COALESCE(d.answer, '') AS answer,
	COALESCE(d.about::text, '') AS about, COALESCE(p.name, '') AS person_name`

// Decisions reads every act on the effects, oldest first.
func Decisions(ctx context.Context, r ledger.Reader, effects []string) (map[string][]Decision, error) {
	var rows []Decision
	err := r.Select(ctx, &rows, `
		SELECT `+decisionColumns+` FROM decisions d LEFT JOIN people p ON p.id = d.person_id
		WHERE d.effect_id = ANY($1::uuid[]) ORDER BY d.at, d.id`, pq.Array(effects))
	if err != nil {
		return nil, fmt.Errorf("couldn't read decisions: %w", err)
	}
	m := make(map[string][]Decision, len(effects))
	for _, d := range rows {
		m[d.Effect] = append(m[d.Effect], d)
	}
	return m, nil
}

// EvidenceOf reads the observations about an effect, oldest first.
func EvidenceOf(ctx context.Context, r ledger.Reader, effect string) ([]Evidence, error) {
	var rows []Evidence
	err := r.Select(ctx, &rows, `
		SELECT v.id, v.effect_id, v.at, v.source, COALESCE(v.person_id, 0) AS person_id, COALESCE(v.fence, 0) AS fence,
			v.verdict, COALESCE(v.reference, '') AS reference, COALESCE(v.seen, '') AS seen,
			COALESCE(v.data, '') AS data, COALESCE(p.name, '') AS person_name
		FROM evidence v LEFT JOIN people p ON p.id = v.person_id
		WHERE v.effect_id = $1::uuid ORDER BY v.at, v.id`, effect)
	if err != nil {
		return nil, fmt.Errorf("couldn't read evidence: %w", err)
	}
	return rows, nil
}

// ContradictionsOf reads an effect's contradictions, oldest first.
func ContradictionsOf(ctx context.Context, r ledger.Reader, effect string) ([]Contradiction, error) {
	var rows []Contradiction
	err := r.Select(ctx, &rows, `
		SELECT k.id, k.effect_id, k.at, k.kind, COALESCE(k.evidence_id::text, '') AS evidence_id, k.recovery,
			k.acknowledged_at, COALESCE(p.name, '') AS acknowledged_by, COALESCE(k.note, '') AS note
		FROM contradictions k LEFT JOIN people p ON p.id = k.acknowledged_by
		WHERE k.effect_id = $1::uuid ORDER BY k.at, k.id`, effect)
	if err != nil {
		return nil, fmt.Errorf("couldn't read contradictions: %w", err)
	}
	return rows, nil
}

// Observed tells whether an agent's finish like this one is on record already: the same
// effect, fence, verdict and reference.
func Observed(ctx context.Context, r ledger.Reader, v Evidence) (bool, error) {
	var found bool
	err := r.Get(ctx, &found, `
		SELECT EXISTS (
			SELECT 1 FROM evidence
			WHERE effect_id = $1::uuid AND source IN ('agent','late_agent') AND COALESCE(fence, 0) = $2 AND verdict = $3
			AND COALESCE(reference, '') = $4)`, v.Effect, v.Fence, v.Verdict, v.Reference)
	if err != nil {
		return false, fmt.Errorf("couldn't look for a finish heard before: %w", err)
	}
	return found, nil
}
