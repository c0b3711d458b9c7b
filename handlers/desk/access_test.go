package desk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"quittance/handlers/desk"
	"quittance/reconcile/effects"
)

func TestBC143_ForeignFormsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d30", "send_payment", pay("Birch", "D-30", "20.00", "USD"))
	p, q := w.signedIn("petra"), w.signedIn("quentin")
	_, form := p.toConfirm(id, verdict("not_taken", "Nothing there"))
	for _, path := range []string{"/effects/" + id + "/decision", "/sign-out", "/you/zone", "/you/tokens"} {
		r := p.request(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if a := p.do(r); a.status != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, a.status)
		}
		r = p.request(http.MethodPost, path, strings.NewReader(`{"verdict":"not_taken"}`))
		r.Header.Set("Content-Type", "text/plain")
		if a := p.do(r); a.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s as text/plain: %d", path, a.status)
		}
		if a := p.send(path, url.Values{"verdict": {"not_taken"}}); a.status != http.StatusForbidden {
			t.Errorf("%s without a token: %d", path, a.status)
		}
		if a := q.send(path, form); a.status != http.StatusForbidden {
			t.Errorf("%s with another session's token: %d", path, a.status)
		}
	}
	if w.effect(id).State != "interrupted" || p.get("/").status != http.StatusOK {
		t.Error("something changed")
	}
	if n := w.audited("effect.decide", "denied", id); n != 2 {
		t.Errorf("%d denied attempts in the audit trail, want 2", n)
	}
}

// TestDeniedOverTheAPIIsAudited: the same people, the same trail, whichever way they come.
func TestDeniedOverTheAPIIsAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-api", "send_payment", pay("Birch", "API", "20.00", "USD"))
	for _, p := range []struct {
		who   effects.Person
		token string
	}{{w.vera, "qp_token-of-vera-0001"}, {w.petra, "qp_token-of-petra-001"}} {
		if err := w.access.AddPersonToken(t.Context(), p.who.ID, "test", p.token, 0); err != nil {
			t.Fatal(err)
		}
	}
	call := func(token, decision string) int {
		r := w.visitor().request(http.MethodPost, "/v1/effects/"+id+"/decision", strings.NewReader(fmt.Sprintf(
			`{"decision_id":%q,"version":%d,"verdict":"taken","note":"seen"}`, decision, w.effect(id).Version)))
		r.Header.Set("Authorization", "Bearer "+token)
		return w.visitor().do(r).status
	}
	lines := func(outcome string) (n int) {
		if err := w.db.Get(t.Context(), &n, `SELECT count(*) FROM audit WHERE subject = $1 AND outcome = $2`, "effect:"+id, outcome); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := call("qp_nobody-has-this-one", "d1"); got != 401 || lines("denied") != 1 {
		t.Errorf("an unknown token: %d, %d lines", got, lines("denied"))
	}
	if got := call("qp_token-of-vera-0001", "d2"); got != 403 || lines("denied") != 2 {
		t.Errorf("a viewer: %d, %d lines", got, lines("denied"))
	}
	if got := call("qp_token-of-petra-001", "d3"); got != 200 || lines("done") != 1 {
		t.Errorf("an operator: %d, %d lines", got, lines("done"))
	}
	var crossed int
	r := w.visitor().request(http.MethodPost, "/sign-in", strings.NewReader(""))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := w.visitor().do(r); a.status != http.StatusForbidden {
		t.Errorf("another site: %d", a.status)
	}
	if err := w.db.Get(t.Context(), &crossed, `SELECT count(*) FROM audit WHERE action = 'cross_origin'`); err != nil || crossed != 1 {
		t.Errorf("%d lines about another site, %v", crossed, err)
	}
}

func TestSignInIsThrottledAndTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor()
	wrong := func(mail string) answer {
		return v.send("/sign-in", url.Values{"email": {mail}, "password": {"not the password"}})
	}
	unknown, known := wrong("nobody@example.com"), wrong("petra@example.com")
	strip := func(a answer, mail string) string { return strings.ReplaceAll(a.body, mail, "") }
	if unknown.status != http.StatusUnauthorized || strip(unknown, "nobody@example.com") != strip(known, "petra@example.com") {
		t.Error("an unknown name is told from a wrong password")
	}
	for range 6 {
		known = wrong("petra@example.com")
	}
	if known.status != http.StatusTooManyRequests || known.header.Get("Retry-After") == "" {
		t.Errorf("after many failures: %d", known.status)
	}
	if a := v.send("/sign-in", url.Values{"email": {"petra@example.com"}, "password": {password}}); a.status != http.StatusTooManyRequests {
		t.Errorf("the right password while throttled: %d", a.status)
	}
	if w.signedIn("quentin").get("/").status != http.StatusOK {
		t.Error("somebody else is throttled too")
	}
	var denied int
	if err := w.db.Get(t.Context(), &denied, `SELECT count(*) FROM audit WHERE action = 'sign_in' AND outcome = 'denied'`); err != nil || denied < 8 {
		t.Errorf("%d denied sign-ins in the audit trail, %v", denied, err)
	}
}

func TestSessionsEndAndAreNotStoredInTheClear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn("petra")
	u, _ := url.Parse(w.url)
	cookies := v.c.Jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatalf("%d cookies", len(cookies))
	}
	secret := cookies[0].Value
	var found int
	if err := w.db.Get(t.Context(), &found, `SELECT count(*) FROM sessions WHERE hash = convert_to($1, 'UTF8') OR encode(hash, 'escape') LIKE '%' || $1 || '%'`, secret); err != nil || found != 0 {
		t.Errorf("the secret is stored as it is (%d), %v", found, err)
	}
	page := v.get("/")
	if strings.Contains(page.body, secret) {
		t.Error("a page holds the session's secret")
	}
	if a := v.send("/sign-out", url.Values{"form": {page.token(t, "/sign-out")}}); a.location() != "/sign-in" {
		t.Fatalf("sign-out: %d", a.status)
	}
	stolen := w.visitor()
	stolen.c.Jar.SetCookies(u, cookies)
	if a := stolen.get("/"); a.status != http.StatusSeeOther {
		t.Errorf("a session that was signed out still opens: %d", a.status)
	}
	again := w.signedIn("petra")
	if again.c.Jar.Cookies(u)[0].Value == secret {
		t.Error("the secret is not a new one")
	}
	w.exec(`UPDATE sessions SET expires_at = clock_timestamp() - interval '1 second'`)
	if a := again.get("/"); a.status != http.StatusSeeOther {
		t.Errorf("an expired session: %d", a.status)
	}
}

// TestLivePagesDoNotKeepASession: a page that reads itself again is nobody's use.
func TestLivePagesDoNotKeepASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn("petra")
	w.exec(`UPDATE sessions SET seen_at = seen_at - interval '50 minutes'`)
	seen := func() (minutes float64) {
		if err := w.db.Get(t.Context(), &minutes, `SELECT extract(epoch FROM clock_timestamp() - max(seen_at))::float8 / 60 FROM sessions`); err != nil {
			t.Fatal(err)
		}
		return minutes
	}
	r := v.request(http.MethodGet, "/", nil)
	r.Header.Set("X-Live", "yes")
	if a := v.do(r); a.status != http.StatusOK || seen() < 49 {
		t.Errorf("a live page: %d, last use %.0f min ago", a.status, seen())
	}
	if v.get("/"); seen() > 1 {
		t.Errorf("a person's page: last use %.0f min ago", seen())
	}
}

func TestProgramsGetProblemsAndPeoplePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor()
	for path, want := range map[string]string{"/nowhere": "text/html", "/v1/nowhere": "application/problem+json"} {
		if a := v.get(path); a.status != http.StatusNotFound || !strings.HasPrefix(a.header.Get("Content-Type"), want) {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
}

func TestCookieFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.visitor().send("/sign-in", url.Values{"email": {"petra@example.com"}, "password": {password}, "next": {"//evil.example/"}})
	c := a.header.Get("Set-Cookie")
	for _, flag := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(c, flag) {
			t.Errorf("the cookie lacks %s: %s", flag, c)
		}
	}
	if a.location() != "/" {
		t.Errorf("signing in leads to %s", a.location())
	}
}

func TestInviteWorksOnceAndOpeningItChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.signedIn("ada")
	page := ada.get("/people")
	a := ada.send("/people", url.Values{"form": {page.token(t, "/people")}, "name": {"Nils Holm"}, "email": {"Nils@Example.com"}, "role": {"viewer"}})
	i := strings.Index(a.body, "/enter/ql_")
	if i < 0 {
		t.Fatalf("no link: %s", a.text())
	}
	link := a.body[i : i+strings.IndexByte(a.body[i:], '"')]
	v := w.visitor()
	for range 3 {
		if got := v.get(link); got.status != http.StatusOK || !strings.Contains(got.text(), "Nils Holm") {
			t.Fatalf("opening the link: %d", got.status)
		}
	}
	if got := v.send(link, url.Values{"password": {"short"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a short password: %d", got.status)
	}
	if got := v.send(link, url.Values{"password": {password}}); got.status != http.StatusSeeOther {
		t.Fatalf("using the link: %d %s", got.status, got.text())
	}
	if got := w.visitor().send(link, url.Values{"password": {password}}); got.status != http.StatusNotFound {
		t.Errorf("using it again: %d", got.status)
	}
	if got := v.get("/"); got.status != http.StatusOK {
		t.Errorf("the new person's queue: %d", got.status)
	}
	if got := v.get("/people"); got.status != http.StatusForbidden {
		t.Errorf("a viewer among the people: %d", got.status)
	}
}

func TestDisabledPeopleAreOutAtOnceAndOneAdminStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, petra := w.signedIn("ada"), w.signedIn("petra")
	page := ada.get("/people")
	path := fmt.Sprintf("/people/%d/disable", w.petra.ID)
	if a := ada.send(path, url.Values{"form": {page.token(t, path)}}); a.status != http.StatusSeeOther {
		t.Fatalf("disable: %d %s", a.status, a.text())
	}
	if a := petra.get("/"); a.status != http.StatusSeeOther {
		t.Errorf("a disabled person still reads: %d", a.status)
	}
	roles := fmt.Sprintf("/people/%d/roles", w.ada.ID)
	page = ada.get("/people")
	form := url.Values{"form": {page.token(t, roles)}, "was": {"viewer operator approver finance admin auditor"}, "role": {"viewer"}}
	if a := ada.send(roles, form); a.status != http.StatusConflict || !strings.Contains(a.text(), "last person who is an admin") {
		t.Errorf("the last admin gave up the role: %d %s", a.status, a.text())
	}
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-f", "send_payment", pay("Birch", "F", "20.00", "USD"))
	v := w.signedIn("petra")
	send := func(name, kind string, content []byte) answer {
		var body bytes.Buffer
		m := multipart.NewWriter(&body)
		_ = m.WriteField("form", v.get("/effects/"+id).token(t, "/effects/"+id+"/files"))
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="file"; filename=%q`, name))
		h.Set("Content-Type", kind)
		part, _ := m.CreatePart(h)
		_, _ = part.Write(content)
		_ = m.Close()
		r := v.request(http.MethodPost, "/effects/"+id+"/files", &body)
		r.Header.Set("Content-Type", m.FormDataContentType())
		return v.do(r)
	}
	pdf := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("x"), 1000)...)
	if a := send(`..\..\statement<script>.pdf`, "application/pdf", pdf); a.status != http.StatusSeeOther {
		t.Fatalf("a PDF: %d %s", a.status, a.text())
	}
	if a := send("photo.png", "image/png", []byte("<html><script>alert(1)</script>")); a.status != http.StatusUnprocessableEntity {
		t.Errorf("HTML that says it is a PNG: %d", a.status)
	}
	if a := send("big.pdf", "application/pdf", append([]byte("%PDF-1.7\n"), make([]byte, 10<<20)...)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than 10 MB: %d", a.status)
	}
	page := v.get("/effects/" + id)
	i := strings.Index(page.body, "/effects/"+id+"/files/")
	link := page.body[i : i+strings.IndexByte(page.body[i:], '"')]
	a := v.get(link)
	if a.body != string(pdf) || a.header.Get("Content-Type") != "application/pdf" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file: %d bytes, %s, %s", len(a.body), a.header.Get("Content-Type"), a.header.Get("Content-Disposition"))
	}
	ev := w.effect(id).Evidence
	if len(ev) != 1 || !strings.Contains(ev[0].Seen, "SHA-256 ") || !strings.Contains(page.text(), strings.Split(ev[0].Seen, "SHA-256 ")[1]) {
		t.Errorf("the digest is not in the record: %+v", ev)
	}
	if a := w.visitor().get(link); a.status != http.StatusSeeOther {
		t.Errorf("somebody who is not signed in gets the file: %d", a.status)
	}
}

// TestEveryChangeOverTheAPIIsAudited walks the API's own description: each call by which a
// person changes something leaves a line, done or denied. A new one without a line here fails.
func TestEveryChangeOverTheAPIIsAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, p := range []struct {
		who   effects.Person
		token string
	}{{w.vera, "qp_token-of-vera-0001"}, {w.ada, "qp_token-of-ada-0001"}, {w.petra, "qp_token-of-petra-001"}} {
		if err := w.access.AddPersonToken(t.Context(), p.who.ID, "test", p.token, 0); err != nil {
			t.Fatal(err)
		}
	}
	call := func(method, path, token, body string) answer {
		r := w.visitor().request(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		return w.visitor().do(r)
	}
	lines := func(outcome string) (n int) {
		if err := w.db.Get(t.Context(), &n, `SELECT count(*) FROM audit WHERE outcome = $1`, outcome); err != nil {
			t.Fatal(err)
		}
		return n
	}
	id := w.interrupted("run-a", "send_payment", pay("Birch", "A", "20.00", "USD"))
	other := w.interrupted("run-b", "send_payment", pay("Birch", "B", "20.00", "USD"))
	decide := func(id string) string {
		return fmt.Sprintf(`{"decision_id":"d-%s","version":%d,"verdict":"taken","note":"seen"}`, id, w.effect(id).Version)
	}
	type change struct {
		path, token string
		body        func() string
	}
	file := fmt.Sprintf("/v1/logfiles/%d", w.readFile())
	same := func(s string) func() string { return func() string { return s } }
	done := map[string]change{ // in the order of their names: each leaves what the next one needs
		"POST /v1/effects/{effect_id}/decision": {"/v1/effects/" + id + "/decision", "qp_token-of-petra-001", func() string { return decide(id) }},
		"POST /v1/effects/{effect_id}/undo":     {"/v1/effects/" + id + "/undo", "qp_token-of-petra-001", same(`{"note":"a slip"}`)},
		"POST /v1/effects/{effect_id}/evidence": {"/v1/effects/" + id + "/evidence", "qp_token-of-petra-001", same(`{"seen":"nothing so far"}`)},
		"POST /v1/decisions": {"/v1/decisions", "qp_token-of-petra-001", func() string {
			return fmt.Sprintf(`{"decisions":[{"effect_id":%q,"decision_id":"d2","version":%d,"verdict":"taken","note":"seen"}]}`, other, w.effect(other).Version)
		}},
		"POST /v1/log/acknowledge": {"/v1/log/acknowledge", "qp_token-of-ada-0001", func() string {
			if err := w.engine.FindGap(t.Context(), "a test"); err != nil {
				t.Fatal(err)
			}
			return `{"note":"restored"}`
		}},
		"POST /v1/deliveries/{delivery_id}/replay":    {"/v1/deliveries/" + w.delivered() + "/replay", "qp_token-of-petra-001", same("")},
		"POST /v1/logfiles/{log_file_id}/acknowledge": {file + "/acknowledge", "qp_token-of-ada-0001", same(`{"note":"edited by hand"}`)},
		"POST /v1/logfiles/{log_file_id}/close":       {file + "/close", "qp_token-of-petra-001", same(`{"outcome":"finished"}`)},
		"POST /v1/log/end":                            {"/v1/log/end", "qp_token-of-ada-0001", same(`{"note":"looked at all"}`)},
	}
	for _, name := range append(slices.Sorted(maps.Keys(done)), changesOfPeople(t, call("GET", "/openapi.json", "", ""))...) {
		if strings.HasSuffix(name, "/lookup") {
			continue // asks, and changes nothing; its line is tested with the handler
		}
		c, known := done[name]
		if !known {
			t.Errorf("%s: nobody says what line it leaves", name)
			continue
		}
		if c.path == "" {
			continue // done above
		}
		method, _, _ := strings.Cut(name, " ")
		before := lines("denied")
		if a := call(method, c.path, "qp_token-of-vera-0001", "{}"); a.status != http.StatusForbidden || lines("denied") != before+1 {
			t.Errorf("%s by a viewer: %d, %d denied lines", name, a.status, lines("denied")-before)
		}
		body := c.body()
		before = lines("done")
		if a := call(method, c.path, c.token, body); a.status >= 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		} else if lines("done") <= before {
			t.Errorf("%s changed something and left no line", name)
		}
		c.path = ""
		done[name] = c
	}
}

// changesOfPeople lists the operations of the API by which people change something.
func changesOfPeople(t *testing.T, description answer) (names []string) {
	t.Helper()
	var api struct {
		Paths map[string]map[string]struct {
			Description string `json:"description"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(description.body), &api); err != nil {
		t.Fatal(err)
	}
	for path, methods := range api.Paths {
		for method, operation := range methods {
			if method != "get" && !strings.HasPrefix(operation.Description, "For an agent") && !strings.HasPrefix(operation.Description, "For anyone") {
				names = append(names, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(names) < 6 {
		t.Fatalf("only %v", names)
	}
	return names
}

// TestEveryChangeIsAudited walks the route table: each POST by somebody who may not
// leaves a denied line, and each that changes something leaves a done one.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	w := newLooked(t).world
	id := w.interrupted("run-x", "send_payment", pay("Birch", "X", "20.00", "USD"))
	fill := strings.NewReplacer(":id", id, ":person", fmt.Sprint(w.petra.ID), ":token", "1", ":set", id, ":link", "ql_nothing")
	lines := func(outcome string) (n int) {
		if err := w.db.Get(t.Context(), &n, `SELECT count(*) FROM audit WHERE outcome = $1`, outcome); err != nil {
			t.Fatal(err)
		}
		return n
	}
	vera := w.signedIn("vera")       // a viewer
	noToken := w.signedIn("quentin") // may decide, but has no form
	for _, r := range desk.Changes() {
		if r.Action == "" {
			t.Errorf("%s has no action: the trail could not name it", r.Path)
		}
		if r.Path == "/sign-in" || r.Path == "/enter/:link" {
			continue // a denied sign-in has a test of its own
		}
		for _, v := range []*visitor{vera, noToken} {
			before := lines("denied")
			a := v.send(fill.Replace(r.Path), url.Values{"verdict": {"taken"}, "note": {"x"}})
			if a.status != http.StatusForbidden || lines("denied") != before+1 {
				t.Errorf("%s: %d, %d denied lines", r.Path, a.status, lines("denied")-before)
			}
		}
	}
	done := w.changes()
	for _, r := range desk.Changes() {
		f := done[r.Path]
		if f == nil {
			t.Errorf("%s: nobody says how it is done", r.Path)
			continue
		}
		before := lines("done")
		if a := f(); a.status >= 400 {
			t.Errorf("%s: %d %s", r.Path, a.status, a.text())
		} else if lines("done") <= before && !r.Draft {
			t.Errorf("%s changed something and left no line", r.Path)
		}
	}
}
