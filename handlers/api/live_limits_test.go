package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/web"
)

// TestBodiesBeyondTheLimit sends 20 MB, with their length and without.
func TestBodiesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	l := start(t)
	for name, length := range map[string]int64{"declared": 20 << 20, "chunked": -1} {
		req, err := http.NewRequest(http.MethodPost, l.url+"/v1/effects", io.LimitReader(endless{}, 20<<20))
		must(t, err)
		req.ContentLength = length
		req.Header.Set("Authorization", "Bearer "+agentToken)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		var p client.Problem
		err = json.NewDecoder(resp.Body).Decode(&p)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 413 || p.Code != client.CodeTooLarge || p.Limit != 16<<20 {
			t.Errorf("%s: %d %+v, %v", name, resp.StatusCode, p, err)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestLongAndOddNames sends names of 10,000 characters wherever a name can stand, in
// bodies that are right otherwise, and garbage in paths and queries.
func TestLongAndOddNames(t *testing.T) {
	t.Parallel()
	l := start(t)
	long := strings.Repeat("n", 10_000)
	lease := l.raw("r")
	id := l.lose(l.open("other"), "refund", map[string]int{"n": 1})
	v, err := l.operator.Effect(t.Context(), id)
	must(t, err)
	begin := map[string]any{"run_id": "r", "lease": lease, "attempt_id": "a", "tool": "pay", "arguments": map[string]int{"n": 1}}
	bodies := []struct {
		method, token, path string
		body                map[string]any
		names               []string
	}{
		{"PUT", agentToken, "/v1/runs/x", map[string]any{"agent": "a", "worker": "w", "attempt_id": "i"}, []string{"agent", "worker", "attempt_id", "log_position"}},
		{"POST", agentToken, "/v1/runs/claim", map[string]any{"agents": []string{long}, "worker": "w", "attempt_id": "i"}, []string{"worker", "attempt_id"}},
		{"POST", agentToken, "/v1/runs/r/heartbeat", map[string]any{"lease": lease}, []string{"lease", "log_position"}},
		{"POST", agentToken, "/v1/effects", begin, []string{"run_id", "lease", "attempt_id", "tool", "key", "log_position"}},
		{"POST", agentToken, "/v1/effects/" + id + "/finish", map[string]any{"fence": 1, "outcome": "taken", "result_omitted": true}, []string{"reference", "result_digest", "log_position"}},
		{"POST", agentToken, "/v1/effects/finish", map[string]any{"run_id": "r", "key": "k", "outcome": "taken"}, []string{"run_id", "key"}},
		{"POST", operatorToken, "/v1/effects/" + id + "/decision", map[string]any{"decision_id": "d", "version": v.Version, "verdict": "taken", "note": "n"}, []string{"decision_id", "reference", "same_as", "verdict"}},
	}
	for _, b := range bodies {
		for _, name := range b.names {
			body := map[string]any{name: long}
			for k, v := range b.body {
				if k != name {
					body[k] = v
				}
			}
			raw, err := json.Marshal(body)
			must(t, err)
			status, answer := l.send(b.method, b.token, b.path, string(raw))
			if status < 400 || status >= 500 || len(answer) > 2_000 || strings.Contains(answer, long[:500]) {
				t.Errorf("%s %s with a long %s: %d %.300s", b.method, b.path, name, status, answer)
			}
		}
	}
	for _, tc := range []struct{ method, token, path, body string }{
		{"PUT", agentToken, "/v1/runs/" + long, `{"agent":"a","worker":"w","attempt_id":"i"}`},
		{"PUT", agentToken, "/v1/runs/%ff%fe", `{"agent":"a","worker":"w","attempt_id":"i"}`},
		{"PUT", agentToken, "/v1/runs/a%00b", `{"agent":"a","worker":"w","attempt_id":"i"}`},
		{"PUT", agentToken, "/v1/runs/r/checkpoints/" + long, `{"lease":"` + lease + `","state":{}}`},
		{"PUT", agentToken, "/v1/runs/r/checkpoints/-1", `{"lease":"` + lease + `","state":{}}`},
		{"PUT", agentToken, "/v1/runs/r/checkpoints/99999999999999999999", `{"lease":"` + lease + `","state":{}}`},
		{"GET", agentToken, "/v1/runs/" + long, ``},
		{"GET", agentToken, "/v1/runs/a%00b", ``},
		{"GET", agentToken, "/v1/runs/%ff", ``},
		{"GET", agentToken, "/v1/runs/" + long + "/checkpoint", ``},
		{"GET", agentToken, "/v1/runs/r?wait=" + planted, ``},
		{"GET", agentToken, "/v1/runs/r?wait=-1s", ``},
		{"GET", operatorToken, "/v1/effects/" + long, ``},
		{"GET", operatorToken, "/v1/effects/%00", ``},
		{"GET", operatorToken, "/v1/effects/" + planted, ``},
		{"GET", operatorToken, "/v1/queue?limit=" + planted, ``},
		{"GET", operatorToken, "/v1/queue?cursor=" + planted, ``},
		{"GET", operatorToken, "/v1/queue?cursor=" + long, ``},
		{"GET", operatorToken, "/v1/queue?state=" + planted, ``},
		{"GET", operatorToken, "/v1/queue?tools=" + planted, ``},
	} {
		status, answer := l.send(tc.method, tc.token, tc.path, tc.body)
		if status < 400 || status >= 500 || len(answer) > 2_000 || strings.Contains(answer, planted) || strings.Contains(answer, long[:500]) {
			t.Errorf("%s %.60s: %d %.300s", tc.method, tc.path, status, answer)
		}
	}
	// Filters may hold anything that text can.
	for _, value := range []string{long, "\x00", "\xff", "%", "' OR 1=1 --"} {
		for _, name := range []string{"account", "agent", "tool", "run_id", "business_key"} {
			status, answer := l.send("GET", operatorToken, "/v1/queue?"+url.Values{name: {value}}.Encode(), "")
			if status >= 500 || status == 200 && !strings.Contains(answer, `"items":[]`) {
				t.Errorf("%s=%.20q: %d %.300s", name, value, status, answer)
			}
		}
	}
	if q := l.queue(); len(q) != 1 || q[0].EffectID != id || q[0].Version != v.Version {
		t.Errorf("something changed: %+v", q)
	}
}

// TestRevokedTokensAndWrongRoles: what was opened for a while is closed again, and a
// role opens no more than it says.
func TestRevokedTokensAndWrongRoles(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("r"), "refund", map[string]int{"n": 1})
	v, err := l.operator.Effect(t.Context(), id)
	must(t, err)
	verdict := fmt.Sprintf(`{"decision_id":"d","version":%d,"verdict":"taken","note":"n"}`, v.Version)
	for _, role := range []string{"viewer", "finance", "auditor"} {
		person, err := l.access.AddPerson(t.Context(), role, "", []string{role})
		must(t, err)
		token := "qp_test-token-of-" + role
		must(t, l.access.AddPersonToken(t.Context(), person, "test", token, 0))
		if status, _ := l.send("GET", token, "/v1/queue", ""); status != 200 {
			t.Errorf("%s cannot read: %d", role, status)
		}
		for _, path := range []string{"/v1/effects/" + id + "/decision", "/v1/decisions", "/v1/effects/" + id + "/undo", "/v1/log/acknowledge", "/v1/effects"} {
			if status, body := l.post(token, path, verdict); status != 403 {
				t.Errorf("%s at %s: %d %.200s", role, path, status, body)
			}
		}
	}
	for _, path := range []string{"/v1/effects/" + id + "/decision", "/v1/decisions"} {
		if status, _ := l.post(agentToken, path, verdict); status != 403 {
			t.Errorf("an agent decides at %s: %d", path, status)
		}
	}
	for name, header := range map[string]string{"no scheme": agentToken, "another scheme": "Basic " + agentToken, "nothing": "", "only the scheme": "Bearer "} {
		req, err := http.NewRequest("GET", l.url+"/v1/runs/r", nil)
		must(t, err)
		req.Header.Set("Authorization", header)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 401 || strings.Contains(string(body), agentToken) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}

	// The answer about a token may be used again for two seconds.
	tokens, err := l.access.Tokens(t.Context())
	must(t, err)
	for _, token := range tokens {
		_, err := l.access.RevokeToken(t.Context(), token.ID)
		must(t, err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		agents, body := l.send("GET", agentToken, "/v1/runs/r", "")
		people, _ := l.send("GET", operatorToken, "/v1/queue", "")
		if agents == 401 && people == 401 {
			if strings.Contains(body, agentToken) {
				t.Errorf("the token is repeated: %s", body)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("revoked tokens still open: %d and %d", agents, people)
		}
	}
}

// TestASlowBodyHoldsUpNobody keeps fifty bodies open that never end.
func TestASlowBodyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	l := start(t, func(o *web.Options) { o.BodyTimeout = 3 * time.Second })
	var slow []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
		must(t, err)
		defer c.Close()
		_, err = fmt.Fprintf(c, "POST /v1/effects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{\"run_id\":\"%s", agentToken, planted)
		must(t, err)
		slow = append(slow, c)
	}
	began := time.Now()
	if _, err := l.open("r").Do(t.Context(), "pay", map[string]int{"n": 1}, takenAs("ok")); err != nil {
		t.Errorf("beside slow bodies: %v", err)
	}
	t.Logf("open, begin and finish beside 50 slow bodies took %v", time.Since(began))
	for _, c := range slow {
		must(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		answer, err := io.ReadAll(c)
		if !bytes.HasPrefix(answer, []byte("HTTP/1.1 408")) || bytes.Contains(answer, []byte(planted)) {
			t.Errorf("a slow body was answered %.300s, %v", answer, err)
		}
	}
}

// TestABatchKeepsTheGood: what is refused by the rules is refused alone; a batch that
// cannot be read is refused whole.
func TestABatchKeepsTheGood(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	begin := func(n int, args string) string {
		return fmt.Sprintf(`{"begin":{"run_id":"r","lease":"%s","attempt_id":"a%d","tool":"pay","arguments":%s}}`, lease, n, args)
	}
	batch := func(ops ...string) (int, string) {
		return l.post(agentToken, "/v1/effects/batch", `{"ops":[`+strings.Join(ops, ",")+`]}`)
	}
	status, body := batch(
		begin(1, `{"n":1}`),
		`{"effect_id":"0199a0b0-0000-7000-8000-000000000000","finish":{"outcome":"taken"}}`,
		begin(2, `"`+planted+`"`),
		begin(3, `{"n":1e200000,"s":"`+planted+`"}`),
		`{"finish":{"run_id":"r","key":"no such key","outcome":"taken"}}`,
		begin(4, `{"n":2}`),
	)
	var out client.BatchAnswers
	must(t, json.Unmarshal([]byte(body), &out))
	var got []int
	for _, a := range out.Answers {
		got = append(got, a.Status)
	}
	if status != 200 || !slices.Equal(got, []int{201, 404, 422, 422, 200, 201}) || strings.Contains(body, planted) {
		t.Errorf("%d %v: %.600s", status, got, body)
	}
	for _, bad := range []string{`{"begin":{"run_id":7}}`, `{}`, `{"begin":NaN}`, `7`} {
		if status, body := batch(begin(5, `{"n":3}`), bad); status < 400 || status >= 500 {
			t.Errorf("%s: %d %.300s", bad, status, body)
		}
	}
	if v, err := l.agent.Run(t.Context(), "r", 0); err != nil || len(v.OpenEffects) != 2 {
		t.Errorf("%d effects are on record, %v", len(v.OpenEffects), err)
	}
}

// TestAPersonsResultIsReplayedAsSent: characters that stand for nothing reach the
// agent as the person wrote them.
func TestAPersonsResultIsReplayedAsSent(t *testing.T) {
	t.Parallel()
	l := start(t)
	const odd = `{"text":"O\u0000K cut \ud83d","n":9007199254740993}`
	id := l.lose(l.open("r"), "refund", map[string]int{"n": 1})
	_, err := l.decide(l.operator, id, client.VerdictTaken, func(d *client.DecisionRequest) { d.Result = json.RawMessage(odd) })
	must(t, err)
	out, err := l.openWhenReady("r").Do(t.Context(), "refund", map[string]int{"n": 1}, unexpected(t))
	if err != nil || string(out.Result) != odd {
		t.Errorf("%s, %v", out.Result, err)
	}
}
