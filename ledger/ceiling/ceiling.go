// Package ceiling is what the benchmarks measure against: one bare prepared commit,
// and the fastest honest code one would write by hand for "an intent before, an
// outcome after", without any of the rules.
package ceiling

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"quittance/ledger"
)

// Create makes the two tables.
func Create(ctx context.Context, db *ledger.DB) error {
	_, err := db.Pool().ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS bare (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);
		CREATE TABLE IF NOT EXISTS ceiling_intents (key uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);
		CREATE TABLE IF NOT EXISTS ceiling_outcomes (key uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);`)
	if err != nil {
		return fmt.Errorf("couldn't make the ceiling's tables: %w", err)
	}
	return nil
}

// Bare returns a function that commits one row by a prepared statement.
func Bare(ctx context.Context, db *ledger.DB, body string) func() error {
	return func() error {
		var at time.Time
		return db.Once(ctx, &at, `INSERT INTO bare (id, body) VALUES ($1, $2) RETURNING at`, uuid.New().String(), body)
	}
}

type write struct {
	key  string
	done chan error
}

// Hand is a hand-written recorder: calls share a commit, two at work at a time.
type Hand struct{ intents, outcomes chan write }

// NewHand starts a recorder that ends with ctx.
func NewHand(ctx context.Context, db *ledger.DB, body string) *Hand {
	h := &Hand{make(chan write, 1024), make(chan write, 1024)}
	for range 2 {
		go h.serve(ctx, db, h.intents, `
			WITH x AS (INSERT INTO ceiling_intents (key, body) SELECT k, $2 FROM unnest($1::uuid[]) AS k
			ON CONFLICT DO NOTHING RETURNING key) SELECT count(*) FROM x`, body)
		go h.serve(ctx, db, h.outcomes, `
			WITH x AS (INSERT INTO ceiling_outcomes (key, body) SELECT k, $2 FROM unnest($1::uuid[]) AS k
			ON CONFLICT DO NOTHING RETURNING key) SELECT count(*) FROM x`, body)
	}
	return h
}

func (h *Hand) serve(ctx context.Context, db *ledger.DB, in chan write, query, body string) {
	for {
		var batch []write
		select {
		case <-ctx.Done():
			return
		case w := <-in:
			batch = append(batch, w)
		}
		for len(batch) < 256 {
			select {
			case w := <-in:
				batch = append(batch, w)
				continue
			default:
			}
			break
		}
		keys := make([]string, len(batch))
		for i, w := range batch {
			keys[i] = w.key
		}
		var n int
		err := db.Once(ctx, &n, query, pq.Array(keys), body)
		for _, w := range batch {
			w.done <- err
		}
	}
}

// Effect records an intent and an outcome, each durable before it returns.
func (h *Hand) Effect() error {
	w := write{uuid.New().String(), make(chan error, 1)}
	h.intents <- w
	if err := <-w.done; err != nil {
		return err
	}
	h.outcomes <- w
	return <-w.done
}
