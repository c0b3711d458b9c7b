package effects

import (
	"context"
	"fmt"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Events reads events of runs by id; those that do not exist are absent. ids[i]
// belongs to runs[i].
func Events(ctx context.Context, r ledger.Reader, runs, ids []int64) (map[int64]Event, error) {
	return events(ctx, r, `
		SELECT v.id, v.at, v.run_id, COALESCE(v.effect_id::text, '') AS effect_id, COALESCE(v.version, 0) AS version,
			v.kind, v.data, v.digest
		FROM unnest($1::bigint[], $2::bigint[]) AS w(run_id, id)
		JOIN effect_events v ON v.run_id = w.run_id AND v.id = w.id`,
		func(e Event) int64 { return e.ID }, pq.Array(runs), pq.Array(ids))
}

// LastEvents gives the latest event of each run.
func LastEvents(ctx context.Context, r ledger.Reader, runs []int64) (map[int64]Event, error) {
	return events(ctx, r, `
		SELECT v.id, v.at, v.run_id, COALESCE(v.effect_id::text, '') AS effect_id, COALESCE(v.version, 0) AS version,
			v.kind, v.data, v.digest
		FROM unnest($1::bigint[]) AS w(run_id)
		CROSS JOIN LATERAL (SELECT * FROM effect_events v WHERE v.run_id = w.run_id ORDER BY v.id DESC LIMIT 1) AS v`,
		func(e Event) int64 { return e.Run }, pq.Array(runs))
}

func events(ctx context.Context, r ledger.Reader, query string, key func(Event) int64, args ...any) (map[int64]Event, error) {
	var rows []Event
	if err := r.Select(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("couldn't read events: %w", err)
	}
	m := make(map[int64]Event, len(rows))
	for _, e := range rows {
		m[key(e)] = e
	}
	return m, nil
}

// EventsOfEffect reads an effect's part of the log, oldest first.
func EventsOfEffect(ctx context.Context, r ledger.Reader, effect string) ([]Event, error) {
	var rows []Event
	err := r.Select(ctx, &rows, `
		SELECT id, at, run_id, effect_id, version, kind, data, digest
		FROM effect_events WHERE effect_id = $1::uuid ORDER BY version`, effect)
	if err != nil {
		return nil, fmt.Errorf("couldn't read an effect's events: %w", err)
	}
	return rows, nil
}
