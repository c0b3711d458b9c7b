package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/client"
)

func (l *live) beginOp(run, lease, attempt, tool, args, callID string, occurrence int) client.BatchOp {
	return client.BatchOp{Begin: &client.BeginRequest{RunID: run, Lease: lease, AttemptID: attempt, Tool: tool,
		Arguments: json.RawMessage(args), CallID: callID, Occurrence: occurrence}}
}

func TestBC023_OccurrencesCountPerCallNotPerTool(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	var ops []client.BatchOp
	for i, title := range []string{"A", "B", "C"} {
		ops = append(ops, l.beginOp("r", lease, fmt.Sprint(i), "create_ticket", `{"title":"`+title+`"}`, "", 1))
	}
	answers, err := l.agent.Batch(t.Context(), ops...)
	must(t, err)
	keys := map[string]bool{}
	for _, a := range answers {
		if a.Status != 201 {
			t.Fatalf("%d %+v", a.Status, a.Problem)
		}
		keys[a.Begin.Key] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d keys", len(keys))
	}
}

func TestBC024_FinishesLandByTheirKey(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	to := []string{"a@x.example", "b@x.example", "c@x.example"}
	var begins, finishes []client.BatchOp
	for i, address := range to {
		begins = append(begins, l.beginOp("r", lease, fmt.Sprint(i), "send_email", `{"to":"`+address+`"}`, "call_0", 1))
	}
	begun, err := l.agent.Batch(t.Context(), begins...)
	must(t, err)
	for _, i := range []int{2, 0, 1} {
		finishes = append(finishes, client.BatchOp{Finish: &client.FinishRequest{RunID: "r", Key: begun[i].Begin.Key, CallID: "call_0",
			Outcome: client.OutcomeTaken, Result: json.RawMessage(`"` + to[i] + `"`)}})
	}
	finished, err := l.agent.Batch(t.Context(), finishes...)
	must(t, err)
	for i, a := range finished {
		if a.Status != 200 {
			t.Errorf("finish %d: %d %+v", i, a.Status, a.Problem)
		}
	}
	for i, address := range to {
		v, err := l.agent.Effect(t.Context(), begun[i].Begin.EffectID)
		if err != nil || string(v.Result) != `"`+address+`"` {
			t.Errorf("%s has the result %s, %v", address, v.Result, err)
		}
	}
}

func TestBC118_TheFirstHolderIsFencedBeforeTheNext(t *testing.T) {
	t.Parallel()
	l := start(t)
	ctx := t.Context()
	lease := l.raw("R", 2) // holds the run, and will miss its heartbeats
	_, err := l.agent.Open(ctx, "R", client.RunOptions{Agent: "a", Worker: "two"})
	if p := problemOf(err); p == nil || p.Code != client.CodeRunHeld || p.HeldBy.Worker != "w" || p.RetryAfter < 1 {
		t.Fatalf("while the first holds it: %v", err)
	}
	var second *client.Run
	for end := time.Now().Add(20 * time.Second); second == nil; {
		if second, err = l.agent.Open(ctx, "R", client.RunOptions{Agent: "a", Worker: "two"}); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if second.Epoch() != 2 {
		t.Errorf("epoch %d", second.Epoch())
	}
	_, err = l.agent.Begin(ctx, client.BeginRequest{RunID: "R", Lease: lease, AttemptID: "late", Tool: "pay", Arguments: json.RawMessage(`{}`), Occurrence: 1})
	if p := problemOf(err); p == nil || p.Code != client.CodeLeaseLost {
		t.Errorf("the first holder could still begin: %v", err)
	}
	if status, body := l.post(agentToken, "/v1/runs/R/heartbeat", `{"lease":"`+lease+`"}`); status != 409 {
		t.Errorf("the first holder could renew: %d %s", status, body)
	}
}

func TestBC150_TimesAreUTCWithAtMostMicroseconds(t *testing.T) {
	t.Parallel()
	l := start(t)
	before := time.Now().Add(-time.Second)
	id := l.lose(l.open("r"), "send_payment", inv9)
	_, err := l.decide(l.operator, id, client.VerdictTaken)
	must(t, err)
	times := regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*"`)
	exact := regexp.MustCompile(`^"[0-9-]{10}T[0-9:]{8}(\.[0-9]{1,6})?Z"$`)
	found := 0
	for token, path := range map[string]string{operatorToken: "/v1/effects/" + id, agentToken: "/v1/runs/r", secondToken: "/v1/queue"} {
		for _, text := range times.FindAllString(l.get(token, path), -1) {
			found++
			if !exact.MatchString(text) {
				t.Errorf("%s has the time %s", path, text)
			}
			at, err := time.Parse(`"`+time.RFC3339Nano+`"`, text)
			if err != nil || at.Before(before) || at.After(time.Now().Add(time.Hour)) {
				t.Errorf("%s has the time %s, %v", path, text, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d times were found", found)
	}
}

// The answer to a close may be lost, and its caller then sends it again.
func TestACloseMayBeRepeated(t *testing.T) {
	t.Parallel()
	l := start(t)
	lease := l.raw("r")
	for try := range 2 {
		status, body := l.post(agentToken, "/v1/runs/r/close", `{"lease":"`+lease+`","outcome":"finished"}`)
		if status != 200 || !strings.Contains(body, `"state":"finished"`) {
			t.Errorf("try %d: %d %s", try+1, status, body)
		}
	}
	if status, body := l.post(agentToken, "/v1/runs/r/close", `{"lease":"`+lease+`","outcome":"failed"}`); status != 409 || !strings.Contains(body, client.CodeRunClosed) {
		t.Errorf("another outcome: %d %s", status, body)
	}
}
