package desk_test

import (
	"context"
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
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/handlers/api"
	"quittance/handlers/desk"
	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/jobs"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/bulk"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup/simulator"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/recoveries"
	"quittance/reconcile/refunds"
	"quittance/reconcile/seal"
	"quittance/reconcile/wake"
	"quittance/web"
)

const rules = `
release: {hold: 10s, not_taken_hold: 120s}
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
    lands_within: 0s
    second_person_above: {USD: "10000.00"}
    result_example: {payment_id: "po_1"}
    where_to_check:
      - "Search the bank portal for {invoice}"
      - https://bank.example/payments?q={invoice}
  send_email:
    summary: "Send {subject} to {to}"
    deadline: 60s
`

// world is a whole server with a database of its own, three people and an account.
type world struct {
	t       testing.TB
	db      *ledger.DB
	engine  *effects.Engine
	access  *access.Service
	hub     *notify.Hub
	sealer  *seal.Sealer
	pay     *payments.Engine
	refund  *refunds.Engine
	url     string
	account int64
	petra   effects.Person // operator
	quentin effects.Person // operator
	ada     effects.Person // admin, with every role
	vera    effects.Person // viewer
}

// surroundings hold the secret that policies of these tests look up with.
var surroundings = read.Surroundings{
	Getenv: func(name string) (string, bool) {
		value, set := map[string]string{"BANK_TOKEN": simulator.LiveToken, "LETTERS_SECRET": "whsec_bGV0dGVycy1vZi10aGUtZGVzay10ZXN0cw=="}[name]
		return value, set
	},
	ReadFile: os.ReadFile,
}

const password = "correct horse battery staple"

func newWorld(t testing.TB) *world { return newWorldWith(t, rules) }

func newWorldWith(t testing.TB, source string) *world {
	t.Helper()
	w := &world{t: t, db: ledgertest.New(t), hub: notify.NewHub()}
	p, mistakes := policy.LoadIn(surroundings, "quittance.yaml", []byte(source))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if w.engine, err = effects.New(t.Context(), w.db, p, w.hub, log); err != nil {
		t.Fatal(err)
	}
	w.access = access.New(w.db)
	w.sealer = seal.New(w.db, seal.NewAnchor(filepath.Join(t.TempDir(), "anchor.json")), func() { w.hub.Changed("") }, log)
	err = w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		w.account, err = store.Account(ctx, tx, "acme")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.petra = w.addPerson("Petra Lind", "petra", "operator")
	w.quentin = w.addPerson("Quentin Osei", "quentin", "operator", "approver")
	w.ada = w.addPerson("Ada Winter", "ada", access.Roles...)
	w.vera = w.addPerson("Vera Kim", "vera", "viewer")
	e, err := web.New(web.Options{Log: log, CrossOrigin: desk.AuditCrossOrigin(w.access, log)})
	if err != nil {
		t.Fatal(err)
	}
	e.Use(desk.AuditAPI(w.access, log))
	waker := wake.New(w.db, w.engine.Policy, "", log)
	if err := api.Register(e, api.Options{Engine: w.engine, Access: w.access, Deliveries: waker, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	many := bulk.New(w.db, w.engine)
	work, err := jobs.New(w.db, slog.New(slog.DiscardHandler), many.Funcs())
	if err != nil {
		t.Fatal(err)
	}
	many.Use(work)
	if w.pay, err = payments.New(t.Context(), payments.Options{DB: w.db, Effects: w.engine, Policy: w.engine.Policy, Log: log}); err != nil {
		t.Fatal(err)
	}
	w.refund = refunds.New(refunds.Options{DB: w.db, Policy: w.engine.Policy, Log: log})
	desk.Register(e, desk.Options{
		Engine: w.engine, Access: w.access, DB: w.db, Hub: w.hub, Bulk: many, Wake: waker, Sealer: w.sealer, Payments: w.pay, Refunds: w.refund,
		Recoveries: recoveries.New(w.db), Log: log, Version: "test",
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	w.url = s.URL
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.engine.Loops(ctx) })
	running.Go(func() { waker.Run(ctx) })
	running.Go(func() { w.pay.Run(ctx) })
	running.Go(func() { w.refund.Run(ctx) })
	running.Go(func() {
		if err := work.Run(ctx); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	return w
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func (w *world) addPerson(name, mail string, roles ...string) effects.Person {
	w.t.Helper()
	link, err := w.access.Add(w.t.Context(), access.MadeBy{}, name, mail+"@example.com", roles)
	if err != nil {
		w.t.Fatal(err)
	}
	opened, err := w.access.OpenLink(w.t.Context(), link)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.access.UseLink(w.t.Context(), link, password, "UTC"); err != nil {
		w.t.Fatal(err)
	}
	return effects.Person{ID: opened.Person, Name: name}
}

// interrupted makes an effect whose outcome nobody knows, and returns its id.
func (w *world) interrupted(run, tool, args string) string {
	w.t.Helper()
	l, id := w.begun(run, tool, args)
	if _, err := w.engine.Release(w.t.Context(), w.account, run, l.Token, ""); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// begun makes an effect that is under way.
func (w *world) begun(run, tool, args string) (effects.Lease, string) {
	w.t.Helper()
	l, err := w.engine.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "ap-bot", Worker: "pod-7f9c/4411", AttemptID: "s1"})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.engine.Apply(w.t.Context(), []effects.Op{{Begin: &effects.Begin{
		Account: w.account, RunID: run, Lease: l.Token, AttemptID: "a1", Tool: tool, Arguments: []byte(args),
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	if a[0].Begin == nil {
		if a[0].Refusal != nil && a[0].Refusal.EffectID != "" {
			return l, a[0].Refusal.EffectID
		}
		w.t.Fatalf("begin: %+v", a[0].Refusal)
	}
	return l, a[0].Begin.EffectID
}

func pay(vendor, invoice, amount, currency string) string {
	return fmt.Sprintf(`{"vendor":%q,"invoice":%q,"amount":%q,"currency":%q}`, vendor, invoice, amount, currency)
}

func (w *world) effect(id string) effects.EffectView {
	w.t.Helper()
	v, err := w.engine.Effect(w.t.Context(), 0, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// visitor is a browser without pages: it keeps cookies and does not follow redirects.
type visitor struct {
	w *world
	c *http.Client
}

func (w *world) visitor() *visitor {
	jar, _ := cookiejar.New(nil)
	return &visitor{w, &http.Client{Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a visitor who has signed in.
func (w *world) signedIn(mail string) *visitor {
	w.t.Helper()
	v := w.visitor()
	a := v.send("/sign-in", url.Values{"email": {mail + "@example.com"}, "password": {password}})
	if a.status != http.StatusSeeOther {
		w.t.Fatalf("sign-in of %s: %d", mail, a.status)
	}
	return v
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) location() string { return a.header.Get("Location") }

// text is the page without its tags, as a reader without CSS has it.
func (a answer) text() string {
	s := regexp.MustCompile(`(?s)<(script|style|svg)[^>]*>.*?</(script|style|svg)>`).ReplaceAllString(a.body, "")
	s = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(s, " ")
	s = strings.NewReplacer("&#39;", "'", "&quot;", `"`, "&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
	return strings.Join(strings.Fields(s), " ")
}

// token is the form token inside the form that posts to action.
func (a answer) token(t testing.TB, action string) string {
	t.Helper()
	i := strings.Index(a.body, `action="`+action+`"`)
	if i < 0 {
		t.Fatalf("there is no form to %s on the page", action)
	}
	m := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(a.body[i:])
	if m == nil {
		t.Fatalf("the form to %s has no token", action)
	}
	return m[1]
}

func (v *visitor) get(path string) answer {
	v.w.t.Helper()
	return v.do(v.request(http.MethodGet, path, nil))
}

func (v *visitor) send(path string, form url.Values) answer {
	v.w.t.Helper()
	r := v.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

func (v *visitor) request(method, path string, body io.Reader) *http.Request {
	v.w.t.Helper()
	r, err := http.NewRequestWithContext(v.w.t.Context(), method, v.w.url+path, body)
	if err != nil {
		v.w.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return r
}

func (v *visitor) do(r *http.Request) answer {
	v.w.t.Helper()
	resp, err := v.c.Do(r)
	if err != nil {
		v.w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.w.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}
