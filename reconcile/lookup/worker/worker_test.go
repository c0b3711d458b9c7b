package worker_test

import (
	"testing"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

const source = `
tools:
  file_return:
    business_key: "{period}"
    amount: {value: due, currency: currency, unit: major}
    lookup:
      worker: {pool: tax}
      absence_is_proof: true
      visible_after: 0s
      kept_for: 365d
      world: live
`

func ask(t *testing.T, brought ...string) (lookup.Answer, lookup.Seen) {
	t.Helper()
	p, mistakes := policy.LoadIn(read.Surroundings{}, "quittance.yaml", []byte(source))
	if err := mistakes.Err(); err != nil {
		t.Fatal(err)
	}
	args, err := canon.ParseObject([]byte(`{"period":"2026-Q1","due":"10.50","currency":"EUR"}`))
	if err != nil {
		t.Fatal(err)
	}
	eur, err := money.Currency("EUR")
	if err != nil {
		t.Fatal(err)
	}
	amount, err := money.ParseDecimal("10.50", eur)
	if err != nil {
		t.Fatal(err)
	}
	sent, lands := time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC), time.Minute
	q := lookup.Question{Effect: "e", BusinessKey: "2026-Q1", Arguments: args, Amount: &amount, LandsWithin: &lands, AskedAt: sent.Add(time.Hour),
		Attempts: []lookup.Attempt{{Begun: sent, Deadline: sent.Add(time.Minute)}}}
	var documents [][]byte
	for _, b := range brought {
		documents = append(documents, []byte(b))
	}
	l := p.Tool("file_return").Lookup()
	seen := l.See(t.Context(), redact.New([]byte("k")), q, documents)
	first := lookup.Judge(q, l.Terms, seen, nil)
	q.AskedAt = q.AskedAt.Add(lookup.Apart)
	return lookup.Judge(q, l.Terms, seen, []lookup.Read{first.Read}), seen
}

const record = `{"business_key":"2026-Q1","reference":"R-7","amount":10.5,"currency":"EUR","recipient_matches":true,"final":true,"result":{"receipt":"R-7"}}`

func TestWhatAWorkerBringsIsJudgedHere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		brought string
		verdict lookup.Verdict
		reason  lookup.Reason
	}{
		{`{"hits":[` + record + `],"complete":true}`, lookup.Taken, lookup.Matched},
		{`{"hits":[` + record + `]}`, lookup.Inconclusive, lookup.Partial},
		{`{"hits":[` + record + `],"complete":"yes"}`, lookup.Inconclusive, lookup.Partial},
		{`{"hits":[],"complete":true,"canary_seen":true,"world":"live"}`, lookup.NotTaken, lookup.Absent},
		{`{"hits":[],"complete":true,"canary_seen":true}`, lookup.NotTaken, lookup.Absent},
		{`{"hits":[],"complete":true}`, lookup.Inconclusive, lookup.NotYet},
		{`{"hits":[],"complete":true,"canary_seen":true,"world":"sandbox"}`, lookup.Inconclusive, lookup.WrongWorld},
		{`{"hits":[],"possible":[{"reference":"R-8"}],"complete":true,"canary_seen":true}`, lookup.Inconclusive, lookup.Possible},
		{`{"hits":[{"business_key":"2026-Q10","reference":"x"}],"complete":true}`, lookup.Inconclusive, lookup.NotYet},
		{`{"complete":true,"canary_seen":true}`, lookup.Inconclusive, lookup.CouldNot}, // no list is not an empty list
		{`{"hits":null,"complete":true,"canary_seen":true}`, lookup.Inconclusive, lookup.CouldNot},
		{`{"error":"the portal is down","hits":[],"complete":true,"canary_seen":true}`, lookup.Inconclusive, lookup.CouldNot},
		{`not json`, lookup.Inconclusive, lookup.CouldNot},
		{`[]`, lookup.Inconclusive, lookup.CouldNot},
		{`{"hits":[{"business_key":"2026-Q1"}],"complete":true}`, lookup.Inconclusive, lookup.CouldNot}, // half a record
	} {
		a, seen := ask(t, c.brought)
		if a.Verdict != c.verdict || a.Reason != c.reason {
			t.Errorf("%s: %q %s (%s %s), want %q %s", c.brought, a.Verdict, a.Reason, seen.Problem, seen.Detail, c.verdict, c.reason)
		}
		if a.Verdict == lookup.Taken && (a.Reference != "R-7" || string(a.Result) != `{"receipt":"R-7"}`) {
			t.Errorf("reference %q, result %s", a.Reference, a.Result)
		}
	}
	if a, seen := ask(t); a.Verdict != lookup.Inconclusive || seen.Problem != lookup.Unanswered {
		t.Errorf("nothing brought: %s", seen.Problem)
	}
}
