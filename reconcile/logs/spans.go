// Package logs brings log files that agents keep into the ledger, and decisions back
// into the files. It decides nothing: what a line means is the engine's.
package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

const (
	// linesAtOnce and bytesAtOnce bound what is held in memory, and what one transaction
	// takes.
	linesAtOnce = 1000
	bytesAtOnce = 4 << 20
	// keptOfSpan is what is kept of a damaged span, to tell what it names.
	keptOfSpan = 1 << 20
)

// chunk is spans that follow each other. Torn is the file's last line without an end; it
// is not passed over.
type chunk struct {
	spans []effects.LogSpan
	torn  *effects.LogSpan
	end   bool // nothing stands behind it but torn
}

// spans reads the next chunk. A chunk does not end within damage: damaged lines that
// follow each other are one span.
func spans(s *logfile.Scanner) (c chunk, err error) {
	var held, blanks int64
	var open *effects.LogSpan // damage that may go on
	for lines := 0; open != nil && held < 16*bytesAtOnce || lines < linesAtOnce && held < bytesAtOnce; lines++ {
		l, err := s.Next()
		if errors.Is(err, io.EOF) {
			c.end = true
			break
		}
		if err != nil {
			return c, fmt.Errorf("couldn't read the log file: %w", err)
		}
		if l.Blank() && !l.Torn {
			blanks += l.Size
			continue
		}
		span := spanOf(&l)
		if l.Torn {
			c.torn, c.end = &span, true
			break
		}
		held += int64(len(span.Raw))
		switch {
		case span.Record == nil && open != nil:
			open.Last, open.Size = span.Last, open.Size+blanks+span.Size
			if len(open.Raw) < keptOfSpan {
				open.Raw = append(append(open.Raw, '\n'), span.Raw...)
			}
		default:
			c.spans = append(c.spans, span)
			open = nil
			if span.Record == nil {
				open = &c.spans[len(c.spans)-1]
			}
		}
		blanks = 0
	}
	for i := range c.spans {
		if x := &c.spans[i]; x.Record == nil && x.Last > x.First {
			x.Problem = fmt.Sprintf("%d lines that are no records; the first: %s", x.Last-x.First+1, x.Problem)
		}
	}
	return c, nil
}

func spanOf(l *logfile.Line) effects.LogSpan {
	span := effects.LogSpan{First: l.Number, Last: l.Number, Start: l.Start, Size: l.Size, Raw: bytes.Clone(l.Bytes), Torn: l.Torn}
	if l.Long {
		span.Problem = fmt.Sprintf("longer than %d MiB", logfile.MaxLine>>20)
		return span
	}
	r, err := logfile.Parse(l.Bytes)
	switch {
	case l.Torn:
		span.Problem = "the last line has no end: it was cut off, or is still being written"
	case err != nil:
		span.Problem = err.Error()
	default:
		span.Record = &r
	}
	if span.Record == nil && len(span.Raw) > keptOfSpan {
		span.Raw = span.Raw[:keptOfSpan:keptOfSpan]
	}
	return span
}
