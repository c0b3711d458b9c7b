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

// The guard in an agent stops nothing of an observed tool: neither the tool's own errors,
// nor a repeat, nor a deadline; and the report says what enforcing would have done.
func TestAnObservedToolThroughTheClient(t *testing.T) {
	t.Parallel()
	l := start(t)
	run := l.open("run-1")
	args := map[string]string{"invoice": "INV-1", "amount": "120.00", "currency": "USD"}
	broken := errors.New("the connection broke")
	made := 0
	for i, answer := range []error{broken, nil, nil} {
		out, err := run.Do(t.Context(), "try_payment", args, func(context.Context, client.Call) (any, error) {
			made++
			return client.Reference("po_1", nil), answer
		}, client.CallID("call-1"))
		if !errors.Is(err, answer) || errors.Is(err, client.ErrPaused) || made != i+1 || answer == nil && out.Outcome != client.OutcomeTaken {
			t.Fatalf("call %d: %+v, %v, made %d times", i, out, err, made)
		}
	}
	late, err := run.Do(t.Context(), "try_payment", map[string]string{"invoice": "INV-2", "amount": "1.00", "currency": "USD"}, func(ctx context.Context, c client.Call) (any, error) {
		time.Sleep(1100 * time.Millisecond) // past the deadline of the policy
		return nil, errors.Join(ctx.Err(), c.Ready())
	})
	if err != nil || late.Outcome != client.OutcomeTaken {
		t.Errorf("%+v %v", late, err)
	}
	must(t, run.Close(t.Context(), client.RunFinished))

	report, err := l.operator.Observed(t.Context(), "try_payment", time.Now().Add(-time.Hour))
	must(t, err)
	if len(report.Tools) != 1 || !report.Tools[0].Observed {
		t.Fatalf("%+v", report)
	}
	want := map[string]struct {
		calls  int64
		amount string
	}{"calls": {4, "361.00"}, "replay": {1, "120.00"}, "pause": {1, "120.00"}, "unknown": {1, "120.00"}, "hold": {}, "wait": {1, "1.00"}, "refuse": {}}
	for _, s := range report.Tools[0].Sums {
		amount := ""
		if len(s.Amounts) > 0 {
			amount = s.Amounts[0].Value
		}
		if w := want[s.What]; s.Calls != w.calls || amount != w.amount {
			t.Errorf("%s: %d calls, %s; want %+v", s.What, s.Calls, amount, w)
		}
	}

	var calls client.ObservedCalls
	status, body := l.read(operatorToken, "/v1/observe/calls?since=7d&limit=2", &calls)
	if status != http.StatusOK || len(calls.Calls) != 2 || calls.NextCursor == "" || calls.Calls[1].Would != "replay" || calls.Calls[1].Amount.Value != "120.00" {
		t.Errorf("%d %s", status, body)
	}
	next := client.ObservedCalls{}
	if _, body := l.read(operatorToken, "/v1/observe/calls?limit=2&cursor="+calls.NextCursor, &next); len(next.Calls) != 2 || next.Calls[1].Unknown != true {
		t.Errorf("%s", body)
	}
	for _, path := range []string{"?since=yesterday", "?tol=x", "/calls?cursor=%21", "/calls?limit=0"} {
		if status, body := l.read(operatorToken, "/v1/observe"+path, nil); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := l.read(agentToken, "/v1/observe", nil); status != http.StatusForbidden {
		t.Errorf("an agent reads the report: %d", status)
	}
	if status, body := l.read(operatorToken, "/v1/deliveries?state=lost", nil); status != http.StatusUnprocessableEntity || !strings.Contains(body, "?state") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := l.read(operatorToken, "/v1/deliveries/x", nil); status != http.StatusNotFound {
		t.Errorf("a delivery that is none: %d", status)
	}
}

// read answers a GET, and decodes what came into out.
func (l *live) read(token, path string, out any) (int, string) {
	l.t.Helper()
	status, body := l.send(http.MethodGet, token, path, "")
	if out != nil && status == http.StatusOK {
		must(l.t, json.Unmarshal([]byte(body), out))
	}
	return status, body
}
