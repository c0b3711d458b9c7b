package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
)

// Ten starts on one folder: graceful stops, kills of the owner alone, and three kills
// of everything. Each start must find every row of all the starts before it.
func TestTenStartsKeepEveryRow(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	for i := range 10 {
		began := time.Now()
		o := own(t, dir, 0)
		took := time.Since(began)
		if i == 0 {
			exec1(t, o.dsn, `CREATE TABLE kept (n int)`)
		}
		if n := count(t, o.dsn, "kept"); n != i {
			t.Fatalf("start %d finds %d rows, want %d", i, n, i)
		}
		exec1(t, o.dsn, fmt.Sprintf(`INSERT INTO kept VALUES (%d)`, i))
		how := "stopped"
		switch i {
		case 1, 4, 7:
			how = "all killed"
			o.kill()
			in, err := embedded.Find(dir)
			if err != nil {
				t.Fatalf("the server died with its owner: %v", err)
			}
			if err := in.Kill(); err != nil {
				t.Fatal(err)
			}
		case 2, 5:
			how = "owner killed"
			o.kill()
		default:
			o.stop()
		}
		t.Logf("start %d: %v, then %s", i, took.Round(time.Millisecond), how)
	}
}

func TestAfterOurOwnKillTheNextOwnerAttaches(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	first := own(t, dir, 0)
	first.kill()
	second := own(t, dir, 0)
	if second.pid != first.pid {
		t.Errorf("the second owner runs postmaster %d, want the living %d", second.pid, first.pid)
	}
	second.stop()
	if _, err := embedded.Find(dir); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("after the second owner's stop, Find = %v, want ErrNotRunning", err)
	}
}

func TestSecondOwnerIsRefusedAndToldWho(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	o := own(t, dir, 0)
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrLocked) {
		t.Fatalf("second Start = %v, want ErrLocked", err)
	}
	if want := fmt.Sprintf("process %d", o.cmd.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("the refusal %q does not name %q", err, want)
	}
	exec1(t, o.dsn, `SELECT 1`) // and the first goes on
}

// A short command must neither wait for a running server's owner nor stop its server.
func TestReachUsesARunningServerAndLeavesItAlone(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	o := own(t, dir, 0)
	in, err := embedded.Reach(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if in.DSN() != o.dsn || in.PID() != o.pid {
		t.Errorf("Reach found %s (%d), want %s (%d)", in.DSN(), in.PID(), o.dsn, o.pid)
	}
	if err := in.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, o.dsn, `SELECT 1`)
}

func TestConcurrentReachesShareOneServer(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pids := make([]int, 4)
	var wg sync.WaitGroup
	for i := range pids {
		wg.Go(func() {
			in, err := embedded.Reach(ctx, embedded.Options{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			pids[i] = in.PID()
		})
	}
	wg.Wait()
	for _, pid := range pids {
		if pid == 0 || pid != pids[0] {
			t.Fatalf("postmasters %v, want one", pids)
		}
	}
}

func TestAKilledServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	in := start(t, ledgertest.DataDir(t))
	exec1(t, in.DSN(), `CREATE TABLE kept AS SELECT 1`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		in.Supervise(ctx, slog.New(slog.DiscardHandler))
	}()
	if err := syscall.Kill(in.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	db := connect(t, in.DSN())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var n int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM kept`).Scan(&n)
		if err == nil && n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not back: %d rows, %v", n, err)
		}
	}
	cancel()
	<-done
	if err := in.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The server's environment can be read by others; ours holds secrets.
func TestOurEnvironmentDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	own(t, dir, 0, "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=hush")
	var out string
	// The superuser may run programs as the server, which shows its environment.
	in, err := embedded.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	db := connect(t, in.AdminDSN())
	db.SetMaxOpenConns(1)
	for _, q := range []string{`CREATE TEMP TABLE env (line text)`, `COPY env FROM PROGRAM 'env'`} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.QueryRowContext(t.Context(), `SELECT string_agg(line, E'\n') FROM env`).Scan(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "PATH=") || strings.Contains(out, "QUITTANCE") {
		t.Errorf("the server's environment:\n%s", out)
	}
}

// As root the server runs as somebody else; everybody else runs it as himself. Both
// ways are tested where we are root.
func TestAnOrdinaryUserRunsItsOwnServer(t *testing.T) {
	t.Parallel()
	uid := uint32(0)
	dir := ledgertest.DataDir(t)
	if os.Geteuid() == 0 {
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(u.Uid)
		if err != nil {
			t.Fatal(err)
		}
		uid = uint32(id)
		if err := os.Chown(dir, id, id); err != nil {
			t.Fatal(err)
		}
	}
	o := own(t, dir, uid)
	st, err := os.Stat(dir + "/postgres")
	if err != nil {
		t.Fatal(err)
	}
	want := uint32(os.Geteuid())
	if uid != 0 {
		want = uid
	}
	if got := st.Sys().(*syscall.Stat_t).Uid; got != want || st.Mode().Perm() != 0o700 {
		t.Errorf("the cluster belongs to user %d with mode %v, want %d with 0700", got, st.Mode().Perm(), want)
	}
	o.stop()
}
