package logfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// siblings are the files that path may have been renamed to, or copied.
func siblings(path string) (list []string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	base := filepath.Base(path)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != base && (strings.HasPrefix(e.Name(), base) || strings.HasPrefix(e.Name(), stem+"-") || strings.HasPrefix(e.Name(), stem+".")) {
			list = append(list, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(list)
	return list
}

// rotatedTo tells whether path was rotated to old, which holds what was read from path.
// The very file under another name was renamed. Another file is a copy: it counts only
// where path itself is still there and was cut, for a file that was removed, or exchanged,
// may have held more than a copy of it.
func rotatedTo(path string, old *File, at Place) bool {
	if at.Identity == "" || inode(old.at.Identity) == inode(at.Identity) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && inode(identityOf(info)) == inode(at.Identity) && !beginAlike(path, old.path)
}

// inode is an identity without the device, whose number changes with a mount.
func inode(identity string) string {
	_, n, _ := strings.Cut(identity, ":")
	return n
}

// beginAlike tells whether two files have the same first line.
func beginAlike(a, b string) bool {
	first := func(path string) []byte {
		line, _, _ := bytes.Cut(headOf(path, 4096), []byte("\n"))
		return line
	}
	line := first(a)
	return len(line) > 0 && bytes.Equal(line, first(b))
}

func headOf(path string, n int) []byte {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	n, _ = io.ReadFull(f, b)
	return b[:n]
}

// History is the time from which on a file beside path that was rotated is news: those
// that stand there already are not. It is of the file system's clock.
func History(path string) time.Time {
	last := time.Unix(0, 0)
	for _, other := range siblings(path) {
		if info, err := os.Stat(other); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.Truncate(time.Microsecond).Add(time.Microsecond)
}

// Between finds the oldest file that path was rotated to since the file before, and that
// nobody has read; nil when there is none. since is when that one was written last, or
// [History]; read is what was read of those before. Files of the names in not are others'
// logs. An *Alarm when there is one that cannot be read.
func Between(path string, since time.Time, read []Place, not []string) (*File, error) {
	var oldest string
	var when time.Time
	for _, other := range siblings(path) {
		info, err := os.Stat(other)
		if err != nil || info.Size() == 0 || info.ModTime().Before(since) || !numbered(path, other) || slices.Contains(not, other) {
			continue
		}
		if err := CheckHead(headOf(other, HeadSize)); err != nil {
			if info.ModTime().Truncate(time.Microsecond).After(since) {
				return nil, &Alarm{"replaced", fmt.Sprintf("%s was written after what was read, and cannot be read: %v", filepath.Base(other), err)}
			}
			continue // what was read, compressed with its time kept
		}
		if slices.ContainsFunc(read, func(at Place) bool { return at.ReadTo > 0 && holds(other, at) }) || copied(path, other, info) {
			continue
		}
		if oldest == "" || info.ModTime().Before(when) || info.ModTime().Equal(when) && older(path, other, oldest) {
			oldest, when = other, info.ModTime()
		}
	}
	if oldest == "" {
		return nil, nil
	}
	return openAt(oldest, Place{})
}

// numbered tells whether a name is what rotation makes of path's: with a number or a date
// behind it, or before its ending.
func numbered(path, other string) bool {
	base, name := filepath.Base(path), filepath.Base(other)
	ext := filepath.Ext(base)
	for _, packed := range []string{".gz", ".zst", ".xz", ".bz2", ".zip"} {
		name = strings.TrimSuffix(name, packed)
	}
	rest, ok := strings.CutPrefix(name, base)
	if !ok {
		rest = strings.TrimSuffix(strings.TrimPrefix(name, strings.TrimSuffix(base, ext)), ext)
	}
	return strings.ContainsAny(rest, "0123456789") && strings.Trim(rest, "0123456789.-_:TZ") == ""
}

// older tells by their names which of two files was rotated first: numbers go down from
// there, dates go up.
func older(path, a, b string) bool {
	number := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, path+"."))
		if err != nil || n >= 1900 { // a year, and more
			return 0
		}
		return n
	}
	if x, y := number(a), number(b); x != 0 && y != 0 {
		return x > y
	}
	return a < b
}

// holds tells whether a file begins with what was read.
func holds(path string, at Place) bool {
	f, err := openAt(path, at)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// copied tells whether other is only a copy of what still stands in path.
func copied(path, other string, info os.FileInfo) bool {
	now, err := os.Stat(path)
	return err == nil && !info.ModTime().Before(now.ModTime()) && beginsWith(path, other)
}

// beginsWith tells whether a begins with all of b, which is not empty.
func beginsWith(a, b string) bool {
	x, err := openFile(a, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer x.Close()
	y, err := openFile(b, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer y.Close()
	info, err := y.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(y, q)
		if m, _ := io.ReadFull(x, p[:n]); m < n || !bytes.Equal(p[:n], q[:n]) {
			return false
		}
		if err != nil {
			return true
		}
	}
}

// Written is when the file was written last, by the file system's clock.
func (x *File) Written() (time.Time, error) {
	info, err := x.f.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("couldn't look at the log file: %w", err)
	}
	return info.ModTime().Truncate(time.Microsecond), nil
}

// Found opens the file beside path that holds what was read before path was rotated; nil
// when it is gone.
func Found(path string, at Place) *File {
	for _, other := range siblings(path) {
		if info, err := os.Stat(other); err != nil || inode(identityOf(info)) != inode(at.Identity) {
			continue
		}
		if f, err := openAt(other, at); err == nil {
			return f
		}
	}
	return nil
}
