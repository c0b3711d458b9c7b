// Package audit holds the statements about the audit trail: what people changed and
// what they were denied.
package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Row is one line of the trail. Before and After are JSON, "" where nothing is to be
// shown; neither ever holds a secret.
type Row struct {
	ID        int64     `db:"id"`
	At        time.Time `db:"at"`
	Person    int64     `db:"person_id"` // 0: nobody was signed in
	Actor     string    `db:"actor"`
	Via       string    `db:"via"` // "page" | "api" | "command" | "record"
	Action    string    `db:"action"`
	Outcome   string    `db:"outcome"` // "done" | "denied"
	Subject   string    `db:"subject"`
	Before    string    `db:"before"`
	After     string    `db:"after"`
	Note      string    `db:"note"`
	RequestID string    `db:"request_id"`
}

// Add writes a line, in the transaction of what it tells of.
func Add(ctx context.Context, tx *ledger.Tx, r Row) error {
	if r.Actor == "" {
		r.Actor = "somebody"
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO audit (person_id, actor, via, action, outcome, subject, before, after, note, request_id)
		VALUES (NULLIF($1::bigint, 0), $2, $3, $4, $5, $6, NULLIF($7, ''), NULLIF($8, ''), NULLIF($9, ''), NULLIF($10, ''))`,
		r.Person, r.Actor, r.Via, r.Action, r.Outcome, r.Subject, r.Before, r.After, r.Note, r.RequestID)
	if err != nil {
		return fmt.Errorf("couldn't write the audit trail: %w", err)
	}
	return nil
}

// Filter narrows the trail; zero values filter nothing.
type Filter struct {
	Person   int64
	Action   string // exact, or a prefix that ends in a dot
	Outcome  string
	Subject  string
	From, To time.Time // To is not included
	Before   int64     // continues behind this id
	Limit    int
}

// Page reads one page, latest first.
func Page(ctx context.Context, r ledger.Reader, f Filter) ([]Row, error) {
	var c where.Conds
	if f.Person != 0 {
		c.Add("person_id = ?", f.Person)
	}
	switch {
	case strings.HasSuffix(f.Action, "."):
		c.Add("starts_with(action, ?)", f.Action)
	case f.Action != "":
		c.Add("action = ?", f.Action)
	}
	if f.Outcome != "" {
		c.Add("outcome = ?", f.Outcome)
	}
	if f.Subject != "" {
		c.Add("subject = ?", f.Subject)
	}
	if !f.From.IsZero() {
		c.Add("at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("at < ?", f.To)
	}
	if f.Before != 0 {
		c.Add("id < ?", f.Before)
	}
	var rows []Row
	limit := c.Arg(f.Limit)
	err := r.Select(ctx, &rows, `
		SELECT id, at, COALESCE(person_id, 0) AS person_id, actor, via, action, outcome, subject, COALESCE(before, '') AS before,
			COALESCE(after, '') AS after, COALESCE(note, '') AS note, COALESCE(request_id, '') AS request_id
		FROM audit WHERE `+c.String()+` ORDER BY id DESC LIMIT `+limit, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the audit trail: %w", err)
	}
	return rows, nil
}

// DeniedLately counts the lines about the same denied action of the same person in the
// last minute, to a hundred: whoever hammers must not fill the disk.
func DeniedLately(ctx context.Context, r ledger.Reader, person int64, action string) (int, error) {
	var n int
	err := r.Get(ctx, &n, `
		SELECT count(*) FROM (SELECT FROM audit WHERE outcome = 'denied' AND COALESCE(person_id, 0) = $1 AND action = $2
			AND at > clock_timestamp() - interval '1 minute' LIMIT 100) AS x`, person, action)
	return n, err
}
