package demo

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guard is a process that outlives the demo by a moment: when the demo is killed and
// cannot end its children, the guard does. It is told of each child through a pipe,
// and acts when the pipe ends. (Linux could signal the children itself, but does so at the
// end of the thread that started them, and no other system can.)
type guard struct {
	cmd *exec.Cmd

	mu sync.Mutex
	in io.WriteCloser
}

// startGuard runs [Guard] as a command of ours.
func startGuard(dir string, env []string, program string) (*guard, error) {
	g := &guard{cmd: exec.Command(program, "demo-guard")}
	g.cmd.Dir, g.cmd.Env = dir, env
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

// tell says that a child has been started, or has ended. A guard that is gone guards
// nothing, and the demo goes on.
func (g *guard) tell(what string, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, _ = fmt.Fprintln(g.in, what, pid)
}

const (
	started = "started"
	ended   = "ended"
)

// close ends the guard. Children that it still knows of are asked to end.
func (g *guard) close() error {
	g.mu.Lock()
	_ = g.in.Close()
	g.mu.Unlock()
	return g.cmd.Wait()
}

// Guard reads which children have been started and which have ended, until the demo
// is gone. Then it asks those that are left to end.
func Guard(in io.Reader) {
	left := map[int]bool{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var what string
		var pid int
		if n, _ := fmt.Sscan(lines.Text(), &what, &pid); n != 2 || pid <= 1 {
			continue
		}
		left[pid] = what == started
	}
	for pid, runs := range left {
		if runs {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}
