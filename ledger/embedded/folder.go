package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// What the data folder holds. Everything else in a folder that has no cluster yet
// means that the folder belongs to somebody else.
const (
	clusterName = "postgres"     // PostgreSQL's own folder
	halfName    = "postgres.new" // an initdb that has not finished
	lockName    = "lock"
	logName     = "postgres.log"
	// AnchorName is the file that names the newest sealed block of the log. A folder that
	// has it and no database any more is ours: the new database is told from the lost one.
	AnchorName = "anchor.json"
)

// folder is a data folder and the user its server runs as.
type folder struct {
	dir   string // absolute
	owner owner
}

func (f folder) cluster() string { return filepath.Join(f.dir, clusterName) }
func (f folder) logPath() string { return filepath.Join(f.dir, logName) }

// namedFolder resolves dir without touching the disk.
func namedFolder(dir string) (folder, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return folder{}, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return folder{}, fmt.Errorf("couldn't resolve the data folder: %w", err)
	}
	o, err := serverOwner()
	if err != nil {
		return folder{}, err
	}
	return folder{dir: dir, owner: o}, nil
}

// openFolder makes the folder when it is missing and checks that it is ours.
func openFolder(dir string) (folder, error) {
	f, err := namedFolder(dir)
	if err != nil {
		return folder{}, err
	}
	// As root the server's user has to pass through; the cluster inside is 0700.
	mode := fs.FileMode(0o700)
	if f.owner.switched {
		mode = 0o711
	}
	if err := os.MkdirAll(f.dir, mode); err != nil {
		return folder{}, fmt.Errorf("couldn't make the data folder: %w", err)
	}
	if err := f.checkOurs(); err != nil {
		return folder{}, err
	}
	return f, f.owner.canEnter(f.dir)
}

// checkOurs refuses a folder that has no cluster of ours and is not empty.
func (f folder) checkOurs() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("couldn't read the data folder: %w", err)
	}
	foreign := ""
	for _, e := range entries {
		switch e.Name() {
		case clusterName:
			return f.checkCluster()
		case halfName, lockName, logName, logName + ".1", "lost+found":
		default:
			// Beside the anchors may lie what a crash left of writing one.
			if !strings.HasPrefix(e.Name(), "anchor") || !strings.Contains(e.Name(), ".json") {
				foreign = e.Name()
			}
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: %s has no Quittance database, but it does hold %q; name an empty or new folder with --data", ErrForeign, f.dir, foreign)
	}
	return nil
}

func (f folder) checkCluster() error {
	if _, err := os.Stat(filepath.Join(f.cluster(), "PG_VERSION")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is there, but it is no PostgreSQL folder (no PG_VERSION); move it away or restore it", ErrForeign, f.cluster())
	} else if err != nil {
		return fmt.Errorf("couldn't read the database folder: %w", err)
	}
	return nil
}

// lock takes the folder for this process until the file is closed or the process
// ends in any way: the kernel frees it, so no stale lock can be left behind.
func (f folder) lock(ctx context.Context, patience time.Duration) (*os.File, error) {
	path := filepath.Join(f.dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("couldn't open the lock of the data folder: %w", err)
	}
	for deadline := time.Now().Add(patience); ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("couldn't lock the data folder: %w", err)
		}
		if time.Now().After(deadline) {
			holder, _ := os.ReadFile(path)
			_ = file.Close()
			return nil, fmt.Errorf("%w: %s is used by %s", ErrLocked, f.dir, strings.TrimSpace(string(holder)))
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			_ = file.Close()
			return nil, err
		}
	}
	// Only for the sentence another process shows; the lock itself is the kernel's.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(fmt.Appendf(nil, "process %d (%s)\n", os.Getpid(), filepath.Base(os.Args[0])), 0)
	return file, nil
}

// id names this cluster folder on this machine, whatever path or mount name space it
// is seen through. Every process of its server carries it in its title, which is how
// they are told from somebody else's.
func (f folder) id() (string, error) {
	st, err := os.Stat(f.cluster())
	if err != nil {
		return "", fmt.Errorf("couldn't read the database folder: %w", err)
	}
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("couldn't read the database folder's inode")
	}
	return fmt.Sprintf("quittance-%x-%x", s.Dev, s.Ino), nil
}
