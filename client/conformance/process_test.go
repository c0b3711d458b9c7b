package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// patience is far more than any single answer takes, also on a busy machine.
const patience = 90 * time.Second

// process is a runner.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan []byte // closed when it has ended
	stderr bytes.Buffer
}

func start(t testing.TB, name string, env []string, args []string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(args[0], args[1:]...), lines: make(chan []byte)}
	p.cmd.Env, p.cmd.Stderr = env, &p.stderr
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	must(t, err)
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	must(t, err)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("couldn't start %s (%v; `make setup` installs what is missing): %v", name, args, err)
	}
	go func() {
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			p.lines <- bytes.Clone(lines.Bytes())
		}
		_ = p.cmd.Wait()
		close(p.lines)
	}()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("%s said:\n%s", name, p.stderr.Bytes())
		}
	})
	return p
}

// end sends a signal and waits until the process is gone.
func (p *process) end(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s)
	for range p.lines { // what it says meanwhile is lost
	}
}

// endedBy tells whether a signal, and not the process itself, was its end.
func (p *process) endedBy(s syscall.Signal) bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == s
}

// errEnded means that a process ended instead of answering.
var errEnded = errors.New("the runner ended")

// ask sends one command and returns the answer.
func (p *process) ask(c map[string]any) (map[string]any, error) {
	line, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return nil, errEnded
	}
	select {
	case got, more := <-p.lines:
		if !more {
			return nil, errEnded
		}
		var a map[string]any
		dec := json.NewDecoder(bytes.NewReader(got))
		dec.UseNumber()
		if err := dec.Decode(&a); err != nil {
			return nil, errors.New("not an answer: " + string(got))
		}
		return a, nil
	case <-time.After(patience):
		return nil, errors.New("no answer")
	}
}
