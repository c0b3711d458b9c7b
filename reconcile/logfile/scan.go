package logfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

const (
	// MaxLine is the longest line that is read whole, in bytes: arguments of a MiB and a
	// result far beyond what is kept of one.
	MaxLine = 16 << 20
	// keptOfLong is what is kept of a longer one, to tell what it names.
	keptOfLong = 64 << 10
)

// Line is one line of a file as it stands there.
type Line struct {
	Number int64  // from 1
	Start  int64  // byte in the file
	Size   int64  // bytes, with the line's end
	Bytes  []byte // without its end, nor a mark of UTF-8; valid until the next call
	Torn   bool   // the last one, without an end: it may still be being written
	Long   bool   // beyond MaxLine; Bytes is its beginning
}

// Blank tells whether nothing stands in the line.
func (l *Line) Blank() bool { return len(bytes.TrimSpace(l.Bytes)) == 0 }

// Scanner reads lines one by one, in memory bounded by the longest line.
type Scanner struct {
	r      *bufio.Reader
	start  int64
	number int64
	sum    hash.Hash
	buf    []byte
}

// NewScanner reads lines from r, which begins at the byte start of the file, behind
// number whole lines. sum has been fed with everything before and is fed with every
// whole line that Next returns; nil for a new one.
func NewScanner(r io.Reader, start, number int64, sum hash.Hash) *Scanner {
	if sum == nil {
		sum = sha256.New()
	}
	return &Scanner{r: bufio.NewReaderSize(r, 64<<10), start: start, number: number, sum: sum}
}

// Digest is SHA-256 of the file up to and with the last whole line.
func (s *Scanner) Digest() []byte { return s.sum.Sum(nil) }

// At is where the next line begins, and how many whole lines stand before it.
func (s *Scanner) At() (start, lines int64) { return s.start, s.number }

var mark = []byte("\xEF\xBB\xBF") // of UTF-8

// Next returns the next line; [io.EOF] when there is none. A torn one is the last and is
// not passed over: At stays before it.
func (s *Scanner) Next() (Line, error) {
	l := Line{Number: s.number + 1, Start: s.start}
	s.buf = s.buf[:0]
	before, err := s.sum.(hash.Cloner).Clone()
	if err != nil {
		return l, err
	}
	for {
		piece, err := s.r.ReadSlice('\n')
		l.Size += int64(len(piece))
		s.sum.Write(piece)
		switch {
		case l.Long:
		case len(s.buf)+len(piece) > MaxLine:
			l.Long = true
			s.buf = append(s.buf, piece...)[:keptOfLong:keptOfLong]
		default:
			s.buf = append(s.buf, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || l.Size == 0) {
			return l, err
		}
		l.Torn = err != nil
		break
	}
	l.Bytes = s.buf
	if l.Start == 0 {
		l.Bytes = bytes.TrimPrefix(l.Bytes, mark)
	}
	l.Bytes = bytes.TrimSuffix(bytes.TrimSuffix(l.Bytes, []byte("\n")), []byte("\r"))
	if l.Torn {
		s.sum = before
		return l, nil
	}
	s.start, s.number = s.start+l.Size, l.Number
	return l, nil
}
