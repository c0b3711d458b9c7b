package public_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"quittance/handlers/public"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	rows "quittance/ledger/payments"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/reconcile/refunds"
	"quittance/web"
)

const rules = `
release: {hold: 0s, not_taken_hold: 0s}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example, refund_within: 240h}
rails:
  bank:main:
    name: The bank
    assets:
      usd: {code: USD, decimals: 2}
      jpy: {code: JPY, decimals: 0}
      krw: {code: KRW, decimals: 0}
`

const secret = "the-argument-that-nobody-may-see"

type world struct {
	t             *testing.T
	db            *ledger.DB
	pay           *payments.Engine
	refund        *refunds.Engine
	url           string
	account       int64
	ada, ben, cem access.MadeBy
	n             int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: ledgertest.New(t)}
	p, mistakes := policy.Load("quittance.yaml", []byte(rules))
	if p == nil {
		t.Fatal(mistakes)
	}
	log := slog.New(slog.DiscardHandler)
	engine, err := effects.New(t.Context(), w.db, p, notify.NewHub(), log)
	w.must(err)
	w.pay, err = payments.New(t.Context(), payments.Options{DB: w.db, Effects: engine, Policy: engine.Policy, Log: log})
	w.must(err)
	w.refund = refunds.New(refunds.Options{DB: w.db, Policy: engine.Policy, Log: log})
	who := access.New(w.db)
	w.must(who.AddAgentToken(t.Context(), "acme", "test", "qa_a-token-for-the-tests", 0))
	w.must(w.db.Get(t.Context(), &w.account, `SELECT id FROM accounts`))
	person := func(name string) access.MadeBy {
		id, err := who.AddPerson(t.Context(), name, "", []string{"finance"})
		w.must(err)
		return access.MadeBy{Person: &access.Person{ID: id, Name: name}}
	}
	w.ada, w.ben, w.cem = person("Ada"), person("Ben"), person("Cem")
	e, err := web.New(web.Options{Log: log})
	w.must(err)
	web.RegisterStatic(e)
	public.Register(e, public.Options{Payments: w.pay, Policy: engine.Policy, Log: log})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// order is an order of an amount, and where its receipt is.
func (w *world) order(asset, amount string) (*payments.Payment, string) {
	w.t.Helper()
	w.n++
	id := fmt.Sprintf("payment-with-a-receipt-%d", w.n)
	a, err := w.pay.Claim(w.t.Context(), payments.Asked{
		Account: w.account, Gateway: "shop", PaymentID: id, Payer: "payer-one", HasRequest: true, Method: "POST", Tool: "write_page", Arguments: []byte(`{"page":"` + secret + `"}`),
		Amount: amount, Asset: asset, Network: "bank:main", PayTo: "our-account",
	})
	w.must(err)
	p, err := w.pay.Order(w.t.Context(), payments.NewOrder{Step: payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: id}, Fence: a.Fence}, Description: secret})
	w.must(err)
	return p, w.pay.ReceiptURL(p.Order)
}

// arrive lets money come for an order.
func (w *world) arrive(p *payments.Payment, amount string) *payments.Moved {
	w.t.Helper()
	w.n++
	m, err := w.pay.Post(w.t.Context(), payments.Incoming{
		Account: w.account, Network: p.Network, Tx: fmt.Sprintf("in-%d", w.n), Asset: p.Asset, From: "payer-one", To: "our-account", Amount: amount, OrderID: p.OrderID, Final: true,
	})
	w.must(err)
	return m
}

func (w *world) act(by access.MadeBy, id string) refunds.Act {
	return refunds.Act{By: by, Refund: id, Note: "a note that nobody may see"}
}

// paidOut gives a refund back.
func (w *world) paidOut(id string) string {
	w.t.Helper()
	w.n++
	tx := fmt.Sprintf("out-%d", w.n)
	w.must(w.refund.Approve(w.t.Context(), w.act(w.ada, id)))
	w.must(w.refund.Send(w.t.Context(), w.act(w.ben, id), refunds.Reference{Tx: tx}))
	w.must(w.refund.Saw(w.t.Context(), w.act(w.cem, id)))
	return tx
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (w *world) get(path, accept string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, nil)
	w.must(err)
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	w.must(err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (w *world) page(path string) string {
	w.t.Helper()
	a := w.get(path, "text/html")
	if a.status != http.StatusOK {
		w.t.Fatalf("%s: %d", path, a.status)
	}
	s := regexp.MustCompile(`(?s)<(title|svg)[^>]*>.*?</(title|svg)>`).ReplaceAllString(a.body, "")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(s, " ")), " ")
}

// says wants a receipt to say texts, as a page and in the same words as JSON, and never what
// it may not.
func (w *world) says(path, state string, texts ...string) {
	w.t.Helper()
	page := w.page(path)
	for _, x := range append(texts, state) {
		if !strings.Contains(page, x) {
			w.t.Errorf("%q is not on the receipt: %s", x, page)
		}
	}
	var j struct {
		Words, State string
		Refund       *struct{ Words string }
	}
	a := w.get(path, "application/json")
	w.must(json.Unmarshal([]byte(a.body), &j))
	if j.Words != state {
		w.t.Errorf("the page says %q and the JSON %q", state, j.Words)
	}
	for _, never := range []string{secret, "ailed", "Ada", "Ben", "nobody may see", "payment-with-a-receipt"} {
		if strings.Contains(page, never) || strings.Contains(a.body, never) {
			w.t.Errorf("the receipt says %q", never)
		}
	}
}

func TestAReceiptFromNothingToRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	w.says(at, "Nothing received so far", "10.00 USD", "Paid Pages Ltd", "help@shop.example")
	w.arrive(p, "400")
	w.says(at, "Partly received", "4.00 USD")
	w.arrive(p, "900") // tops it up, with 3.00 over
	w.says(at, "Paid", "The bank", "Refund due", "3.00 USD")
	m := w.arrive(p, "1000")
	w.says(at, "Paid", "13.00 USD", "Due by", "payer-one")
	tx := w.paidOut(m.Refund.ID)
	w.says(at, "Paid", "Refund due", tx) // the 3.00 are still owed
}

func TestUnknownIsNeverCalledAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	_, err := w.pay.Broadcast(t.Context(), payments.Sending{Step: payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: p.PaymentID}, Fence: p.Fence}})
	w.must(err)
	w.says(at, "We are checking", "Do not pay again")
	_, err = w.pay.Finish(t.Context(), payments.Finish{Step: payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: p.PaymentID}, Fence: p.Fence}, Outcome: "unknown", Why: "facilitator said success false"})
	w.must(err)
	w.says(at, "We are checking")
	w.arrive(p, "1000")
	w.says(at, "Paid")
}

func TestBC088_TheReceiptOfARefundThatCameBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "500")
	w.arrive(p, "500")
	m := w.arrive(p, "500")
	w.paidOut(m.Refund.ID)
	w.says(at, "Paid", "Refunded")
	list, err := w.refund.Payouts(t.Context(), m.Refund.ID)
	w.must(err)
	for range 2 {
		w.must(w.refund.CameBack(t.Context(), w.act(w.cem, m.Refund.ID), refunds.Back{Payout: list[0].ID, Tx: "return-1"}))
	}
	w.says(at, "Paid", "Refund came back and is due again")
	w.paidOut(m.Refund.ID)
	w.says(at, "Paid", "Refunded")
}

func TestBC093_AReceiptWithoutDecimals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for asset, want := range map[string]string{"jpy": "6,400 JPY", "krw": "6,400 KRW"} {
		p, at := w.order(asset, "6400")
		w.arrive(p, "6400")
		w.says(at, "Paid", want)
		if page := w.page(at); strings.Contains(page, "6,400.") {
			t.Errorf("decimals are shown: %s", page)
		}
	}
}

func TestBC145_OnlyTheWholeTokenOpensAReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var last string
	for range 10 {
		p, at := w.order("usd", "1000")
		w.arrive(p, "1000")
		last = at
	}
	token := strings.TrimPrefix(last, "/r/")
	swap := func(s string) string {
		if s == strings.ToUpper(s) {
			return strings.ToLower(s)
		}
		return strings.ToUpper(s)
	}
	next := token[:21] + string("AB"[min(1, strings.Count(token[21:], "A"))])
	want := w.get("/r/no-such-receipt-at-all", "text/html")
	if want.status != http.StatusNotFound {
		t.Fatalf("%d", want.status)
	}
	for _, bad := range []string{swap(token), next, token[:21], token[:8], token + "A", token + "/", token + "/x", "1", ""} {
		if bad == token {
			continue
		}
		got := w.get("/r/"+bad, "text/html")
		if got.status != want.status || got.body != want.body {
			t.Errorf("%q is answered %d, and not like any other wrong one", bad, got.status)
		}
	}
	good := w.get(last, "text/html")
	for name, value := range map[string]string{"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive"} {
		if good.header.Get(name) != value {
			t.Errorf("%s: %q", name, good.header.Get(name))
		}
	}
	if !strings.Contains(good.body, `content="noindex`) || strings.Contains(good.body, "<script") {
		t.Error("the page may be indexed, or runs a script")
	}
	var ids []string
	w.must(w.db.Select(t.Context(), &ids, `SELECT id::text FROM orders UNION SELECT payment_id FROM payments UNION SELECT id::text FROM transfers`))
	for _, id := range ids {
		if strings.Contains(good.body, id) {
			t.Errorf("the receipt names %s", id)
		}
	}
}

func TestARevokedReceiptLooksUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	w.says(at, "Nothing received so far")
	fresh, err := w.pay.RevokeReceipt(t.Context(), payments.Revoke{By: w.ada, Order: p.OrderID, Note: "it was sent to somebody else"})
	w.must(err)
	if got := w.get(at, "text/html"); got.status != http.StatusNotFound || got.body != w.get("/r/x", "text/html").body {
		t.Errorf("%d", got.status)
	}
	w.says(fresh, "Nothing received so far")
}

func TestBC146_EachStepShowsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	agrees := func(want string) {
		t.Helper()
		var j struct{ Refund *struct{ State string } }
		w.must(json.Unmarshal([]byte(w.get(at, "application/json").body), &j))
		now, err := w.pay.PaymentOfOrder(t.Context(), w.account, p.OrderID)
		w.must(err)
		state, _, _ := payments.RefundState(now.Refunds)
		got := ""
		if j.Refund != nil {
			got = j.Refund.State
		}
		if got != want || state != want {
			t.Errorf("the receipt says %q, the look-up %q; want %q", got, state, want)
		}
	}
	w.arrive(p, "1000")
	w.says(at, "Paid")
	agrees("")
	m := w.arrive(p, "1000")
	w.says(at, "Paid", "Refund due")
	agrees("owed")
	w.paidOut(m.Refund.ID)
	w.says(at, "Paid", "Refunded")
	agrees("confirmed")
	for _, accept := range []string{"text/html", "application/json"} {
		if h := w.get(at, accept).header; h.Get("Cache-Control") != "private, no-store" || h.Get("Vary") != "Accept" {
			t.Errorf("%v", h)
		}
	}
}

func TestBC139_MarkupOnAReceiptIsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	w.n++
	_, err := w.pay.Post(t.Context(), payments.Incoming{
		Account: w.account, Network: p.Network, Tx: `<img src=x onerror=alert(1)>`, Asset: p.Asset, From: `"><script>alert(2)</script>`, To: "our-account", Amount: "2000", OrderID: p.OrderID, Final: true,
	})
	w.must(err)
	a := w.get(at, "text/html")
	if strings.Contains(a.body, "<img") || strings.Contains(a.body, "<script") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error(a.body)
	}
	if !strings.Contains(a.body, "&lt;img src=x") {
		t.Error("the reference is not shown as text")
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, at := w.order("usd", "1000")
	slowed := 0
	for i := range 80 { // a new minute may begin in between
		if w.get(fmt.Sprintf("/r/guess-%d", i), "text/html").status == http.StatusTooManyRequests {
			slowed++
		}
	}
	if slowed == 0 {
		t.Error("nobody is slowed down")
	}
	w.says(at, "Nothing received so far")
}

// The receipt promises a day only while it lies ahead; after it, it says that it is late.
func TestAReceiptOfALateRefundSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "1000")
	w.arrive(p, "1000")
	m := w.arrive(p, "1000")
	promise, late := "We send the refund by the day that stands above", "The refund is late"
	if page := w.page(at); !strings.Contains(page, promise) || strings.Contains(page, late) {
		t.Errorf("%s", page)
	}
	_, err := w.db.Pool().ExecContext(t.Context(), `ALTER TABLE refunds DISABLE TRIGGER refunds_fixed; ALTER TABLE refunds DISABLE TRIGGER refunds_steps_forward;
		UPDATE refunds SET opened_at = opened_at - interval '11 days'`)
	w.must(err)
	page, j := w.page(at), w.get(at, "application/json").body
	if strings.Contains(page, promise) || !strings.Contains(page, late) || !strings.Contains(page, "still owed to you") || !strings.Contains(j, `"late":true`) {
		t.Errorf("%s\n%s", page, j)
	}
	_, err = w.db.Pool().ExecContext(t.Context(), `ALTER TABLE refunds ENABLE TRIGGER refunds_steps_forward`)
	w.must(err)
	w.must(w.refund.Approve(t.Context(), w.act(w.ada, m.Refund.ID)))
	w.must(w.refund.Send(t.Context(), w.act(w.ben, m.Refund.ID), refunds.Reference{Tx: "out-9"}))
	if page := w.page(at); !strings.Contains(page, "on its way, later than the day") {
		t.Errorf("%s", page)
	}
	w.must(w.refund.Saw(t.Context(), w.act(w.cem, m.Refund.ID)))
	if page, j := w.page(at), w.get(at, "application/json").body; strings.Contains(page, "is late") || strings.Contains(j, `"late"`) {
		t.Errorf("%s\n%s", page, j)
	}
}
