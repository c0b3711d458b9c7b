package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
)

// api is a server that answers with what a test says and remembers what it was asked.
type api struct {
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	answer func(w http.ResponseWriter, r *http.Request)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*api, string) {
	t.Helper()
	a := &api{answer: answer}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s.URL
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.asked, a.bodies = append(a.asked, r), append(a.bodies, string(body))
	a.mu.Unlock()
	a.answer(w, r)
}

func says(body string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// simple is a tool whose look-up a test completes.
const simple = `
tools:
  pay:
    business_key: "{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    lookup:
      allow_private: true
      found: body.data.filter(p, p.ref == effect.business_key)
      match: same_amount(hit.amount, "minor") && hit.currency == effect.currency
      final: "true"
      reference: hit.id
      result: '{"id": hit.id}'
`

func TestAValueIsEscapedForItsPlace(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a/b", "a?b=c", "a#b", "a&reference=other", "a%2Fb", "a b+c", "../../admin", "Ünï\u0301", `"quoted"`, "a\r\nX-Evil: 1"} {
		a, base := serve(t, says(`{"data":[]}`))
		w := open(t)
		w.declare(simple + "      http: {url: '" + base + "/p/{business_key}/x?q={business_key}&fixed=1'}\n")
		q := w.question()
		q.BusinessKey = key
		if _, seen := w.askAbout(q); seen.Problem != lookup.NoProblem {
			t.Errorf("%q: %s %s", key, seen.Problem, seen.Detail)
			continue
		}
		got := a.asked[0]
		query, err := url.ParseQuery(got.URL.RawQuery)
		if err != nil || len(query) != 2 || query.Get("q") != key || query.Get("fixed") != "1" {
			t.Errorf("%q: the query is %q", key, got.URL.RawQuery)
		}
		path := strings.Split(got.URL.EscapedPath(), "/")
		if plain, err := url.PathUnescape(path[2]); len(path) != 4 || err != nil || plain != key {
			t.Errorf("%q: the path is %q", key, got.URL.EscapedPath())
		}
		if got.Header.Get("X-Evil") != "" {
			t.Errorf("%q: a header was smuggled in", key)
		}
	}
	w := open(t)
	_, base := serve(t, says(`{}`))
	w.declare(simple + "      http: {url: '" + base + "/p/{business_key}'}\n")
	for _, key := range []string{"..", ".", "", "  "} {
		q := w.question()
		q.BusinessKey = key
		if _, seen := w.askAbout(q); seen.Problem != lookup.Unaskable {
			t.Errorf("%q: %s", key, seen.Problem)
		}
	}
}

func TestPostSaysThatItOnlyReads(t *testing.T) {
	t.Parallel()
	a, base := serve(t, says(`{"data":[{"ref":"x\"},\"admin\":{\"y","id":7,"amount":"4200.00","currency":"USD"}]}`))
	w := open(t)
	w.declare(strings.Replace(simple, `"minor"`, `"major"`, 1) + `      http:
        url: ` + base + `/search
        method: POST
        read_only: true
        body: {filter: {ref: "{business_key}", kinds: [payment, "of {currency}"]}, limit: 10, deep: true, none: null}
`)
	q := w.question()
	q.BusinessKey = `x"},"admin":{"y`
	got, _ := w.askAbout(q)
	want(t, got, lookup.Taken, lookup.Matched)
	if got.Reference != "7" || string(got.Result) != `{"id":7}` {
		t.Errorf("reference %q, result %s", got.Reference, got.Result)
	}
	wanted, _ := json.Marshal(q.BusinessKey)
	if a.asked[0].Method != "POST" || a.bodies[0] != `{"filter":{"ref":`+string(wanted)+`,"kinds":["payment","of USD"]},"limit":10,"deep":true,"none":null}` {
		t.Errorf("%s %s", a.asked[0].Method, a.bodies[0])
	}
}

// As floats all of these would be one number.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	for amount, matches := range map[string]bool{
		"9007199254740993": true, "9007199254740992": false, "9007199254740994": false, "9007199254740993.0": true,
		"9007199254740993.000000001": false, "9.007199254740993e15": true, `"9007199254740993"`: true, `"9007199254740993.00"`: true,
		"90071992547409930e-1": true, "-9007199254740993": false,
	} {
		_, base := serve(t, says(`{"data":[{"ref":"INV-9","id":"t","amount":`+amount+`,"currency":"USD"}]}`))
		w := open(t)
		w.declare(simple + "      http: {url: '" + base + "/?q={business_key}'}\n")
		q := w.question()
		arguments, err := canon.ParseObject([]byte(`{"invoice":"INV-9","amount":9007199254740993,"currency":"USD"}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Arguments = arguments
		if err := fill(w, &q); err != nil {
			t.Fatal(err)
		}
		a, _ := w.askAbout(q)
		if (a.Verdict == lookup.Taken) != matches || !matches && a.Reason != lookup.Mismatch {
			t.Errorf("%s: %s (%s)", amount, a.Verdict, a.Reason)
		}
	}
	for _, amount := range []string{`"1,000"`, `"many"`, "null", "true", "[1]", "{}"} {
		_, base := serve(t, says(`{"data":[{"ref":"INV-9","id":"t","amount":`+amount+`,"currency":"USD"}]}`))
		w := open(t)
		w.declare(simple + "      http: {url: '" + base + "/?q={business_key}'}\n")
		if a, seen := w.ask(); a.Verdict != lookup.Inconclusive || seen.Problem != lookup.RuleFailed {
			t.Errorf("%s: %s", amount, seen.Problem)
		}
	}
}

func TestPagesStayOnTheirHostAndEnd(t *testing.T) {
	t.Parallel()
	other, elsewhere := serve(t, says(`{"data":[],"next":null}`))
	for next, problem := range map[string]lookup.Problem{
		"/2": lookup.NoProblem, "2": lookup.NoProblem, "?page=2": lookup.NoProblem,
		elsewhere + "/2": lookup.RuleFailed, "//evil.example/2": lookup.RuleFailed, "https://SELF/2": lookup.RuleFailed, "http://u:p@SELF/2": lookup.RuleFailed,
		"/1?q=INV-9": lookup.MorePages, // in a circle
	} {
		a, base := serve(t, nil)
		a.answer = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/1" && r.URL.Query().Get("page") == "" {
				says(fmt.Sprintf(`{"data":[],"next":%q}`, strings.ReplaceAll(next, "SELF", strings.TrimPrefix(base, "http://"))))(w, r)
				return
			}
			says(`{"data":[],"next":null}`)(w, r)
		}
		w := open(t)
		w.env["TOKEN9"] = "tok-9-zz91"
		w.declare(simple + "      next: body.next\n      http: {url: '" + base + "/1?q={business_key}', headers: {Authorization: 'Bearer ${env:TOKEN9}'}}\n")
		_, seen := w.ask()
		if seen.Problem != problem || seen.Complete != (problem == lookup.NoProblem) {
			t.Errorf("next %q: %s (%s)", next, seen.Problem, seen.Detail)
		}
		for _, r := range a.asked {
			if r.Header.Get("Authorization") != "Bearer tok-9-zz91" {
				t.Errorf("next %q: a page was asked for without credentials", next)
			}
		}
	}
	if len(other.asked) != 0 {
		t.Error("another host was asked, with our credentials")
	}
}

func TestAnAnswerThatSaysThereIsMoreIsNotWhole(t *testing.T) {
	t.Parallel()
	for body, more := range map[string]bool{
		`{"data":[]}`: false, `{"data":[],"has_more":false,"next":null,"nextPageToken":"","paging":{}}`: false,
		`{"data":[],"has_more":true}`: true, `{"data":[],"next":"/2"}`: true, `{"data":[],"nextPageToken":"x"}`: true,
		`{"data":[],"paging":{"next_cursor":"c"}}`: true, `{"data":[],"_links":{"self":"/1"}}`: false, `{"data":[],"meta":{"pagination":{"hasNextPage":true}}}`: true,
		`{"data":[],"@odata.nextLink":"u"}`: true,
	} {
		_, base := serve(t, says(body))
		w := open(t)
		w.declare(simple + "      http: {url: '" + base + "/?q={business_key}'}\n")
		if _, seen := w.ask(); (seen.Problem == lookup.MorePages) != more || seen.Complete == more {
			t.Errorf("%s: %q, complete %v", body, seen.Problem, seen.Complete)
		}
	}
	_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `<https://x/2>; rel="next"`)
		says(`{"data":[]}`)(w, r)
	})
	w := open(t)
	w.declare(simple + "      http: {url: '" + base + "/?q={business_key}'}\n")
	if _, seen := w.ask(); seen.Problem != lookup.MorePages {
		t.Errorf("a Link header: %q", seen.Problem)
	}
}

// A downstream that repeats our credentials does not get them into the record.
func TestBC148_SecretsAreNowhereInWhatIsStored(t *testing.T) {
	t.Parallel()
	_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		says(fmt.Sprintf(`{"data":[{"ref":"INV-9","id":"t","amount":420000,"currency":"USD","note":%q,"password":"pw9-of-theirs"}],"echo":%q,"card":"4111 1111 1111 1111"}`,
			r.Header.Get("X-Key"), r.URL.String()+r.Header.Get("Authorization")))(w, r)
	})
	w := open(t)
	w.env["A"], w.env["B"] = "zz91/secret+of=ours", `zz91"quoted`
	w.declare(simple + "      http:\n        url: " + base + "/?q={business_key}\n        headers: {Authorization: 'Bearer ${env:A}', X-Key: '${env:B}'}\n")
	a, seen := w.ask() // ask fails the test where zz91 is in anything
	want(t, a, lookup.Taken, lookup.Matched)
	raw, _ := json.Marshal([]any{seen, a})
	for _, hidden := range []string{"pw9-of-theirs", "4111 1111 1111 1111"} {
		if strings.Contains(string(raw), hidden) {
			t.Errorf("%s is in what is stored: %s", hidden, raw)
		}
	}
	if !strings.Contains(seen.Excerpt, "[secret]") || !strings.Contains(seen.Excerpt, "INV-9") {
		t.Errorf("the excerpt: %s", seen.Excerpt)
	}
}

func TestAsOfIsBelieved(t *testing.T) {
	t.Parallel()
	_, base := serve(t, says(`{"data":[],"refreshed":"2026-03-01T09:02:00Z"}`)) // before the moment, 09:03
	w := open(t)
	w.declare(simple + "      as_of: timestamp(body.refreshed)\n      http: {url: '" + base + "/?q={business_key}'}\n" +
		"      absence_is_proof: true\n      kept_for: 30d\n      canary: '" + base + "/?q=C'\n      possible: '[]'\n")
	w.pass(5 * time.Hour)
	a, seen := w.ask()
	if !seen.AsOf.Equal(time.Date(2026, 3, 1, 9, 2, 0, 0, time.UTC)) {
		t.Errorf("as of %s", seen.AsOf)
	}
	for _, c := range a.Conditions {
		if c.Name == lookup.FreshView && c.Met {
			t.Error("a view from before the moment is called fresh")
		}
	}
}
