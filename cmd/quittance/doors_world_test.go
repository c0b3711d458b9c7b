package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/seal"
)

const fortPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
rails:
  bank:main:
    name: The bank
    assets:
      usd: {code: USD, decimals: 2}
`

// Tokens of the fort. Each person has one, named after their role.
const (
	acmeToken    = "qa_agent-of-acme-00001"
	foreignToken = "qa_agent-of-another-01"
	expiredToken = "qp_this-one-is-expired"
	revokedToken = "qp_this-one-was-revoked"
)

func roleToken(role string) string { return "qp_person-who-is-" + role }

// fort is everything that serve serves, wired by the program itself, on a database with one
// of each thing of an account in it. No loop runs: what changes, a request changed.
type fort struct {
	t      *testing.T
	db     *ledger.DB
	access *access.Service
	routes []*echo.Route
	url    string
	// things are what the parameters of the routes name: of the account acme, and absent.
	things, absent map[string]string
	lease          string
}

func newFort(t *testing.T) *fort {
	t.Helper()
	f := &fort{t: t, db: ledgertest.New(t)}
	file := filepath.Join(t.TempDir(), "quittance.yaml")
	if err := os.WriteFile(file, []byte(fortPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := loadPolicy(file)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(spoken{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	app, err := newApplication(t.Context(), config{environment: environment{Place: "test"}}, rules, f.db, seal.NewAnchor(""), log)
	if err != nil {
		t.Fatal(err)
	}
	f.routes = app.handler.(*echo.Echo).Routes()
	s := httptest.NewServer(app.handler)
	t.Cleanup(s.Close)
	f.url = s.URL
	f.access = access.New(f.db)
	f.people()
	f.fill()
	return f
}

func (f *fort) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// people are one of each role, somebody disabled, two accounts, and tokens that open nothing.
func (f *fort) people() {
	ctx := f.t.Context()
	f.must(f.access.AddAgentToken(ctx, "acme", "test", acmeToken, 0))
	f.must(f.access.AddAgentToken(ctx, "another", "test", foreignToken, 0))
	for _, role := range append(slices.Clone(access.Roles), "disabled") {
		roles := []string{role}
		if role == "disabled" {
			roles = access.Roles
		}
		id, err := f.access.AddPerson(ctx, "A "+role, role+"@example.com", roles)
		f.must(err)
		f.must(f.access.AddPersonToken(ctx, id, "test", roleToken(role), 0))
	}
	f.must(f.access.AddPersonToken(ctx, 1, "old", expiredToken, time.Nanosecond))
	f.must(f.access.AddPersonToken(ctx, 1, "lost", revokedToken, 0))
	var id int64
	f.must(f.db.Get(ctx, &id, `SELECT max(id) FROM tokens`))
	_, err := f.access.RevokeToken(ctx, id)
	f.must(err)
}

// agent sends a call of an agent and reads its answer.
func (f *fort) agent(method, path, body string) map[string]any {
	f.t.Helper()
	a := f.send(nil, method, path, acmeToken, "application/json", body)
	if a.status >= 300 {
		f.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	out := map[string]any{}
	if a.body != "" {
		f.must(json.Unmarshal([]byte(a.body), &out))
	}
	return out
}

// fill makes one of each thing that a route can name.
func (f *fort) fill() {
	text := func(v any) string { return fmt.Sprint(v) }
	run := f.agent("PUT", "/v1/runs/run-1", `{"agent":"bot","worker":"w","attempt_id":"a"}`)
	f.lease = text(run["lease"].(map[string]any)["token"])
	f.agent("PUT", "/v1/runs/run-1/checkpoints/1", `{"lease":"`+f.lease+`","state":{"n":1}}`)
	effect := f.agent("POST", "/v1/effects", `{"run_id":"run-1","lease":"`+f.lease+`","attempt_id":"b","tool":"send_payment","arguments":{"vendor":"Birch","invoice":"1","amount":"20.00","currency":"USD"}}`)
	const payment = "payment-0000000001"
	claim := f.agent("POST", "/v1/payments", `{"payment_id":"`+payment+`","gateway":"shop","payer":"payer-one","request_digest":"`+strings.Repeat("ab", 32)+`","amount":"1000","asset":"usd","network":"bank:main","pay_to":"us"}`)
	order := f.agent("POST", "/v1/payments/"+payment+"/order", `{"gateway":"shop","fence":`+text(claim["fence"])+`}`)
	var transfer map[string]any
	for _, tx := range []string{"in-1", "in-2"} { // the second is owed back
		transfer = f.agent("POST", "/v1/transfers", `{"network":"bank:main","tx":"`+tx+`","position":0,"asset":"usd","from":"payer-one","to":"us","amount":"1000","order_id":"`+text(order["order_id"])+`","final":true}`)
	}
	read := f.agent("POST", "/v1/reads", `{"gateway":"shop","payer":"payer-one","request_digest":"`+strings.Repeat("cd", 32)+`"}`)
	one := func(query string) (id string) {
		f.must(f.db.Get(f.t.Context(), &id, query))
		return id
	}
	f.things = map[string]string{
		"run_id": "run-1", "turn": "1", "effect_id": text(effect["effect_id"]), "payment_id": payment, "order_id": text(order["order_id"]), "read_id": text(read["read_id"]),
		"lookup_id": "01890000-0000-7000-8000-000000000001", "delivery_id": "01890000-0000-7000-8000-000000000001", "delivery": "01890000-0000-7000-8000-000000000001",
		"log_file_id": "1", "name": "letters", "id": text(effect["effect_id"]), "file": "1", "set": "01890000-0000-7000-8000-000000000001",
		"person": one(`SELECT id::text FROM people WHERE name = 'A viewer'`), "token": "1", "link": "ql_nobody-made-this-link", "version": "x", "*": "r",
		"/runs/:id": one(`SELECT id::text FROM runs WHERE run_id = 'run-1'`), "/refunds/:id": one(`SELECT id::text FROM refunds`),
		"/orders/:id": text(order["order_id"]), "/transfers/:id": text(transfer["transfer_id"]),
	}
	f.absent = map[string]string{}
	for name := range f.things {
		f.absent[name] = "01890000-0000-7000-8000-0000000000ff"
	}
	f.absent["run_id"], f.absent["payment_id"], f.absent["turn"] = "run-none", "payment-none-000000", "1"
}

var parameter = regexp.MustCompile(`:[a-z_]+|\*`)

// address fills in what a route names.
func (f *fort) address(path string, things map[string]string) string {
	return parameter.ReplaceAllStringFunc(path, func(p string) string {
		name := strings.TrimPrefix(p, ":")
		for prefix, thing := range things { // an id of a page is that of its list
			if strings.HasSuffix(prefix, p) && strings.HasPrefix(path, prefix) {
				return thing
			}
		}
		thing, ok := things[name]
		if !ok {
			f.t.Fatalf("%s: nobody says what %s names", path, p)
		}
		return url.PathEscape(thing)
	})
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request; nil is a browser without a cookie.
func (f *fort) send(browser *http.Client, method, path, token, kind, body string) reply {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	f.must(err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if browser == nil {
		browser = f.browser()
	}
	resp, err := browser.Do(r)
	if err != nil {
		f.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	f.must(err)
	return reply{resp.StatusCode, resp.Header, string(b)}
}

func (f *fort) browser() *http.Client {
	jar, _ := cookiejar.New(nil)
	return &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

const formKind = "application/x-www-form-urlencoded"

// signedIn is the browser of whoever has a token.
func (f *fort) signedIn(token string) *http.Client {
	f.t.Helper()
	b := f.browser()
	if a := f.send(b, "POST", "/sign-in", "", formKind, url.Values{"token": {token}}.Encode()); a.status != http.StatusSeeOther {
		f.t.Fatalf("sign-in: %d %s", a.status, a.body)
	}
	return b
}

// cookies are those of a browser.
func (f *fort) cookies(b *http.Client) []*http.Cookie {
	u, err := url.Parse(f.url)
	f.must(err)
	return b.Jar.Cookies(u)
}

// seen is a mark of every row of every table, but for the trail of what was denied and who
// is signed in.
func (f *fort) seen() map[string]string {
	f.t.Helper()
	var tables []string
	f.must(f.db.Select(f.t.Context(), &tables, `
		SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
		AND table_name NOT IN ('sessions', 'throttles') ORDER BY 1`))
	marks := map[string]string{}
	for _, table := range tables {
		rows := table
		if table == "audit" {
			rows = `(SELECT * FROM audit WHERE outcome <> 'denied')`
		}
		var mark string
		f.must(f.db.Get(f.t.Context(), &mark, `SELECT count(*) || ' ' || COALESCE(md5(string_agg(t::text, E'\n' ORDER BY t::text)), '') FROM `+rows+` t`))
		marks[table] = mark
	}
	return marks
}

// untouched fails where a row is another one than before.
func (f *fort) untouched(before map[string]string, what string) {
	f.t.Helper()
	for table, mark := range f.seen() {
		if mark != before[table] {
			f.t.Errorf("%s wrote to %s: %q, before %q", what, table, mark, before[table])
		}
	}
}

// spoken is a log that a failed test shows.
type spoken struct{ t *testing.T }

func (s spoken) Write(p []byte) (int, error) {
	if s.t.Context().Err() == nil {
		s.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}
