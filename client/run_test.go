package client

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHeartbeatsKeepTheLease(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	f.lease = 1500 * time.Millisecond
	r, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a", LeaseSeconds: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.fail("POST /v1/runs/{run}/heartbeat", dropBefore, answer503) // a blip
	eventually(t, "six heartbeats", func() bool { return f.count("POST /v1/runs/{run}/heartbeat") >= 8 })
	if out, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil || !out.Recorded {
		t.Errorf("after more than a lease: %v", err)
	}
	if r.Position() == "" {
		t.Error("no log position is remembered")
	}
}

// A server that takes a heartbeat and never answers must not keep a process thinking
// that it holds the run.
func TestALeaseIsLostAtItsEndWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.fail("POST /v1/runs/{run}/heartbeat", times(10, silent)...)
	began := time.Now()
	r, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a", LeaseSeconds: 1})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is noticed", func() bool { _, err := r.token(); return err != nil })
	if took := time.Since(began); took < time.Second || took > 5*time.Second {
		t.Errorf("a lease of 1 s was held for %v", took)
	}
}

func TestALostLeaseStopsNewCallsOnly(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a", LeaseSeconds: 1})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Do(t.Context(), "pay", invoice, func(ctx context.Context, c Call) (any, error) {
		f.mu.Lock()
		f.runs["r"].token = "another's"
		f.mu.Unlock()
		eventually(t, "the loss is noticed", func() bool { _, err := r.token(); return err != nil })
		if ctx.Err() != nil {
			t.Error("the call under way was cancelled: its outcome would be in doubt")
		}
		return b.pay(ctx, c)
	})
	if err != nil || out.Outcome != OutcomeTaken || !out.Recorded {
		t.Errorf("%+v %v", out, err)
	}
	begins := f.count("POST /v1/effects")
	if _, err := r.Do(t.Context(), "pay", invoice, b.pay); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if f.count("POST /v1/effects") != begins || b.paid.Load() != 1 {
		t.Error("a call was begun without a lease")
	}
	if err := r.Release(t.Context()); err != nil {
		t.Errorf("releasing what is lost: %v", err)
	}
}

func TestTwoProcessesNeverHoldOneRun(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	second := testClient(t, f)
	_, err := second.Open(t.Context(), "r", RunOptions{Agent: "a"})
	p, ok := errors.AsType[*Problem](err)
	if !errors.Is(err, ErrRunHeld) || !ok || p.HeldBy == nil || p.RetryAfter != 1 {
		t.Fatalf("got %v", err)
	}
	epoch := r.Epoch()
	if err := r.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := second.Open(t.Context(), "r", RunOptions{Agent: "a"})
	if err != nil || next.Epoch() <= epoch {
		t.Errorf("epoch %d after %d, %v", next.Epoch(), epoch, err)
	}
}

func TestOpenWaitsForALeaseThatRunsOut(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	first := testClient(t, f)
	f.lease = 300 * time.Millisecond
	if _, err := first.Open(t.Context(), "r", RunOptions{Agent: "a"}); err != nil {
		t.Fatal(err)
	}
	first.Close() // killed: no heartbeat, no release
	if _, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a"}); !errors.Is(err, ErrRunHeld) {
		t.Fatalf("got %v", err)
	}
	r, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a", WaitHeld: 10 * time.Second})
	if err != nil || r.Epoch() != 2 {
		t.Errorf("%v", err)
	}
}

func TestWaitOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	r := openRun(t, c, "r")
	_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { return nil, errors.New("lost") })
	c.patience = 0
	f.fail("GET /v1/runs/{run}", times(4, answer503)...)
	f.decide("interrupted", "taken", `1`)
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReleaseWaitsForCallsUnderWay(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	under, finish := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), "pay", invoice, func(ctx context.Context, c Call) (any, error) {
			close(under)
			<-finish
			return b.pay(ctx, c)
		})
		done <- err
	}()
	<-under
	released := make(chan error, 1)
	go func() { released <- r.Release(t.Context()) }()
	eventually(t, "new calls are refused", func() bool {
		_, err := r.Do(t.Context(), "read", invoice, b.pay)
		return errors.Is(err, ErrLeaseLost)
	})
	select {
	case <-released:
		t.Error("released under a call that was being performed")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if err := errors.Join(<-done, <-released); err != nil {
		t.Error(err)
	}
	if e := f.byID["e1"]; e.state != "taken" {
		t.Errorf("now %s", e.state)
	}
}

func TestReleaseOnSignal(t *testing.T) {
	if os.Getenv("QUITTANCE_TEST_SIGNAL") == "child" {
		c := New(os.Getenv("QUITTANCE_TEST_URL"), "t", WithSpool(t.TempDir()))
		r, err := c.Open(context.Background(), "r", RunOptions{Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		r.ReleaseOnSignal(time.Second, syscall.SIGTERM)
		os.Stdout.WriteString("ready\n")
		select {}
	}
	t.Parallel()
	f := newFake(t)
	child := exec.Command(os.Args[0], "-test.run=^TestReleaseOnSignal$")
	child.Env = append(os.Environ(), "QUITTANCE_TEST_SIGNAL=child", "QUITTANCE_TEST_URL="+f.URL)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	_ = child.Process.Signal(syscall.SIGTERM)
	err = child.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the child ended with %v: the signal did not do its work", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.runs["r"].until.IsZero() {
		t.Error("the run is still held")
	}
}

func TestWaitReturnsWhenTheRunMayGoOn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	if err := r.Wait(t.Context()); err != nil {
		t.Fatalf("a run that is not paused: %v", err)
	}
	_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { return nil, errors.New("lost") })
	waited := make(chan error, 1)
	go func() { waited <- r.Wait(t.Context()) }()
	select {
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.decide("interrupted", "taken", `1`)
	if err := <-waited; err != nil {
		t.Error(err)
	}

	_, err := r.Do(t.Context(), "refund", invoice, func(context.Context, Call) (any, error) { return nil, errors.New("lost") })
	if !errors.Is(err, ErrPaused) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	polls := f.count("GET /v1/runs/{run}")
	go func() { waited <- r.Wait(ctx) }()
	eventually(t, "it waits", func() bool { return f.count("GET /v1/runs/{run}") > polls })
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
}

func TestWaitTakesALeaseAgainThatEnded(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	if err := r.Release(t.Context()); err != nil { // stopped on a pause, say
		t.Fatal(err)
	}
	epoch := r.Epoch()
	if err := r.Wait(t.Context()); err != nil || r.Epoch() <= epoch {
		t.Fatalf("epoch %d after %d: %v", r.Epoch(), epoch, err)
	}
	if _, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsTheRun(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	r := openRun(t, c, "r")
	_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { return nil, errors.New("lost") })
	c.patience = 0
	p, ok := errors.AsType[*Problem](r.Close(t.Context(), RunFinished))
	if !ok || p.Code != CodeEffectOpen {
		t.Errorf("closed with an open effect: %v", p)
	}
	f.decide("interrupted", "taken", `1`)
	if _, err := r.Do(t.Context(), "read", invoice, b.pay); err != nil {
		t.Errorf("a refused close ended the run: %v", err)
	}
	if err := r.Close(t.Context(), RunFinished); err != nil {
		t.Error(err)
	}
	if _, err := c.Open(t.Context(), "r", RunOptions{Agent: "a"}); !errors.Is(err, ErrRunClosed) {
		t.Errorf("got %v", err)
	}
}

// A close that gave up waiting for a call is followed by others, while what it waited
// with is still there.
func TestCallsGoOnAfterACloseThatGaveUp(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	for i := range 50 {
		_, err := r.Do(t.Context(), "pay", map[string]int{"n": i}, func(ctx context.Context, c Call) (any, error) {
			short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
			defer cancel()
			if err := r.Close(short, RunFinished); err == nil {
				t.Error("closed under a call that was being performed")
			}
			return b.pay(ctx, c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	if _, err := c.Claim(t.Context(), RunOptions{}, "payer"); !errors.Is(err, ErrNothingReady) {
		t.Errorf("got %v", err)
	}
	first := openRun(t, c, "r")
	if err := errors.Join(first.Checkpoint(t.Context(), 3, []int{1}), first.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := c.Claim(t.Context(), RunOptions{}, "payer")
	if err != nil || r.ID() != "r" || r.Turn() != 3 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestOpenOfAPausedRunSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := openRun(t, testClient(t, f), "r")
	_, _ = r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) { return nil, errors.New("lost") })
	if err := r.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := testClient(t, f).Open(t.Context(), "r", RunOptions{Agent: "a"})
	p, ok := errors.AsType[*Paused](err)
	if !ok || !errors.Is(err, ErrPaused) || p.RunID != "r" || len(p.WaitingFor) != 1 || !strings.Contains(err.Error(), "e1") {
		t.Errorf("got %v", err)
	}
}

func TestACheckpointThatCannotBeReadGivesTheLeaseBack(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	r := openRun(t, c, "r")
	if err := errors.Join(r.Checkpoint(t.Context(), 1, "s"), r.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	c.patience = 0
	f.fail("GET /v1/runs/{run}/checkpoint", answer503)
	if r, err := c.Open(t.Context(), "r", RunOptions{Agent: "a"}); err == nil {
		t.Fatalf("opened at turn %d as if nothing had been saved", r.Turn())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.runs["r"].until.IsZero() {
		t.Error("the run is still held")
	}
}

func TestRetriesOnlyWhatAProgramMayRepeat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err   error
		again bool
	}{
		{ErrNoAnswer, true},
		{&Problem{Code: CodeUnavailable, Status: 503, Retryable: true, RetryAction: RetrySame}, true},
		{&Problem{Code: "http_502", Status: 502, Retryable: true}, true},
		{&Problem{Code: CodeRunPaused, Retryable: true, RetryAction: RetryHuman}, false},
		{&Problem{Code: CodeInFlight, Retryable: true, RetryAction: RetryPoll}, false},
		{&Problem{Code: CodeRunHeld, Retryable: true, RetryAction: RetryWait}, false},
		{&Problem{Code: CodeConflict, Final: true}, false},
		{context.Canceled, false},
		{nil, false},
	} {
		if again, _ := retryable(tc.err); again != tc.again {
			t.Errorf("%v: %v", tc.err, again)
		}
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a": "a", "a/b c%": "a%2Fb%20c%25", ".": "%2E", "..": "%2E%2E", "...": "%2E%2E%2E", "é": "%C3%A9"} {
		if got := escape(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
