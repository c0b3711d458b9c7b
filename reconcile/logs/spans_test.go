package logs

import (
	"io"
	"strings"
	"testing"

	"quittance/reconcile/logfile"
)

// endless repeats a text until n bytes were read.
type endless struct {
	text string
	at   int
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), e.left)], e.text[e.at:])
	e.at, e.left = (e.at+n)%len(e.text), e.left-n
	return n, nil
}

// What is held of a file is bounded, whatever stands in it.
func TestChunksAreBounded(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"good lines":     completed("K-1") + "\n",
		"damage alone":   `{"type":"completed","key":"K` + "\n",
		"blank lines":    "\n",
		"one long line":  "x",
		"damage between": completed("K-1") + "\nbad\n",
	} {
		const size = 12 << 20
		s := logfile.NewScanner(&endless{text: line, left: size}, 0, 0, nil)
		var lines, seen int64
		for chunks := 0; ; chunks++ {
			c, err := spans(s)
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, x := range c.spans {
				held += len(x.Raw)
				lines += x.Last - x.First + 1
			}
			if held > 2*bytesAtOnce || len(c.spans) > linesAtOnce+1 {
				t.Fatalf("%s: chunk %d holds %d bytes in %d spans", name, chunks, held, len(c.spans))
			}
			if c.torn != nil {
				seen += c.torn.Size
			}
			if c.end {
				break
			}
		}
		at, _ := s.At()
		if seen += at; seen != size {
			t.Errorf("%s: %d of %d bytes were read", name, seen, size)
		}
		if want := int64(size / len(line) * strings.Count(strings.TrimSpace(line)+"\n", "\n")); strings.TrimSpace(line) != "" && line != "x" && lines < want {
			t.Errorf("%s: %d lines, want %d", name, lines, want)
		}
	}
}
