package main

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/reconcile/access"
)

// door is who a route opens to, as this file says, apart from what the route tables say.
type door string

const (
	everybody  door = "everybody"   // no credential is looked at
	signing    door = "signing in"  // a form without a session
	agents     door = "agents"      // an account's token
	people     door = "people"      // any person's token
	deciders   door = "deciders"    // a person's token: operator, approver, admin
	admins     door = "admins"      // a person's token: admin
	bothKinds  door = "either"      // an account's or a person's token
	anySession door = "any session" // a page: whoever is signed in
	readers    door = "page readers"
	deciding   door = "page deciders"
	probing    door = "page testers"
	finance    door = "page finance"
	auditors   door = "page auditors"
	governing  door = "page admins"
)

// roles are whom a door opens to, of those with a token or a session of a person.
var roles = map[door][]string{
	people: access.Roles, bothKinds: access.Roles, deciders: {"operator", "approver", "admin"}, admins: {"admin"},
	anySession: access.Roles, readers: access.Roles, deciding: {"operator", "approver", "admin"}, probing: {"operator", "admin"},
	finance: {"finance", "admin"}, auditors: {"auditor", "admin"}, governing: {"admin"},
}

// doors are all routes. A route that the server has and this list has not is a failure: who
// adds one says here, too, who may use it.
var doors = map[door]string{
	everybody: `
		GET /healthz · GET /readyz · GET /openapi.json · POST /v1/inbox/:name · GET /r/* · GET /static/:version/:name
		GET /sign-in · GET /enter/:link · echo_route_not_found /*`,
	signing: `POST /sign-in · POST /enter/:link`,
	agents: `
		PUT /v1/runs/:run_id · GET /v1/runs/:run_id · POST /v1/runs/:run_id/heartbeat · POST /v1/runs/:run_id/release · POST /v1/runs/:run_id/close
		PUT /v1/runs/:run_id/checkpoints/:turn · GET /v1/runs/:run_id/checkpoint · POST /v1/runs/claim
		POST /v1/effects · POST /v1/effects/:effect_id/finish · POST /v1/effects/finish · POST /v1/effects/batch
		POST /v1/lookups/claim · POST /v1/lookups/:lookup_id/answer
		POST /v1/payments · GET /v1/payments/:payment_id · POST /v1/payments/:payment_id/order · POST /v1/payments/:payment_id/work
		POST /v1/payments/:payment_id/broadcast · POST /v1/payments/:payment_id/finish · POST /v1/payments/:payment_id/cancel
		POST /v1/transfers · POST /v1/reads · POST /v1/reads/:read_id/finish`,
	bothKinds: `GET /v1/effects/:effect_id · GET /v1/orders/:order_id`,
	people: `
		GET /v1/queue · GET /v1/observe · GET /v1/observe/calls · GET /v1/deliveries · GET /v1/deliveries/:delivery_id · GET /v1/logfiles · GET /v1/log
		GET /metrics`,
	deciders: `
		POST /v1/effects/:effect_id/decision · POST /v1/decisions · POST /v1/effects/:effect_id/evidence · POST /v1/effects/:effect_id/lookup
		POST /v1/effects/:effect_id/undo · POST /v1/deliveries/:delivery_id/replay · POST /v1/logfiles/:log_file_id/close`,
	admins:     `POST /v1/logfiles/:log_file_id/acknowledge · POST /v1/log/acknowledge · POST /v1/log/end`,
	anySession: `POST /sign-out · GET /you · POST /you/tokens · POST /you/tokens/:token/revoke · POST /you/zone`,
	readers: `
		GET / · GET /effects.csv · GET /effects/:id · GET /effects/:id/arguments.json · GET /effects/:id/result.json · GET /effects/:id/files/:file · GET /bulk/:set
		GET /decided · GET /runs · GET /runs/:id · GET /tools · GET /observe · GET /events · GET /deliveries · GET /deliveries/:delivery · GET /health
		GET /refunds · GET /refunds.csv · GET /refunds/:id · GET /recoveries · GET /recoveries.csv · GET /recoveries/:id · GET /money · GET /journal.csv · GET /orders/:id
		GET /transfers/:id · GET /payments`,
	deciding: `
		GET /effects/:id/confirm · POST /effects/:id/draft · POST /effects/:id/review · POST /effects/:id/decision · POST /effects/:id/lookup
		POST /effects/:id/undo · POST /effects/:id/send-back · POST /effects/:id/acknowledge · POST /effects/:id/files
		POST /bulk · POST /bulk/:set/order · POST /bulk/:set/undo · POST /deliveries/:delivery/replay`,
	probing: `POST /tools/lookup`,
	finance: `
		GET /refunds/:id/confirm · POST /refunds/:id/act · GET /recoveries/:id/confirm · POST /recoveries/:id/act
		GET /transfers/:id/confirm · POST /transfers/:id/act · GET /orders/:id/confirm · POST /orders/:id/act`,
	auditors: `GET /audit · GET /audit.csv · GET /audit.jsonl · GET /people`,
	governing: `
		POST /people · POST /people/:person/roles · POST /people/:person/link · POST /people/:person/disable · POST /people/:person/enable
		POST /health/gap/acknowledge · POST /health/gap/end · POST /health/copy/adopt · POST /health/file/acknowledge`,
}

// doorOf is the list above by route.
func doorOf(t *testing.T) map[string]door {
	t.Helper()
	list := map[string]door{}
	for d, text := range doors {
		for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '·' || r == '\n' }) {
			if name := strings.TrimSpace(line); name != "" {
				if list[name] != "" {
					t.Errorf("%s is listed twice", name)
				}
				list[name] = d
			}
		}
	}
	return list
}

// ofAPI tells a call of a program from a page.
func (d door) ofAPI() bool {
	return slices.Contains([]door{agents, people, deciders, admins, bothKinds}, d)
}

// TestEveryRouteHasADoor holds the list to what the server has.
func TestEveryRouteHasADoor(t *testing.T) {
	t.Parallel()
	f, list := newFort(t), doorOf(t)
	for _, r := range f.routes {
		name := r.Method + " " + r.Path
		if list[name] == "" {
			t.Errorf("%s: nobody says who may use it", name)
		}
		delete(list, name)
	}
	for name := range list {
		t.Errorf("%s is no route", name)
	}
}

// TestNoRouteOpensToWhoMayNot walks every route with every wrong credential: the answer is
// the refusal of its kind, and nothing was written.
func TestNoRouteOpensToWhoMayNot(t *testing.T) {
	t.Parallel()
	f, list := newFort(t), doorOf(t)
	ended := f.signedIn(roleToken("admin"))
	if a := f.send(ended, "GET", "/you", "", "", ""); a.status != 200 {
		t.Fatalf("%d", a.status)
	} else {
		form := url.Values{"form": {formToken(t, a.body, "/sign-out")}}
		kept := f.cookies(ended)
		f.send(ended, "POST", "/sign-out", "", formKind, form.Encode())
		u, _ := url.Parse(f.url)
		ended.Jar.SetCookies(u, kept)
	}
	late := f.signedIn(roleToken("operator"))
	f.exec(`UPDATE sessions SET expires_at = now() - interval '1 second' WHERE person_id = (SELECT id FROM people WHERE name = 'A operator')`)
	gone := f.signedIn(roleToken("disabled"))
	f.exec(`UPDATE people SET disabled_at = now() WHERE name = 'A disabled'`)
	cookie := func(value string) *http.Client {
		b := f.browser()
		u, _ := url.Parse(f.url)
		b.Jar.SetCookies(u, []*http.Cookie{{Name: "quittance", Value: value, Path: "/"}})
		return b
	}
	admin := f.signedIn(roleToken("admin"))
	before := f.seen()

	for _, who := range []struct {
		name    string
		browser *http.Client // nil: no cookie
		bearer  string
	}{
		{"no credential", nil, ""},
		{"a token that nobody has", nil, "qp_nobody-has-this-token"},
		{"an expired token", nil, expiredToken},
		{"a revoked token", nil, revokedToken},
		{"the token of somebody disabled", nil, roleToken("disabled")},
		{"a very long token", nil, strings.Repeat("q", 20_000)},
		{"a session that was ended", ended, ""},
		{"a session that is over", late, ""},
		{"the session of somebody disabled", gone, ""},
		{"an agent's token for a cookie", cookie(acmeToken), ""},
		{"a person's token for a cookie", cookie(roleToken("admin")), ""},
		{"an agent's token on a page", nil, acmeToken},
		{"a person's token on a page", nil, roleToken("admin")},
		{"an admin's session without a form's token", admin, ""},
		{"an admin's session and an agent's token", admin, acmeToken},
	} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			d := list[name]
			if d == everybody || d == signing {
				continue
			}
			method, path, _ := strings.Cut(name, " ")
			address := f.address(path, f.things)
			kind, body := "application/json", "{}"
			if !d.ofAPI() {
				kind, body = formKind, "verdict=not_taken&note=x&do=approve&confirm=yes"
			}
			opens := who.bearer == acmeToken && (d == agents || d == bothKinds) || who.bearer == roleToken("admin") && d.ofAPI() && d != agents
			live := who.browser == admin && !d.ofAPI()
			if opens || live && method == "GET" {
				continue // it is theirs
			}
			want := http.StatusUnauthorized
			switch {
			case d.ofAPI() && (who.bearer == acmeToken || who.bearer == roleToken("admin")), live:
				want = http.StatusForbidden
			case !d.ofAPI():
				want = http.StatusSeeOther
			}
			a := f.send(who.browser, method, address, who.bearer, kind, body)
			if a.status != want || want == http.StatusSeeOther && !strings.HasPrefix(a.header.Get("Location"), "/sign-in") {
				t.Errorf("%s with %s: %d %s, want %d", name, who.name, a.status, a.header.Get("Location"), want)
			}
			if who.bearer != "" && strings.Contains(a.body, who.bearer) {
				t.Errorf("%s with %s repeats it", name, who.name)
			}
			if a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s with %s may be kept by a cache", name, who.name)
			}
		}
		f.untouched(before, who.name)
	}
}

// TestEachRoleOpensItsOwnDoors walks every route as each role.
func TestEachRoleOpensItsOwnDoors(t *testing.T) {
	t.Parallel()
	f, list := newFort(t), doorOf(t)
	before := f.seen()
	for _, role := range access.Roles {
		browser := f.signedIn(roleToken(role))
		for _, name := range slices.Sorted(maps.Keys(list)) {
			d := list[name]
			method, path, _ := strings.Cut(name, " ")
			if d == everybody || d == signing || path == "/events" {
				continue
			}
			may := slices.Contains(roles[d], role)
			if d.ofAPI() {
				if may && method != "GET" {
					continue // what a call by whoever may does is tested elsewhere
				}
				a := f.send(nil, method, f.address(path, f.things), roleToken(role), "application/json", "{}")
				if (a.status == http.StatusForbidden) == may || a.status == http.StatusUnauthorized || a.status >= 500 {
					t.Errorf("%s by %s: %d %s", name, role, a.status, a.body)
				}
				continue
			}
			a := f.send(browser, method, f.address(path, f.things), "", formKind, "verdict=not_taken&note=x&do=approve&confirm=yes")
			switch {
			case !may || method == "POST": // the form's token is missing for whoever may
				if a.status != http.StatusForbidden {
					t.Errorf("%s by %s: %d, want 403", name, role, a.status)
				}
			case a.status == http.StatusForbidden || a.status == http.StatusUnauthorized || a.status == http.StatusSeeOther && strings.HasPrefix(a.header.Get("Location"), "/sign-in") || a.status >= 500:
				t.Errorf("%s by %s: %d", name, role, a.status)
			}
		}
		before["audit"] = f.seen()["audit"] // the sign-in itself is a line
		f.untouched(before, "a walk as "+role)
	}
}

// bodies are what an agent sends to a route, as the owner of the thing would: whatever is
// refused is refused for whose it is.
func (f *fort) body(name string) string {
	step := `"gateway":"shop","fence":1`
	return map[string]string{
		"PUT /v1/runs/:run_id":                    `{"agent":"bot","worker":"w","attempt_id":"x"}`,
		"POST /v1/runs/:run_id/heartbeat":         `{"lease":"` + f.lease + `"}`,
		"POST /v1/runs/:run_id/release":           `{"lease":"` + f.lease + `"}`,
		"POST /v1/runs/:run_id/close":             `{"lease":"` + f.lease + `","outcome":"finished"}`,
		"PUT /v1/runs/:run_id/checkpoints/:turn":  `{"lease":"` + f.lease + `","state":{"stolen":true}}`,
		"POST /v1/effects/:effect_id/finish":      `{"fence":1,"outcome":"taken","reference":"mine"}`,
		"POST /v1/lookups/:lookup_id/answer":      `{"hits":[],"complete":true}`,
		"POST /v1/payments/:payment_id/order":     `{` + step + `}`,
		"POST /v1/payments/:payment_id/work":      `{` + step + `}`,
		"POST /v1/payments/:payment_id/broadcast": `{` + step + `}`,
		"POST /v1/payments/:payment_id/finish":    `{` + step + `,"outcome":"settled","tx":"mine"}`,
		"POST /v1/payments/:payment_id/cancel":    `{"gateway":"shop"}`,
		"POST /v1/reads/:read_id/finish":          `{"outcome":"taken"}`,
	}[name]
}

// TestAForeignThingIsAnsweredLikeAnAbsentOne: an account's token tells nothing of another
// account's things, not even that they are there, and changes none of them.
func TestAForeignThingIsAnsweredLikeAnAbsentOne(t *testing.T) {
	t.Parallel()
	f, list := newFort(t), doorOf(t)
	before, walked := f.seen(), 0
	ids := regexp.MustCompile(`"request_id":"[^"]*"|"log_position":"[^"]*"`)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		method, path, _ := strings.Cut(name, " ")
		if d := list[name]; d != agents && d != bothKinds || !strings.Contains(path, ":") || name == "PUT /v1/runs/:run_id" {
			continue // a run of that name would be its own
		}
		query := ""
		if method == "GET" && strings.HasPrefix(path, "/v1/payments") {
			query = "?gateway=shop"
		}
		body := f.body(name)
		if body == "" && method != "GET" {
			t.Errorf("%s: nobody says what an agent sends", name)
		}
		walked++
		kind := "application/json"
		theirs := f.send(nil, method, f.address(path, f.things)+query, foreignToken, kind, body)
		absent := f.send(nil, method, f.address(path, f.absent)+query, foreignToken, kind, body)
		text := func(a reply, things map[string]string) string {
			s := ids.ReplaceAllString(a.body, "")
			for _, thing := range things {
				if len(thing) > 4 {
					s = strings.ReplaceAll(s, thing, "THING")
				}
			}
			return s
		}
		if theirs.status != http.StatusNotFound {
			t.Errorf("%s of another account: %d %s", name, theirs.status, theirs.body)
		}
		if theirs.status != absent.status || text(theirs, f.things) != text(absent, f.absent) {
			t.Errorf("%s: another account's is told from none:\n%d %s\n%d %s", name, theirs.status, theirs.body, absent.status, absent.body)
		}
	}
	f.untouched(before, "another account")
	if walked < 12 {
		t.Errorf("only %d routes were walked", walked)
	}
	// With the names of the other account it makes things of its own.
	a := f.send(nil, "PUT", "/v1/runs/run-1", foreignToken, "application/json", f.body("PUT /v1/runs/:run_id"))
	if a.status != 200 || strings.Contains(a.body, f.lease) || strings.Contains(a.body, `"turn"`) {
		t.Errorf("a run of the same name: %d %s", a.status, a.body)
	}
	if a := f.send(nil, "GET", "/v1/runs/run-1", acmeToken, "", ""); a.status != 200 || !strings.Contains(a.body, f.things["effect_id"]) {
		t.Errorf("the first account's run afterwards: %d %s", a.status, a.body)
	}
}

// formToken is the token of the form that posts to action.
func formToken(t *testing.T, page, action string) string {
	t.Helper()
	i := strings.Index(page, `action="`+action+`"`)
	if i < 0 {
		t.Fatalf("there is no form to %s", action)
	}
	m := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(page[i:])
	if m == nil {
		t.Fatalf("the form to %s has no token", action)
	}
	return m[1]
}

func (f *fort) exec(sql string) {
	f.t.Helper()
	f.must(f.db.InTx(f.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}))
}
