package crash

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is far more than any single step takes, also on a busy machine.
const patience = 60 * time.Second

// process is a program that runs beside the test and dies with it.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when it has ended and its output is read

	mu     sync.Mutex
	lines  []string
	passed int           // lines that await has looked at
	more   chan struct{} // closed and replaced at each line
}

func start(t *testing.T, name string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(path, args...), ended: make(chan struct{}), more: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test, which ends the others
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	stdin, err := p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatalf("couldn't start %s: %v", name, err)
	}
	p.stdin = stdin
	guardHears("started", p.cmd.Process.Pid)
	go func() {
		_ = p.cmd.Wait()
		guardHears("ended", p.cmd.Process.Pid)
		_ = in.Close()
	}()
	go p.read(out)
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.tail(25))
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
	close(p.ended)
}

// await returns the next line that matches; lines before it are passed over for good.
func (p *process) await(what string, match func(line string) bool) string {
	p.t.Helper()
	line, said := p.says(match)
	if !said {
		p.t.Fatalf("%s ended before it %s:\n%s", p.name, what, p.tail(10))
	}
	return line
}

// says is await for a process that may end first; then said is false.
func (p *process) says(match func(line string) bool) (line string, said bool) {
	p.t.Helper()
	over := time.After(patience)
	for last := false; ; {
		p.mu.Lock()
		more := p.more
		for p.passed < len(p.lines) {
			line := p.lines[p.passed]
			p.passed++
			if match(line) {
				p.mu.Unlock()
				return line, true
			}
		}
		p.mu.Unlock()
		if last {
			return "", false
		}
		select {
		case <-more:
		case <-p.ended:
			last = true
		case <-over:
			p.t.Fatalf("%s says nothing that was waited for:\n%s", p.name, p.tail(10))
		}
	}
}

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-n):], "\n")
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// freeze stops a process where it is, and thaw lets it go on as if no time had passed.
func (p *process) freeze() { p.signal(syscall.SIGSTOP) }
func (p *process) thaw()   { p.signal(syscall.SIGCONT) }

// end sends a signal and waits until the process is gone.
func (p *process) end(s syscall.Signal) {
	p.signal(s)
	<-p.ended
}

// kill is a crash. A process that ended by itself before it would prove nothing.
func (p *process) kill() {
	p.t.Helper()
	p.end(syscall.SIGKILL)
	if s := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		p.t.Fatalf("%s ended by itself before it was killed:\n%s", p.name, p.tail(10))
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait returns the exit code of a process that ends by itself.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end:\n%s", p.name, p.tail(10))
	}
	return p.cmd.ProcessState.ExitCode()
}

// The guard is a process of the program's own that ends the others, should the test
// itself be killed.
var guard struct {
	sync.Mutex
	in io.WriteCloser
}

func startGuard() (stop func(), err error) {
	cmd := exec.Command(program, "demo-guard")
	if guard.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = guard.in.Close()
		_ = cmd.Wait()
	}, nil
}

func guardHears(what string, pid int) {
	guard.Lock()
	defer guard.Unlock()
	_, _ = fmt.Fprintln(guard.in, what, pid)
}
