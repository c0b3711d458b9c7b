package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"quittance/client"
)

const workerPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    lookup:
      worker: {pool: bank}
      canary: CANARY
      world: live
`

// books is what the team's own code looks in.
type books struct {
	mu      sync.Mutex
	records map[string]client.LookupHit
	asked   []client.LookupQuestion
}

func (b *books) look(_ context.Context, q client.LookupQuestion) (client.LookupFound, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, q)
	found := client.LookupFound{Complete: true, CanarySeen: true, World: "live"}
	if hit, ok := b.records[q.BusinessKey]; ok {
		found.Hits = append(found.Hits, hit)
	}
	return found, nil
}

// work answers look-ups until stop is called; ended is what the loop returned.
func (l *live) work(atOnce int, look client.Look) (stop func(), ended <-chan error) {
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- l.agent.AnswerLookups(ctx, "bank", atOnce, look) }()
	return cancel, done
}

func TestAWorkerAnswersAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	l := startUnder(t, workerPolicy)
	b := &books{records: map[string]client.LookupHit{"ACME Tools/INV-9": {
		BusinessKey: "ACME Tools/INV-9", Reference: "po_1", Amount: "4200.00", Currency: "USD", RecipientMatches: true, Final: true,
		Result: map[string]string{"payment_id": "po_1"},
	}}}
	stop, ended := l.work(2, b.look)
	r := l.open("run")
	id := l.lose(r, "send_payment", inv9) // the worker waits in a long poll by now
	r = l.openWhenReady("run")
	out, err := r.Do(t.Context(), "send_payment", inv9, unexpected(t))
	if err != nil || string(out.Result) != `{"payment_id":"po_1"}` {
		t.Errorf("%s %v", out.Result, err)
	}
	stop()
	must(t, <-ended)
	q := b.asked[0]
	if q.EffectID != id || q.RunID != "run" || q.Tool != "send_payment" || q.Amount == nil || *q.Amount != (client.Amount{Value: "4200.00", Currency: "USD"}) ||
		q.VendorKey == "" || q.Canary != "CANARY" || q.World != "live" || len(q.Attempts) != 1 || q.Attempts[0].BegunAt == nil || q.AnswerWithin <= 50_000 ||
		q.AnswerBy.Before(q.AskedAt) || !strings.Contains(string(q.Arguments), "INV-9") {
		t.Errorf("%+v", q)
	}
}

// What goes wrong in the team's code proves nothing, and the loop goes on.
func TestAWorkerWhoseCodeBreaks(t *testing.T) {
	t.Parallel()
	l := startUnder(t, workerPolicy)
	var asked []string
	stop, ended := l.work(1, func(_ context.Context, q client.LookupQuestion) (client.LookupFound, error) {
		asked = append(asked, q.BusinessKey)
		switch q.BusinessKey {
		case "a/1":
			panic("a nil pointer, say")
		case "a/2":
			return client.LookupFound{Complete: true, CanarySeen: true}, errors.New("the portal is down: postgres://u:pw9-secret@db/x")
		case "a/3":
			return client.LookupFound{Hits: []any{func() {}}}, nil // not JSON
		case "a/4":
			return client.LookupFound{Hits: []any{strings.Repeat("x", 2<<20)}}, nil // too large
		}
		return client.LookupFound{Hits: []any{client.LookupHit{
			BusinessKey: q.BusinessKey, Reference: "po_5", Amount: "1.00", Currency: "USD", RecipientMatches: true, Final: true, Result: map[string]string{},
		}}, Complete: true}, nil
	})
	var ids []string
	for i := 1; i <= 5; i++ {
		run := fmt.Sprintf("run-%d", i)
		ids = append(ids, l.lose(l.open(run), "send_payment", map[string]string{"vendor": "a", "invoice": fmt.Sprint(i), "amount": "1.00", "currency": "USD"}))
	}
	l.openWhenReady("run-5")
	stop()
	must(t, <-ended)
	for i, id := range ids[:4] {
		var row struct{ Verdict, Problem, Excerpt string }
		must(t, l.db.Get(t.Context(), &row, `SELECT verdict, COALESCE(problem, '') AS problem, COALESCE(excerpt, '') AS excerpt FROM lookups
			WHERE effect_id = $1::uuid ORDER BY asked_at LIMIT 1`, id))
		if row.Verdict != "inconclusive" || row.Problem != "adapter_error" || strings.Contains(row.Excerpt, "pw9-secret") {
			t.Errorf("a/%d: %+v", i+1, row)
		}
	}
	if len(asked) < 5 {
		t.Errorf("asked only %q", asked)
	}
}

// A worker that is told to stop finishes what it has, and takes nothing more.
func TestAWorkerStopsGracefully(t *testing.T) {
	t.Parallel()
	l := startUnder(t, workerPolicy)
	begun, goOn := make(chan struct{}), make(chan struct{})
	look := (&books{}).look
	stop, ended := l.work(1, func(ctx context.Context, q client.LookupQuestion) (client.LookupFound, error) {
		close(begun)
		<-goOn
		if ctx.Err() != nil {
			t.Error("the look was cut off")
		}
		return look(ctx, q)
	})
	id := l.lose(l.open("run"), "send_payment", inv9)
	l.lose(l.open("run-2"), "send_payment", map[string]string{"vendor": "a", "invoice": "2", "amount": "1.00", "currency": "USD"})
	<-begun
	stop()
	close(goOn)
	must(t, <-ended)
	var n int
	must(t, l.db.Get(t.Context(), &n, `SELECT count(*) FROM lookups WHERE effect_id = $1::uuid AND problem IS NULL`, id))
	if n != 1 {
		t.Errorf("%d answers on record, want 1", n)
	}
	must(t, l.db.Get(t.Context(), &n, `SELECT count(*) FROM lookup_schedule WHERE asked_by IS NOT NULL`))
	if n != 0 {
		t.Errorf("%d questions went with the worker", n)
	}
}

func TestAnswersOverHTTPThatAreRefused(t *testing.T) {
	t.Parallel()
	l := startUnder(t, workerPolicy)
	id := l.lose(l.open("run"), "send_payment", inv9)
	list, err := l.agent.ClaimLookups(t.Context(), client.ClaimLookups{Pool: "bank", Max: 5, Wait: "30s"})
	if err != nil || len(list) != 1 || list[0].EffectID != id {
		t.Fatalf("%+v %v", list, err)
	}
	path := "/v1/lookups/" + list[0].LookupID + "/answer"
	for _, c := range []struct {
		name, token, path, body string
		status                  int
		says                    string
	}{
		{"no token", "", path, `{"hits":[]}`, 401, `"unauthorized"`},
		{"a person's token", operatorToken, path, `{"hits":[]}`, 403, `"forbidden"`},
		{"2 MB", agentToken, path, `{"hits":["` + strings.Repeat("x", 2<<20) + `"]}`, 413, `"limit":1048576`},
		{"not JSON", agentToken, path, `{"hits":`, 400, `"malformed"`},
		{"a name twice", agentToken, path, `{"hits":[],"hits":[]}`, 400, `"malformed"`},
		{"a verdict", agentToken, path, `{"hits":[],"verdict":"not_taken"}`, 422, `"/verdict"`},
		{"hits that are no list", agentToken, path, `{"hits":{"business_key":"x"}}`, 422, `"/hits"`},
		{"complete that is text", agentToken, path, `{"hits":[],"complete":"yes"}`, 422, `"/complete"`},
		{"nothing", agentToken, path, `{}`, 422, `"/hits"`},
		{"no such question", agentToken, "/v1/lookups/x/answer", `{"hits":[]}`, 404, `"not_found"`},
		{"another pool", agentToken, "/v1/lookups/claim", `{"pool":"bnak"}`, 422, `"/pool"`},
		{"a wait that is none", agentToken, "/v1/lookups/claim", `{"pool":"bank","wait":"soon"}`, 422, `"/wait"`},
		{"too many", agentToken, "/v1/lookups/claim", `{"pool":"bank","max":101}`, 422, `"/max"`},
		{"a person claims", operatorToken, "/v1/lookups/claim", `{"pool":"bank"}`, 403, `"forbidden"`},
	} {
		if status, body := l.post(c.token, c.path, c.body); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %.300s", c.name, status, body)
		}
	}
	// None of it took the question from its worker.
	v, err := l.agent.AnswerLookup(t.Context(), list[0].LookupID, client.LookupAnswer{Hits: []json.RawMessage{}, Complete: true})
	if err != nil || v.Verdict != "inconclusive" || v.Reason != "not_found_yet" || v.EffectID != id || v.LookupID != list[0].LookupID || v.Why == "" {
		t.Errorf("%+v %v", v, err)
	}
	_, err = l.agent.AnswerLookup(t.Context(), list[0].LookupID, client.LookupAnswer{Error: "otherwise"})
	if p := problemOf(err); p == nil || p.Code != client.CodeLookupOver || p.Status != 409 || !p.Final || p.EffectID != id {
		t.Errorf("answered twice: %v", err)
	}
	err = l.agent.AnswerLookups(t.Context(), "bnak", 1, (&books{}).look)
	if p := problemOf(err); p == nil || p.Code != client.CodeInvalid {
		t.Errorf("a pool that no tool names: %v", err)
	}
}

// A claim that finds nothing due is held, and answered as soon as something is.
func TestAClaimWaits(t *testing.T) {
	t.Parallel()
	l := startUnder(t, workerPolicy)
	if list, err := l.agent.ClaimLookups(t.Context(), client.ClaimLookups{Pool: "bank"}); err != nil || len(list) != 0 {
		t.Fatalf("%+v %v", list, err)
	}
	got := make(chan []client.LookupQuestion, 1)
	go func() {
		list, err := l.agent.ClaimLookups(context.WithoutCancel(t.Context()), client.ClaimLookups{Pool: "bank", Wait: "60s"})
		if err != nil {
			t.Error(err)
		}
		got <- list
	}()
	id := l.lose(l.open("run"), "send_payment", inv9)
	if list := <-got; len(list) != 1 || list[0].EffectID != id {
		t.Errorf("%+v", list)
	}
}
