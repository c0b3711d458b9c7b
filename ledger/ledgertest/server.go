package ledgertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"quittance/ledger"
	"quittance/ledger/embedded"
)

// shared starts or finds the server that all test processes of this user use.
func shared() (*embedded.Instance, error) {
	dir, err := sharedDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	in, err := embedded.Reach(ctx, embedded.Options{
		Dir: filepath.Join(dir, "data"),
		// Many test processes, each test with a pool of its own.
		Settings: map[string]string{"max_connections": "400"},
	})
	if err != nil {
		return nil, err
	}
	in.Leave()
	return in, use(dir)
}

// sharedDir is where the shared server lives. Root cannot use its own cache folder:
// the user that PostgreSQL then runs as may not enter it.
func sharedDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/quittance-test", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("couldn't find a cache folder: %w", err)
	}
	return filepath.Join(cache, "quittance-test"), nil
}

// use marks the shared server as used by this process, by a shared lock that is held
// until the process ends, so that nobody stops it under us: script/testdb-stop takes
// the lock alone or not at all.
func use(dir string) error {
	// A bare descriptor: an os.File would be closed, and the lock lost, once collected.
	fd, err := syscall.Open(filepath.Join(dir, "users"), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err == nil {
		err = syscall.Flock(fd, syscall.LOCK_SH)
	}
	if err != nil {
		return fmt.Errorf("couldn't mark the test server as used: %w", err)
	}
	return nil
}

// DataDir is an empty folder that PostgreSQL's user can reach, for an embedded server.
// When t ends, the server that runs on it is killed, whoever started it, and the folder
// is removed.
func DataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "quittance-pg-") // t.TempDir is too deep for a socket and closed to that user
	if err != nil {
		t.Fatalf("couldn't make a data folder: %v", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatalf("couldn't open the data folder: %v", err)
	}
	t.Cleanup(func() {
		if in, err := embedded.Find(dir); err == nil {
			_ = in.Kill()
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// Private is a PostgreSQL of one test, to be killed and started again.
type Private struct {
	t   testing.TB
	dir string
	in  *embedded.Instance
}

// Server starts a PostgreSQL of the test's own, with durable settings and an empty
// database. It costs seconds: only for tests that kill it or change its settings.
func Server(t testing.TB) *Private {
	t.Helper()
	p := &Private{t: t, dir: DataDir(t)}
	t.Cleanup(p.Kill)
	p.Start()
	return p
}

// DSN is the URL of the server's empty database, the same after a restart.
func (p *Private) DSN() string { return p.in.DSN() }

// AdminDSN is the superuser's URL.
func (p *Private) AdminDSN() string { return p.in.AdminDSN() }

// Open connects to the server's database.
func (p *Private) Open() *ledger.DB {
	p.t.Helper()
	return open(p.t, p.DSN())
}

// Kill sends SIGKILL to the server and everything it forked, all at once: what a
// power cut looks like to the files.
func (p *Private) Kill() {
	p.t.Helper()
	if p.in == nil {
		return
	}
	if err := p.in.Kill(); err != nil {
		p.t.Errorf("couldn't kill the test's PostgreSQL: %v", err)
	}
	p.in = nil
}

// Start starts the server again after a Kill; it recovers from its log.
func (p *Private) Start() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	in, err := embedded.Start(ctx, embedded.Options{Dir: p.dir})
	if err != nil {
		p.t.Fatalf("couldn't start the test's PostgreSQL: %v\n(`make setup` installs it)", err)
	}
	p.in = in
}
