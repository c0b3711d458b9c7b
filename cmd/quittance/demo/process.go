package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a quittance command that runs beside the demo. It writes to a file, not
// to a pipe: a pipe would break, and kill a server that still has its database to stop,
// when the demo itself is killed.
type process struct {
	name   string
	cmd    *exec.Cmd
	output string        // the file
	exited chan struct{} // closed when it has ended

	passed int // bytes of the output that await has looked at
}

// start runs a command in dir. It is in a process group of its own, so that Ctrl-C
// reaches only the demo, which ends its children in the right order.
func start(g *guard, dir, name string, env []string, program string, args ...string) (*process, error) {
	p := &process{
		name: name, cmd: exec.Command(program, args...),
		output: filepath.Join(dir, name+".log"), exited: make(chan struct{}),
	}
	log, err := os.OpenFile(p.output, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("couldn't keep the output of %s: %w", name, err)
	}
	defer log.Close()
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("couldn't start %s: %w", name, err)
	}
	g.tell(started, p.cmd.Process.Pid)
	go func() {
		_ = p.cmd.Wait()
		g.tell(ended, p.cmd.Process.Pid)
		close(p.exited)
	}()
	return p, nil
}

const (
	// stepLimit is far more than any single step takes, also on a busy machine.
	stepLimit = 30 * time.Second
	// lookEvery is how soon a new line is noticed.
	lookEvery = 5 * time.Millisecond
)

var errStep = fmt.Errorf("not within %v", stepLimit)

// await returns the next line that matches. Lines before it are passed over for good.
// It fails when the process ends first, or when stepLimit is over.
func (p *process) await(ctx context.Context, what string, match func(line string) bool) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, errStep)
	defer cancel()
	for {
		over := p.ended() // before the last look at the output
		text, err := os.ReadFile(p.output)
		if err != nil {
			return "", fmt.Errorf("couldn't read the output of %s: %w", p.name, err)
		}
		for line := range strings.Lines(string(text[p.passed:])) {
			if !strings.HasSuffix(line, "\n") {
				break // still being written
			}
			p.passed += len(line)
			if line = strings.TrimSpace(line); match(line) {
				return line, nil
			}
		}
		if over {
			return "", fmt.Errorf("%s ended before it %s: %s", p.name, what, p.last())
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return "", fmt.Errorf("%s has not %s: %w", p.name, what, context.Cause(ctx))
		}
	}
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// last is the last line of the output: with it a command says why it failed.
func (p *process) last() string {
	text, _ := os.ReadFile(p.output)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// wait returns how the process ended. It fails when stepLimit is over.
func (p *process) wait(ctx context.Context) (syscall.WaitStatus, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, errStep)
	defer cancel()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.Sys().(syscall.WaitStatus), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s does not end: %w", p.name, context.Cause(ctx))
	}
}

// kill is a crash: SIGKILL, and the process is gone when kill returns. It fails when
// the process had ended by itself before.
func (p *process) kill(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	s, err := p.wait(ctx)
	if err != nil {
		return err
	}
	if !s.Signaled() || s.Signal() != syscall.SIGKILL {
		return fmt.Errorf("%s ended by itself before it was killed: %s", p.name, p.last())
	}
	return nil
}

// stop asks the process to end, and after a time makes it. The error says that it
// had to be made.
func (p *process) stop(patience time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return errors.New(p.name + " did not end when asked")
	}
}
