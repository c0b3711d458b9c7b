package logfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
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
	Kind   string // "shrunken", "replaced", "rewritten", "removed"
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
	seen look      // when it was looked at last
}

// look is what can be seen of a file without reading it.
type look struct {
	edges []byte // the beginning and the end of what was read
	size  int64
	mod   time.Time
}

// Open opens path and compares what stands before the place with what was read. An
// *Alarm when it differs; the file that has the old content, when path was rotated to it,
// is returned with rotated true.
func Open(path string, at Place) (file *File, rotated bool, err error) {
	file, err = openAt(path, at)
	alarm, changed := errors.AsType[*Alarm](err)
	if !changed && !errors.Is(err, ErrGone) {
		return file, false, err
	}
	if at.ReadTo > 0 {
		for _, other := range siblings(path) {
			old, err := openAt(other, at)
			if err != nil {
				continue
			}
			if rotatedTo(path, old, at) {
				return old, true, nil
			}
			_ = old.Close() // a copy of it stands beside it
		}
	}
	if changed {
		return nil, false, alarm
	}
	return nil, false, err
}

func openAt(path string, at Place) (*File, error) {
	f, err := openFile(path, os.O_RDONLY)
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
	return x.look()
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

// Same tells whether path still is this file and holds, at its edges, what was read, and
// whether nobody wrote to it without making it longer. It is quick, for a file that is
// looked at twice a second; Open looks at everything.
func (x *File) Same() bool {
	info, err := os.Stat(x.path)
	if err != nil || identityOf(info) != x.at.Identity || info.Size() < x.at.ReadTo || info.Size() < x.seen.size {
		return false
	}
	if info.Size() == x.seen.size && !info.ModTime().Equal(x.seen.mod) {
		return false
	}
	edges, err := x.edges()
	return err == nil && bytes.Equal(edges, x.seen.edges)
}

// look remembers how the file looks at present.
func (x *File) look() error {
	info, err := x.f.Stat()
	if err != nil {
		return fmt.Errorf("couldn't look at the log file: %w", err)
	}
	edges, err := x.edges()
	x.seen = look{edges, info.Size(), info.ModTime()}
	return err
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
	return x.look()
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
