package effects

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// ErrLogAlarm says that a log file has an open alarm: nothing is read from it.
var ErrLogAlarm = errors.New("the log file was changed; nothing is read from it or written to it until a person acknowledges that")

// ReadLog lets lines of a log file count, once each: the effects they speak of, and how
// far the file was read, change in one transaction. [logfiles.ErrMoved] when somebody
// else has read on, [ErrLogAlarm] while the file's alarm is open, a *Refusal while this
// database's own log has a gap.
//
// A line is known again by its wording: the n-th line of one wording counts once in an
// account, in whichever file it stands, so that reading again changes nothing.
func (e *Engine) ReadLog(ctx context.Context, in LogLines) (LogReport, error) {
	var l *logReading
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		l = &logReading{work: e.work(ctx, tx), in: in, calls: map[logCall]*logfiles.Call{}, pended: map[logCall][]*logItem{}}
		return l.read(ctx)
	})
	if err != nil {
		return LogReport{}, err
	}
	l.tell()
	return l.report, nil
}

// logReading is lines on their way into the ledger.
type logReading struct {
	*work
	in     LogLines
	log    logfiles.Log
	report LogReport

	items   []*logItem
	calls   map[logCall]*logfiles.Call
	touched []*logfiles.Call
	pended  map[logCall][]*logItem // outcomes whose intent has not come, in their order
	paired  []int64                // those of them that had been waiting since an earlier read
	lines   []logfiles.Line
	begun   []string         // effects whose attempt, of those, has begun now
	handed  map[string]int64 // attempts that a line of ours lets run and that have not begun
	owned   map[store.Reference]string

	closings []logClosing
	seen     map[logCall]*logfiles.Observed // calls of tools that are only observed
}

// logCall names a call within a run: by the key that the file gives it, or by tool and
// arguments.
type logCall struct {
	run  int64
	call [sha256.Size]byte
}

// logItem is one record, or one fragment of a damaged span.
type logItem struct {
	span     *LogSpan
	rec      logfile.Record
	fragment bool
	line     int // index into lines
	p        *prepared
	c        call
	run      *run
	id       logCall
	row      *logfiles.Call
	creates  bool
	observed bool  // the begin of a tool that is only observed
	waited   int64 // id under which it waited for its intent
	place    string
}

func (l *logReading) read(ctx context.Context) (err error) {
	if l.log, err = logfiles.Lock(ctx, l.tx, l.in.Log); err != nil {
		return err
	}
	if l.log.Alarm != 0 {
		return ErrLogAlarm
	}
	part, ok, err := logfiles.PartOf(ctx, l.tx, l.log.ID, l.in.After.ID)
	if err != nil {
		return err
	}
	if !ok || part.ReadTo != l.in.From {
		return logfiles.ErrMoved
	}
	spans, err := l.fresh(ctx)
	if err != nil {
		return err
	}
	for _, s := range spans {
		l.itemsOf(s.span, s.line)
	}
	if err := l.lockRuns(ctx); err != nil {
		return err
	}
	if l.sys.Behind() {
		return logBehind()
	}
	if err := l.own(ctx); err != nil {
		return err
	}
	if err := l.name(ctx); err != nil {
		return err
	}
	if err := l.loadCalls(ctx); err != nil {
		return err
	}
	if err := l.waves(ctx); err != nil {
		return err
	}
	l.dropUnused()
	if err := l.flush(ctx); err != nil {
		return err
	}
	if err := l.closes(ctx); err != nil {
		return err
	}
	return l.noteRead(ctx)
}

// noteRead notes how far was read and what became of each line.
func (l *logReading) noteRead(ctx context.Context) error {
	var waiting []logfiles.Waiting
	for id, list := range l.pended {
		for _, it := range list {
			if it.waited != 0 {
				continue
			}
			body, err := it.body()
			if err != nil {
				return err
			}
			l.report.Waiting++
			l.report.warn(it.span.note("an outcome whose intent has not been read; it is kept and waits for it"))
			waiting = append(waiting, logfiles.Waiting{Run: id.run, Call: id.call[:], Part: l.in.After.ID, Number: it.span.First, Body: body})
		}
	}
	slices.SortFunc(waiting, func(a, b logfiles.Waiting) int { return int(a.Number - b.Number) })
	if err := logfiles.Wait(ctx, l.tx, waiting); err != nil {
		return err
	}
	if err := logfiles.Begun(ctx, l.tx, l.begun); err != nil {
		return err
	}
	if err := logfiles.Paired(ctx, l.tx, l.paired); err != nil {
		return err
	}
	if err := logfiles.SaveCalls(ctx, l.tx, l.touched); err != nil {
		return err
	}
	if err := logfiles.AddLines(ctx, l.tx, l.lines); err != nil {
		return err
	}
	return logfiles.Advance(ctx, l.tx, l.in.After, l.in.From)
}

// touch remembers that a call changed.
func (l *logReading) touch(row *logfiles.Call) {
	if !slices.Contains(l.touched, row) {
		l.touched = append(l.touched, row)
	}
}
