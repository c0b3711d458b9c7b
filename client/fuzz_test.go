package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzProblemFrom: whatever stands between us and the server answers, a refusal is a refusal
// with the status that came, and how long to wait is neither negative nor for ever.
func FuzzProblemFrom(f *testing.F) {
	f.Add(409, "3", []byte(`{"code":"run_paused","status":200,"retryable":true,"retry_action":"human","retry_after":5}`))
	f.Add(502, "-7", []byte(`<html>Bad gateway</html>`))
	f.Add(503, "99999999999999999999", []byte(`{"code":"unavailable","retryable":true,"retry_after":9223372036854775807}`))
	f.Add(429, "Wed, 21 Oct 2026 07:28:00 GMT", []byte(`{"code":"x","retryable":true,"retry_after":-5}`))
	f.Add(404, "", []byte(`null`))
	f.Fuzz(func(t *testing.T, status int, after string, body []byte) {
		if status < 300 || status > 999 {
			return
		}
		p := problemFrom(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}, body)
		if p.Status != status || p.Code == "" || !strings.HasPrefix(p.Error(), p.Code) {
			t.Fatalf("%d %q: %+v", status, body, p)
		}
		again, pause := retryable(p)
		if pause < 0 || pause > 24*time.Hour {
			t.Fatalf("waits %v after %d %q %q", pause, status, after, body)
		}
		if again && !p.Retryable || again && p.RetryAction == RetryHuman {
			t.Fatalf("%+v is sent again", p)
		}
		for code, sentinel := range sentinels {
			if errors.Is(p, sentinel) != (p.Code == code) {
				t.Fatalf("%s is taken for %v", p.Code, sentinel)
			}
		}
		// What is written again is the same refusal.
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Problem
		if err := json.Unmarshal(b, &back); err != nil || back.Code != p.Code || back.RetryAfter != p.RetryAfter || back.Status != p.Status {
			t.Fatalf("%s is read as %+v, %v", b, back, err)
		}
	})
}
