package effects

import (
	"context"
	"encoding/json"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// FastFinish is a finish "taken" by an effect's only attempt, in time.
type FastFinish struct {
	Account   int64
	Effect    string
	Fence     int64 // 0: not given
	Reference string
	Texts
	ResultSize   int64
	ResultDigest []byte
	Cause        any
	Shown        Shown
}

// FastFinished is what [FastFinishes] recorded of one finish.
type FastFinished struct {
	Event
	RunName string
}

var fastFinishFields = parseFields(`id uuid, account_id bigint, fence bigint, reference text, result text, error text, result_size bigint,
	result_digest bytea, position bigint, position_run bigint, prefix bytea, outcome text, cause text`)

// The finishes as one statement. It does exactly what the general way does for the row
// "in flight, finish taken, fence matches", where the effect had one attempt, keeps its
// claim and has it, and its run goes on; and nothing at all for any other finish: then
// the general way decides.
//
// A reference that already proves another effect is refused by the unique index, and
// with it all finishes of the statement.
var fastFinishes = fastFinishFields.cells(2, `
	WITH f AS MATERIALIZED (
		SELECT n, run, run_name, lease_until
		FROM (SELECT n, (SELECT run_id FROM effects WHERE id = {id} AND account_id = {account_id}) AS run
			FROM {rows} ORDER BY run) AS x
		CROSS JOIN LATERAL (SELECT run_id AS run_name, lease_until FROM runs WHERE id = run AND state = 'running' FOR NO KEY UPDATE) AS r
	), s AS MATERIALIZED (
		SELECT now, fence_base, to_char(now AT TIME ZONE 'UTC', '`+eventTime+`') AS text
		FROM (SELECT clock_timestamp() AS now, i.fence_base FROM installation i
			WHERE (SELECT count(*) FROM f) > 0 AND NOT EXISTS (SELECT 1 FROM log_gaps WHERE ended_at IS NULL)
			OFFSET 0) AS i
	), e AS (
		UPDATE effects e SET state = 'taken', version = e.version + 1, decided_by = 'agent', release_at = now, released = true, used_at = now,
			reference = {reference}, result = {result}, error = {error}, result_size = {result_size}, result_digest = {result_digest},
			changed_at = now
		FROM f, s
		WHERE e.id = {id} AND (e.state = 'in_flight' AND e.attempts = 1 AND NOT e.gap AND e.fence = COALESCE({fence}, e.fence)
			AND e.fence > s.fence_base AND e.deadline > s.now AND f.lease_until > s.now AND e.contradictions = 0
			AND NOT e.call_claim AND e.claim_was IS NULL AND e.tool <> ALL ($1::text[])) IS TRUE
		AND NOT EXISTS (SELECT 1 FROM business_claims c WHERE c.digest = e.claim AND c.effect_id <> e.id)
		AND ({position} IS NULL OR EXISTS (SELECT 1 FROM effect_events v WHERE v.run_id = {position_run} AND v.id = {position}
			AND substr(v.digest, 1, length({prefix})) = {prefix}))
		RETURNING e.id, f.run, f.run_name, e.version, s.now, '{"state":"taken","version":' || e.version || ',"attempts":1,"fence":' || e.fence
			|| ',"deadline":"' || to_char(e.deadline AT TIME ZONE 'UTC', '`+eventTime+`')
			|| '","moment":"' || to_char(e.moment AT TIME ZONE 'UTC', '`+eventTime+`')
			|| '","decided_by":"agent","release_at":"' || s.text || '","released":true,"used_at":"' || s.text || '"'
			|| {outcome} || ',"changed_at":"' || s.text || {cause} AS data
	), v AS (
		INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
		SELECT now, run, id, version, 'finish', data, `+eventSum("'finish'", "version")+` FROM e
		RETURNING id, at, run_id, effect_id, version, digest
	)
	SELECT id, at, run_id, effect_id, version, digest, (SELECT jsonb_object_agg(run, run_name) FROM e) ->> run_id::text FROM v`)

// FastFinishes records finishes in one statement of its own, and returns what it
// recorded by effect id. A finish is left out, with nothing written of it, when a guard
// does not hold for it, or its effect is of one of the tools but; all are when somebody
// was faster with one of them. No two of the finishes are of one effect.
func FastFinishes(ctx context.Context, db *ledger.DB, but []string, list []FastFinish) (map[string]FastFinished, error) {
	rows := newCells(fastFinishFields, len(list))
	for i := range list {
		f := &list[i]
		cause, err := json.Marshal(f.Cause)
		if err != nil {
			return nil, fmt.Errorf("couldn't encode an event: %w", err)
		}
		outcome := object{b: make([]byte, 0, 256)}
		outcome.open()
		outcome.text("reference", f.Reference)
		if f.ResultSize != 0 {
			outcome.number("result_size", f.ResultSize)
		}
		outcome.bytes("result_digest", f.ResultDigest)
		rows.text("id", f.Effect)
		rows.number("account_id", f.Account)
		if f.Fence != 0 {
			rows.number("fence", f.Fence)
		}
		rows.text("reference", f.Reference)
		rows.text("result", f.Result)
		rows.text("error", f.Error)
		if f.ResultSize != 0 {
			rows.number("result_size", f.ResultSize)
		}
		rows.bytes("result_digest", f.ResultDigest)
		if f.Shown.Event != 0 {
			rows.number("position", f.Shown.Event)
			rows.number("position_run", f.Shown.Run)
			rows.bytes("prefix", f.Shown.Prefix)
		}
		outcome.b[0] = ','
		if len(outcome.b) == 1 {
			outcome.b = nil
		}
		rows.quote("outcome", string(outcome.b))
		rows.quote("cause", `","cause":`+string(cause)+"}")
		rows.end()
	}
	got := make(map[string]FastFinished, len(list))
	err := fast(ctx, db, fastFinishes, rows, []any{pq.Array(but)}, func(scan func(...any) error) error {
		v := FastFinished{Event: Event{Kind: "finish"}}
		if err := scan(&v.ID, &v.At.Time, &v.Run, &v.Effect, &v.Version, (*[]byte)(&v.Digest), &v.RunName); err != nil {
			return err
		}
		got[v.Effect] = v
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("couldn't finish: %w", err)
	}
	return got, nil
}
