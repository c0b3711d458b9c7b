package seal

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Folded is an effect beside what its part of the log says of it.
type Folded struct {
	ID        string       `db:"id"`
	Standing  string       `db:"standing"` // the changing columns as JSON
	Events    int64        `db:"events"`
	Lowest    int64        `db:"lowest"`  // version of its first event; 0: it has none
	Highest   int64        `db:"highest"` // version of its last
	First     string       `db:"first"`   // data of its first event
	Last      string       `db:"last"`    // data of its last
	Arguments string       `db:"arguments_digest"`
	Attempts  int64        `db:"attempt_rows"`
	Result    ledger.Bytes `db:"result_sum"` // SHA-256 of the stored result; nil: none is stored
}

// eventTime is how an event writes a time, for to_char.
const eventTime = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

// foldQuery reads effects in the order of their ids, each with the two ends of its log.
var foldQuery = `
	SELECT e.id, json_build_object('state', state, 'why', why, 'version', version, 'attempts', attempts, 'fence', fence,
			'deadline', ` + utc("deadline") + `, 'moment', ` + utc("moment") + `, 'gap', gap, 'decided_by', decided_by,
			'decided_from', decided_from, 'decision', decision, 'proposal', proposal, 'early', early, 'release_at', ` + utc("release_at") + `,
			'released', released, 'used_at', ` + utc("used_at") + `, 'reference', reference, 'same_as', same_as, 'result_size', result_size,
			'result_digest', result_digest, 'contradictions', contradictions, 'waiting_since', ` + utc("waiting_since") + `,
			'changed_at', ` + utc("changed_at") + `)::text AS standing,
		n.events, COALESCE(n.lowest, 0) AS lowest, COALESCE(n.highest, 0) AS highest,
		COALESCE((SELECT data FROM effect_events WHERE effect_id = e.id AND version = n.lowest), '') AS first,
		COALESCE((SELECT data FROM effect_events WHERE effect_id = e.id AND version = n.highest), '') AS last,
		encode(sha256(convert_to(arguments, 'UTF8')), 'hex') AS arguments_digest,
		(SELECT count(*) FROM attempts WHERE effect_id = e.id) AS attempt_rows,
		sha256(convert_to(result, 'UTF8')) AS result_sum
	FROM (SELECT * FROM effects WHERE id > $1::uuid ORDER BY id LIMIT $2) AS e
	CROSS JOIN LATERAL (SELECT count(*) AS events, min(version) AS lowest, max(version) AS highest FROM effect_events WHERE effect_id = e.id) AS n
	ORDER BY e.id`

func utc(column string) string {
	return "to_char(" + column + " AT TIME ZONE 'UTC', " + eventTime + ")"
}

// Fold reads up to n effects whose ids come after one, with their logs. Each page is one
// snapshot: an effect and its log agree in it, whatever is written meanwhile.
func Fold(ctx context.Context, r ledger.Reader, after string, n int) (list []Folded, err error) {
	if err = r.Select(ctx, &list, foldQuery, after, n); err != nil {
		return nil, fmt.Errorf("couldn't read effects with their log: %w", err)
	}
	return list, nil
}

// Lost lists effects that the log speaks of and that have no row, at most n.
func Lost(ctx context.Context, r ledger.Reader, n int) (ids []string, err error) {
	err = r.Select(ctx, &ids, `
		SELECT DISTINCT v.effect_id::text FROM effect_events v
		WHERE v.effect_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.id = v.effect_id)
		ORDER BY 1 LIMIT $1`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't look for effects that are gone: %w", err)
	}
	return ids, nil
}

// Continues tells whether an earlier block of a stream ends where this one goes on.
func Continues(ctx context.Context, r ledger.Reader, b Block) (ok bool, err error) {
	if b.After == 0 {
		return true, nil
	}
	err = r.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM seal_blocks WHERE stream = $1 AND last_id = $2 AND number < $3)`, b.Stream, b.After, b.Number)
	if err != nil {
		return false, fmt.Errorf("couldn't read blocks: %w", err)
	}
	return ok, nil
}
