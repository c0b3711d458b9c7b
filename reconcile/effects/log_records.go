package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"quittance/reconcile/logfile"
)

// itemsOf takes a span apart. A record that cannot be used is treated as damaged.
func (l *logReading) itemsOf(s *LogSpan, line int) {
	if s.Record == nil {
		for _, f := range logfile.Fragments(s.Raw) {
			if it := l.fragmentOf(s, f, line); it != nil {
				l.items = append(l.items, it)
			}
		}
		return
	}
	if s.Record.Kind == logfile.Closed {
		l.closings = append(l.closings, logClosing{l.runOf(s.Record.Run), s.Record.Outcome, s.Start})
		return
	}
	it := &logItem{span: s, rec: *s.Record, line: line, place: l.place(s)}
	it.p = l.e.prepare(l.opOf(it))
	it.p.answer = &Answer{}
	l.items = append(l.items, it)
}

// fragmentOf is what a damaged span may have said; nil where nobody can tell of what.
func (l *logReading) fragmentOf(s *LogSpan, f logfile.Fragment, line int) *logItem {
	it := &logItem{span: s, fragment: true, line: line, place: l.place(s),
		rec: logfile.Record{Kind: f.Kind, Word: string(f.Kind), Key: cut(f.Key, 512), Run: cut(f.Run, 512), Tool: cut(f.Tool, 256)}}
	if it.rec.Key == "" && f.Kind != logfile.Intent {
		return nil
	}
	it.p = l.e.prepare(l.opOf(it))
	it.p.answer = &Answer{}
	if it.p.refusal != nil {
		return nil
	}
	return it
}

// place names a span in sentences for people.
func (l *logReading) place(s *LogSpan) string {
	lines := fmt.Sprintf("line %d", s.First)
	if s.Last > s.First {
		lines = fmt.Sprintf("lines %d to %d", s.First, s.Last)
	}
	return lines + " of " + filepath.Base(l.log.Path)
}

// unknownTool stands for the tool that a line does not name.
const unknownTool = "unknown"

// runOf is the run that a line names.
func (l *logReading) runOf(name string) string {
	if name == "" {
		return l.log.RunID
	}
	return name
}

// opOf is a record as an operation of the engine; its effect is found later.
func (l *logReading) opOf(it *logItem) Op {
	r := &it.rec
	run := l.runOf(r.Run)
	if r.Kind == logfile.Intent && r.Tool == "" {
		r.Tool = unknownTool
	}
	if r.Kind == logfile.Intent {
		b := &Begin{Account: l.log.Account, RunID: run, AttemptID: fmt.Sprintf("log %d:%d", l.in.After.ID, it.span.Start), Tool: r.Tool,
			Arguments: r.Arguments, Occurrence: r.Occurrence, Key: r.Key, CallID: r.CallID, ClientTime: cut(r.Time, 1024), Context: l.e.labels(r.Foreign)}
		if it.fragment {
			b.Arguments = l.possibleArguments(it)
		}
		if b.Arguments == nil {
			b.Arguments = []byte("{}")
		}
		return Op{Begin: b}
	}
	f := &Finish{Account: l.log.Account, RunID: run, Key: r.Key, Tool: r.Tool, Arguments: r.Arguments, Occurrence: r.Occurrence,
		Outcome: outcomeOf(r), Result: r.Result, Error: r.Error, Reference: r.Reference}
	if it.fragment {
		f.Outcome = "damaged: it may have been " + string(r.Kind)
	}
	if f.Arguments == nil {
		f.Arguments = []byte("{}")
	}
	return Op{Finish: f}
}

// outcomeOf is how a record says it ended, in the words of a finish.
func outcomeOf(r *logfile.Record) string {
	switch {
	case r.Kind == logfile.Completed, r.Kind == logfile.Resolved && r.Verdict == logfile.Taken:
		return string(WordTaken)
	case r.Kind == logfile.Failed:
		return string(WordFailed)
	case wordOf(r.Word) != WordUnknown:
		return "unknown"
	}
	return cut(r.Word, 256)
}

// possibleArguments stand for arguments that nobody can read.
func (l *logReading) possibleArguments(it *logItem) []byte {
	b, err := json.Marshal(struct {
		Damaged string `json:"damaged"`
		Start   int64  `json:"first_byte"`
		Size    int64  `json:"bytes"`
		File    string `json:"file"`
		Key     string `json:"key,omitempty"`
		Found   string `json:"found"`
	}{it.place, it.span.Start, it.span.Size, l.log.Path, it.rec.Key, l.e.excerpt(it.span.Raw)})
	if err != nil {
		return []byte("{}")
	}
	return b
}

// labels keeps the members of a line that nobody here knows, for people.
func (e *Engine) labels(foreign []byte) []byte {
	var all map[string]json.RawMessage
	if foreign == nil || json.Unmarshal(foreign, &all) != nil {
		return nil
	}
	labels := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(labels) == 20 {
			break
		}
		v := all[name]
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		labels[cut(name, 64)] = cut(s, 256)
	}
	b, err := json.Marshal(map[string]any{"labels": labels})
	if err != nil {
		return nil
	}
	clean, _, err := e.redact.JSON(b, nil, nil)
	if err != nil {
		return nil
	}
	return clean
}

// unusable puts a record aside that was read and cannot be stored. What it may have
// begun, or ended, is returned as a fragment; nil where that cannot be told.
func (l *logReading) unusable(ctx context.Context, it *logItem, r *Refusal) (*logItem, error) {
	if it.fragment {
		return nil, nil
	}
	l.report.New--
	s := *it.span
	s.Problem = "it cannot be used: " + r.Detail
	if r.Pointer != "" {
		s.Problem = "it cannot be used: " + r.Pointer + ": " + r.Detail
	}
	if _, err := l.quarantine(ctx, &s); err != nil || it.run == nil {
		return nil, err
	}
	f := l.fragmentOf(&s, it.rec.Fragment(), it.line)
	if f != nil {
		f.run = it.run
	}
	return f, nil
}
