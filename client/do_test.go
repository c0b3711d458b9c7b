package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
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

func TestOutcomesOfPerform(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection reset after the request was sent")
	for _, tc := range []struct {
		name    string
		perform Perform
		word    string // what the server was told
		state   string
		check   func(*testing.T, Outcome, error)
	}{
		{"an error", func(context.Context, Call) (any, error) { return nil, cause }, "unknown", "interrupted",
			func(t *testing.T, out Outcome, err error) {
				p, ok := errors.AsType[*Paused](err)
				if !ok || !errors.Is(err, ErrPaused) || !errors.Is(err, cause) || p.WaitingFor[0].EffectID != "e1" || out.Outcome != "" {
					t.Errorf("%+v %v", out, err)
				}
			}},
		{"an error with a result", func(context.Context, Call) (any, error) { return "ok", cause }, "unknown", "interrupted", nil},
		{"a refusal", func(context.Context, Call) (any, error) {
			return nil, fmt.Errorf("bank: %w", Refused(map[string]string{"code": "card_declined"}))
		}, "failed", "failed", func(t *testing.T, out Outcome, err error) {
			r, ok := errors.AsType[*RefusedError](err)
			if !ok || string(r.Reason) != `{"code":"card_declined"}` || r.Replayed || out.Outcome != OutcomeFailed {
				t.Errorf("%+v %v", out, err)
			}
		}},
		{"a refusal by an error", func(context.Context, Call) (any, error) { return nil, Refused(cause) }, "failed", "failed",
			func(t *testing.T, _ Outcome, err error) {
				if !errors.Is(err, cause) || errors.Is(err, ErrPaused) {
					t.Error(err)
				}
			}},
		{"cancelled", func(ctx context.Context, _ Call) (any, error) { return nil, context.Canceled }, "unknown", "interrupted", nil},
		{"found to be too late", func(_ context.Context, c Call) (any, error) {
			c.Deadline = time.Now()
			return nil, c.Ready()
		}, "not_sent", "interrupted", nil},
		{"nothing", func(context.Context, Call) (any, error) { return nil, nil }, "taken", "taken",
			func(t *testing.T, out Outcome, err error) {
				if err != nil || string(out.Result) != "null" {
					t.Errorf("%+v %v", out, err)
				}
			}},
		{"a result that is not JSON", func(context.Context, Call) (any, error) { return make(chan int), nil }, "taken", "taken", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			r := openRun(t, testClient(t, f), "r")
			out, err := r.Do(t.Context(), "pay", invoice, tc.perform)
			e := f.only(t)
			if e.finish.Outcome != tc.word || e.state != tc.state {
				t.Errorf("told %q, now %s; want %q and %s", e.finish.Outcome, e.state, tc.word, tc.state)
			}
			if tc.check != nil {
				tc.check(t, out, err)
			}
		})
	}
}

func TestARefusalIsReplayedAsOne(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	_, first := r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { return nil, Refused("IBAN checksum") })
	r = reopen(t, f, r)
	out, second := r.Do(t.Context(), "pay", invoice, b.pay)
	p, ok := errors.AsType[*RefusedError](second)
	if !ok || !p.Replayed || string(p.Reason) != `"IBAN checksum"` || first == nil || out.Outcome != OutcomeFailed {
		t.Errorf("%+v, %v after %v", out, second, first)
	}
	if b.paid.Load() != 0 {
		t.Error("a refused call was made again")
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

func TestAPanicIsRecordedAndGoesOn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	func() {
		defer func() {
			if v := recover(); v != "secret-in-panic" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { panic("secret-in-panic") })
	}()
	e := f.only(t)
	if e.finish.Outcome != "unknown" || e.state != "interrupted" || strings.Contains(string(e.finish.Error), "secret") {
		t.Errorf("told %q %s, now %s", e.finish.Outcome, e.finish.Error, e.state)
	}
	// Its occurrence was not used up: the next identical call is the same one.
	f.decide("interrupted", "cleared", "")
	if out, err := r.Do(t.Context(), "pay", invoice, (&bank{}).pay); err != nil || out.EffectID != "e1" {
		t.Errorf("%+v %v", out, err)
	}
}

func TestAnExitOfTheGoroutineIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	var done sync.WaitGroup
	done.Go(func() {
		_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { runtime.Goexit(); return nil, nil })
	})
	done.Wait()
	if e := f.only(t); e.state != "interrupted" {
		t.Errorf("now %s", e.state)
	}
}

func TestCancellationDoesNotLoseTheOutcome(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	ctx, cancel := context.WithCancel(t.Context())
	out, err := r.Do(ctx, "pay", invoice, func(ctx context.Context, _ Call) (any, error) {
		cancel()
		<-ctx.Done() // perform sees the cancellation,
		return "paid", nil
	})
	if err != nil || !out.Recorded { // and what it did is recorded all the same
		t.Errorf("%+v %v", out, err)
	}
	if e := f.only(t); e.state != "taken" {
		t.Errorf("now %s", e.state)
	}
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
