package main

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
)

func TestServeOnAnEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	began := time.Now()
	p := serve(t, nil, "--data", dir)
	t.Logf("new database: served after %v", time.Since(began).Round(time.Millisecond))
	if code, body := p.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz = %d %s", code, body)
	}
	// Another command works beside it, on the same database.
	if code, out, errs := once(t, nil, "migrate", "--data", dir); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("migrate beside a server: exit %d, %q, %q", code, out, errs)
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("after SIGTERM: exit %d\n%s", s.ExitStatus(), p.output())
	}
	if _, err := embedded.Find(dir); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("the database after a graceful stop: %v, want ErrNotRunning", err)
	}

	began = time.Now()
	p = serve(t, nil, "--data", dir)
	t.Logf("existing database: served after %v", time.Since(began).Round(time.Millisecond))
	p.end(syscall.SIGKILL)
	if _, err := embedded.Find(dir); err != nil {
		t.Errorf("the database after our own SIGKILL: %v, want it running", err)
	}
	p = serve(t, nil, "--data", dir)
	if s := p.end(syscall.SIGINT); s.ExitStatus() != 0 {
		t.Errorf("after SIGINT: exit %d\n%s", s.ExitStatus(), p.output())
	}
}

// The place of an embedded database is the same at each start, or every start would
// look like a copy.
func TestEmbeddedPlaceIsStable(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	place := func() string {
		p := serve(t, nil, "--data", dir)
		p.end(syscall.SIGTERM)
		_, rest, _ := strings.Cut(p.output(), " environment=")
		mark, _, _ := strings.Cut(rest, "\n")
		return mark
	}
	first, second := place(), place()
	if first != second || !strings.HasPrefix(first, "embedded-") {
		t.Errorf("places %q and %q, want one", first, second)
	}
}

// Two signals together are one wish: the database must not be left running.
func TestTwoSignalsAtOnceStopGracefully(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	p := serve(t, nil, "--data", dir)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // without a pause the kernel delivers them as one
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if s := p.wait(); s.Signaled() || s.ExitStatus() != 0 {
		t.Errorf("after two signals: %v\n%s", s, p.output())
	}
	if _, err := embedded.Find(dir); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("the database after two signals at once: %v, want ErrNotRunning", err)
	}
}

// One signal asks, a later one insists: here an unfinished request holds up the stop.
func TestASecondSignalKills(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "--data", ledgertest.DataDir(t))
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("POST /healthz HTTP/1.1\r\nHost: x\r\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // for the server to read the beginning
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
		t.Fatal("the first signal did not wait for the request, so this test proves nothing")
	case <-time.After(2 * oneWish):
	}
	if s := p.end(syscall.SIGTERM); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("after the second signal: %v, want death by it", s)
	}
}

func TestServeSurvivesTheDeathOfItsDatabase(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	p := serve(t, nil, "--data", dir)
	in, err := embedded.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if code, _ := p.get("/readyz"); code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready again:\n%s", p.output())
		}
	}
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("exit %d\n%s", s.ExitStatus(), p.output())
	}
}

func TestServeRefusesAnOldSchemaAndNamesTheCommand(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + ledgertest.Server(t).DSN(), "QUITTANCE_ENVIRONMENT=test"}
	code, _, errs := once(t, env, "serve", "--listen", "127.0.0.1:0")
	if code != exitFailed || !strings.Contains(errs, "quittance migrate") {
		t.Fatalf("serve on an empty database: exit %d, %q", code, errs)
	}
	if code, out, errs := once(t, env, "migrate"); code != 0 || !strings.Contains(out, "from version 0") {
		t.Fatalf("migrate: exit %d, %q, %q", code, out, errs)
	}
	p := serve(t, env)
	if s := p.end(syscall.SIGTERM); s.ExitStatus() != 0 {
		t.Errorf("exit %d", s.ExitStatus())
	}
}

func TestServeRefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	env := []string{
		"DATABASE_URL=" + ledgertest.URL(t) + "&options=-csynchronous_commit%3Doff",
		"QUITTANCE_ENVIRONMENT=test",
	}
	code, _, errs := once(t, env, "serve", "--listen", "127.0.0.1:0")
	if code != exitFailed || !strings.Contains(errs, "synchronous_commit is off") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestServeRefusesASecondServerOnOneFolder(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	serve(t, nil, "--data", dir)
	code, _, errs := once(t, nil, "serve", "--listen", "127.0.0.1:0", "--data", dir)
	if code != exitFailed || !strings.Contains(errs, "data folder in use") {
		t.Errorf("exit %d, %q", code, errs)
	}
}
