package logfile

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// ErrUnread says that somebody has written since the file was read last.
var ErrUnread = errors.New("there are lines that have not been read")

// lockPatience is how long an agent may hold the lock while it writes a line.
const lockPatience = 5 * time.Second

// Append writes whole lines to the file at path, under an exclusive lock (flock), and
// returns once they are on the disk. torn is the length of an unfinished last line that
// the caller has seen stand still: a line end is put behind it first. last is asked under
// the lock, right before the write. [ErrUnread] when
// anything else stands behind at, an *Alarm when what was read has changed; then
// nothing is written.
//
// An error after that may leave the lines written, in part or whole: the caller reads
// the file before it tries again.
func Append(ctx context.Context, path string, at Place, torn int64, lines []byte, last func(context.Context) error) (err error) {
	f, err := openFile(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("couldn't open the log file to write: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lock(ctx, f); err != nil {
		return err
	}
	x := &File{f: f, path: path, at: at, sum: sha256.New()}
	if err := x.check(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("couldn't look at the log file: %w", err)
	}
	if now, err := os.Stat(path); err != nil || identityOf(now) != identityOf(info) {
		return ErrUnread // rotated between opening and locking
	}
	if info.Size() != at.ReadTo+torn {
		return ErrUnread
	}
	if err := last(ctx); err != nil {
		return err
	}
	if torn > 0 {
		lines = append([]byte{'\n'}, lines...)
	}
	if _, err := f.Write(lines); err != nil {
		return fmt.Errorf("couldn't write to the log file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("couldn't bring the log file to the disk: %w", err)
	}
	return nil
}

func lock(ctx context.Context, f *os.File) error {
	until := time.Now().Add(lockPatience)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("couldn't lock the log file: %w", err)
		case time.Now().After(until):
			return errors.New("couldn't lock the log file: somebody else holds its lock")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
