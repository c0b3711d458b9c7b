package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// mainVariable turns the test binary into the program itself.
const mainVariable = "QUITTANCE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(agentVariable); mode != "" {
		os.Exit(agentCommand(mode)) // before the program: its environment has both
	}
	if os.Getenv(mainVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a running quittance.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	exited chan struct{} // closed when it has ended and its output is read

	mu  sync.Mutex
	log bytes.Buffer
}

func command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), mainVariable+"=1"), env...)
	return cmd
}

// serve starts `quittance serve` on a free port and returns once it serves.
func serve(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	if !slices.Contains(args, "--data") {
		// Databases of several tests, all called "test", must not meet one anchor.
		args = append(args, "--data", t.TempDir())
	}
	return served(t, command(env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// served starts a server and returns once it serves.
func served(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, exited: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	serving := make(chan string, 1)
	go func() {
		defer close(p.exited)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url="); ok {
				url, _, _ := strings.Cut(rest, " ")
				serving <- url
			}
		}
		_ = p.cmd.Wait()
	}()
	select {
	case p.url = <-serving:
	case <-p.exited:
		t.Fatalf("serve ended instead of serving:\n%s", p.output())
	case <-time.After(time.Minute):
		t.Fatalf("serve does not serve:\n%s", p.output())
	}
	return p
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// end sends a signal and waits for the process to be gone.
func (p *process) end(s syscall.Signal) syscall.WaitStatus {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() syscall.WaitStatus {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.t.Fatalf("the process does not end:\n%s", p.output())
	}
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func (p *process) get(path string) (int, string) {
	p.t.Helper()
	r, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// once runs a command to its end.
func once(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}
