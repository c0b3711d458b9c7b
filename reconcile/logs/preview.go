package logs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

// Preview says for each line of a file what an import would make of it, and changes
// nothing. name is how the file is called in front of each line.
func Preview(ctx context.Context, engine *effects.Engine, account int64, path, name string, out io.Writer) (report effects.LogReport, err error) {
	f, _, err := logfile.Open(path, logfile.Place{})
	if err != nil {
		return report, err
	}
	defer f.Close()
	head, err := f.Head()
	if err == nil {
		err = logfile.CheckHead(head)
	}
	if err != nil {
		return report, err
	}
	s, err := f.Lines()
	if err != nil {
		return report, err
	}
	preview := engine.PreviewLog(account)
	for {
		c, err := spans(s)
		if err != nil {
			return report, err
		}
		if c.torn != nil {
			c.spans = append(c.spans, *c.torn)
		}
		repeats, err := preview.Repeats(ctx, c.spans)
		if err != nil {
			return report, err
		}
		for i := range c.spans {
			if _, err := fmt.Fprintf(out, "%s:%s\n", name, describe(&c.spans[i], repeats[i], &report)); err != nil {
				return report, err
			}
		}
		if c.end {
			return report, nil
		}
	}
}

// describe says what a span is, and counts it.
func describe(s *effects.LogSpan, repeat bool, report *effects.LogReport) string {
	lines := fmt.Sprintf("%d: ", s.First)
	if s.Last > s.First {
		lines = fmt.Sprintf("%d-%d: ", s.First, s.Last)
	}
	if s.Record == nil {
		report.Damaged++
		if s.Torn {
			report.Torn++
		}
		return lines + fmt.Sprintf("damaged, byte %d, %d bytes: %s%s", s.Start, s.Size, s.Problem, named(s.Raw))
	}
	word := "new "
	if repeat {
		word = "known "
		report.Repeats++
	} else {
		report.New++
	}
	r := s.Record
	text := lines + word + string(r.Kind)
	for _, part := range []struct{ name, value string }{{"run", r.Run}, {"key", r.Key}, {"tool", r.Tool}, {"verdict", r.Verdict}, {"reference", r.Reference}} {
		if part.value != "" {
			text += fmt.Sprintf(" %s=%q", part.name, part.value)
		}
	}
	return text
}

// named lists what a damaged span may be about.
func named(raw []byte) string {
	var list []string
	for _, f := range logfile.Fragments(raw) {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s", f.Kind, f.Key)))
	}
	if len(list) == 0 {
		return ""
	}
	return "; it may have been: " + strings.Join(list, ", ")
}
