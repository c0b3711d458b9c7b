package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testClient is a client of f with a spool of its own, quick to give up.
func testClient(t *testing.T, f *fake) *Client {
	t.Helper()
	c := New(f.URL, "secret-token", WithSpool(t.TempDir()), WithPatience(3*time.Second))
	c.finishWait = 300 * time.Millisecond
	t.Cleanup(c.Close)
	return c
}

func openRun(t *testing.T, c *Client, id string) *Run {
	t.Helper()
	r, err := c.Open(t.Context(), id, RunOptions{Agent: "payer"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bank counts what really happened.
type bank struct{ paid atomic.Int32 }

func (b *bank) pay(context.Context, Call) (any, error) {
	n := b.paid.Add(1)
	return Reference(fmt.Sprintf("tr_%d", n), map[string]int32{"payment": n}), nil
}

var invoice = map[string]string{"invoice": "INV-9", "amount": "4200.00"}

func TestDoPerformsOnceAndReplaysAfterARestart(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	r := openRun(t, c, "run/1 %")
	out, err := r.Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || out.Outcome != OutcomeTaken || out.Replayed || !out.Recorded || out.Reference != "tr_1" || string(out.Result) != `{"payment":1}` {
		t.Fatalf("%+v %v", out, err)
	}
	if err := r.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another process: no memory but the run's name.
	again := openRun(t, testClient(t, f), "run/1 %")
	out, err = again.Do(t.Context(), "pay", json.RawMessage(`{"amount":"4200.00", "invoice":"INV-9"}`), b.pay)
	if err != nil || !out.Replayed || out.Reference != "tr_1" || string(out.Result) != `{"payment":1}` {
		t.Errorf("%+v %v", out, err)
	}
	var result struct{ Payment int }
	if err := out.Decode(&result); err != nil || result.Payment != 1 {
		t.Errorf("%+v %v", result, err)
	}
	if b.paid.Load() != 1 {
		t.Errorf("paid %d times", b.paid.Load())
	}
}

// Every request of one call fails once in each way. Whatever fails, the call is made
// at most once, and its outcome arrives.
func TestDoSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"PUT /v1/runs/{run}", "POST /v1/effects", "POST /v1/effects/{id}/finish"} {
		for name, way := range map[string]fault{"did not happen": dropBefore, "happened untold": dropAfter, "503": answer503, "html": answerHTML} {
			t.Run(route+" "+name, func(t *testing.T) {
				t.Parallel()
				f, b := newFake(t), &bank{}
				f.fail(route, way, way)
				r := openRun(t, testClient(t, f), "r")
				out, err := r.Do(t.Context(), "pay", invoice, b.pay)
				if err != nil || out.Outcome != OutcomeTaken || !out.Recorded {
					t.Errorf("%+v %v", out, err)
				}
				if e := f.only(t); e.state != "taken" || e.attempt != 1 {
					t.Errorf("on record: %s, attempt %d", e.state, e.attempt)
				}
				if b.paid.Load() != 1 {
					t.Errorf("paid %d times", b.paid.Load())
				}
			})
		}
	}
}

func TestNothingIsPerformedWhenBeginIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]fault{"did not happen": dropBefore, "happened untold": dropAfter, "503": answer503, "html": answerHTML, "413": tooLarge413} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, b := newFake(t), &bank{}
			c := testClient(t, f)
			r := openRun(t, c, "r")
			c.patience = 0
			f.fail("POST /v1/effects", way)
			if out, err := r.Do(t.Context(), "pay", invoice, b.pay); err == nil {
				t.Errorf("%+v", out)
			}
			if b.paid.Load() != 0 {
				t.Fatal("paid without an intent")
			}
			// The next identical call is the same one: were it another, an in-flight
			// first would stay behind for a person to clear.
			c.patience = 3 * time.Second
			if out, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil || out.Outcome != OutcomeTaken {
				t.Errorf("%+v %v", out, err)
			}
			if e := f.only(t); e.attempt != 1 {
				t.Errorf("attempt %d", e.attempt)
			}
		})
	}
}

// reopen ends this process's hold on a run and opens it as another.
func reopen(t *testing.T, f *fake, r *Run) *Run {
	t.Helper()
	if err := r.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return openRun(t, testClient(t, f), r.ID())
}

func TestADeadlineThatPassedBeforeSendingSendsNothing(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	f.deadline = 0
	r := openRun(t, testClient(t, f), "r")
	_, err := r.Do(t.Context(), "pay", invoice, b.pay)
	if !errors.Is(err, ErrTooLate) || !errors.Is(err, ErrPaused) {
		t.Errorf("got %v", err)
	}
	if b.paid.Load() != 0 {
		t.Error("paid past the deadline")
	}
	if e := f.only(t); e.finish.Outcome != "not_sent" {
		t.Errorf("told %q", e.finish.Outcome)
	}
}

func TestPerformsContextEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.deadline = 200 * time.Millisecond
	r := openRun(t, testClient(t, f), "r")
	before := time.Now()
	_, err := r.Do(t.Context(), "pay", invoice, func(ctx context.Context, c Call) (any, error) {
		if c.Deadline.After(time.Now().Add(f.deadline)) {
			t.Error("the deadline counts from after the answer")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(before) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(before))
	}
}

func TestEveryAttemptHasTheSameVendorKey(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	var keys []string
	_, err := r.Do(t.Context(), "pay", invoice, func(_ context.Context, c Call) (any, error) {
		keys = append(keys, fmt.Sprint(c.VendorKey, " ", c.Attempt))
		return nil, errors.New("lost")
	})
	if !errors.Is(err, ErrPaused) {
		t.Fatal(err)
	}
	if _, err := r.Do(t.Context(), "pay", invoice, (&bank{}).pay); !errors.Is(err, ErrPaused) || errors.Is(err, ErrTooLate) {
		t.Errorf("a paused run: %v", err)
	}
	f.decide("interrupted", "cleared", "")
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = r.Do(t.Context(), "pay", invoice, func(_ context.Context, c Call) (any, error) {
		keys = append(keys, fmt.Sprint(c.VendorKey, " ", c.Attempt))
		return nil, nil
	})
	if err != nil || fmt.Sprint(keys) != "[vendor-e1 1 vendor-e1 2]" {
		t.Errorf("%v %v", keys, err)
	}
}

func TestAnUnguardedToolIsCalledEachTime(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	f.reads = map[string]bool{"read_balance": true}
	r := openRun(t, testClient(t, f), "r")
	for i := range 2 {
		out, err := r.Do(t.Context(), "read_balance", invoice, b.pay)
		if err != nil || out.Replayed || string(out.Result) != fmt.Sprintf(`{"payment":%d}`, i+1) {
			t.Errorf("%+v %v", out, err)
		}
	}
	cause := errors.New("down")
	_, err := r.Do(t.Context(), "read_balance", invoice, func(context.Context, Call) (any, error) { return nil, cause })
	if !errors.Is(err, cause) || errors.Is(err, ErrPaused) {
		t.Errorf("got %v", err)
	}
	if len(f.byID) != 0 || f.count(finishRoute) != 0 {
		t.Errorf("%d effects, %d finishes on record", len(f.byID), f.count(finishRoute))
	}
}

func TestDoRefusesArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	for _, args := range []any{`{"a":1}`, 7, []int{1}, nil, json.RawMessage(`{"a":`), make(chan int)} {
		if _, err := r.Do(t.Context(), "pay", args, b.pay); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if n := f.count("POST /v1/effects"); n != 0 || b.paid.Load() != 0 {
		t.Errorf("%d begins, %d payments", n, b.paid.Load())
	}
}

func TestTheTokenIsInNoError(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	f.CloseClientConnections()
	f.Server.Close()
	c.patience = 0
	_, err := c.Open(t.Context(), "r", RunOptions{Agent: "a"})
	if err == nil || strings.Contains(err.Error(), "secret-token") {
		t.Errorf("got %v", err)
	}
}

func TestMain(m *testing.M) {
	// No test may leave anything in the folder of the person who runs it.
	os.Setenv("XDG_CACHE_HOME", os.DevNull)
	os.Exit(m.Run())
}
