package wake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/ledger/ledgertest"
	"quittance/ledger/wakes"
	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/wake"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAA"

// world is an engine, a service and one endpoint that answers as the test says.
type world struct {
	*wake.Service
	t       *testing.T
	db      *ledger.DB
	engine  *effects.Engine
	account int64
	end     *endpoint
}

// received is one request as it came.
type received struct {
	id, stamp, signature, body string
	header                     http.Header
}

// endpoint is a real server.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer http.HandlerFunc
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.got = append(e.got, received{r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), string(body), r.Header})
		answer := e.answer
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.CloseClientConnections)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answers(f http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

func (e *endpoint) all() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.got...)
}

func load(t *testing.T, source string) *policy.Policy {
	t.Helper()
	p, mistakes := policy.LoadIn(read.Surroundings{Getenv: func(string) (string, bool) { return secret, true }}, "q.yaml", []byte(source))
	if p == nil {
		t.Fatal(mistakes)
	}
	return p
}

func newWorld(t *testing.T, more string) *world {
	t.Helper()
	w := &world{t: t, end: newEndpoint(t)}
	db, err := ledger.Open(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.db = db
	p := load(t, fmt.Sprintf(`
release: {hold: 0s, not_taken_hold: 0s}
webhooks:
  payers:
    url: "%s/hook"
    secrets: ["${env:WAKE}"]
    allow_private: true
%s`, w.end.URL, more))
	if w.engine, err = effects.New(t.Context(), db, p, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		w.account, err = access.Account(ctx, tx, "acme")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Service = w.server()
	return w
}

// server is one more server on the same database.
func (w *world) server() *wake.Service {
	s := wake.New(w.db, w.engine.Policy, "https://quittance.example", slog.New(slog.DiscardHandler))
	s.Patience(2 * time.Second)
	return s
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool().ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// ready is a run that an agent left, so that somebody has to take it.
func (w *world) ready(run string) {
	w.t.Helper()
	l := w.open(run)
	if _, err := w.engine.Release(w.t.Context(), w.account, run, l.Token, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(run string) effects.Lease {
	w.t.Helper()
	l, err := w.engine.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "ap-bot", Worker: "pod", AttemptID: "a-" + time.Now().String()})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) round() {
	w.t.Helper()
	if err := w.Round(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// due lets the pause before the next attempt pass.
func (w *world) due() {
	w.t.Helper()
	w.exec(`UPDATE deliveries SET next_at = clock_timestamp() WHERE state = 'due'`)
}

// only is the one delivery there is.
func (w *world) only() wakes.Logged {
	w.t.Helper()
	list, _, err := w.Log(w.t.Context(), wake.Query{})
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d deliveries, %v", len(list), err)
	}
	return list[0]
}

func (w *world) wantState(state string) wakes.Logged {
	w.t.Helper()
	d := w.only()
	if d.State != state {
		w.t.Fatalf("the delivery is %s (%d %q), want %s", d.State, d.Status, d.Problem, state)
	}
	return d
}

func runOf(t *testing.T, body string) string {
	t.Helper()
	var m struct {
		Type string
		Data struct {
			RunID string `json:"run_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Type != "run.ready" {
		t.Fatalf("%s: %v", body, err)
	}
	return m.Data.RunID
}
