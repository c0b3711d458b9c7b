package effects

import (
	"context"
	"time"

	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// LogLines are lines of a log file that follow each other, and where reading stands
// behind them.
type LogLines struct {
	Log   int64
	From  int64         // byte at which they begin
	After logfiles.Part // of the same file
	Spans []LogSpan
}

// LogSpan is one record of a log file, or one damaged span of it.
type LogSpan struct {
	First, Last int64  // lines, from 1
	Start, Size int64  // bytes
	Raw         []byte // what stands there; a long span's beginning
	Record      *logfile.Record
	Problem     string // why there is no Record
	Torn        bool   // the file's unfinished last line: it is looked at, not passed over
}

// LogReport says what became of lines.
type LogReport struct {
	New       int // records that changed something, or wait for their intent
	Repeats   int // records that were read before, in this file or another
	Ours      int // resolved lines that were appended from here
	Waiting   int // of the new: outcomes whose intent has not been read
	Unguarded int // of tools that the policy does not guard
	Observed  int // of the new: intents of tools that are only observed
	Damaged   int // spans in quarantine
	Torn      int // of them: an unfinished last line
	Problems  []LogNote
	Warnings  []LogNote
}

// LogNote is a remark about a place in a file.
type LogNote struct {
	First, Last int64 // lines
	Start, Size int64 // bytes
	Text        string
}

// notesKept bounds what a report lists; its numbers count everything.
const notesKept = 1000

// Add puts another report behind this one.
func (r *LogReport) Add(o LogReport) {
	r.New, r.Repeats, r.Ours, r.Waiting = r.New+o.New, r.Repeats+o.Repeats, r.Ours+o.Ours, r.Waiting+o.Waiting
	r.Unguarded, r.Observed, r.Damaged, r.Torn = r.Unguarded+o.Unguarded, r.Observed+o.Observed, r.Damaged+o.Damaged, r.Torn+o.Torn
	for _, n := range o.Problems {
		r.problem(n)
	}
	for _, n := range o.Warnings {
		r.warn(n)
	}
}

func (r *LogReport) problem(n LogNote) {
	if len(r.Problems) < notesKept {
		r.Problems = append(r.Problems, n)
	}
}

func (r *LogReport) warn(n LogNote) {
	if len(r.Warnings) < notesKept {
		r.Warnings = append(r.Warnings, n)
	}
}

func (s *LogSpan) note(text string) LogNote {
	return LogNote{First: s.First, Last: s.Last, Start: s.Start, Size: s.Size, Text: text}
}

// LogState is a log file as people see it.
type LogState struct {
	ID      int64
	Account string
	Path    string
	Lines   int64
	Damaged int64 // spans in quarantine
	Waiting int64 // outcomes without an intent
	Pending int64 // decisions to be appended
	ReadAt  time.Time
	Alarm   *LogAlarm // nil: the file holds what was read from it
}

// LogAlarm is an open alarm of a log file.
type LogAlarm struct {
	Kind    string // "shrunken", "replaced", "rewritten"
	Detail  string
	FoundAt time.Time
}

// Logs lists every log file, those with an open alarm first.
func (e *Engine) Logs(ctx context.Context) ([]LogState, error) {
	rows, err := logfiles.States(ctx, e.db)
	if err != nil {
		return nil, err
	}
	list := make([]LogState, len(rows))
	for i, s := range rows {
		list[i] = LogState{ID: s.ID, Account: s.Account, Path: s.Path, Lines: s.Lines, Damaged: s.Damaged, Waiting: s.Waiting, Pending: s.Pending, ReadAt: s.ReadAt.Time}
		if s.Alarm != 0 {
			list[i].Alarm = &LogAlarm{s.AlarmKind, s.AlarmText, s.AlarmFound.Time}
		}
	}
	return list, nil
}

// AlarmedLogs are the paths of the log files with an open alarm.
func (e *Engine) AlarmedLogs(ctx context.Context) ([]string, error) {
	return logfiles.AlarmedPaths(ctx, e.db)
}
