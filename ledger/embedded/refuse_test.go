package embedded_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
)

// Whatever lies in the folder that is not ours must be there, unchanged, afterwards.
func TestAFolderOfSomethingElseIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"a file of somebody's":         {"thesis.txt": "three years"},
		"a bare PostgreSQL folder":     {"PG_VERSION": "15\n", "base/1/x": "rows"},
		"a postgres folder without PG": {"postgres/holiday.jpg": "sun"},
		"an empty postgres folder":     {"postgres/": ""},
		"a hidden file":                {".git": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := ledgertest.DataDir(t)
			for path, text := range files {
				folder, file := filepath.Split(path)
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
					t.Fatal(err)
				}
				if file == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, dir)
			for range 2 { // the first refusal must not pave the way for a second try
				if _, err := embedded.Start(t.Context(), embedded.Options{Dir: dir}); !errors.Is(err, embedded.ErrForeign) {
					t.Fatalf("Start = %v, want ErrForeign", err)
				}
			}
			if after := tree(t, dir); !maps.Equal(before, after) {
				t.Errorf("the folder changed:\nbefore %v\nafter  %v", before, after)
			}
		})
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = "(folder)"
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnotherMajorVersionIsRefusedAndItsRowsKept(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	in := start(t, dir)
	exec1(t, in.DSN(), `CREATE TABLE kept AS SELECT 1`)
	if err := in.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	version := filepath.Join(dir, "postgres", "PG_VERSION")
	real, err := os.ReadFile(version)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrVersion) {
		t.Fatalf("Start = %v, want ErrVersion", err)
	}
	for _, want := range []string{"PostgreSQL 9", "installed is " + strings.TrimSpace(string(real))} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q does not say %q", err, want)
		}
	}
	if err := os.WriteFile(version, real, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := count(t, start(t, dir).DSN(), "kept"); n != 1 {
		t.Errorf("%d rows after the refusal, want 1", n)
	}
}

func TestAnUnfinishedInitdbIsBegunAgain(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	half := filepath.Join(dir, "postgres.new")
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir).DSN(), `SELECT 1`)
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished folder is still there: %v", err)
	}
}

// After a crash the process id in postmaster.pid may be anybody's. PostgreSQL itself
// refuses to start when it is a process of the same user.
func TestAReusedProcessIDDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	in := start(t, dir)
	pidFile := filepath.Join(dir, "postgres", "postmaster.pid")
	stale, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	owner := st.Sys().(*syscall.Stat_t)
	if err := in.Kill(); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("sleep", "600")
	if os.Geteuid() == 0 {
		bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	pid := strconv.Itoa(bystander.Process.Pid)
	_, rest, _ := strings.Cut(string(stale), "\n")
	for path, text := range map[string]string{
		pidFile: pid + "\n" + rest,
		filepath.Join(dir, "postgres", ".s.PGSQL.5432.lock"): pid + "\n" + rest,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exec1(t, start(t, dir).DSN(), `SELECT 1`)
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander was killed: %v", err)
	}
}

// A backend in the middle of a query does not notice that its postmaster was killed.
func TestOrphanedBackendsDoNotStopTheStart(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	in := start(t, dir)
	exec1(t, in.DSN(), `CREATE TABLE kept AS SELECT 1`)
	db := connect(t, in.DSN())
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var backend int
	if err := conn.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = conn.ExecContext(ctx, `SELECT count(*) FROM generate_series(1, 1000000000000) n, generate_series(1, 1000) m`)
	}()
	admin := connect(t, in.AdminDSN())
	for busy := false; !busy; time.Sleep(10 * time.Millisecond) {
		if err := admin.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active')`, backend).Scan(&busy); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(in.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	in.Leave()
	time.Sleep(200 * time.Millisecond) // what an idle backend needs to notice and go
	if err := syscall.Kill(backend, 0); err != nil {
		t.Fatalf("the busy backend is gone, so this test proves nothing: %v", err)
	}
	if n := count(t, start(t, dir).DSN(), "kept"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestAPathTooLongForASocketWorks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(ledgertest.DataDir(t), strings.Repeat("long", 20), strings.Repeat("path", 20))
	in := start(t, dir)
	exec1(t, in.DSN(), `SELECT 1`)
	if err := in.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir).DSN(), `SELECT 1`)
}
