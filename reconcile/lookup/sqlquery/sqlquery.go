// Package sqlquery is the look-up in a database: one read-only statement on a connection
// that the policy names.
package sqlquery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy/read"
)

// Kind is this look-up's name in the policy.
const Kind = "sql"

// Limits of one look-up.
const (
	defaultPatience = 5 * time.Second
	maxRows         = 200
)

type source struct {
	name       string
	connection block.Connection
	query      string
	parameters []*read.Template
	patience   time.Duration
	rules      *rules.Rules
	canary     string
	absence    bool
}

// Read reads a sql look-up.
func Read(b *block.Block) lookup.Source {
	path := b.KindPath(Kind)
	f := b.Own(Kind, "connection", "query", "parameters", "timeout")
	for _, name := range []string{"connection", "query", "parameters"} {
		if f != nil && f[name] == nil {
			b.Mistake(b.Kind, path, "%s is missing", name)
		}
	}
	// The rows are the hits unless the policy picks among them.
	b.Default("found", "body.rows")
	b.Refuse(Kind, "allow_private", "not_found", "next")
	s := &source{rules: b.Rules(), absence: b.AbsenceIsProof}
	if name, ok := b.Text(f["connection"], path+".connection"); ok {
		s.name = name
		if s.connection = b.Connections[name]; s.connection == nil && !b.Stored {
			b.Mistake(f["connection"], path+".connection", "no connection of this name: the policy's connections section has none")
		}
	}
	if query, ok := b.Text(f["query"], path+".query"); ok {
		s.query = query
		if !reads.MatchString(query) {
			b.Mistake(f["query"], path+".query", "must be one statement that reads: it starts with SELECT, WITH, TABLE or VALUES")
		}
		if strings.Contains(strings.TrimRight(query, "; \n\t"), ";") {
			b.Mistake(f["query"], path+".query", "must be one statement, without a ; in it")
		}
	}
	keyed := false
	for i, n := range b.Items(f["parameters"], path+".parameters") {
		at := fmt.Sprintf("%s.parameters[%d]", path, i)
		if t := b.Template(n, at); t != nil {
			b.CheckTemplate(n, at, t)
			s.parameters = append(s.parameters, t)
			for _, field := range t.Fields() {
				keyed = keyed || field == "business_key" || field == "vendor_key" || field == "reference"
			}
		}
	}
	if f["parameters"] != nil && len(s.parameters) == 0 {
		b.Mistake(f["parameters"], path+".parameters", "needs at least one: $1 and what it stands for")
	}
	s.patience = b.Duration(f["timeout"], path+".timeout", defaultPatience, 100*time.Millisecond)
	n, at := b.At("canary")
	s.canary, _ = b.Text(n, at)
	switch {
	case n == nil && b.AbsenceIsProof:
		absence, where := b.At("absence_is_proof")
		b.Mistake(absence, where, "needs canary: the business key of a row that exists, without which a blind account looks like absence")
	case n != nil && !keyed:
		b.Mistake(n, at, "needs {business_key}, {vendor_key} or {reference} among the parameters, where it is put")
	}
	return s
}

var reads = regexp.MustCompile(`(?is)^\s*(?:select|with|table|values)\b`)

// Host is the connection's name: what limits are counted by.
func (s *source) Host() string { return "sql:" + s.name }

// Mask has nothing to do: a connection's address is in no question and no answer.
func (s *source) Mask(text string) string { return text }

// Ask runs the statement, and once more for the canary where nothing of ours was found.
func (s *source) Ask(ctx context.Context, q lookup.Question) lookup.Seen {
	seen := s.look(ctx, q, s.rules.For(q))
	if !s.absence || s.canary == "" || !q.Absent(&seen) {
		return seen
	}
	q = q.As(s.canary)
	found := s.look(ctx, q, s.rules.ForCanary(q))
	if found.Problem != lookup.NoProblem {
		seen.Problem, seen.Detail = lookup.CanaryFailed, string(found.Problem)
		return seen
	}
	seen.Canary = len(found.Hits) > 0
	return seen
}

func (s *source) look(ctx context.Context, q lookup.Question, asker rules.Asker) lookup.Seen {
	args := make([]any, len(s.parameters))
	for i, t := range s.parameters {
		text, err := block.Fill(t, q, func(v string) (string, error) {
			if strings.ContainsRune(v, 0) {
				return "", errors.New("holds a NUL, which no row does")
			}
			return v, nil
		})
		if err != nil {
			return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
		}
		args[i] = text
	}
	seen := lookup.Seen{Request: fmt.Sprintf("%s: %s\nwith %q", s.name, strings.TrimSpace(s.query), args)}
	rows, more, err := s.connection.Read(ctx, s.patience, maxRows, s.query, args)
	if err != nil {
		seen.Problem, seen.Detail = lookup.Unreachable, err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			seen.Problem, seen.Detail = lookup.TimedOut, ""
		}
		return seen
	}
	// As the answer {"rows": [...]}.
	asker.Document(ctx, append(append([]byte(`{"rows":[`), bytes.Join(rows, []byte(","))...), "]}"...), &seen)
	if more {
		seen.Problem, seen.Complete = lookup.MorePages, false
	}
	return seen
}

// Replay is Ask with the rows given, as {"rows": [...]}.
func (s *source) Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, canary bool) lookup.Seen {
	seen := lookup.Seen{Canary: canary}
	s.rules.For(q).Document(ctx, pages[0].Body, &seen)
	return seen
}
