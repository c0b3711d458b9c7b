package desk_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/ledger/audit"
	"quittance/reconcile/effects"
	"quittance/web/browsertest"
)

// The pages about what is observed and what is delivered: what they say, who may act,
// that nothing is inline, and that they fit and are accessible.
func TestObservedAndDeliveredPages(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(500)
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(end.Close)
	w := newWorldWith(t, fmt.Sprintf(`
webhooks:
  payers: {url: "%s/<b>", secrets: ["${env:LETTERS_SECRET}"], allow_private: true}
tools:
  send_payment: {mode: observe, summary: "Pay {amount} {currency} to {vendor}", business_key: "{invoice}", amount: {value: amount, currency: currency, unit: major}}
`, end.URL))
	v := w.signedIn("vera")
	if a := v.get("/observe"); a.status != 200 || !strings.Contains(a.text(), "Nothing was observed") {
		t.Errorf("%d %s", a.status, a.text())
	}
	if a := v.get("/deliveries"); a.status != 200 || !strings.Contains(a.text(), "Nothing was delivered") {
		t.Errorf("%d %s", a.status, a.text())
	}

	args := pay("<script>alert(1)</script>", "I-1", "120.00", "USD")
	for _, run := range []string{"run-1", "run-2"} {
		l, id := w.begun(run, "send_payment", args)
		if _, err := w.engine.Apply(t.Context(), []effects.Op{{Finish: &effects.Finish{Account: w.account, EffectID: id, Outcome: "taken"}}}); err != nil {
			t.Fatal(err)
		}
		if run == "run-1" {
			if _, err := w.engine.Release(t.Context(), w.account, run, l.Token, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := v.get("/observe?tool=send_payment&since=7")
	for _, want := range []string{"Only observed", "240.00 USD", "120.00 USD", "Held", "Another call has its business key."} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("the page does not say %q:\n%s", want, a.text())
		}
	}
	link := regexp.MustCompile(`href="(/deliveries/[0-9a-f-]{36})"`)
	var path string
	for end := time.Now().Add(30 * time.Second); path == ""; time.Sleep(50 * time.Millisecond) {
		if m := link.FindStringSubmatch(v.get("/deliveries").body); m != nil && strings.Contains(v.get(m[1]).text(), "Internal Server Error") {
			path = m[1]
		}
		if time.Now().After(end) {
			t.Fatalf("nothing was delivered: %s", v.get("/deliveries").text())
		}
	}
	if a := v.get(path); strings.Contains(a.body, "Send it now") || !strings.Contains(a.text(), "msg_"+strings.TrimPrefix(path, "/deliveries/")) {
		t.Errorf("%s", a.text())
	}
	status.Store(204)
	p := w.signedIn("petra")
	token := p.get(path).token(t, path+"/replay")
	if a := p.send(path+"/replay", url.Values{"form": {token}}); a.status != http.StatusSeeOther {
		t.Errorf("%d %s", a.status, a.text())
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(p.get(path).text(), "Delivered"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it was not sent again: %s", p.get(path).text())
		}
	}
	rows, err := audit.Page(t.Context(), w.db, audit.Filter{Action: "delivery.replay", Limit: 5})
	if err != nil || len(rows) != 1 || rows[0].Actor != "Petra Lind" || rows[0].Subject != "delivery:"+strings.TrimPrefix(path, "/deliveries/") {
		t.Errorf("%+v %v", rows, err)
	}
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|<script(?:\s[^>]*)?>[^<]|\son[a-z]+=|javascript:`)
	page := w.page(browsertest.Look{Width: 360, Height: 760, Scale: 2}, "ada", "/")
	for _, path := range []string{"/observe", "/deliveries", path} {
		if found := inline.FindString(p.get(path).body); found != "" {
			t.Errorf("%s: %q", path, found)
		}
		goTo(t, w, page, path)
		fits(t, page)
		accessible(t, page)
		picture(t, page, "wake-"+strings.Trim(path, "/")[:7], true)
	}
}
