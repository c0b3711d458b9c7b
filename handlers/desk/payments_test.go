package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
)

// doubt is a payment of which nobody knows what became, on a rail that nobody can ask.
func (w *moneyWorld) doubt() *payments.Payment {
	w.t.Helper()
	p := w.order("1000")
	step := payments.Step{Name: rows.Name{Account: w.account, Gateway: "shop", PaymentID: p.PaymentID}, Fence: p.Fence}
	_, err := w.pay.Broadcast(w.t.Context(), payments.Sending{Step: step})
	w.check(err)
	p, err = w.pay.Finish(w.t.Context(), payments.Finish{Step: step, Outcome: "unknown", Why: "the bank gave no answer"})
	w.check(err)
	w.exec(`ALTER TABLE payments DISABLE TRIGGER payments_fence`)
	w.exec(`ALTER TABLE payments DISABLE TRIGGER payments_fixed`)
	w.exec(`UPDATE payments SET claimed_at = claimed_at - interval '3 hours', broadcast_at = broadcast_at - interval '3 hours', first_at = first_at - interval '3 hours' WHERE id = $1`, p.ID)
	w.exec(`ALTER TABLE payments ENABLE TRIGGER payments_fence`)
	w.exec(`ALTER TABLE payments ENABLE TRIGGER payments_fixed`)
	return p
}

// A payment that nobody can find out about is listed first, decided by one person, and let go
// by another; the payer's receipt then says so.
func TestAnUnknownPaymentOnThePages(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	p := w.doubt()
	path := "/orders/" + p.OrderID
	fay, gil, vera := w.signedIn("fay"), w.signedIn("gil"), w.signedIn("vera")
	page := vera.get("/payments")
	if !strings.Contains(page.body, `href="`+path+`"`) || !strings.Contains(page.text(), "Nobody can ask its rail: two people decide") || !strings.Contains(page.text(), "Payments 1") {
		t.Errorf("%s", page.text())
	}
	if page := vera.get(path).text(); strings.Contains(page, "Not taken…") {
		t.Errorf("a reader decides: %s", page)
	}
	version := func(v *visitor) string { return v.get(path).field(t, "version") }
	act := func(v *visitor, do, note string, more ...string) answer {
		q := url.Values{"do": {do}, "version": {version(v)}}
		if len(more) > 0 {
			q.Set("tx", more[0])
		}
		return v.step(path, q, note)
	}
	confirm := fay.get(path + "/confirm?do=not-taken").text()
	for _, want := range []string{"10.00 USD", "our-account", "payer-one", "may pay again", "Where you looked"} {
		if !strings.Contains(confirm, want) {
			t.Errorf("%q is not confirmed: %s", want, confirm)
		}
	}
	if a := vera.step(path, url.Values{"do": {"not-taken"}}, "x"); a.status != http.StatusForbidden {
		t.Errorf("a reader decides: %d", a.status)
	}
	if a := act(fay, "not-taken", ""); a.status != http.StatusConflict {
		t.Errorf("without a word why: %d", a.status)
	}
	if a := act(fay, "not-taken", "not on the statement of today"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	if page := fay.get(path).text(); !strings.Contains(page, "Take it back") || strings.Contains(page, "Let it go…") {
		t.Errorf("%s", page)
	}
	if a := fay.step(path, url.Values{"do": {"let-go"}, "version": {version(fay)}}, "once more"); a.status != http.StatusConflict {
		t.Errorf("one person does both: %d", a.status)
	}
	if page := gil.get(path).text(); !strings.Contains(page, "Fay Moreau says that nothing was taken: “not on the statement of today") {
		t.Errorf("%s", page)
	}
	if a := act(gil, "let-go", "too soon"); a.status != http.StatusConflict || !strings.Contains(a.text(), "not before") {
		t.Errorf("it is let go at once: %d %s", a.status, a.text())
	}
	if page := vera.get("/payments?view=decide").body; !strings.Contains(page, path) {
		t.Error("what waits to be let go is not listed")
	}
	w.exec(`ALTER TABLE payment_decisions DISABLE TRIGGER payment_decisions_fixed`)
	w.exec(`UPDATE payment_decisions SET made_at = made_at - interval '1 hour', ready_at = ready_at - interval '1 hour'`)
	if a := act(gil, "let-go", "nor on mine"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	text := vera.get(path).text()
	for _, want := range []string{"Failed", "Let go: nothing was taken", "by Gil Ortiz · nor on mine", "by Fay Moreau · not on the statement of today"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
	if r, err := w.pay.ReceiptOf(t.Context(), strings.TrimPrefix(w.pay.ReceiptURL(p.Order), "/r/")); err != nil || r.State != payments.ToldNotCharged {
		t.Errorf("the payer reads %v, %v", r, err)
	}
	if page := vera.get("/payments"); strings.Contains(page.body, path) || !strings.Contains(page.text(), "Nothing to look at") {
		t.Errorf("it is listed still: %s", page.text())
	}
	if page := vera.get("/payments?view=over"); !strings.Contains(page.body, path) {
		t.Error("what is over is nowhere")
	}
	// Money that comes after all is an alert, until somebody has seen it.
	w.incoming(theBank, "usd", "payer-one", "1000", p.OrderID)
	if page := vera.get("/payments?view=alerts").text(); !strings.Contains(page, "1 alert") {
		t.Errorf("%s", page)
	}
	if a := act(gil, "seen", "told the payer"); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.text())
	}
	if page := vera.get("/payments?view=alerts").body; strings.Contains(page, path) {
		t.Error("it stays an alert")
	}
}

// What a person found on the statement pays the order.
func TestAPaymentThatAPersonFound(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	p := w.doubt()
	path := "/orders/" + p.OrderID
	fay, gil := w.signedIn("fay"), w.signedIn("gil")
	version := func() string {
		at, err := rows.LastEvent(t.Context(), w.db, p.ID)
		w.check(err)
		return fmt.Sprint(at)
	}
	if a := fay.step(path, url.Values{"do": {"settled"}, "version": {version()}, "tx": {"wire-77"}}, "line 4 of the statement"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	w.exec(`ALTER TABLE payment_decisions DISABLE TRIGGER payment_decisions_fixed`)
	w.exec(`UPDATE payment_decisions SET made_at = made_at - interval '1 hour', ready_at = ready_at - interval '1 hour'`)
	if page := gil.get(path + "/confirm?do=let-go").text(); !strings.Contains(page, "wire-77") || !strings.Contains(page, "10.00 USD") {
		t.Errorf("%s", page)
	}
	if a := gil.step(path, url.Values{"do": {"let-go"}, "version": {version()}}, "I see it too"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	page := fay.get(path).text()
	for _, want := range []string{"Paid", "wire-77", "Let go: it was settled", "pays its order"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing: %s", want, page)
		}
	}
}

// The views and filters of the list say no more than fits; what cannot be is a fault of the
// address.
func TestTheListOfPayments(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	for range 55 {
		w.doubt()
	}
	v := w.signedIn("vera")
	first := v.get("/payments?view=unknown&rail=" + url.QueryEscape(theBank) + "&gateway=shop&age=0-1")
	if n := strings.Count(first.body, `href="/orders/`); n != 50 || !strings.Contains(first.body, `rel="next"`) {
		t.Fatalf("%d rows", n)
	}
	_, rest, _ := strings.Cut(first.body, `<a class="btn small" href="`)
	next, _, _ := strings.Cut(rest, `"`)
	if n := strings.Count(v.get(strings.ReplaceAll(next, "&amp;", "&")).body, `href="/orders/`); n != 5 {
		t.Errorf("%d rows on the second page", n)
	}
	for path, want := range map[string]int{
		"/payments?gateway=other": 200, "/payments?view=nonsense": 422, "/payments?age=nonsense": 422, "/payments?payer=nobody&view=any": 200, "/payments?view=in_flight": 200,
		"/payments?from=" + time.Now().AddDate(0, 0, 2).Format(time.DateOnly): 200, "/payments?view=unpaid": 200, "/payments?as_of=2026-01-31": 422, "/recoveries?as_of=2026-01-31": 422,
	} {
		if a := v.get(path); a.status != want || strings.Contains(a.body, `href="/orders/`) {
			t.Errorf("%s: %d, and lists %d", path, a.status, strings.Count(a.body, `href="/orders/`))
		}
	}
}

// A receipt's address that came into wrong hands is revoked by finance, with a reason; the
// old one is gone for ever, the new one works.
func TestAReceiptsAddressIsRevokedOnThePage(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	p := w.order("1000")
	path, old := "/orders/"+p.OrderID, w.pay.ReceiptURL(p.Order)
	fay, vera := w.signedIn("fay"), w.signedIn("vera")
	if a := vera.step(path, url.Values{"do": {"revoke-receipt"}}, "x"); a.status != http.StatusForbidden {
		t.Errorf("a reader revokes: %d", a.status)
	}
	if a := fay.step(path, url.Values{"do": {"revoke-receipt"}}, " "); a.status != http.StatusConflict {
		t.Errorf("without a reason: %d", a.status)
	}
	if page := fay.get(path + "/confirm?do=revoke-receipt").text(); !strings.Contains(page, "404 from now on, for ever") {
		t.Errorf("%s", page)
	}
	if a := fay.step(path, url.Values{"do": {"revoke-receipt"}}, "it was posted in a forum"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	token := func(at string) string { return at[strings.LastIndex(at, "/")+1:] }
	if _, err := w.pay.ReceiptOf(t.Context(), token(old)); err == nil {
		t.Error("the old address opens it")
	}
	again, err := w.pay.PaymentOfOrder(t.Context(), 0, p.OrderID)
	w.check(err)
	at := w.pay.ReceiptURL(again.Order)
	if _, err := w.pay.ReceiptOf(t.Context(), token(at)); err != nil || at == old {
		t.Errorf("the new one: %v", err)
	}
	page := fay.get(path)
	if !strings.Contains(page.body, at) || !strings.Contains(page.text(), "The receipt's address was revoked by Fay Moreau · it was posted in a forum") {
		t.Errorf("%s", page.text())
	}
	var trail int
	w.check(w.db.Get(t.Context(), &trail, `SELECT count(*) FROM audit WHERE action = 'receipt.revoke' AND outcome = 'done'`))
	if trail != 1 {
		t.Errorf("%d lines in the trail", trail)
	}
}
