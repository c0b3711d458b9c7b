package desk_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"quittance/web/browsertest"
)

// One person of finance approves a refund on the pages, another sends it, a third sees it
// arrive; whoever only reads is offered nothing.
func TestARefundOnThePages(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	id := w.owed(theBank, "usd", "payer-one", "1230")
	path := "/refunds/" + id
	fay, gil, hal, vera := w.signedIn("fay"), w.signedIn("gil"), w.signedIn("hal"), w.signedIn("vera")
	if page := vera.get(path).text(); strings.Contains(page, "Approve…") || !strings.Contains(page, "12.30 USD") {
		t.Errorf("a reader sees: %s", page)
	}
	if a := vera.step(path, url.Values{"do": {"approve"}}, ""); a.status != http.StatusForbidden {
		t.Errorf("a reader approves: %d", a.status)
	}
	if a := hal.step(path, url.Values{"do": {"approve"}}, ""); a.status != http.StatusConflict || !strings.Contains(a.text(), "two people") {
		t.Errorf("Hal gave it back and approves it: %d %s", a.status, a.text())
	}
	if a := fay.step(path, url.Values{"do": {"approve"}}, "fine"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	if a := fay.step(path, url.Values{"do": {"send"}, "tx": {"out-1"}}, ""); a.status != http.StatusConflict {
		t.Errorf("Fay approved and sends: %d", a.status)
	}
	if a := gil.get(path + "/confirm?do=send&tx=out-1&amount=12.3"); !strings.Contains(a.text(), "12.30 USD") {
		t.Errorf("12.3 is not shown as it is read: %s", a.text())
	}
	for _, bad := range []string{"9.145", "1e2", "12,30", "٥"} {
		if a := gil.get(path + "/confirm?do=send&tx=out-1&amount=" + url.QueryEscape(bad)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", bad, a.status)
		}
	}
	if a := gil.step(path, url.Values{"do": {"send"}, "tx": {"out-1"}, "version": {"1"}}, ""); a.status != http.StatusConflict || !strings.Contains(a.text(), "changed since") {
		t.Errorf("a stale page sends: %d", a.status)
	}
	if a := gil.step(path, url.Values{"do": {"send"}, "tx": {"out-1"}}, ""); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	if page := gil.get(path).text(); !strings.Contains(page, "Not seen to arrive yet") || strings.Contains(page, "It arrived…") {
		t.Errorf("%s", page)
	}
	if a := hal.step(path, url.Values{"do": {"saw"}}, "statement of today"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	page := vera.get(path).text()
	for _, want := range []string{"Refunded", "sent by Gil Ortiz, approved by Fay Moreau, seen by Hal Brandt", "out-1"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing: %s", want, page)
		}
	}
}

// From what is owed one gets to where it came from: its transfer, the order, the payer's
// receipt, and back again from each.
func TestARefundLinksToWhereItCameFrom(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	order := w.order("1000")
	w.incoming(theBank, "usd", "payer-one", "1000", order.OrderID)
	double := w.incoming(theBank, "usd", "payer-one", "1000", order.OrderID)
	refund, transfer, at := "/refunds/"+double.Refund.ID, "/transfers/"+double.Transfer.ID, "/orders/"+order.OrderID
	for path, links := range map[string][]string{
		refund:   {transfer, at, w.pay.ReceiptURL(order.Order)},
		transfer: {refund, at},
		at:       {refund, transfer, w.pay.ReceiptURL(order.Order)},
	} {
		page := w.signedIn("vera").get(path)
		for _, link := range links {
			if !strings.Contains(page.body, `href="`+link+`"`) {
				t.Errorf("%s does not link to %s", path, link)
			}
		}
	}
}

// A form that is sent twice does one thing.
func TestARefundFormTwice(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	id := w.owed(theBank, "usd", "payer-one", "1230")
	fay := w.signedIn("fay")
	page := fay.get("/refunds/" + id + "/confirm?do=hold")
	form := url.Values{"form": {page.token(t, "/refunds/"+id+"/act")}, "do": {"hold"}, "note": {"who is it?"}}
	for i, want := range []string{"done=recorded", "done=again"} {
		if a := fay.send("/refunds/"+id+"/act", form); !strings.Contains(a.location(), want) {
			t.Errorf("%d: %d %s", i, a.status, a.location())
		}
	}
}

func TestAnUnmatchedTransferOnThePages(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	p := w.order("1000")
	m := w.incoming(theBank, "usd", "payer-one", "1000", "")
	fay := w.signedIn("fay")
	if page := fay.get("/money").text(); !strings.Contains(page, "For a person to place") {
		t.Errorf("%s", page)
	}
	path := "/transfers/" + m.Transfer.ID
	if a := fay.step(path, url.Values{"do": {"match"}, "order": {"nonsense"}}, "as the payer wrote"); a.status != http.StatusConflict {
		t.Errorf("%d", a.status)
	}
	if a := fay.step(path, url.Values{"do": {"match"}, "order": {p.OrderID}}, "as the payer wrote"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	page := fay.get("/orders/" + p.OrderID).text()
	for _, want := range []string{"Paid", "Matched to its order by hand", "by Fay Moreau · as the payer wrote", "10.00 USD"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing: %s", want, page)
		}
	}
}

func TestARecoveryOnThePages(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	m := w.month()
	fay := w.signedIn("fay")
	path := "/recoveries/" + m["recovery"]
	for _, x := range []struct {
		form url.Values
		note string
		want string
	}{
		{url.Values{"do": {"confirm"}}, "", "Left twice"}, {url.Values{"do": {"assign"}}, "", "Fay Moreau"}, {url.Values{"do": {"claim"}, "reference": {"ticket 9"}}, "", "ticket 9"},
		{url.Values{"do": {"receive"}, "amount": {"12.5"}, "how": {"cash"}, "reference": {"wire 1"}}, "", "7.50 USD"},
		{url.Values{"do": {"receive"}, "how": {"credit_note"}, "reference": {"CN-7"}}, "", "a credit note"},
	} {
		if a := fay.step(path, x.form, x.note); a.status != http.StatusSeeOther {
			t.Fatalf("%v: %d %s", x.form, a.status, a.text())
		}
		if page := fay.get(path).text(); !strings.Contains(page, x.want) {
			t.Errorf("%v: %q is missing: %s", x.form, x.want, page)
		}
	}
	if a := fay.step(path, url.Values{"do": {"write-off"}}, "too late"); a.status != http.StatusConflict {
		t.Errorf("%d", a.status)
	}
	if page := fay.get("/refunds?state=any").text(); strings.Contains(page, "Birch Supply") {
		t.Error("a recovery counts among what is owed")
	}
}

// records reads a CSV and gives its rows by their columns.
func records(t *testing.T, a answer) (list []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %v", a.status, err)
	}
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, c := range all[0] {
			m[c] = row[i]
		}
		list = append(list, m)
	}
	return list
}

func TestBC141_FinanceCellsAreHarmless(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	names := []string{`=HYPERLINK("http://x.example","see")`, "@SUM(A1)", "+49 30 1", "-1+1", "a\u202eb"}
	for _, n := range names {
		w.owed(theBank, "usd", n, "500")
	}
	rows := records(t, w.signedIn("vera").get("/refunds.csv?zone=Asia/Tokyo"))
	var totals, refunds int
	for _, r := range rows {
		switch r["record"] {
		case "refund":
			refunds++
			if strings.ContainsRune("=+-@\t\r", rune(r["payer"][0])) || strings.Contains(r["payer"], "\u202e") {
				t.Errorf("payer %q", r["payer"])
			}
			if r["amount_atomic"] != "500" || r["amount"] != "5.00" || r["code"] != "USD" || !strings.HasSuffix(r["opened_at"], "+09:00") {
				t.Errorf("%v", r)
			}
		case "total":
			totals++
			if r["amount_atomic"] != "2500" || r["open"] != "25.00" || r["rows"] != "5" {
				t.Errorf("%v", r)
			}
		}
	}
	last := rows[len(rows)-1]
	if refunds != 5 || totals != 1 || last["record"] != "export" || last["log_position"] == "0" || last["rows"] != "5" || !strings.Contains(last["filter"], "Tokyo") {
		t.Errorf("%d refunds, %d totals, %v", refunds, totals, last)
	}
}

func TestTheJournalUsesTheTeamsAccounts(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	w.month()
	rows := records(t, w.signedIn("vera").get("/journal.csv"))
	sum := map[string]int{}
	names := map[string]string{}
	for _, r := range rows {
		if r["record"] == "posting" {
			names[r["account"]] = r["account_name"]
			sum[r["entry"]]++
		}
		if r["record"] == "total" && r["amount_atomic"] != "0" {
			t.Errorf("the journal does not balance: %v", r)
		}
	}
	if names["refund_owed"] != "2150 Refunds owed" || names["revenue"] != "'=4000 Sales" || names["refund_wallet"] != "Refund wallet" {
		t.Errorf("%v", names)
	}
	for entry, n := range sum {
		if n < 2 {
			t.Errorf("entry %s has %d side", entry, n)
		}
	}
}

// Days are of the zone in the address, for everybody who opens it.
func TestBC151_OwedByDayOfTheZone(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	first, second := w.owed(theBank, "usd", "payer-first", "100"), w.owed(theBank, "usd", "payer-second", "900")
	w.exec(`ALTER TABLE refunds DISABLE TRIGGER refunds_fixed`)
	w.exec(`ALTER TABLE refunds DISABLE TRIGGER refunds_steps_forward`)
	for id, at := range map[string]string{first: "2026-05-13T15:30:00Z", second: "2026-05-16T15:30:00Z"} {
		w.exec(`UPDATE refunds SET opened_at = $2::timestamptz WHERE id = $1::uuid`, id, at)
	}
	link := "/refunds?from=2026-05-14&to=2026-05-16&zone=Asia%2FTokyo"
	for _, who := range []string{"fay", "vera"} {
		page := w.signedIn(who).get(link).text()
		if !strings.Contains(page, "payer-first") || strings.Contains(page, "payer-second") || !strings.Contains(page, "Asia/Tokyo") || !strings.Contains(page, "1.00") {
			t.Errorf("%s sees: %s", who, page)
		}
	}
	rows := records(t, w.signedIn("vera").get("/refunds.csv?from=2026-05-14&to=2026-05-16&zone=Asia%2FTokyo"))
	if rows[0]["opened_at"] != "2026-05-14T00:30:00.000000+09:00" || rows[1]["record"] != "total" {
		t.Errorf("%v", rows)
	}
}

// A report as of an earlier day is folded from the log: what happened since is not in it.
func TestAReportAsOfADay(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	id := w.owed(theBank, "usd", "payer-one", "100")
	shift := func(days int) {
		for _, x := range []string{"payment_events_append_only ON payment_events", "refunds_fixed ON refunds", "refunds_steps_forward ON refunds"} {
			name, table, _ := strings.Cut(x, " ON ")
			w.exec(`ALTER TABLE ` + table + ` DISABLE TRIGGER ` + name)
			defer w.exec(`ALTER TABLE ` + table + ` ENABLE TRIGGER ` + name)
		}
		w.exec(`UPDATE payment_events SET at = at - make_interval(days => $1)`, days)
		w.exec(`UPDATE refunds SET opened_at = opened_at - make_interval(days => $1)`, days)
	}
	shift(5)
	w.check(w.refund.Approve(t.Context(), w.act(w.fay, id)))
	w.sent(id, "")
	w.check(w.refund.Saw(t.Context(), w.act(w.hal, id)))
	vera := w.signedIn("vera")
	if page := vera.get("/refunds").text(); strings.Contains(page, "payer-one") {
		t.Errorf("it is paid and listed: %s", page)
	}
	day := time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)
	page := vera.get("/refunds?as_of=" + day + "&zone=UTC").text()
	if !strings.Contains(page, "payer-one") || !strings.Contains(page, "folded from the log") || !strings.Contains(page, "2 days") {
		t.Errorf("as of %s: %s", day, page)
	}
	early := time.Now().UTC().AddDate(0, 0, -9).Format(time.DateOnly)
	if page := vera.get("/refunds?as_of=" + early).text(); strings.Contains(page, "payer-one") {
		t.Errorf("as of %s: %s", early, page)
	}
}

// Every page of finance, wide and narrow, light and dark: it fits, and axe-core has nothing
// to object.
func TestMoneyPages(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	m := w.month()
	doubt := w.doubt()
	pages := []struct{ name, path string }{
		{"payments", "/payments"}, {"payments-filter", "/payments?view=any&filters=open"}, {"payment", "/orders/" + doubt.OrderID}, {"payment-confirm", "/orders/" + doubt.OrderID + "/confirm?do=not-taken"},
		{"refunds", "/refunds"}, {"refunds-filter", "/refunds?state=any&filters=open&zone=Asia/Tokyo"}, {"recoveries", "/recoveries?state=any"}, {"recovery", "/recoveries/" + m["recovery"]},
		{"money", "/money"}, {"order", "/orders/" + m["order"]}, {"transfer", "/transfers/" + m["unmatched"]}, {"transfer-confirm", "/transfers/" + m["unmatched"] + "/confirm?do=give-back"},
		{"refund-confirm", "/refunds/" + m["owed"] + "/confirm?do=approve"}, {"recovery-confirm", "/recoveries/" + m["recovery"] + "/confirm?do=confirm"}, {"refunds-empty", "/refunds?payer=nobody"},
	}
	for _, state := range []string{"owed", "approved", "sending", "sent", "unknown", "confirmed", "returned", "held", "odd", "hebrew", "duplicate"} {
		pages = append(pages, struct{ name, path string }{"refund-" + state, "/refunds/" + m[state]})
	}
	for name, look := range map[string]browsertest.Look{
		"wide": {}, "dark": {Dark: true}, "phone": {Width: 360, Height: 760, Scale: 2}, "phone-dark": {Width: 360, Height: 760, Dark: true, Scale: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := (&world{t: t, url: w.url}).page(look, "fay", "/refunds")
			for i, x := range pages {
				if look.Dark && i%3 != 0 { // colours are the same everywhere
					continue
				}
				goTo(t, w.world, p, x.path)
				fits(t, p)
				if look.Width == 0 || !look.Dark {
					accessible(t, p)
				}
				picture(t, p, "money-"+x.name+"-"+name, true)
			}
		})
	}
}

// Over more than a page shows the totals come after the rows, by a link that works without
// scripts.
func TestTotalsOfManyComeAfterTheRows(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	for range 51 {
		w.owed(theBank, "usd", "payer-one", "100")
	}
	v := w.signedIn("vera")
	page := v.get("/refunds")
	if !strings.Contains(page.body, `href="/refunds?count=yes" data-later`) || strings.Contains(page.text(), "51.00") {
		t.Error("the rows wait for the totals")
	}
	if page := v.get("/refunds?count=yes"); !strings.Contains(page.text(), "51.00 USD") || strings.Contains(page.body, "data-later") {
		t.Errorf("%s", page.text())
	}
}

// The export of recoveries has a control total a currency, the filter, and the position of
// its log; text that a spreadsheet would run is made harmless.
func TestTheExportOfRecoveries(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	for i, x := range []struct{ who, amount, currency string }{{"=HYPERLINK(1)", "1250", "USD"}, {"Birch", "50", "USD"}, {"Oak", "6400", "JPY"}} {
		decimals := map[string]int{"USD": 2, "JPY": 0}[x.currency]
		w.exec(`INSERT INTO recoveries (id, origin, effect_id, currency, decimals, amount, counterparty, state, opened_at, changed_at)
			SELECT gen_random_uuid(), 'double', $1::uuid, $2, $3, $4, $5, 'confirmed', now(), now()`, w.interrupted(fmt.Sprint("run-", i), "send_payment", `{"amount":"1"}`), x.currency, decimals, x.amount, x.who)
	}
	w.exec(`INSERT INTO recoveries (id, origin, effect_id, counterparty, state, opened_at, changed_at)
		SELECT gen_random_uuid(), 'double', $1::uuid, 'nobody said how much', 'suspected', now(), now()`, w.interrupted("run-9", "send_payment", `{"amount":"1"}`))
	rows := records(t, w.signedIn("vera").get("/recoveries.csv?zone=Asia%2FTokyo"))
	totals := map[string]string{}
	for _, r := range rows {
		switch r["record"] {
		case "recovery":
			if strings.HasPrefix(r["counterparty"], "=") || !strings.HasSuffix(r["opened_at"], "+09:00") {
				t.Errorf("%v", r)
			}
		case "total":
			totals[r["code"]] = r["amount"] + " in " + r["rows"]
		}
	}
	last := rows[len(rows)-1]
	if len(rows) != 7 || totals["USD"] != "13.00 in 2" || totals["JPY"] != "6400 in 1" || last["record"] != "export" || last["rows"] != "4" || !strings.Contains(last["filter"], "Tokyo") {
		t.Errorf("%v", rows)
	}
}

func TestTotalsAreNeverAddedAcrossAssets(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	w.month()
	rows := records(t, w.signedIn("vera").get("/refunds.csv?state=any"))
	var seen []string
	for _, r := range rows {
		if r["record"] == "total" {
			seen = append(seen, r["network"]+" "+r["asset"])
		}
	}
	if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) || len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

// What a person can do takes a third of the window; the tables beside it are whole all the
// same.
func TestSheetsAreNotCutOff(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	m := w.month()
	order := w.order("1000")
	w.incoming(theBank, "usd", "payer-one", "1000", order.OrderID)
	w.incoming(theBank, "usd", "payer-one", "1000", order.OrderID)
	paths := []string{"/orders/" + order.OrderID, "/orders/" + w.doubt().OrderID, "/transfers/" + m["unmatched"], "/recoveries/" + m["recovery"], "/money"}
	for _, name := range []string{"sent", "unknown", "confirmed", "duplicate"} {
		paths = append(paths, "/refunds/"+m[name])
	}
	for name, look := range map[string]browsertest.Look{"1280": {}, "1920": {Width: 1920, Height: 1000}, "360": {Width: 360, Height: 760}} {
		t.Run(name, func(t *testing.T) {
			p := (&world{t: t, url: w.url}).page(look, "fay", "/refunds")
			for _, path := range paths {
				goTo(t, w.world, p, path)
				whole(t, p, path)
			}
		})
	}
}

// whole checks that no table of the page is cut off, nor what stands in it.
func whole(t *testing.T, p playwright.Page, path string) {
	t.Helper()
	fits(t, p)
	cut, err := p.Evaluate(`() => [...document.querySelectorAll(".scrolls")].map(e => e.scrollWidth - e.clientWidth).filter(n => n > 0)`)
	must(t, err)
	over, err := p.Evaluate(`() => [...document.querySelectorAll(".scrolls td, .scrolls td .money")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline").map(e => e.innerText)`)
	must(t, err)
	if len(cut.([]any)) > 0 || len(over.([]any)) > 0 {
		t.Errorf("%s: %v px are cut off, %v do not fit their place", path, cut, over)
	}
}

// With eighteen decimals in every bucket of ages nothing of a list is cut off, no word is
// broken, and the value stays exact.
func TestListsOfManyDecimalsAreNotCutOff(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	const address = "0xa000000000000000000000000000000000000001"
	w.exec(`ALTER TABLE refunds DISABLE TRIGGER refunds_fixed`)
	w.exec(`ALTER TABLE refunds DISABLE TRIGGER refunds_steps_forward`)
	for _, days := range []int{0, 1, 5, 20, 40, 90} {
		id := w.owed(onBase, weth, address, fmt.Sprintf("%d987654321000000001", 1234+days))
		w.exec(`UPDATE refunds SET opened_at = opened_at - make_interval(days => $2) WHERE id = $1::uuid`, id, days)
		w.exec(`INSERT INTO recoveries (id, origin, effect_id, currency, decimals, amount, counterparty, state, opened_at, changed_at)
			SELECT gen_random_uuid(), 'double', $1::uuid, 'WETH', 18, $2, $3, 'suspected', now() - make_interval(days => $4), now()`,
			w.interrupted(fmt.Sprint("run-", days), "send_payment", `{"amount":"1"}`), fmt.Sprintf("%d987654321000000001", 1234+days), address, days)
	}
	w.owed(onBase, weth, address, "1500000000000000000")
	w.owed(onBase, usdc, address, "4200000")
	for name, look := range map[string]browsertest.Look{"1280": {}, "1440": {Width: 1440, Height: 900}, "360": {Width: 360, Height: 760}, "1280-dark": {Dark: true}} {
		t.Run(name, func(t *testing.T) {
			p := (&world{t: t, url: w.url}).page(look, "fay", "/refunds")
			for _, path := range []string{"/refunds", "/recoveries"} {
				goTo(t, w.world, p, path)
				whole(t, p, path)
				text, err := p.Locator("main").InnerText()
				must(t, err)
				for _, want := range []string{"1,234.987654321000000001", "1 day\n"} {
					if !strings.Contains(text, want) {
						t.Errorf("%s lacks %q", path, want)
					}
				}
				for _, never := range []string{"1 days", address, "1.500000000000000000", "4.200000"} {
					if strings.Contains(text, never) {
						t.Errorf("%s says %q", path, never)
					}
				}
				picture(t, p, "money-many-decimals"+strings.ReplaceAll(path, "/", "-")+"-"+name, true)
			}
			owner := p.GetByText("nobody", playwright.PageGetByTextOptions{Exact: new(true)}).First()
			box, err := owner.BoundingBox()
			must(t, err)
			if box.Height > 30 {
				t.Errorf("the owner stands in %v px: the word is broken", box.Height)
			}
		})
	}
}

// What stands first is what this person should do next; where it is somebody else's turn
// the page says so, and leads nowhere.
func TestARefundLeadsToTheViewersNextStep(t *testing.T) {
	t.Parallel()
	w := newMoneyWorld(t)
	first := func(page answer) string {
		m := regexp.MustCompile(`<button class="btn first">([^<]*)</button>`).FindAllStringSubmatch(page.body, -1)
		var all []string
		for _, x := range m {
			all = append(all, x[1])
		}
		return strings.Join(all, ", ")
	}
	fay, gil, hal := w.signedIn("fay"), w.signedIn("gil"), w.signedIn("hal")
	id := w.owed(theBank, "usd", "payer-one", "1230")
	path := "/refunds/" + id
	see := func(who *visitor, want, says string) {
		t.Helper()
		page := who.get(path)
		if got := first(page); got != want || !strings.Contains(page.text(), says) {
			t.Errorf("leads to %q, not %q; %q: %s", got, want, says, page.text())
		}
	}
	see(hal, "", "You decided that it is given back: another person approves it.")
	see(fay, "Approve…", "Waits for approval")
	w.check(w.refund.Approve(t.Context(), w.act(w.fay, id)))
	see(fay, "", "You approved it: another person sends it.")
	see(gil, "Record…", "Waits to be sent")
	w.check(w.refund.Start(t.Context(), w.act(w.gil, id), ""))
	see(fay, "", "Gil Ortiz is sending it")
	see(gil, "Record…", "Being sent")
	w.sent(id, "")
	see(gil, "", "You sent it: the network, or another person, says that it arrived.")
	see(hal, "It arrived…", "Not seen to arrive yet")
	w.check(w.refund.Saw(t.Context(), w.act(w.hal, id)))
	see(hal, "", "Refunded")
}
