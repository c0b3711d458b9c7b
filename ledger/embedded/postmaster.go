package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// port only names the socket; nothing listens on a network.
	port = 5432
	// maxSocketPath is what the kernel allows for a Unix socket's address.
	maxSocketPath = 107
	// poll is how often a state that gives no signal is looked at.
	poll = 10 * time.Millisecond
	// logLimit is the size from which a start puts the log aside.
	logLimit = 16 << 20
)

// pidFile is what postmaster.pid says: PostgreSQL's own record of a running server.
type pidFile struct {
	pid    int
	port   int
	socket string
	status string // "starting", "ready", "stopping", ...
}

func (f folder) readPIDFile() (pidFile, error) {
	b, err := os.ReadFile(filepath.Join(f.cluster(), "postmaster.pid"))
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(b), "\n")
	line := func(i int) string {
		if i < len(lines) {
			return strings.TrimSpace(lines[i])
		}
		return ""
	}
	p := pidFile{socket: line(4), status: line(7)}
	p.pid, _ = strconv.Atoi(line(0))
	p.port, _ = strconv.Atoi(line(3))
	return p, nil
}

// running is the server on the folder that is ready, whoever started it.
func (f folder) running() (*Instance, error) {
	p, err := f.readPIDFile()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, f.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read the database folder: %w", err)
	}
	id, err := f.id()
	if err != nil {
		return nil, err
	}
	if p.status != "ready" || !isPostmaster(p.pid, id) {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, f.dir)
	}
	return &Instance{folder: f, pid: p.pid, socket: p.socket, port: p.port}, nil
}

// launch attaches to a living server or starts one. The caller holds the lock.
func (f folder) launch(ctx context.Context) (*Instance, error) {
	in, err := f.attach(ctx)
	if err == nil || !errors.Is(err, ErrNotRunning) {
		return in, err
	}
	want, err := f.dataMajor()
	if err != nil {
		return nil, err
	}
	inst, err := findInstallation(want)
	if err != nil {
		return nil, err
	}
	if err := f.clean(ctx); err != nil {
		return nil, err
	}
	if err := f.admit(); err != nil {
		return nil, err
	}
	return f.spawn(ctx, inst)
}

// attach waits for a living postmaster to be ready, or to be gone when it is on its
// way out.
func (f folder) attach(ctx context.Context) (*Instance, error) {
	id, err := f.id()
	if err != nil {
		return nil, err
	}
	for {
		in, err := f.running()
		if err == nil || !errors.Is(err, ErrNotRunning) {
			return in, err
		}
		p, _ := f.readPIDFile()
		if !isPostmaster(p.pid, id) {
			return nil, ErrNotRunning
		}
		if p.status == "stopping" {
			kill(p.pid, syscall.SIGINT) // a "smart" stop would wait for every client
		}
		if err := sleep(ctx, poll); err != nil {
			return nil, fmt.Errorf("couldn't wait for the database that runs on %s: %w", f.dir, err)
		}
	}
}

func (f folder) dataMajor() (int, error) {
	b, err := os.ReadFile(filepath.Join(f.cluster(), "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("couldn't read the database's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("couldn't read the database's version: %w", err)
	}
	return major, nil
}

// clean removes what a killed server left. Only for a folder whose lock we hold and
// whose postmaster is gone.
//
// Orphans first: a child that still works on the shared memory must be gone before a
// new server touches the files. Then the lock files: PostgreSQL believes a process id
// in them if any process of the same user has it today.
func (f folder) clean(ctx context.Context) error {
	id, err := f.id()
	if err != nil {
		return err
	}
	for {
		orphans := processes(id)
		if len(orphans) == 0 {
			break
		}
		for _, pid := range orphans {
			kill(pid, syscall.SIGKILL)
		}
		if err := sleep(ctx, poll); err != nil {
			return fmt.Errorf("couldn't end what a killed database left running: %w", err)
		}
	}
	socket, err := f.socketDir()
	if err != nil {
		return err
	}
	name := fmt.Sprintf(".s.PGSQL.%d", port)
	for _, path := range []string{
		filepath.Join(f.cluster(), "postmaster.pid"),
		filepath.Join(socket, name+".lock"),
		filepath.Join(socket, name),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("couldn't clear what a killed database left: %w", err)
		}
	}
	return nil
}

// spawn starts a postmaster and waits until it takes connections: as long as it
// lives and ctx allows, for crash recovery takes the time that it takes.
func (f folder) spawn(ctx context.Context, inst installation) (*Instance, error) {
	id, err := f.id()
	if err != nil {
		return nil, err
	}
	socket, err := f.socketDir()
	if err != nil {
		return nil, err
	}
	log, err := f.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, _ := log.Seek(0, 2)
	c := f.owner.command(f.cluster(), filepath.Join(inst.bin, "postgres"),
		"-D", f.cluster(), "-c", clusterArg(id),
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+socket,
		"-c", "unix_socket_permissions=0700", "-c", "port="+strconv.Itoa(port))
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("couldn't start PostgreSQL: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = c.Wait() // the reason is in its log
		close(exited)
	}()
	in := &Instance{folder: f, pid: c.Process.Pid, socket: socket, port: port, exited: exited}
	for {
		if p, err := f.readPIDFile(); err == nil && p.pid == in.pid && p.status == "ready" {
			return in, nil
		}
		select {
		case <-exited:
			return nil, fmt.Errorf("couldn't start PostgreSQL: %s", f.logTail(from))
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("couldn't wait for PostgreSQL: %w", context.Cause(ctx)), in.shutdown(context.WithoutCancel(ctx)))
		case <-time.After(poll):
		}
	}
}

// socketDir is the cluster folder itself, which only the server's user may enter. A
// path too long for a socket address gets a short folder under the temporary one.
func (f folder) socketDir() (string, error) {
	if len(f.cluster())+len("/.s.PGSQL.5432") <= maxSocketPath && !strings.Contains(f.cluster(), ",") {
		return f.cluster(), nil
	}
	dir := fmt.Sprintf("/tmp/quittance-%x", sha256.Sum256([]byte(f.cluster())))[:len("/tmp/quittance-")+16]
	if err := os.Mkdir(dir, 0o700); err == nil {
		if err := os.Chown(dir, f.owner.uid, f.owner.gid); err != nil {
			return "", fmt.Errorf("couldn't give the socket folder to the server's user: %w", err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("couldn't make a folder for the database's socket: %w", err)
	}
	// Anybody may have made that name first; only a private folder of our own will do.
	st, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("couldn't check the socket folder: %w", err)
	}
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() || st.Mode().Perm() != 0o700 || int(s.Uid) != f.owner.uid {
		return "", fmt.Errorf("couldn't use %s for the database's socket: it is somebody else's; remove it or choose a shorter --data", dir)
	}
	return dir, nil
}

func (f folder) openLog() (*os.File, error) {
	if st, err := os.Stat(f.logPath()); err == nil && st.Size() > logLimit {
		_ = os.Rename(f.logPath(), f.logPath()+".1")
	}
	log, err := os.OpenFile(f.logPath(), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("couldn't open the database's log: %w", err)
	}
	return log, nil
}

// logTail is what the server said since from, shortened for an error message.
func (f folder) logTail(from int64) string {
	b, err := os.ReadFile(f.logPath())
	if err != nil || int64(len(b)) <= from {
		return "it said nothing; see " + f.logPath()
	}
	return lastLines(string(b[from:]), 3)
}

// shutdown ends the server the fast way and waits for it.
func (in *Instance) shutdown(ctx context.Context) error {
	if in.Alive() { // otherwise its id may be somebody else's by now
		kill(in.pid, syscall.SIGINT)
	}
	for in.Alive() {
		if err := sleep(ctx, poll); err != nil {
			return fmt.Errorf("couldn't wait for the database to stop: %w", err)
		}
	}
	return nil
}

// Alive tells whether the postmaster runs.
func (in *Instance) Alive() bool {
	if in.exited != nil {
		select {
		case <-in.exited:
			return false
		default:
			return true
		}
	}
	id, err := in.folder.id()
	return err == nil && isPostmaster(in.pid, id)
}
