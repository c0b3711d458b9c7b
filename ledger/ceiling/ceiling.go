// Package ceiling is what the benchmarks measure against: one bare prepared commit,
// and what one would write by hand, as fast as it goes, for "a durable intent before
// the act, its outcome after": the lease is checked, a call and a business key are
// begun once, an outcome and a reference are recorded once, and calls share a commit.
// The lease is locked until the commit, or the check would say nothing about the time of
// it, and what is past its deadline can be found, or nobody would notice a crash. It has
// none of the rules about what happens when any of that does not hold.
package ceiling

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"quittance/ledger"
)

// Create makes the tables.
func Create(ctx context.Context, db *ledger.DB) error {
	_, err := db.Pool().ExecContext(ctx, `
		CREATE TABLE bare (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);
		CREATE TABLE ceiling_runs (run text PRIMARY KEY, lease bytea NOT NULL, until timestamptz NOT NULL);
		CREATE TABLE ceiling_intents (
			id uuid PRIMARY KEY, run text NOT NULL REFERENCES ceiling_runs, key bytea NOT NULL, tool text NOT NULL,
			arguments text NOT NULL, business_key text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
			deadline timestamptz NOT NULL, UNIQUE (run, key), UNIQUE (tool, business_key));
		CREATE INDEX ceiling_intents_due ON ceiling_intents (deadline);
		CREATE TABLE ceiling_outcomes (
			id uuid PRIMARY KEY REFERENCES ceiling_intents, outcome text NOT NULL, reference text NOT NULL UNIQUE,
			result text NOT NULL, at timestamptz NOT NULL DEFAULT now());`)
	if err != nil {
		return fmt.Errorf("couldn't make the ceiling's tables: %w", err)
	}
	return nil
}

// Backend is the process id of one of the server's sessions.
func Backend(ctx context.Context, db *ledger.DB) (pid int, err error) {
	if err := db.Get(ctx, &pid, `SELECT pg_backend_pid()`); err != nil {
		return 0, fmt.Errorf("couldn't ask for a session's process: %w", err)
	}
	return pid, nil
}

// Bare returns a function that commits one row by a prepared statement.
func Bare(ctx context.Context, db *ledger.DB, body string) func() error {
	return func() error {
		var at time.Time
		return db.Once(ctx, &at, `INSERT INTO bare (id, body) VALUES ($1, $2) RETURNING at`, uuid.New().String(), body)
	}
}

// shared is how many calls share a commit at most, and commits how many of each kind
// are under way.
const (
	shared  = 256
	commits = 2
)

type call struct {
	id, run, arguments, business string
	key, lease                   []byte
	done                         chan error
}

// Hand is the hand-written recorder.
type Hand struct {
	db               *ledger.DB
	begins, finishes chan *call
}

// NewHand starts a recorder that ends with ctx.
func NewHand(ctx context.Context, db *ledger.DB) *Hand {
	h := &Hand{db, make(chan *call, 1024), make(chan *call, 1024)}
	for range commits {
		go serve(ctx, h.begins, h.begin)
		go serve(ctx, h.finishes, h.finish)
	}
	return h
}

func serve(ctx context.Context, in chan *call, write func(context.Context, []*call) (int, error)) {
	for {
		var batch []*call
		select {
		case <-ctx.Done():
			return
		case c := <-in:
			batch = append(batch, c)
		}
		for len(batch) < shared && len(in) > 0 {
			batch = append(batch, <-in)
		}
		n, err := write(ctx, batch)
		if err == nil && n != len(batch) {
			err = errors.New("a call was refused")
		}
		for _, c := range batch {
			c.done <- err
		}
	}
}

func (h *Hand) begin(ctx context.Context, batch []*call) (n int, err error) {
	ids, runs, arguments, business := make([]string, len(batch)), make([]string, len(batch)), make([]string, len(batch)), make([]string, len(batch))
	keys, leases := make([][]byte, len(batch)), make([][]byte, len(batch))
	for i, c := range batch {
		ids[i], runs[i], arguments[i], business[i], keys[i], leases[i] = c.id, c.run, c.arguments, c.business, c.key, c.lease
	}
	err = h.db.Once(ctx, &n, `
		WITH added AS (
			INSERT INTO ceiling_intents (id, run, key, tool, arguments, business_key, deadline)
			SELECT w.id, w.run, w.key, 'send_payment', w.arguments, w.business, now() + interval '180 s'
			FROM (
				SELECT w.* FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::bytea[], $5::text[], $6::text[]) AS w(id, run, lease, key, arguments, business)
				JOIN ceiling_runs r ON r.run = w.run AND r.lease = w.lease AND r.until > now()
				ORDER BY r.run FOR SHARE OF r) AS w
			ON CONFLICT DO NOTHING RETURNING 1
		) SELECT count(*) FROM added`,
		pq.Array(ids), pq.Array(runs), pq.ByteaArray(leases), pq.ByteaArray(keys), pq.Array(arguments), pq.Array(business))
	return n, err
}

func (h *Hand) finish(ctx context.Context, batch []*call) (n int, err error) {
	ids, results := make([]string, len(batch)), make([]string, len(batch))
	for i, c := range batch {
		ids[i], results[i] = c.id, `{"payment_id":"`+c.id+`"}`
	}
	err = h.db.Once(ctx, &n, `
		WITH added AS (
			INSERT INTO ceiling_outcomes (id, outcome, reference, result)
			SELECT w.id, 'taken', w.id::text, w.result FROM unnest($1::uuid[], $2::text[]) AS w(id, result)
			ON CONFLICT DO NOTHING RETURNING 1
		) SELECT count(*) FROM added`, pq.Array(ids), pq.Array(results))
	return n, err
}

// Agent opens a run and returns a function that records the intent and the outcome
// of its next call, each durable before it goes on; arguments makes the i-th call's.
func (h *Hand) Agent(ctx context.Context, run string, arguments func(run string, i int) string) (func() error, error) {
	lease := sha256.Sum256([]byte(run))
	_, err := h.db.Pool().ExecContext(ctx, `INSERT INTO ceiling_runs VALUES ($1, $2, now() + interval '1 hour')`, run, lease[:])
	i := 0
	return func() error {
		i++
		a := arguments(run, i)
		key := sha256.Sum256([]byte(run + a))
		c := &call{uuid.New().String(), run, a, fmt.Sprintf("ACME/%s-%d", run, i), key[:], lease[:], make(chan error, 1)}
		h.begins <- c
		if err := <-c.done; err != nil {
			return err
		}
		h.finishes <- c
		return <-c.done
	}, err
}
