package embedded_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
)

// helperVariable turns the test binary into a process that owns a data folder, to be
// killed from outside.
const helperVariable = "QUITTANCE_EMBEDDED_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		os.Exit(helper(dir))
	}
	os.Exit(m.Run())
}

// helper owns dir until its standard input ends, then stops the server.
func helper(dir string) int {
	ctx := context.Background()
	in, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("ready", in.PID(), in.DSN())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := in.Stop(ctx); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// owner is a running helper.
type owner struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	pid   int // of the postmaster
	dsn   string
}

// own starts a helper on dir; uid 0 means as we are.
func own(t *testing.T, dir string, uid uint32, env ...string) *owner {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if uid != 0 {
		exe = shared(t, exe)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), helperVariable+"="+dir), env...)
	cmd.Stderr = os.Stderr
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{t: t, cmd: cmd, stdin: stdin}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if _, err := fmt.Sscanf(line, "ready %d %s", &o.pid, &o.dsn); err != nil {
		t.Fatalf("the owner of %s did not start: %s", dir, strings.TrimSpace(line))
	}
	return o
}

// shared copies the test binary to where another user may run it.
func shared(t *testing.T, exe string) string {
	t.Helper()
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(ledgertest.DataDir(t), "helper")
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

// stop ends the helper the graceful way.
func (o *owner) stop() {
	o.t.Helper()
	_ = o.stdin.Close()
	if err := o.cmd.Wait(); err != nil {
		o.t.Errorf("the owner stopped with %v", err)
	}
}

// kill ends the helper with SIGKILL; the server stays.
func (o *owner) kill() {
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
}

func start(t *testing.T, dir string) *embedded.Instance {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		t.Fatalf("couldn't start: %v", err)
	}
	t.Cleanup(func() { _ = in.Kill() })
	return in
}

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec1(t *testing.T, dsn, query string) {
	t.Helper()
	if _, err := connect(t, dsn).ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, dsn, table string) (n int) {
	t.Helper()
	if err := connect(t, dsn).QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
