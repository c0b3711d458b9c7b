package demo

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

type nobody struct{ io.Writer }

func (nobody) Close() error { return nil }

func sh(t *testing.T, script string) *process {
	t.Helper()
	p, err := start(&guard{in: nobody{io.Discard}}, t.TempDir(), "script", nil, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.stop(0) })
	return p
}

func has(prefix string) func(string) bool {
	return func(line string) bool { return strings.HasPrefix(line, prefix) }
}

func TestAwaitPassesLinesOnlyOnce(t *testing.T) {
	t.Parallel()
	p := sh(t, "echo a1; echo b1; echo a2 >&2; printf a3-unfinished")
	for _, want := range []struct{ prefix, line string }{{"b", "b1"}, {"a", "a2"}} {
		if line, err := p.await(t.Context(), "spoke", has(want.prefix)); err != nil || line != want.line {
			t.Errorf("%q %v, want %s", line, err, want.line)
		}
	}
	// Half a line is none, and a process that has ended says no more.
	if line, err := p.await(t.Context(), "spoke", has("a")); err == nil || !strings.Contains(err.Error(), "ended before it spoke") {
		t.Errorf("%q %v", line, err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := sh(t, "sleep 60")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errStep)
	defer cancel()
	if _, err := p.await(ctx, "spoke", has("a")); !errors.Is(err, errStep) {
		t.Errorf("%v", err)
	}
}

// A crash that came too late would prove nothing.
func TestKillTellsACrashFromAnEnd(t *testing.T) {
	t.Parallel()
	if err := sh(t, "sleep 60").kill(t.Context()); err != nil {
		t.Errorf("a running process: %v", err)
	}
	p := sh(t, "echo done")
	if _, err := p.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.kill(t.Context()); err == nil || !strings.Contains(err.Error(), "done") {
		t.Errorf("a process that had ended: %v", err)
	}
}

func TestStopInsists(t *testing.T) {
	t.Parallel()
	if err := sh(t, "sleep 60").stop(time.Minute); err != nil {
		t.Errorf("a process that obeys: %v", err)
	}
	p := sh(t, `trap "" TERM; echo deaf; while :; do sleep 0.1; done`)
	if _, err := p.await(t.Context(), "spoke", has("deaf")); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(50 * time.Millisecond); err == nil {
		t.Error("a process that does not obey was not made to end")
	}
	if s, err := p.wait(t.Context()); err != nil || s.Signal() != syscall.SIGKILL {
		t.Errorf("%v %v", s, err)
	}
}

func TestTheGuardEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	left, ended := sh(t, "exec sleep 60"), sh(t, "exec sleep 60")
	out, in := io.Pipe()
	g := &guard{in: in}
	over := make(chan struct{})
	go func() {
		defer close(over)
		Guard(out)
	}()
	g.tell("started", left.cmd.Process.Pid)
	g.tell("started", ended.cmd.Process.Pid)
	g.tell("ended", ended.cmd.Process.Pid)
	if left.ended() {
		t.Error("the guard acts before the demo is gone")
	}
	_ = in.Close()
	<-over
	if s, err := left.wait(t.Context()); err != nil || s.Signal() != syscall.SIGTERM {
		t.Errorf("what was left: %v %v", s, err)
	}
	if ended.ended() {
		t.Error("the guard signals a process that had ended")
	}
}
