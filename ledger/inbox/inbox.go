// Package inbox holds the statements about events that downstreams sent us.
package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// Event is an event as it is stored.
type Event struct {
	ID         int64     `db:"id"`
	Inbox      string    `db:"inbox"`
	EventID    string    `db:"event_id"`
	ReceivedAt time.Time `db:"received_at"`
	Digest     string    `db:"digest"` // SHA-256 of the body as it came, in hexadecimal
	Body       string    `db:"body"`   // JSON, free of secrets
	// Words are hashes of what stands in the body.
	Words     pq.Int64Array `db:"words"`
	MatchedAt ledger.Time   `db:"matched_at"`
	Repeats   int64         `db:"repeats"`
}

// Add stores an event, durably when it returns. One that is there already is counted, and
// repeats is then more than 0.
func Add(ctx context.Context, db *ledger.DB, e Event) (repeats int64, err error) {
	err = db.Once(ctx, &repeats, `
		INSERT INTO inbox_events AS i (inbox, event_id, digest, body, words) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (inbox, event_id) DO UPDATE SET repeats = i.repeats + 1, repeated_at = clock_timestamp()
		RETURNING repeats`, e.Inbox, e.EventID, e.Digest, e.Body, e.Words)
	if err != nil {
		return 0, fmt.Errorf("couldn't store an event: %w", err)
	}
	return repeats, nil
}

// With reads the events of an inbox in which one of the words stands, the oldest first: the
// latest most of them, and of those no more than size bytes. more says that there were more.
func With(ctx context.Context, r ledger.Reader, inbox string, words []int64, most, size int) (list []Event, more bool, err error) {
	var rows []struct {
		Event
		All int `db:"all_hits"`
	}
	// First all hits by the index on words: a walk from the latest event on, which the limit
	// suggests, would read everything for an effect with few.
	err = r.Select(ctx, &rows, `
		WITH hits AS MATERIALIZED (SELECT id FROM inbox_events WHERE words && $2 AND inbox = $1),
		latest AS (SELECT id FROM hits ORDER BY id DESC LIMIT $3)
		SELECT id, body, matched_at, (SELECT count(*) FROM hits) AS all_hits FROM (
			SELECT e.id, e.body, e.matched_at, sum(octet_length(e.body)) OVER (ORDER BY e.id DESC) AS size
			FROM latest JOIN inbox_events e ON e.id = latest.id) AS sized
		WHERE size <= $4 ORDER BY id`, inbox, pq.Int64Array(words), most, size)
	if err != nil {
		return nil, false, fmt.Errorf("couldn't read events: %w", err)
	}
	for _, row := range rows {
		list, more = append(list, row.Event), row.All > len(rows)
	}
	return list, more, nil
}

// Due locks events that are to be held against our effects, the oldest first. Those that
// another server has in hand are left out.
func Due(ctx context.Context, tx *ledger.Tx, inboxes []string, n int) (list []Event, err error) {
	err = tx.Select(ctx, &list, `
		SELECT id, inbox, received_at, body, words, matched_at FROM inbox_events
		WHERE examine_at <= clock_timestamp() AND inbox = ANY($1::text[])
		ORDER BY examine_at LIMIT $2 FOR UPDATE SKIP LOCKED`, pq.Array(inboxes), n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list events: %w", err)
	}
	return list, nil
}

// Examined says what became of an event, and when it is to be looked at again (zero: not).
func Examined(ctx context.Context, tx *ledger.Tx, id int64, matched bool, again ledger.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE inbox_events SET examine_at = $3, matched_at = CASE WHEN $2 THEN COALESCE(matched_at, clock_timestamp()) ELSE matched_at END
		WHERE id = $1`, id, matched, again)
	if err != nil {
		return fmt.Errorf("couldn't say what became of an event: %w", err)
	}
	return nil
}

// Matched says that a look found events by the keys of its effect.
func Matched(ctx context.Context, tx *ledger.Tx, ids []int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE inbox_events SET matched_at = clock_timestamp() WHERE id = ANY($1::bigint[]) AND matched_at IS NULL`, pq.Array(ids))
	if err != nil {
		return fmt.Errorf("couldn't say what became of events: %w", err)
	}
	return nil
}

// Unmatched lists events in which no key of ours stands, for a day and longer, the latest
// first, at most n.
func Unmatched(ctx context.Context, r ledger.Reader, n int) (list []Event, err error) {
	err = r.Select(ctx, &list, `
		SELECT id, inbox, event_id, received_at, digest, left(body, 4096) AS body, repeats FROM inbox_events
		WHERE matched_at IS NULL AND examine_at IS NULL ORDER BY received_at DESC, id DESC LIMIT $1`, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't list events: %w", err)
	}
	return list, nil
}

// CountUnmatched counts what [Unmatched] lists, to at most n.
func CountUnmatched(ctx context.Context, r ledger.Reader, n int) (count int, err error) {
	err = r.Get(ctx, &count, `
		SELECT count(*) FROM (SELECT FROM inbox_events WHERE matched_at IS NULL AND examine_at IS NULL LIMIT $1) AS x`, n)
	if err != nil {
		return 0, fmt.Errorf("couldn't count events: %w", err)
	}
	return count, nil
}
