package client

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// The fake stands for the server in every other test of this package, so what it
// promises is tested first, by plain calls.
func TestFakeKeepsTheContract(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	ctx := t.Context()
	var lease RunLease
	open := func(attempt string) error {
		return c.once(ctx, &request{method: "PUT", path: "/v1/runs/r", in: OpenRequest{Agent: "a", Worker: "w", AttemptID: attempt}, out: &lease})
	}
	if err := open("1"); err != nil {
		t.Fatal(err)
	}
	first := lease.Lease.Token
	if err := open("1"); err != nil || lease.Lease.Token != first {
		t.Errorf("the same attempt got another lease: %v", err)
	}
	if err := open("2"); !errors.Is(err, ErrRunHeld) {
		t.Errorf("a second holder got %v", err)
	}
	begin := func(attempt string, occurrence int, args string) (BeginAnswer, error) {
		return c.Begin(ctx, BeginRequest{RunID: "r", Lease: first, AttemptID: attempt, Tool: "pay", Arguments: json.RawMessage(args), Occurrence: occurrence})
	}
	a, err := begin("b1", 1, `{"x":1,"y":2}`)
	if err != nil || a.Do != DoProceed {
		t.Fatalf("%+v %v", a, err)
	}
	if again, err := begin("b1", 1, `{"y":2.0,"x":1}`); err != nil || again.EffectID != a.EffectID || again.Fence != a.Fence {
		t.Errorf("a lost answer was not given again: %+v %v", again, err)
	}
	if _, err := begin("b2", 1, `{"x":1,"y":2}`); !errors.Is(err, ErrInFlight) {
		t.Errorf("another attempt got %v", err)
	}
	if b, err := begin("b3", 2, `{"x":1,"y":2}`); err != nil || b.EffectID == a.EffectID {
		t.Errorf("the second occurrence is the first: %v", err)
	}
	if _, err := c.Finish(ctx, a.EffectID, FinishRequest{Fence: a.Fence + 1, Outcome: "taken"}); !errors.Is(err, ErrStaleFence) {
		t.Errorf("a wrong fence got %v", err)
	}
	if got, err := c.Finish(ctx, a.EffectID, FinishRequest{Fence: a.Fence, Outcome: "taken", Result: json.RawMessage(`7`)}); err != nil || got.State != "taken" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := begin("b4", 1, `{"x":1,"y":2}`); err != nil || got.Do != DoReplay || string(got.Result) != "7" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.Finish(ctx, "e2", FinishRequest{Fence: 1, Outcome: "who knows"}); err != nil || got.State != "interrupted" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := begin("b5", 3, `{"x":1,"y":2}`); !errors.Is(err, ErrPaused) {
		t.Errorf("a paused run began a call: %v", err)
	}
	f.decide("interrupted", "cleared", "")
	if got, err := begin("b6", 2, `{"x":1,"y":2}`); err != nil || got.Attempt != 2 || got.Fence != 2 {
		t.Errorf("%+v %v", got, err)
	}
	f.mu.Lock()
	f.runs["r"].until = time.Now()
	f.mu.Unlock()
	if _, err := begin("b7", 9, `{}`); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a lease that ran out began a call: %v", err)
	}
	if err := open("3"); !errors.Is(err, ErrPaused) {
		t.Errorf("a run with a call left in flight was opened: %v", err)
	}
}

func TestFakeFailsInBothWays(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	f.fail("PUT /v1/runs/{run}", dropBefore, dropAfter)
	in := OpenRequest{Agent: "a", Worker: "w", AttemptID: "1"}
	for _, want := range []int{0, 1} {
		err := c.once(t.Context(), &request{method: "PUT", path: "/v1/runs/r", in: in})
		if !errors.Is(err, ErrNoAnswer) {
			t.Errorf("got %v", err)
		}
		f.mu.Lock()
		if len(f.runs) != want {
			t.Errorf("%d runs are on record, want %d", len(f.runs), want)
		}
		f.mu.Unlock()
	}
}
