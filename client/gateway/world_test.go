package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/client"
	"quittance/client/gateway"
	"quittance/client/x402"
	"quittance/handlers/api"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/web"
)

const shopPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example, poll: shop.order.get}
  bank: {settles: before_work}
rails:
  eip155:31337:
    allow_private: true
    rpc: ["http://127.0.0.1:1"]
    assets: {"0x1000000000000000000000000000000000000001": {code: USDC, decimals: 6}}
tools:
  write_page: {volatile: [request_time], deadline: 60s}
  fetch_page: {cacheable: true}
  "/write": {deadline: 60s}
`

const (
	network = "eip155:31337"
	token   = "0x1000000000000000000000000000000000000001"
	payee   = "0x2000000000000000000000000000000000000002"
	alice   = "0xa000000000000000000000000000000000000001"
	bob     = "0xb000000000000000000000000000000000000002"
)

var price = x402.Requirements{Scheme: "exact", Network: network, Asset: token, Amount: "4200000", PayTo: payee, MaxTimeoutSeconds: 60}

// world is a whole server with a gate in front of it, a facilitator, a rail, and a paid
// page.
type world struct {
	t      *testing.T
	db     *ledger.DB
	pay    *payments.Engine
	server http.Handler
	gate   *gate
	q      *client.Client

	rail *rail
	work *work
	shop *httptest.Server // the gateway
	mu   sync.Mutex
	at   http.Handler
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: ledgertest.New(t), rail: &rail{landed: map[string]string{}}, work: &work{status: 201}}
	p, mistakes := policy.Load("quittance.yaml", []byte(shopPolicy))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), w.db, p, notify.NewHub(), log)
	must(t, err)
	who := access.New(w.db)
	const secret = "qa_the-token-of-the-gateway"
	must(t, who.AddAgentToken(t.Context(), "acme", "test", secret, 0))
	w.pay, err = payments.New(t.Context(), payments.Options{
		DB: w.db, Effects: engine, Policy: engine.Policy, Log: log, PublicURL: "https://q.example",
		Rails: func(string) payments.Rail { return w.rail },
	})
	must(t, err)
	e, err := web.New(web.Options{Log: log})
	must(t, err)
	must(t, api.Register(e, api.Options{Engine: engine, Access: who, Payments: w.pay, Version: "test"}))
	w.server = e
	w.gate = &gate{behind: e}
	s := httptest.NewServer(w.gate)
	w.q = client.New(s.URL, secret, client.WithSpool(t.TempDir()), client.WithPatience(2*time.Second))
	w.shop = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		at := w.at
		w.mu.Unlock()
		at.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { w.shop.Close(); w.q.Close(); s.CloseClientConnections(); s.Close() })
	w.restart("shop")
	return w
}

// restart is a gateway that was started anew, under a name of the policy.
func (w *world) restart(name string) {
	g := gateway.New(gateway.Options{Quittance: w.q, Name: name, Facilitator: w.rail, FacilitatorTimeout: 500 * time.Millisecond})
	mux := http.NewServeMux()
	mux.Handle("POST /write", g.Paid(gateway.Route{Tool: "write_page", Accepts: []x402.Requirements{price}, Description: "A page"}, w.work))
	mux.Handle("POST /cancel", g.Paid(gateway.Route{Tool: "cancel_page", Accepts: []x402.Requirements{price}}, w.work))
	mux.Handle("GET /read", g.Paid(gateway.Route{Tool: "fetch_page", Accepts: []x402.Requirements{price}, Cacheable: true}, w.work))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = mux
}

// work is what is sold.
type work struct {
	mu     sync.Mutex
	done   int
	status int
	before func() // runs in it
}

func (h *work) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.done++
	n, status, before := h.done, h.status, h.before
	h.mu.Unlock()
	if before != nil {
		before()
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "page %d", n)
}

func (h *work) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done
}

// rail is a network and the facilitator that sends to it: an authorization moves money
// once.
type rail struct {
	mu      sync.Mutex
	landed  map[string]string // transaction by nonce
	dead    map[string]string
	settled int // calls
	verify  func() (x402.Verification, error)
	settle  func(land func() string) (x402.Settlement, error)
}

func (r *rail) Verify(context.Context, x402.Payload, x402.Requirements) (x402.Verification, error) {
	r.mu.Lock()
	f := r.verify
	r.mu.Unlock()
	if f != nil {
		return f()
	}
	return x402.Verification{IsValid: true}, nil
}

func (r *rail) Settle(ctx context.Context, p x402.Payload, _ x402.Requirements) (x402.Settlement, error) {
	var x x402.Exact
	if err := json.Unmarshal(p.Payload, &x); err != nil {
		return x402.Settlement{}, err
	}
	land := func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		nonce := x.Authorization.Nonce
		if r.landed[nonce] == "" {
			r.landed[nonce] = fmt.Sprintf("0x%064x", 0x9f00+len(r.landed))
		}
		return r.landed[nonce]
	}
	r.mu.Lock()
	r.settled++
	f := r.settle
	r.mu.Unlock()
	if f != nil {
		return f(land)
	}
	return x402.Settlement{Success: true, Transaction: land(), Network: network}, nil
}

// Signer believes that who pays signed.
func (r *rail) Signer(c rows.Claimed, _ payments.Offered) (string, bool, error) {
	return c.Payer, true, nil
}

func (r *rail) Authorization(_ context.Context, q payments.Question) payments.Sight {
	r.mu.Lock()
	defer r.mu.Unlock()
	tx := r.landed[q.Nonce]
	if why := r.dead[q.Nonce]; why != "" {
		return payments.Sight{Dead: why, DeadBlock: 9, Said: why}
	}
	if tx == "" {
		return payments.Sight{Said: "not used"}
	}
	return payments.Sight{Said: "used", Landed: &payments.Seen{Block: 7, Final: true, Moved: rows.Moved{
		Network: network, Tx: tx, Asset: q.Asset, Sender: q.Payer, Recipient: q.PayTo, Amount: q.Amount, Nonce: q.Nonce,
	}}}
}

func (r *rail) Incoming(context.Context, string, []string, int64) (payments.Page, error) {
	return payments.Page{Done: true}, nil
}

func (r *rail) Within(context.Context, string, string, string) ([]payments.Seen, error) {
	return nil, errors.New("not asked in this test")
}

func (r *rail) Still(context.Context, rows.Transfer) (payments.Standing, error) {
	return payments.Standing{}, errors.New("not asked in this test")
}

func (r *rail) movements() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.landed)
}

func (r *rail) change(f func(*rail)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// gate stands before the server and fails in the ways that a network does.
type gate struct {
	behind http.Handler
	mu     sync.Mutex
	on     string // METHOD /path, * for a segment
	kind   string // did_not_happen, happened
	times  int
	met    int
	seen   []string
}

func (g *gate) fail(on, kind string, times int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on, g.kind, g.times, g.met = on, kind, times, 0
}

func (g *gate) faults() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.met
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	kind := ""
	g.seen = append(g.seen, r.Method+" "+r.URL.Path)
	if ok, _ := path.Match(g.on, r.Method+" "+r.URL.Path); ok && g.times > 0 {
		g.times--
		g.met++
		kind = g.kind
	}
	g.mu.Unlock()
	switch kind {
	case "did_not_happen":
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	case "happened":
		g.behind.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	g.behind.ServeHTTP(w, r)
}

// request is one of a payer.
type request struct {
	method, path, body string
	id, quote, payer   string
	nonce              int
	change             func(*x402.Payload)
}

func buy(id string, nonce int) request {
	return request{method: http.MethodPost, path: "/write", body: `{"page":"a"}`, id: id, nonce: nonce, payer: alice}
}

// reply is an answer to it.
type reply struct {
	status  int
	header  http.Header
	body    string
	problem client.Problem
}

func nonce(n int) string { return fmt.Sprintf("0x%064x", n) }

func (w *world) send(in request) reply {
	w.t.Helper()
	req, err := http.NewRequest(in.method, w.shop.URL+in.path, strings.NewReader(in.body))
	must(w.t, err)
	if in.id != "" {
		req.Header.Set(x402.PaymentIDHeader, in.id)
	}
	if in.quote != "" {
		req.Header.Set(x402.QuoteHeader, in.quote)
	}
	if in.nonce > 0 {
		raw, err := json.Marshal(x402.Exact{Signature: "0x" + strings.Repeat("11", 65), Authorization: x402.Authorization{
			From: in.payer, To: payee, Value: price.Amount, ValidAfter: "0", ValidBefore: "4102444800", Nonce: nonce(in.nonce),
		}})
		must(w.t, err)
		p := x402.Payload{X402Version: 2, Accepted: price, Payload: raw}
		if in.change != nil {
			in.change(&p)
		}
		header, err := x402.Encode(p)
		must(w.t, err)
		req.Header.Set(x402.SignatureHeader, header)
	}
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(w.t, err)
	out := reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if strings.Contains(resp.Header.Get("Content-Type"), "problem") {
		must(w.t, json.Unmarshal(b, &out.problem))
	}
	return out
}

// is checks an answer: its status, and the code of a refusal or the outcome.
func (r reply) is(t *testing.T, status int, word string) reply {
	t.Helper()
	got := r.problem.Code
	if got == "" {
		got = r.header.Get(x402.OutcomeHeader)
	}
	if r.status != status || got != word {
		t.Fatalf("%d %s, want %d %s: %s", r.status, got, status, word, r.body)
	}
	return r
}

// old lets a payment be older than what may still be under way, and its work's deadline
// and lease pass.
func (w *world) old(id string) {
	w.t.Helper()
	must(w.t, w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		for _, q := range []string{
			`ALTER TABLE payments DISABLE TRIGGER payments_fence`,
			`UPDATE payments SET claimed_at = clock_timestamp() - interval '181 seconds', check_at = CASE WHEN check_at IS NOT NULL THEN clock_timestamp() END WHERE payment_id = '` + id + `'`,
			`ALTER TABLE payments ENABLE TRIGGER payments_fence`,
		} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// tick does what time does: the rail is asked, what is paid is healed.
func (w *world) tick() {
	w.t.Helper()
	must(w.t, w.pay.Tick(w.t.Context()))
}

func (w *world) state(id string) client.Payment {
	w.t.Helper()
	p, err := w.q.Payment(w.t.Context(), "shop", id)
	must(w.t, err)
	return p
}

// equation checks that the money adds up.
func (w *world) equation() {
	w.t.Helper()
	var rows []struct {
		Network, Asset string
		Difference     money.Atomic
		Posted         bool
	}
	must(w.t, w.db.Select(w.t.Context(), &rows, `SELECT network, asset, difference, posted FROM money_equation`))
	for _, r := range rows {
		if r.Difference.Sign() != 0 || !r.Posted {
			w.t.Fatalf("%s %s: off by %s, posted %v", r.Network, r.Asset, r.Difference, r.Posted)
		}
	}
}
