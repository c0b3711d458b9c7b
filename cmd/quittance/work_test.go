package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/client"
	"quittance/ledger/ledgertest"
)

const agentToken = "qa_0123456789abcdefghijklmnopqrstuvwxyz"

// office is a server, its database, and what agents wrote down.
type office struct {
	t      *testing.T
	env    []string
	dsn    string
	server *process
	client *client.Client
	notes  string
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, dsn: ledgertest.URL(t), notes: t.TempDir()}
	o.env = []string{"DATABASE_URL=" + o.dsn, "QUITTANCE_ENVIRONMENT=test", "QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken}
	o.server = serve(t, o.env)
	o.client = client.New(o.server.url, agentToken)
	t.Cleanup(o.client.Close)
	return o
}

// ready opens runs and leaves them.
func (o *office) ready(ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		run, err := o.client.Open(o.t.Context(), id, client.RunOptions{Agent: "ap-bot"})
		if err == nil {
			err = run.Release(o.t.Context())
		}
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// worker is a `quittance work` that runs beside the test.
type worker struct {
	*exec.Cmd
	o     *office
	ended chan struct{}
	mu    sync.Mutex
	log   bytes.Buffer
}

func (w *worker) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (o *office) work(mode string, flags ...string) *worker {
	o.t.Helper()
	w := &worker{o: o, ended: make(chan struct{})}
	args := append(append([]string{"work", "--agent", "ap-bot,other"}, flags...), "--", os.Args[0])
	w.Cmd = command([]string{"QUITTANCE_URL=" + o.server.url, "QUITTANCE_TOKEN=" + agentToken, notesVariable + "=" + o.notes}, args...)
	// env(1) gives the agent what would make the worker itself one.
	w.Args = append(w.Args[:len(w.Args)-1], "env", agentVariable+"="+mode, os.Args[0])
	w.Stdout, w.Stderr = w, w
	w.WaitDelay = time.Second // what it started may hold its output when it was killed
	if err := w.Start(); err != nil {
		o.t.Fatal(err)
	}
	go func() {
		_ = w.Wait()
		close(w.ended)
	}()
	o.t.Cleanup(func() {
		_ = w.Process.Kill()
		<-w.ended
		for _, pid := range o.pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if o.t.Failed() {
			o.t.Logf("the worker said:\n%s\nits agents:\n%s", w.log.String(), strings.Join(o.lines(), "\n"))
		}
	})
	return w
}

// end sends a signal and returns the exit code, -1 for a death by signal.
func (w *worker) end(s syscall.Signal) int {
	w.o.t.Helper()
	_ = w.Process.Signal(s)
	return w.exit()
}

func (w *worker) exit() int {
	w.o.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		w.o.t.Fatal("the worker does not end")
	}
	return w.ProcessState.ExitCode()
}

func (o *office) lines() []string {
	raw, _ := os.ReadFile(filepath.Join(o.notes, "notes"))
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func (o *office) count(prefix string) (n int) {
	for _, l := range o.lines() {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

func (o *office) pids() (list []int) {
	for _, l := range o.lines() {
		var id string
		var pid int
		if _, err := fmt.Sscanf(l, "started %s %d", &id, &pid); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// await waits until something is so.
func (o *office) await(what string, so func() bool) {
	o.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			o.t.Fatalf("it does not come that %s", what)
		}
	}
}

func (o *office) state(run string) string {
	v, err := o.client.Run(o.t.Context(), run, 0)
	if err != nil {
		return err.Error()
	}
	return v.State
}

// Two workers that claim at once: each run is started once, as many commands run as each
// may have, and every run is finished and paid once.
func TestTwoWorkersShareTheReadyRuns(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprintf("run-%02d", i))
	}
	o.ready(ids...)
	a, b := o.work("pay", "--concurrency", "2"), o.work("pay", "--concurrency", "2")
	o.await("every run is finished", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return o.state(id) != client.RunFinished })
	})
	for _, w := range []*worker{a, b} {
		if code := w.end(syscall.SIGTERM); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	for _, id := range ids {
		if o.count("started "+id+" ") != 1 || o.count("paid "+id) != 1 || o.count("another lease") != 0 {
			t.Errorf("%s was started %d times and paid %d times", id, o.count("started "+id+" "), o.count("paid "+id))
		}
	}
}

func TestNoMoreCommandsRunThanAllowed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a", "b", "c")
	w := o.work("sleep", "--concurrency", "2")
	o.await("two are started", func() bool { return o.count("started") == 2 })
	time.Sleep(3 * time.Second) // it would have claimed the third by now
	if n := o.count("started"); n != 2 {
		t.Errorf("%d commands run", n)
	}
	// SIGTERM first: they give their runs back, and another worker can have them at once.
	if code := w.end(syscall.SIGTERM); code != 0 || o.count("told to stop") != 2 {
		t.Errorf("exit %d, %d were told", code, o.count("told to stop"))
	}
	for _, id := range []string{"a", "b", "c"} {
		if s := o.state(id); s != client.RunReady {
			t.Errorf("%s is %s", id, s)
		}
	}
}

func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	w := o.work("stubborn", "--grace", "1s")
	o.await("it is started", func() bool { return o.count("ignoring") == 1 })
	if code := w.end(syscall.SIGTERM); code != exitFailed || !strings.Contains(w.log.String(), "were killed") {
		t.Errorf("exit %d: %s", code, w.log.String())
	}
	if err := syscall.Kill(o.pids()[0], 0); err == nil {
		t.Error("it lives on")
	}
	if s := o.state("a"); s != client.RunRunning { // what it was doing is not known: its lease has to run out
		t.Errorf("its run is %s", s)
	}
}

// A worker that is killed, and a command that dies, leave the run to its lease.
func TestAKilledWorkerLeavesItsRunToTheNext(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	w := o.work("hang", "--lease", "2s")
	o.await("it is started", func() bool { return o.count("started") == 1 })
	if code := w.end(syscall.SIGKILL); code != -1 {
		t.Fatalf("exit %d", code)
	}
	o.work("pay")
	o.await("the run is finished", func() bool { return o.state("a") == client.RunFinished })
	if n := o.count("paid a"); n != 1 {
		t.Errorf("paid %d times", n)
	}
}

func TestACommandThatDiesIsStartedOnceALease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	began := time.Now()
	w := o.work("die", "--lease", "2s")
	o.await("it was started three times", func() bool { return o.count("started") == 3 })
	if d := time.Since(began); d < 4*time.Second {
		t.Errorf("three times in %s: a command that dies is started in a loop", d)
	}
	if code := w.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// A command whose call is in doubt ends; its run waits, and nobody starts it meanwhile.
func TestAPausedRunIsNotStarted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	o.work("doubt", "--lease", "2s")
	o.await("it is paused", func() bool { return o.count("ended a") == 1 })
	o.await("nobody holds it", func() bool {
		v, err := o.client.Run(t.Context(), "a", 0)
		return err == nil && v.HeldBy == nil
	})
	time.Sleep(3 * time.Second)
	if o.state("a") != client.RunPaused || o.count("started") != 1 || o.count("paid") != 1 {
		t.Errorf("%s, started %d times", o.state("a"), o.count("started"))
	}
}

func TestTheCheckpointIsInTheEnvironment(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	o.work("checkpoint")
	o.await("the run is finished", func() bool { return o.state("a") == client.RunFinished })
	if o.count("no checkpoint a") != 1 || o.count(`checkpoint a 1 {"step":"two"} turn 1`) != 1 {
		t.Errorf("%q", o.lines())
	}
}

// The server is killed while a command works, and comes back.
func TestAWorkerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.ready("a")
	w := o.work("slow")
	o.await("it is started", func() bool { return o.count("started") == 1 })
	listen := strings.TrimPrefix(o.server.url, "http://")
	o.server.end(syscall.SIGKILL)
	o.server = serve(t, o.env, "--listen", listen)
	o.await("the run is finished", func() bool { return o.state("a") == client.RunFinished })
	if o.count("paid") != 1 || o.count("started") != 1 {
		t.Errorf("%q", o.lines())
	}
	o.ready("b")
	o.await("the next is finished too", func() bool { return o.state("b") == client.RunFinished })
	if code := w.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestWorkRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	url := "QUITTANCE_URL=" + o.server.url
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		says string
	}{
		"no token":      {[]string{url, "QUITTANCE_TOKEN="}, []string{"--agent", "x", "--", "true"}, exitUsage, "QUITTANCE_TOKEN is not set"},
		"no agent":      {[]string{url, "QUITTANCE_TOKEN=x"}, []string{"--", "true"}, exitUsage, "--agent"},
		"no command":    {[]string{url, "QUITTANCE_TOKEN=x"}, []string{"--agent", "x"}, exitUsage, "command"},
		"unknown":       {[]string{url, "QUITTANCE_TOKEN=x"}, []string{"--agent", "x", "--", "no-such-command"}, exitUsage, "no-such-command"},
		"lease":         {[]string{url, "QUITTANCE_TOKEN=x"}, []string{"--agent", "x", "--lease", "1s", "--", "true"}, exitUsage, "2 to 600"},
		"wrong token":   {[]string{url, "QUITTANCE_TOKEN=qa_nothing-of-this-name-is-known"}, []string{"--agent", "x", "--", "true"}, exitFailed, "unauthorized"},
		"the command's": {[]string{url, "QUITTANCE_TOKEN=" + agentToken}, []string{"--agent", "x", "--concurrency", "0", "--", "true"}, exitUsage, "--concurrency"},
	} {
		if code, _, errs := once(t, c.env, append([]string{"work"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}
