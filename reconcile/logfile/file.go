package logfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Place is how far a file has been read, and what stood there.
type Place struct {
	ReadTo   int64  // bytes
	Lines    int64  // whole lines before it
	Digest   []byte // SHA-256 of the first ReadTo bytes
	Identity string // device and inode; a hint
}

// Alarm says that a file no longer holds what was read from it.
type Alarm struct {
	Kind   string // "shrunken", "replaced", "rewritten"
	Detail string
}

func (a *Alarm) Error() string { return "the log file was " + a.Kind + ": " + a.Detail }

// ErrGone is a path without a file: not an alarm yet, a rotation may be under way.
var ErrGone = errors.New("there is no file at this path")

// File is an open log file that still holds what was read from it.
type File struct {
	f    *os.File
	path string
	at   Place
	sum  hash.Hash // of everything up to at.ReadTo
	seen []byte    // its edges when it was read last
}

// Open opens path and compares what stands before the place with what was read. An
// *Alarm when it differs; the file that has the old content, when it stands beside path
// under another name of the same beginning, is rotated: it is returned with path true.
func Open(path string, at Place) (file *File, rotated bool, err error) {
	file, err = openAt(path, at)
	alarm, changed := errors.AsType[*Alarm](err)
	if !changed && !errors.Is(err, ErrGone) {
		return file, false, err
	}
	if at.ReadTo > 0 {
		for _, other := range siblings(path) {
			old, err := openAt(other, at)
			if err == nil && beginsAlike(path, other) {
				// A copy of it stands beside it; the file itself was cut or written anew.
				_ = old.Close()
			} else if err == nil {
				return old, true, nil
			}
		}
	}
	if changed {
		return nil, false, alarm
	}
	return nil, false, err
}

// beginsAlike tells whether two files have the same first line.
func beginsAlike(a, b string) bool {
	first := func(path string) []byte {
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		buf := make([]byte, 4096)
		n, _ := io.ReadFull(f, buf)
		line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
		return line
	}
	line := first(a)
	return len(line) > 0 && bytes.Equal(line, first(b))
}

// siblings are the files that path may have been renamed to, newest name first.
func siblings(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	base := filepath.Base(path)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	var list []string
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != base && (strings.HasPrefix(e.Name(), base) || strings.HasPrefix(e.Name(), stem+"-") || strings.HasPrefix(e.Name(), stem+".")) {
			list = append(list, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(list)
	return list
}

func openAt(path string, at Place) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't open the log file: %w", err)
	}
	x := &File{f: f, path: path, at: at, sum: sha256.New()}
	if err := x.check(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// check reads everything before the place once more.
func (x *File) check() error {
	info, err := x.f.Stat()
	if err != nil {
		return fmt.Errorf("couldn't look at the log file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return &FormatError{"it is not a regular file"}
	}
	identity := identityOf(info)
	same := x.at.Identity == "" || x.at.Identity == identity
	kind := "rewritten"
	if !same {
		kind = "replaced"
	}
	if info.Size() < x.at.ReadTo {
		if same {
			kind = "shrunken"
		}
		return &Alarm{kind, fmt.Sprintf("%d bytes were read from it, and it has %d", x.at.ReadTo, info.Size())}
	}
	n, err := io.Copy(x.sum, io.NewSectionReader(x.f, 0, x.at.ReadTo))
	if err != nil {
		return fmt.Errorf("couldn't read the log file: %w", err)
	}
	if n < x.at.ReadTo {
		return &Alarm{"shrunken", fmt.Sprintf("%d bytes were read from it, and it has %d", x.at.ReadTo, n)}
	}
	if x.at.ReadTo > 0 && !bytes.Equal(x.sum.Sum(nil), x.at.Digest) {
		return &Alarm{kind, fmt.Sprintf("the first %d bytes are not those that were read", x.at.ReadTo)}
	}
	x.at.Identity = identity
	return nil
}

func identityOf(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// Close releases the file.
func (x *File) Close() error { return x.f.Close() }

// edge is how much of what was read Same looks at, at its beginning and at its end.
const edge = 4 << 10

// Same tells whether path still is this file and holds, at its edges, what was read. It
// is quick, for a file that is looked at twice a second; Open looks at everything.
func (x *File) Same() bool {
	info, err := os.Stat(x.path)
	if err != nil || identityOf(info) != x.at.Identity || info.Size() < x.at.ReadTo {
		return false
	}
	edges, err := x.edges()
	return err == nil && (x.seen == nil || bytes.Equal(edges, x.seen))
}

func (x *File) edges() ([]byte, error) {
	n := min(x.at.ReadTo, edge)
	b := make([]byte, 2*n)
	if n == 0 {
		return b, nil
	}
	if _, err := x.f.ReadAt(b[:n], 0); err != nil {
		return nil, fmt.Errorf("couldn't read the log file: %w", err)
	}
	if _, err := x.f.ReadAt(b[n:], x.at.ReadTo-n); err != nil {
		return nil, fmt.Errorf("couldn't read the log file: %w", err)
	}
	return b, nil
}

// Advance moves the place behind what a scanner of Lines has read.
func (x *File) Advance(s *Scanner) error {
	sum, err := s.sum.(hash.Cloner).Clone()
	if err != nil {
		return err
	}
	x.sum = sum
	x.at.ReadTo, x.at.Lines = s.At()
	x.at.Digest = s.Digest()
	x.seen, err = x.edges()
	return err
}

// Size is the file's present size.
func (x *File) Size() (int64, error) {
	info, err := x.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("couldn't look at the log file: %w", err)
	}
	return info.Size(), nil
}

// Place is where reading stands.
func (x *File) Place() Place { return x.at }

// Head is the file's beginning, for CheckHead.
func (x *File) Head() ([]byte, error) {
	b := make([]byte, HeadSize)
	n, err := x.f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("couldn't read the log file: %w", err)
	}
	return b[:n], nil
}

// Lines reads on from the place to the file's end.
func (x *File) Lines() (*Scanner, error) {
	sum, err := x.sum.(hash.Cloner).Clone()
	if err != nil {
		return nil, err
	}
	return NewScanner(io.NewSectionReader(x.f, x.at.ReadTo, 1<<62), x.at.ReadTo, x.at.Lines, sum), nil
}

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
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
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
