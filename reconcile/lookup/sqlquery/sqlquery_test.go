package sqlquery_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/ledger/ledgertest"
	"quittance/ledger/money"
	"quittance/ledger/outside"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

// The rows stand in the query: the test has a real PostgreSQL and needs no table.
const source = `
connections: {books: "${env:BOOKS}"}
tools:
  post:
    business_key: "{entry}"
    amount: {value: amount, currency: currency, unit: major}
    lookup:
      sql:
        connection: books
        query: |
          SELECT * FROM (VALUES ('e1', 'E-1', 42.10::numeric, 'USD', 'posted'), ('e2', 'E-2', 1, 'USD', 'posted'), ('e3', 'E-2', 1, 'USD', 'posted'),
            ('e4', 'E-4', 1, 'USD', 'draft'), ('c', 'CANARY', 0, 'USD', 'posted')) AS t (id, entry, amount, currency, state)
          WHERE entry = $1 AND $2 <> 'nothing'
        parameters: ["{business_key}", "{arguments.mode}"]
        timeout: 2s
      match: hit.entry == effect.business_key && same_amount(hit.amount, "major") && hit.currency == effect.currency
      final: hit.state == "posted"
      reference: hit.id
      result: '{"entry": hit.id, "amount": number(hit.amount)}'
      absence_is_proof: true
      visible_after: 0s
      kept_for: 3650d
      canary: CANARY
`

func tool(t *testing.T, replace ...string) *policy.Tool {
	t.Helper()
	url := ledgertest.URL(t)
	in := read.Surroundings{Getenv: func(string) (string, bool) { return url, true }, ReadFile: os.ReadFile}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(strings.NewReplacer(replace...).Replace(source)))
	if err := mistakes.Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if db, err := outside.Open(url); err == nil {
			outside.Forget(db)
		}
	})
	return p.Tool("post")
}

func question(t *testing.T, arguments string) lookup.Question {
	t.Helper()
	args, err := canon.ParseObject([]byte(arguments))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := args.Lookup("entry").Text()
	usd, err := money.Currency("USD")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := args.Lookup("amount").Text()
	amount, err := money.ParseDecimal(text, usd)
	if err != nil {
		t.Fatal(err)
	}
	sent, lands := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), time.Minute
	return lookup.Question{Effect: "e", BusinessKey: key, Arguments: args, Amount: &amount, LandsWithin: &lands, AskedAt: sent.Add(time.Hour),
		Attempts: []lookup.Attempt{{Begun: sent, Deadline: sent.Add(time.Minute)}}}
}

func ask(t *testing.T, tool *policy.Tool, q lookup.Question, earlier ...lookup.Read) (lookup.Answer, lookup.Seen) {
	t.Helper()
	seen := tool.Lookup().Ask(t.Context(), redact.New([]byte("k")), q)
	return lookup.Judge(q, tool.Lookup().Terms, seen, earlier), seen
}

func TestRowsAreHits(t *testing.T) {
	t.Parallel()
	tool := tool(t)
	for _, c := range []struct {
		arguments string
		reason    lookup.Reason
		reference string
	}{
		{`{"entry":"E-1","amount":"42.10","mode":"x"}`, lookup.Matched, "e1"},
		{`{"entry":"E-1","amount":"42.11","mode":"x"}`, lookup.Mismatch, ""},
		{`{"entry":"E-2","amount":"1","mode":"x"}`, lookup.Multiple, ""},
		{`{"entry":"E-4","amount":"1","mode":"x"}`, lookup.NotFinal, ""},
		{`{"entry":"E-","amount":"1","mode":"x"}`, lookup.NotYet, ""},
		{`{"entry":"' OR true --","amount":"1","mode":"x"}`, lookup.NotYet, ""},
	} {
		a, seen := ask(t, tool, question(t, c.arguments))
		if a.Reason != c.reason || a.Reference != c.reference {
			t.Errorf("%s: %s %q (%s %s), want %s %q", c.arguments, a.Reason, a.Reference, seen.Problem, seen.Detail, c.reason, c.reference)
		}
		if c.reason == lookup.Matched && string(a.Result) != `{"amount":42.1,"entry":"e1"}` {
			t.Errorf("result %s", a.Result)
		}
	}
}

func TestAbsenceNeedsTheCanary(t *testing.T) {
	t.Parallel()
	tool := tool(t)
	q := question(t, `{"entry":"E-9","amount":"1","mode":"x"}`)
	first, seen := ask(t, tool, q)
	if !seen.Canary {
		t.Error("the canary was not seen")
	}
	q.AskedAt = q.AskedAt.Add(lookup.Apart)
	if a, _ := ask(t, tool, q, first.Read); a.Verdict != lookup.NotTaken {
		t.Errorf("with the canary: %s", a.Reason)
	}
	blind := question(t, `{"entry":"E-9","amount":"1","mode":"nothing"}`) // an account that sees no row
	first, seen = ask(t, tool, blind)
	blind.AskedAt = blind.AskedAt.Add(lookup.Apart)
	if a, _ := ask(t, tool, blind, first.Read); a.Verdict != lookup.Inconclusive || seen.Canary {
		t.Errorf("blind: %s", a.Reason)
	}
}

func TestWhatGoesWrongIsInconclusive(t *testing.T) {
	t.Parallel()
	q := question(t, `{"entry":"E-1","amount":"42.10","mode":"x"}`)
	for _, c := range []struct {
		old, new string
		problem  lookup.Problem
	}{
		{"WHERE entry", "WHERE pg_sleep(30) IS NULL AND entry", lookup.TimedOut},
		{"WHERE entry", "WHERE nowhere = 1 AND entry", lookup.Unreachable},
		{"hit.entry == effect", "hit.entri == effect", lookup.RuleFailed},
		{"WHERE entry = $1 AND $2", ", generate_series(1, 300) WHERE entry = $1 AND $2", lookup.MorePages},
	} {
		replace := []string{c.old, c.new, "timeout: 2s", "timeout: 200ms"}
		a, seen := ask(t, tool(t, replace...), q)
		if seen.Problem != c.problem || a.Verdict != lookup.Inconclusive || seen.Complete && seen.Problem == "" {
			t.Errorf("%s: %s (%s)", c.new, seen.Problem, seen.Detail)
		}
	}
	missing := question(t, `{"entry":"E-1","amount":"42.10"}`)
	if _, seen := ask(t, tool(t), missing); seen.Problem != lookup.Unaskable || !strings.Contains(seen.Detail, "arguments.mode") {
		t.Errorf("without an argument: %s (%s)", seen.Problem, seen.Detail)
	}
}

// The connection's password is in nothing that is stored.
func TestBC148_TheConnectionIsNotStored(t *testing.T) {
	t.Parallel()
	in := read.Surroundings{Getenv: func(string) (string, bool) { return "postgres://u:pw9zz@127.0.0.1:1/d", true }, ReadFile: os.ReadFile}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(source))
	if err := mistakes.Err(); err != nil {
		t.Fatal(err)
	}
	a, seen := ask(t, p.Tool("post"), question(t, `{"entry":"E-1","amount":"42.10","mode":"x"}`))
	raw, err := json.Marshal([]any{a, seen})
	if err != nil || strings.Contains(string(raw), "pw9zz") || seen.Problem != lookup.Unreachable {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestACancelledLookIsInconclusive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := question(t, `{"entry":"E-1","amount":"42.10","mode":"x"}`)
	if seen := tool(t).Lookup().Ask(ctx, redact.New([]byte("k")), q); seen.Problem == lookup.NoProblem || seen.Complete {
		t.Errorf("%+v", seen)
	}
}
