package conformance

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"quittance/client"
	"quittance/handlers/api"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/web"
)

// tools is the policy that README.md promises to scenarios.
const tools = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  pay:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
  pay_quick:
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 2s
  send: {deadline: 60s}
  quick: {deadline: 2s}
  traced:
    deadline: 60s
    volatile: [request_time, sdk.trace]
  ruled:
    deadline: 60s
    refusal: error.message == "declined"
  read: {effect: none}
  watched: {mode: observe, deadline: 1s}
  file:
    business_key: "{period}"
    deadline: 60s
    lookup:
      worker: {pool: tax}
  write_page: {deadline: 60s, volatile: [request_time]}
  fetch_page: {cacheable: true}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
`

// world is a whole server on a database of its own, which all scenarios share: each has
// an account to itself.
type world struct {
	handler  http.Handler
	url      string // past every gate
	access   *access.Service
	db       *ledger.DB
	operator *client.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := ledgertest.New(t)
	p, mistakes := policy.Load("quittance.yaml", []byte(tools))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), db, p, notify.NewHub(), log)
	must(t, err)
	w := &world{db: db, access: access.New(db)}
	person, err := w.access.AddPerson(t.Context(), "Petra", "", []string{"operator"})
	must(t, err)
	token := access.NewToken(access.PersonPrefix)
	must(t, w.access.AddPersonToken(t.Context(), person, "test", token, 0))
	e, err := web.New(web.Options{Log: log})
	must(t, err)
	pay, err := payments.New(t.Context(), payments.Options{DB: db, Effects: engine, Policy: engine.Policy, Log: log})
	must(t, err)
	must(t, api.Register(e, api.Options{Engine: engine, Access: w.access, Payments: pay, Version: "test"}))
	ctx, stop := context.WithCancel(context.Background())
	looped := make(chan struct{})
	go func() { defer close(looped); engine.Loops(ctx) }()
	s := httptest.NewServer(e)
	w.handler, w.url = e, s.URL
	w.operator = client.New(w.url, token, client.WithSpool(t.TempDir()))
	t.Cleanup(func() { w.operator.Close(); s.CloseClientConnections(); s.Close(); stop(); <-looped })
	return w
}

// account makes an account of its own and returns its agents' token.
func (w *world) account(t testing.TB, name string) string {
	t.Helper()
	token := access.NewToken(access.AgentPrefix)
	must(t, w.access.AddAgentToken(t.Context(), name, "test", token, 0))
	return token
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
