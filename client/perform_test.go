package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

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
