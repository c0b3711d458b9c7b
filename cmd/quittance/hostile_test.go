package main

import (
	"encoding/base64"
	"fmt"
	"html"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// TestNoAddressBreaksAPage sends every page and every call that reads what nobody would type
// into its filters: none fails, none keeps it in a cache, and no header is made of it.
func TestNoAddressBreaksAPage(t *testing.T) {
	t.Parallel()
	f, list := newFort(t), doorOf(t)
	admin := f.signedIn(f.everyRole())
	place := func(at, id string) string { return base64.RawURLEncoding.EncodeToString([]byte(at + " " + id)) }
	const id = "01890000-0000-7000-8000-000000000001"
	values := []string{
		"", "'", `"`, `\`, "%", "_%_", "'; DROP TABLE effects; --", "$1", "{{.}}", "-1", "0", "1e9", "99999999999999999999999999999999999999999", "0x10", "NaN", "null", "true", "[]",
		"0000-00-00", "0001-01-01", "9999-12-31", "2026-02-30", "-292277022399-01-01", "Europe/../../etc/passwd", "Local", "300000h", "-5m", "60s",
		place("0000-01-01T00:00:00Z", id), place("9999-12-31T23:59:59.999999999Z", id), place("2026-01-01T00:00:00Z", "{"+id+"}"), place("2026-01-01T00:00:00Z", "x"), "AAAA", "====",
		"a\r\nSet-Cookie: stolen=1", "\u202e\u2066", strings.Repeat("x", 800), "<script>alert(1)</script>", "javascript:alert(1)", "//evil.example", "https://evil.example", `\\evil.example`,
	}
	filters := strings.Fields(`q tool agent run key state age currency least most closed from to zone cursor subject action person outcome via since limit account run_id
		business_key endpoint gateway rail asset reason payer as_of`)
	names := append(strings.Fields(`filters count done network owner mine at note next by do what verdict amount tx reference wait edit confirm with before after order entry text batch`), filters...)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		d := list[name]
		method, path, _ := strings.Cut(name, " ")
		if method != "GET" || path == "/events" || path == "/readyz" {
			continue // a stream, and one that says that no loop runs
		}
		queries := []url.Values{}
		for _, value := range values {
			q := url.Values{}
			for _, n := range names {
				q.Set(n, value)
			}
			queries = append(queries, q)
		}
		if !strings.Contains(path, ":") { // of a list one by one too: the first bad filter hides the others
			for _, n := range filters {
				for _, value := range []string{`'%_\`, "9999-12-31", place("0000-01-01T00:00:00Z", id)} {
					queries = append(queries, url.Values{n: {value}, "currency": {"USD"}})
				}
			}
		}
		for _, q := range queries {
			if q.Get("wait") == "60s" {
				q.Del("wait") // it would be waited for
			}
			value := q.Encode()
			browser, token := admin, ""
			switch {
			case d == agents:
				browser, token = nil, acmeToken
			case d.ofAPI():
				browser, token = nil, f.everyRole()
			}
			a := f.send(browser, "GET", f.address(path, f.things)+"?"+q.Encode(), token, "", "")
			if a.status >= 500 {
				t.Errorf("%s with %.60q: %d %.300s", name, value, a.status, a.body)
			}
			if len(a.header.Values("Set-Cookie")) > 0 {
				t.Errorf("%s with %.60q sets a cookie", name, value)
			}
			if at := a.header.Get("Location"); at != "" && (!strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//") || strings.ContainsAny(at, "\\\r\n")) {
				t.Errorf("%s with %.60q leads to %s", name, value, at)
			}
			if kept := a.header.Get("Cache-Control"); !strings.Contains(kept, "no-store") && !strings.HasPrefix(path, "/static/") {
				t.Errorf("%s with %.60q: Cache-Control %q", name, value, kept)
			}
			if strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, `href="javascript:`) || strings.Contains(a.body, `href="//evil`) {
				t.Errorf("%s with %.60q holds it as markup", name, value)
			}
		}
	}
}

// everyRole is the token of somebody with every role.
func (f *fort) everyRole() string {
	f.t.Helper()
	const token = "qp_person-who-is-everything"
	if f.access.Known(token) {
		return token
	}
	var id int64
	if err := f.db.Get(f.t.Context(), &id, `SELECT id FROM people WHERE name = 'Everything'`); err != nil {
		id, err = f.access.AddPerson(f.t.Context(), "Everything", "everything@example.com", access.Roles)
		f.must(err)
		f.must(f.access.AddPersonToken(f.t.Context(), id, "test", token, 0))
	}
	return token
}

// TestStoredMarkupIsTextOnEveryPage puts markup into everything that comes from outside and
// follows every link from the queue on.
func TestStoredMarkupIsTextOnEveryPage(t *testing.T) {
	t.Parallel()
	f := newFort(t)
	n := 0
	bad := func() string { // each time another, to be told apart in lists
		n++
		return fmt.Sprintf(`x%d'"><xss onload=alert(1)></xss><!--`, n)
	}
	quoted := func() string { return strconv.Quote(bad()) }
	run := "run " + bad()
	lease := f.agent("PUT", "/v1/runs/"+url.PathEscape(run), `{"agent":`+quoted()+`,"worker":`+quoted()+`,"attempt_id":"a"}`)["lease"].(map[string]any)["token"].(string)
	begin := func(attempt, tool string) map[string]any {
		return f.agent("POST", "/v1/effects", `{"run_id":`+strconv.Quote(run)+`,"lease":"`+lease+`","attempt_id":"`+attempt+`","tool":`+tool+`,"call_id":`+quoted()+
			`,"arguments":{"vendor":`+quoted()+`,"invoice":`+quoted()+`,"amount":"1.00","currency":"USD",`+quoted()+`:`+quoted()+`},"context":{"labels":{`+quoted()+`:`+quoted()+`},"trace":`+quoted()+`,"why":`+quoted()+`}}`)
	}
	taken := begin("b", quoted())
	f.agent("POST", "/v1/effects/"+taken["effect_id"].(string)+"/finish", `{"fence":`+fmt.Sprint(taken["fence"])+`,"outcome":"taken","reference":`+quoted()+`,"result":{`+quoted()+`:`+quoted()+`}}`)
	lost := begin("c", `"send_payment"`)
	f.agent("POST", "/v1/effects/"+lost["effect_id"].(string)+"/finish", `{"fence":`+fmt.Sprint(lost["fence"])+`,"outcome":"unknown","error":`+quoted()+`}`)
	for _, asset := range []string{`"usd"`, quoted()} {
		f.agent("POST", "/v1/transfers", `{"network":"bank:main","tx":`+quoted()+`,"position":0,"asset":`+asset+`,"from":`+quoted()+`,"to":`+quoted()+`,"amount":"700","memo":`+quoted()+`,"order_id":"`+f.things["order_id"]+`","final":true}`)
	}
	person, err := f.access.AddPerson(t.Context(), "P "+bad(), "p@example.com", access.Roles)
	f.must(err)
	const token = "qp_person-with-an-odd-name"
	f.must(f.access.AddPersonToken(t.Context(), person, bad(), token, 0))
	call := func(path, body string) {
		if a := f.send(nil, "POST", path, token, "application/json", body); a.status >= 300 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
	}
	effect := "/v1/effects/" + lost["effect_id"].(string)
	call(effect+"/evidence", `{"seen":`+quoted()+`,"note":`+quoted()+`}`)
	var view struct{ version int64 }
	f.must(f.db.Get(t.Context(), &view.version, `SELECT version FROM effects WHERE id = $1`, lost["effect_id"]))
	call(effect+"/decision", fmt.Sprintf(`{"decision_id":"d","version":%d,"verdict":"taken","note":%s,"reference":%s,"result":{%s:%s}}`, view.version, quoted(), quoted(), quoted(), quoted()))

	admin := f.signedIn(token)
	seen, todo := map[string]bool{}, []string{"/", "/?closed=any", "/runs", "/decided", "/refunds?state=any", "/recoveries", "/money", "/tools", "/observe", "/audit", "/people", "/you", "/health", "/deliveries", "/nowhere", "/sign-in",
		"/transfers/" + f.things["/transfers/:id"], "/orders/" + f.things["order_id"], "/effects/" + taken["effect_id"].(string), "/effects/" + lost["effect_id"].(string), f.receipt()}
	link := regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	shown := 0
	for len(todo) > 0 && len(seen) < 400 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] || strings.HasPrefix(path, "/static/") || strings.HasPrefix(path, "/events") {
			continue
		}
		seen[path] = true
		a := f.send(admin, "GET", path, "", "", "")
		if a.status >= 500 {
			t.Errorf("%s: %d", path, a.status)
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			if a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: a browser may take it for a page", path)
			}
			continue
		}
		shown += strings.Count(a.body, "&lt;xss")
		if i := strings.Index(a.body, "<xss"); i >= 0 {
			t.Errorf("%s holds markup: %q", path, a.body[max(0, i-100):i+40])
		}
		if i := strings.Index(a.body, `'">`); i >= 0 {
			t.Errorf("%s: an attribute is left: %q", path, a.body[max(0, i-100):i+40])
		}
		if p := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") || !strings.Contains(p, "base-uri 'none'") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, p)
		}
		for _, m := range link.FindAllStringSubmatch(a.body, -1) {
			to := html.UnescapeString(m[1])
			u, err := url.Parse(to)
			switch {
			case err != nil:
				t.Errorf("%s links to %q", path, to)
			case u.Scheme == "mailto": // the seller's, of the policy
			case u.Scheme != "" || u.Host != "":
				t.Errorf("%s leads elsewhere: %q", path, to)
			case strings.HasPrefix(u.Path, "/"):
				u.Fragment = ""
				todo = append(todo, u.String())
			}
		}
	}
	if shown < 40 || len(seen) < 40 {
		t.Errorf("the markup is shown as text %d times on %d pages: this proves little", shown, len(seen))
	}
	for _, path := range []string{"/effects.csv", "/refunds.csv?state=any", "/journal.csv", "/audit.csv", "/audit.jsonl"} {
		a := f.send(admin, "GET", path, "", "", "")
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %s, %s", path, a.status, a.header.Get("Content-Type"), a.header.Get("Content-Disposition"))
		}
	}
}

// receipt is the address of the order's receipt.
func (f *fort) receipt() string {
	f.t.Helper()
	at, _ := f.agent("GET", "/v1/orders/"+f.things["order_id"], "")["receipt"].(string)
	u, err := url.Parse(at)
	f.must(err)
	return u.Path
}

// TestASessionIsNewAtEachSignIn: a secret that somebody else put into the browser opens
// nothing, and the one from before is over.
func TestASessionIsNewAtEachSignIn(t *testing.T) {
	t.Parallel()
	f := newFort(t)
	planted := "qs_" + strings.Repeat("A", 43)
	b := f.browser()
	u, _ := url.Parse(f.url)
	b.Jar.SetCookies(u, []*http.Cookie{{Name: "quittance", Value: planted, Path: "/"}})
	signIn := func() string {
		a := f.send(b, "POST", "/sign-in", "", formKind, url.Values{"token": {roleToken("admin")}}.Encode())
		set := a.header.Get("Set-Cookie")
		if a.status != http.StatusSeeOther || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") || !strings.Contains(set, "Path=/") || strings.Contains(set, "Domain") {
			t.Errorf("%d, cookie %q", a.status, set)
		}
		return f.cookies(b)[0].Value
	}
	with := func(secret string) int {
		x := f.browser()
		x.Jar.SetCookies(u, []*http.Cookie{{Name: "quittance", Value: secret, Path: "/"}})
		return f.send(x, "GET", "/you", "", "", "").status
	}
	first := signIn()
	if first == planted || with(planted) != http.StatusSeeOther {
		t.Error("the planted secret is signed in")
	}
	second := signIn()
	if second == first || with(first) != http.StatusSeeOther || with(second) != http.StatusOK {
		t.Error("signing in again keeps the session from before")
	}
}

// TestAWrongNameTakesAsLongAsAWrongPassword, so that names cannot be found out.
func TestAWrongNameTakesAsLongAsAWrongPassword(t *testing.T) {
	t.Parallel()
	f := newFort(t)
	link, err := f.access.Add(t.Context(), access.MadeBy{}, "Petra", "petra@example.com", []string{"operator"})
	f.must(err)
	_, err = f.access.UseLink(t.Context(), link, "correct horse battery staple", "UTC")
	f.must(err)
	// The processor's time would be the measure; the least of four is near enough to it.
	least := func(mail func(int) string) time.Duration {
		best := time.Hour
		for i := range 4 {
			began := time.Now()
			a := f.send(nil, "POST", "/sign-in", "", formKind, url.Values{"email": {mail(i)}, "password": {"not the password"}}.Encode())
			if a.status != http.StatusUnauthorized {
				t.Fatalf("%d", a.status)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	known := least(func(int) string { return "petra@example.com" })
	for name, mail := range map[string]func(int) string{
		"nobody": func(i int) string { return fmt.Sprintf("nobody-%d@example.com", i) }, "somebody without a password": func(int) string { return "viewer@example.com" },
	} {
		if took := least(mail); took < known/2 {
			t.Errorf("%s is refused after %v, a wrong password after %v", name, took, known)
		}
	}
}

// TestTenThousandIdleConnections: those who connect and say nothing hold up nobody, and are
// gone after a while.
func TestTenThousandIdleConnections(t *testing.T) {
	t.Parallel()
	const many = 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if files.Cur < many+500 {
		t.Fatalf("only %d files may be open: raise it (ulimit -n)", files.Cur)
	}
	p := serve(t, nil, "--data", ledgertest.DataDir(t))
	address := strings.TrimPrefix(p.url, "http://")
	conns := make([]net.Conn, 0, many)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for len(conns) < many {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", len(conns), err)
		}
		conns = append(conns, c)
		if len(conns)%1000 == 0 {
			began := time.Now()
			if code, _ := p.get("/readyz"); code != http.StatusOK || time.Since(began) > 2*time.Second {
				t.Errorf("beside %d connections: %d after %v", len(conns), code, time.Since(began))
			}
		}
	}
	t.Logf("beside %d idle connections the server has %d MB", many, resident(t, p.cmd.Process.Pid)>>20)
	if used := resident(t, p.cmd.Process.Pid); used > 400<<20 {
		t.Errorf("the server has %d MB", used>>20)
	}
	// The last one is the last to be closed: the server reads no request from it in time.
	last := conns[many-1]
	_ = last.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := last.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("an idle connection is still open: %v", err)
	}
	if code, _ := p.get("/readyz"); code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}

// resident is how much memory a process has, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
