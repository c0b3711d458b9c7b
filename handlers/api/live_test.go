package api_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/handlers/api"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/wake"
	"quittance/web"
)

const livePolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
  try_payment:
    mode: observe
    summary: "Pay {amount} {currency} for {invoice}"
    business_key: "{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 1s
  read_balance:
    effect: none
  create_payout:
    deadline: 3s # a verdict of not_taken is not released before it
`

// live is the whole server over HTTP, on a database of its own, with the loops
// running.
type live struct {
	t        *testing.T
	url      string
	db       *ledger.DB
	access   *access.Service
	agent    *client.Client
	operator *client.Client
	second   *client.Client
}

// liveSecrets are what the policies of these tests name.
var liveSecrets = map[string]string{
	"BANK_OLD": "whsec_" + base64.StdEncoding.EncodeToString([]byte("old-secret-of-the-bank")),
	"BANK_NEW": "whsec_" + base64.StdEncoding.EncodeToString([]byte("new-secret-of-the-bank")),
	"STRIPE":   "secret-of-stripe",
}

const (
	agentToken    = "qa_test-agent-token-1"
	operatorToken = "qp_test-operator-token-1"
	secondToken   = "qp_test-operator-token-2"
)

// start starts it; changes are to how it logs and how long it waits for a body.
func start(t *testing.T, changes ...func(*web.Options)) *live {
	t.Helper()
	return startUnder(t, livePolicy, changes...)
}

// startUnder is start with another policy.
func startUnder(t *testing.T, source string, changes ...func(*web.Options)) *live {
	t.Helper()
	options := web.Options{Log: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&options)
	}
	db := ledgertest.New(t)
	in := read.Surroundings{Getenv: func(name string) (string, bool) { v, ok := liveSecrets[name]; return v, ok }}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(source))
	if p == nil {
		t.Fatal(mistakes)
	}
	engine, err := effects.New(t.Context(), db, p, notify.NewHub(), options.Log)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, db: db, access: access.New(db)}
	must(t, l.access.AddAgentToken(t.Context(), "acme", "test", agentToken, 0))
	for name, token := range map[string]string{"Petra": operatorToken, "Quentin": secondToken} {
		id, err := l.access.AddPerson(t.Context(), name, "", []string{"operator", "approver"})
		must(t, err)
		must(t, l.access.AddPersonToken(t.Context(), id, "test", token, 0))
	}
	pay, err := payments.New(t.Context(), payments.Options{DB: db, Effects: engine, Policy: engine.Policy, Log: options.Log})
	must(t, err)
	e, err := web.New(options)
	must(t, err)
	must(t, api.Register(e, api.Options{Engine: engine, Access: l.access, Deliveries: wake.New(db, engine.Policy, "", options.Log), Payments: pay, Version: "test"}))

	ctx, stop := context.WithCancel(context.Background())
	looped := make(chan struct{})
	go func() { defer close(looped); engine.Loops(ctx) }()
	s := httptest.NewServer(e)
	t.Cleanup(func() { s.Close(); stop(); <-looped })
	l.url = s.URL
	l.agent, l.operator, l.second = l.as(agentToken), l.as(operatorToken), l.as(secondToken)
	return l
}

func (l *live) as(token string) *client.Client {
	c := client.New(l.url, token, client.WithSpool(l.t.TempDir()), client.WithPatience(10*time.Second))
	l.t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *live) open(run string) *client.Run {
	l.t.Helper()
	r, err := l.agent.Open(l.t.Context(), run, client.RunOptions{Agent: "ap-bot"})
	must(l.t, err)
	return r
}

// lose makes a call whose outcome nobody learns and gives the run back, as a process
// that died does once its lease is over.
func (l *live) lose(r *client.Run, tool string, args any) (effectID string) {
	l.t.Helper()
	_, err := r.Do(l.t.Context(), tool, args, func(_ context.Context, c client.Call) (any, error) {
		effectID = c.EffectID
		return nil, errors.New("the connection broke")
	})
	if !errors.Is(err, client.ErrPaused) {
		l.t.Fatalf("a lost call: %v", err)
	}
	must(l.t, r.Release(l.t.Context()))
	return effectID
}

func (l *live) decide(by *client.Client, effectID, verdict string, more ...func(*client.DecisionRequest)) (client.DecisionAnswer, error) {
	l.t.Helper()
	v, err := by.Effect(l.t.Context(), effectID)
	must(l.t, err)
	d := client.DecisionRequest{Version: v.Version, Verdict: verdict, Note: "looked in the bank's portal"}
	for _, f := range more {
		f(&d)
	}
	return by.Decide(l.t.Context(), effectID, d)
}

// post sends a body as it is and returns status and answer.
func (l *live) post(token, path, body string) (int, string) {
	l.t.Helper()
	return l.send(http.MethodPost, token, path, body)
}

func (l *live) get(token, path string) string {
	l.t.Helper()
	_, body := l.send(http.MethodGet, token, path, "")
	return body
}

func (l *live) send(method, token, path, body string) (int, string) {
	l.t.Helper()
	req, err := http.NewRequest(method, l.url+path, strings.NewReader(body))
	must(l.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	must(l.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(l.t, err)
	return resp.StatusCode, string(b)
}

// raw opens a run with a plain request, for 60 seconds unless told, and returns its
// lease.
func (l *live) raw(run string, seconds ...int) string {
	l.t.Helper()
	_, body := l.send(http.MethodPut, agentToken, "/v1/runs/"+run, `{"agent":"a","worker":"w","attempt_id":"raw-1","lease_seconds":`+fmt.Sprint(append(seconds, 60)[0])+`}`)
	_, rest, found := strings.Cut(body, `"token":"`)
	if !found {
		l.t.Fatalf("no lease: %s", body)
	}
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

var inv9 = map[string]string{"vendor": "ACME Tools", "invoice": "INV-9", "amount": "4200.00", "currency": "USD"}

func (l *live) queue() []client.QueueItem {
	l.t.Helper()
	page, err := l.operator.Queue(l.t.Context(), client.QueueFilter{})
	must(l.t, err)
	return page.Items
}

// unexpected is a call that must not be made.
func unexpected(t *testing.T) client.Perform {
	return func(_ context.Context, c client.Call) (any, error) {
		t.Errorf("performed attempt %d of %s", c.Attempt, c.EffectID)
		return nil, nil
	}
}
