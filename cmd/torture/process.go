package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// kept is how many lines of its output a process is remembered by.
const kept = 200

// process is a program that runs beside the torture and dies with it.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string   // each line, for one reader; lines that nobody takes in time are only kept
	ended chan struct{} // closed when it has ended and its output is read

	mu   sync.Mutex
	last []string
}

// start runs a program in a process group of its own: Ctrl-C is for the torture, which
// ends the others. hear, if not nil, gets each line as it comes.
func (g *guard) start(name string, env []string, hear func(line string), path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), lines: make(chan string, 1000), ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	stdin, err := p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't start %s: %w", name, err)
	}
	p.stdin = stdin
	g.hears("started", p.cmd.Process.Pid)
	go func() {
		_ = p.cmd.Wait()
		g.hears("ended", p.cmd.Process.Pid)
		_ = in.Close()
	}()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.last = append(p.last[max(0, len(p.last)+1-kept):], lines.Text())
			p.mu.Unlock()
			if hear != nil {
				hear(lines.Text())
			}
			select {
			case p.lines <- lines.Text():
			default:
			}
		}
		close(p.ended)
	}()
	return p, nil
}

// says returns the next line that matches; false when the process ends or the time is
// over first.
func (p *process) says(within time.Duration, match func(line string) bool) (string, bool) {
	over := time.After(within)
	for {
		select {
		case line := <-p.lines:
			if match(line) {
				return line, true
			}
			continue
		default:
		}
		select {
		case line := <-p.lines:
			if match(line) {
				return line, true
			}
		case <-p.ended:
			if len(p.lines) == 0 {
				return "", false
			}
		case <-over:
			return "", false
		}
	}
}

// address is what a process says after a mark.
func (p *process) address(mark string) (string, error) {
	line, said := p.says(patience, func(line string) bool { return strings.Contains(line, mark) })
	if !said {
		return "", fmt.Errorf("%s does not open:\n%s", p.name, p.tail(10))
	}
	_, rest, _ := strings.Cut(line, mark)
	address, _, _ := strings.Cut(rest, " ")
	return strings.TrimPrefix(address, "http://"), nil
}

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.last[max(0, len(p.last)-n):], "\n")
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill is a crash; false when the process had ended by itself before it.
func (p *process) kill() bool {
	p.signal(syscall.SIGKILL)
	<-p.ended
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// wait returns the exit code of a process that ends by itself, or kills it after a time
// and says -1.
func (p *process) wait(within time.Duration) int {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.kill()
		return -1
	}
}

// guard is a process of the program's own that ends the others, should the torture itself
// be killed.
type guard struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	in  io.WriteCloser
}

func startGuard(program string) (*guard, error) {
	g := &guard{cmd: exec.Command(program, "demo-guard")}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := g.cmd.StdinPipe()
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't start the guard: %w", err)
	}
	g.in = in
	return g, nil
}

func (g *guard) hears(what string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = fmt.Fprintln(g.in, what, pid)
}

func (g *guard) close() {
	g.mu.Lock()
	_ = g.in.Close()
	g.mu.Unlock()
	_ = g.cmd.Wait()
}
