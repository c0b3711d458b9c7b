// Package embedded runs a PostgreSQL server of our own in a data folder, from the
// programs of an installed PostgreSQL. It is what `quittance serve` uses when no
// DATABASE_URL is given.
//
// The folder is guarded more than the process: one owner at a time (a lock that
// dies with its holder), never an initdb into a folder that holds something else,
// never a start on the data of another major version. The server outlives a killed
// owner, and the next owner attaches to it.
//
// It listens on a Unix socket only. PostgreSQL asks the kernel who is calling
// ("peer"), so there is no password to keep: only the user that runs Quittance gets in.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Names inside the cluster. Role owns Database and is no superuser: what the
// application cannot do by mistake, a mistake in it cannot do.
const (
	Role     = "quittance"
	Database = "quittance"
	admin    = "postgres"
)

// lockPatience is how long Start waits for another owner to leave: long enough for
// a short command to finish, short enough that a second server is refused at once.
const lockPatience = 2 * time.Second

// Sentinels for callers that branch.
var (
	// ErrNoPostgres: no PostgreSQL programs on this machine.
	ErrNoPostgres = errors.New("no PostgreSQL found")
	// ErrLocked: another process owns the data folder.
	ErrLocked = errors.New("data folder in use")
	// ErrNotRunning: no server runs on the data folder.
	ErrNotRunning = errors.New("no database server runs on this data folder")
	// ErrForeign: the data folder holds something that is not ours to touch.
	ErrForeign = errors.New("data folder holds something else")
	// ErrVersion: the data was made by a major version that is not installed here.
	ErrVersion = errors.New("data folder is of another PostgreSQL version")
)

// Options say where the data lives.
type Options struct {
	// Dir is the data folder; empty means [DefaultDir].
	Dir string
	// Settings are added to postgresql.conf when the folder is created, and never
	// read again: a running installation is tuned in its own file.
	Settings map[string]string
}

// DefaultDir is /var/lib/quittance for root, $XDG_DATA_HOME/quittance (or
// ~/.local/share/quittance) for everybody else.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/quittance", nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "quittance"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("couldn't find a place for the data (name one with --data): %w", err)
	}
	return filepath.Join(home, ".local", "share", "quittance"), nil
}

// Instance is a database server on a data folder, owned by this process or found.
type Instance struct {
	folder folder
	pid    int
	socket string // folder of the Unix socket
	port   int

	lock   *os.File        // nil when the server was only found
	exited <-chan struct{} // closed when our own child ended; nil when attached
}

// Start takes the data folder, creates the database in it when the folder is new,
// and returns once the server takes connections. A server that outlived its owner is
// attached to. Fails with [ErrLocked] when another process owns the folder.
func Start(ctx context.Context, o Options) (*Instance, error) {
	f, err := openFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := f.lock(ctx, lockPatience)
	if err != nil {
		return nil, err
	}
	return startLocked(ctx, f, lock, o.Settings)
}

// Find returns the server that runs on dir without owning it: its Stop does
// nothing. Fails with [ErrNotRunning] when there is none.
func Find(dir string) (*Instance, error) {
	f, err := namedFolder(dir)
	if err != nil {
		return nil, err
	}
	return f.running()
}

// Reach is for short commands: the running server when there is one, else a server
// started for this call alone, which Stop ends.
func Reach(ctx context.Context, o Options) (*Instance, error) {
	for {
		in, err := Find(o.Dir)
		if !errors.Is(err, ErrNotRunning) {
			return in, err
		}
		f, err := openFolder(o.Dir)
		if err != nil {
			return nil, err
		}
		// A held lock with no server yet means that its owner is starting one.
		lock, err := f.lock(ctx, 0)
		if errors.Is(err, ErrLocked) {
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return nil, fmt.Errorf("couldn't wait for the owner of %s to start its database: %w", f.dir, err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		return startLocked(ctx, f, lock, o.Settings)
	}
}

// startLocked keeps the lock for the instance, or frees it when there is none.
func startLocked(ctx context.Context, f folder, lock *os.File, settings map[string]string) (in *Instance, err error) {
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := f.create(ctx, settings); err != nil {
		return nil, err
	}
	if in, err = f.launch(ctx); err != nil {
		return nil, err
	}
	if err := in.ensureDatabase(ctx); err != nil {
		return nil, errors.Join(err, in.shutdown(context.WithoutCancel(ctx)))
	}
	in.lock = lock
	return in, nil
}

// DSN is the URL of the application's database. It holds no secret.
func (in *Instance) DSN() string { return in.dsn(Role, Database) }

// AdminDSN is the URL of the maintenance database as superuser, for what needs one:
// creating test databases, changing server settings.
func (in *Instance) AdminDSN() string { return in.dsn(admin, "postgres") }

func (in *Instance) dsn(user, database string) string {
	q := url.Values{"host": {in.socket}, "port": {strconv.Itoa(in.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// PID is the process id of the server, for tests that kill it.
func (in *Instance) PID() int { return in.pid }

// Dir is the data folder.
func (in *Instance) Dir() string { return in.folder.dir }

// Stop shuts the server down ("fast": open transactions are rolled back) and gives
// the folder up, when this process owns it. It waits until the server has ended.
func (in *Instance) Stop(ctx context.Context) error {
	if in.lock == nil {
		return nil
	}
	err := in.shutdown(ctx)
	if err == nil {
		err = in.dropSocket()
	}
	_ = in.lock.Close()
	in.lock = nil
	return err
}

// Leave gives the folder up and lets the server run on for whoever comes next.
func (in *Instance) Leave() {
	if in.lock != nil {
		_ = in.lock.Close()
		in.lock = nil
	}
}

// dropSocket removes the short folder that a long path's socket lies in. The next
// start makes it again.
func (in *Instance) dropSocket() error {
	if in.socket == in.folder.cluster() {
		return nil
	}
	if err := os.RemoveAll(in.socket); err != nil {
		return fmt.Errorf("couldn't remove the socket's folder: %w", err)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Kill ends every process of the server with SIGKILL and gives the folder up. It is
// there for tests of what a crash leaves; the next Start recovers.
func (in *Instance) Kill() error {
	defer in.Leave()
	id, err := in.folder.id()
	if err != nil {
		return err
	}
	// The postmaster first: it would answer the death of a child by restarting all.
	if in.Alive() {
		kill(in.pid, syscall.SIGKILL)
	}
	for {
		left := processes(id)
		if len(left) == 0 {
			return in.dropSocket()
		}
		for _, pid := range left {
			kill(pid, syscall.SIGKILL)
		}
		time.Sleep(poll)
	}
}
