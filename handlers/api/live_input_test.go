package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/client"
)

// TestBadInput sends everything that must not get in, and then shows that the server
// lives and nothing of it was kept.
func TestBadInput(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	begin := func(args string) string {
		return `{"run_id":"r","lease":"` + lease + `","attempt_id":"a","tool":"pay","arguments":` + args + `}`
	}
	const secret = "hunter2"
	for _, tc := range []struct {
		name, path, body string
		status           int
		says             string // in the answer
	}{
		{"not JSON", "/v1/effects", `{"run_id":"` + secret, 400, `"offset"`},
		{"empty", "/v1/effects", ``, 400, `"offset":0`},
		{"a name twice", "/v1/effects", `{"run_id":"r","run_id":"` + secret + `"}`, 400, `"pointer":"/run_id"`},
		{"BC-054 NaN", "/v1/effects", begin(`{"memo":NaN}`), 400, `"pointer":"/arguments/memo"`},
		{"a name twice in the arguments", "/v1/effects", begin(`{"a":1,"a":"` + secret + `"}`), 400, `"pointer":"/arguments/a"`},
		{"not UTF-8", "/v1/effects", begin("{\"a\":\"\xff" + secret + "\"}"), 400, `"offset"`},
		{"unknown and wrong fields", "/v1/effects", `{"run_ID":"` + secret + `","occurrence":"` + secret + `"}`, 422, `"pointer":"/occurrence"`},
		{"BC-058 a JSON string as arguments", "/v1/effects", begin(`"{\"amount\":\"` + secret + `\"}"`), 422, "object"},
		{"a list as arguments", "/v1/effects", begin(`["` + secret + `"]`), 422, `"pointer":"/arguments"`},
		{"null as arguments", "/v1/effects", begin(`null`), 422, `"pointer":"/arguments"`},
		{"a number beyond everything", "/v1/effects", begin(`{"a":1e200000}`), 422, `"pointer":"/arguments/a"`},
		{"too deep", "/v1/effects", begin(`{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`), 400, `"limit":256`},
		{"20 MB", "/v1/effects", begin(`{"a":"` + strings.Repeat("x", 20<<20) + `"}`), 413, `"limit":16777216`},
		{"a run id of 10,000 characters", "/v1/effects", strings.Replace(begin(`{}`), `"r"`, `"`+strings.Repeat("r", 10_000)+`"`, 1), 422, `"pointer":"/run_id"`},
		{"BC-155 a tool of 4,000 characters", "/v1/effects", strings.Replace(begin(`{}`), `"pay"`, `"`+strings.Repeat("t", 4_000)+`"`, 1), 422, `"pointer":"/tool"`},
		{"NUL in an id", "/v1/effects", strings.Replace(begin(`{}`), `"pay"`, `"p\u0000ay"`, 1), 422, `"pointer":"/tool"`},
		{"half a surrogate in an id", "/v1/effects", strings.Replace(begin(`{}`), `"pay"`, `"\ud83d"`, 1), 422, `"pointer":"/tool"`},
		{"a finish without an outcome", "/v1/effects/finish", `{"run_id":"r","key":"k"}`, 422, `"pointer":"/outcome"`},
		{"one bad of a batch", "/v1/effects/batch", `{"ops":[{"begin":` + begin(`{"a":1}`) + `},{"begin":` + begin(`"`+secret+`"`) + `}]}`, 200, `"pointer":"/ops/1/begin/arguments"`},
	} {
		status, body := l.post(agentToken, tc.path, tc.body)
		if status != tc.status || !strings.Contains(body, tc.says) {
			t.Errorf("%s: %d %.300s", tc.name, status, body)
		}
		if strings.Contains(body, secret) {
			t.Errorf("%s: the answer repeats what was sent: %s", tc.name, body)
		}
	}
	// Of the batch the first was good: it alone is on record.
	v, err := l.agent.Run(t.Context(), "r", 0)
	if err != nil || len(v.OpenEffects) != 1 {
		t.Errorf("%d effects are on record, %v", len(v.OpenEffects), err)
	}
}

func TestTokensThatOpenNothing(t *testing.T) {
	t.Parallel()
	l := start(t)
	const short, foreign = "qa_short-lived-token", "qa_another-account-1"
	must(t, l.access.AddAgentToken(t.Context(), "acme", "short", short, time.Millisecond))
	must(t, l.access.AddAgentToken(t.Context(), "other", "foreign", foreign, 0))
	time.Sleep(5 * time.Millisecond) // the database's clock is this machine's
	for name, token := range map[string]string{"unknown": "qa_nobody-ever-issued", "expired": short, "too long": strings.Repeat("x", 10_000)} {
		status, body := l.post(token, "/v1/effects", `{}`)
		if status != http.StatusUnauthorized || strings.Contains(body, token) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	out, err := l.open("r").Do(t.Context(), "pay", map[string]int{"n": 1}, func(context.Context, client.Call) (any, error) { return 1, nil })
	must(t, err)
	stranger := l.as(foreign)
	for name, err := range map[string]error{
		"read the effect": second(stranger.Effect(t.Context(), out.EffectID)),
		"read the run":    second(stranger.Run(t.Context(), "r", 0)),
		"finish it":       second(stranger.Finish(t.Context(), out.EffectID, client.FinishRequest{Fence: 1, Outcome: "failed"})),
	} {
		if p := problemOf(err); p == nil || p.Status != 404 {
			t.Errorf("another account can %s: %v", name, err)
		}
	}
	// The same run id of another account is another run.
	if r, err := stranger.Open(t.Context(), "r", client.RunOptions{Agent: "a"}); err != nil || r.Epoch() != 1 {
		t.Errorf("%v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func problemOf(err error) *client.Problem {
	p, _ := errors.AsType[*client.Problem](err)
	return p
}

func TestBC132_AnOmittedResultIsAccepted(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	_, body := l.post(agentToken, "/v1/effects", `{"run_id":"r","lease":"`+lease+`","attempt_id":"a","tool":"pay","arguments":{},"key":"K-7"}`)
	var begun client.BeginAnswer
	must(t, json.Unmarshal([]byte(body), &begun))
	status, body := l.post(agentToken, "/v1/effects/finish", `{"run_id":"r","key":"K-7","outcome":"completed","result_omitted":true}`)
	if status != 200 || !strings.Contains(body, `"state":"taken"`) {
		t.Errorf("%d %s", status, body)
	}
}
