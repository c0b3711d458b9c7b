package effects

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/ledger/runs"
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
	handed  map[string]int64 // attempts that a line of ours lets run and that have not begun
	owned   map[store.Reference]string
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
	part, _, err := logfiles.LastPart(ctx, l.tx, l.log.ID)
	if err != nil {
		return err
	}
	if part.ID != l.in.After.ID || part.ReadTo != l.in.From {
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
	return l.noteRead(ctx)
}

// freshSpan is a span that was not read before.
type freshSpan struct {
	span *LogSpan
	line int
}

// fresh finds the spans that are new to the account, and notes all of them as read.
func (l *logReading) fresh(ctx context.Context) (list []freshSpan, err error) {
	digests := make([][]byte, len(l.in.Spans))
	for i := range l.in.Spans {
		digests[i] = l.e.lineDigest(l.in.Spans[i].Raw)
	}
	before, err := logfiles.Before(ctx, l.tx, l.log.ID, l.log.Generation, digests)
	if err != nil {
		return nil, err
	}
	most, err := logfiles.Most(ctx, l.tx, l.log.Account, digests)
	if err != nil {
		return nil, err
	}
	ours, err := l.ours(ctx)
	if err != nil {
		return nil, err
	}
	var whole []int64
	for i := range l.in.Spans {
		s := &l.in.Spans[i]
		d := string(digests[i])
		if s.Torn {
			news, err := l.quarantine(ctx, s)
			if err != nil {
				return nil, err
			}
			if news {
				list = append(list, freshSpan{s, -1})
			}
			continue
		}
		whole = append(whole, s.Start)
		before[d]++
		row := logfiles.Line{Part: l.in.After.ID, Start: s.Start, Number: s.First, Log: l.log.ID, Generation: l.log.Generation,
			Account: l.log.Account, Digest: digests[i], Ordinal: before[d], Repeat: before[d] <= most[d]}
		most[d] = max(most[d], before[d])
		l.lines = append(l.lines, row)
		if s.Record != nil && ours[s.Record.ID] {
			l.report.Ours++
			continue
		}
		if !row.Repeat {
			list = append(list, freshSpan{s, len(l.lines) - 1})
		}
		if s.Record == nil {
			if _, err := l.quarantine(ctx, s); err != nil {
				return nil, err
			}
			continue
		}
		if row.Repeat {
			l.report.Repeats++
		} else {
			l.report.New++
		}
	}
	return list, logfiles.Heal(ctx, l.tx, l.in.After.ID, whole)
}

// ours are the ids of the resolved lines that were appended from here: read back, they
// are on the disk, and they say nothing that is not on record.
func (l *logReading) ours(ctx context.Context) (map[string]bool, error) {
	var ids []string
	for i := range l.in.Spans {
		if r := l.in.Spans[i].Record; r != nil && r.ID != "" {
			ids = append(ids, r.ID)
		}
	}
	return logfiles.Appended(ctx, l.tx, l.log.ID, l.in.After.ID, ids)
}

// lineDigest names a line's wording, under a key: of a line that is known but for a
// short secret in it, a plain digest would give the secret away.
func (e *Engine) lineDigest(raw []byte) []byte {
	m := hmac.New(sha256.New, e.secrets.Redaction)
	m.Write([]byte("line of a log file\x00"))
	m.Write(raw)
	return m.Sum(nil)[:16]
}

// excerptLimit is how much of a damaged span is kept.
const excerptLimit = 4 << 10

// quarantine keeps a span that is not used, and says so.
func (l *logReading) quarantine(ctx context.Context, s *LogSpan) (news bool, err error) {
	l.report.Damaged++
	if s.Torn {
		l.report.Torn++
	}
	l.report.problem(s.note(s.Problem))
	sum := sha256.New()
	sum.Write(l.e.lineDigest(s.Raw))
	return logfiles.AddDamage(ctx, l.tx, logfiles.Damage{
		Part: l.in.After.ID, Start: s.Start, Size: s.Size, FirstLine: s.First, LastLine: s.Last, Reason: s.Problem,
		Excerpt: l.e.excerpt(s.Raw), Digest: sum.Sum(nil), Torn: s.Torn,
	})
}

// excerpt is the beginning of bytes of any kind, as they are kept for people.
func (e *Engine) excerpt(raw []byte) string {
	return cut(e.words(cut(string(raw), 2*excerptLimit)), excerptLimit)
}

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

// opOf is a record as an operation of the engine; its effect is found later.
func (l *logReading) opOf(it *logItem) Op {
	r := &it.rec
	run := r.Run
	if run == "" {
		run = l.log.RunID
	}
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

// lockRuns locks the runs that the items name, opening those that are new.
func (l *logReading) lockRuns(ctx context.Context) error {
	var names []runName
	for _, it := range l.items {
		if it.p.refusal == nil {
			names = append(names, runName{l.log.Account, it.p.runID()})
		}
	}
	slices.SortFunc(names, func(a, b runName) int { return compare(a.name, b.name) })
	names = slices.Compact(names)
	if err := l.lock(ctx, names, nil, nil); err != nil {
		return err
	}
	var added []runName
	for _, n := range names {
		if l.names[n] != nil {
			continue
		}
		ok, err := runs.Add(ctx, l.tx, n.account, n.name, l.log.Agent, policyDigest(l.e.Policy()), l.now)
		if err != nil {
			return err
		}
		if ok {
			added = append(added, n)
		}
	}
	if len(added) == 0 {
		return nil
	}
	if err := l.lock(ctx, added, nil, nil); err != nil {
		return err
	}
	ids := make([]int64, len(added))
	for i, n := range added {
		r := l.names[n]
		if r == nil {
			return fmt.Errorf("couldn't open run %q", n.name)
		}
		ids[i] = r.ID
		if err := l.runEvent(r, "run_opened", map[string]string{"agent": l.log.Agent, "log": l.log.Path}); err != nil {
			return err
		}
	}
	return logfiles.AddRuns(ctx, l.tx, l.log.ID, ids)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// own keeps the items whose run lives in log files. A run that an agent opened over
// HTTP is that agent's: what a file says of it is put aside.
func (l *logReading) own(ctx context.Context) error {
	ids := make([]int64, 0, len(l.runs))
	for id := range l.runs {
		ids = append(ids, id)
	}
	ours, err := logfiles.OfLogs(ctx, l.tx, ids)
	if err != nil {
		return err
	}
	mine := ids[:0:0]
	for _, id := range ids {
		if ours[id] {
			mine = append(mine, id)
		}
	}
	if err := logfiles.AddRuns(ctx, l.tx, l.log.ID, mine); err != nil {
		return err
	}
	list := l.items
	l.items = nil
	for _, it := range list {
		it.run = l.names[runName{l.log.Account, it.p.runID()}]
		refusal := it.p.refusal
		if refusal == nil && (it.run == nil || !ours[it.run.ID]) {
			refusal = &Refusal{Detail: "Its run was opened by an agent over HTTP."}
			it.run = nil
		}
		if refusal != nil {
			if it, err = l.unusable(ctx, it, refusal); err != nil {
				return err
			}
		}
		if it != nil {
			l.items = append(l.items, it)
		}
	}
	return nil
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

// name computes which call each item speaks of.
func (l *logReading) name(ctx context.Context) error {
	in, err := l.keying(ctx)
	if err != nil {
		return err
	}
	list := l.items
	l.items = nil
	for _, it := range list {
		if tool := it.rec.Tool; tool != "" && !it.fragment && !l.e.Policy().Tool(tool).Guarded() {
			l.report.New--
			l.report.Unguarded++
			continue
		}
		for it != nil {
			refusal, err := l.callOf(ctx, in, it)
			if err != nil {
				return err
			}
			if refusal == nil {
				break
			}
			if it, err = l.unusable(ctx, it, refusal); err != nil {
				return err
			}
		}
		if it != nil {
			it.id = logCall{it.run.ID, it.callID(l.e)}
			l.items = append(l.items, it)
		}
	}
	return nil
}

func (l *logReading) callOf(ctx context.Context, in *keying, it *logItem) (refusal *Refusal, err error) {
	opened, err := l.e.policyOf(ctx, l.tx, it.run.Policy)
	if err != nil {
		return nil, err
	}
	switch b, f := it.p.Begin, it.p.Finish; {
	case b != nil:
		it.c, refusal = l.e.callOf(it.run.Row, opened, in, it.p, b.Tool, b.Arguments, b.Occurrence, b.Key)
	case f.Key == "":
		it.c, refusal = l.e.callOf(it.run.Row, opened, in, it.p, f.Tool, f.Arguments, f.Occurrence, "")
	}
	return refusal, nil
}

// callID names the item's call within its run.
func (it *logItem) callID(e *Engine) [sha256.Size]byte {
	switch {
	case it.rec.Key != "":
		return sha256.Sum256([]byte("key\x00" + it.rec.Key))
	case it.fragment:
		return sha256.Sum256(append([]byte("span\x00"), e.lineDigest(it.span.Raw)...))
	case it.rec.Occurrence > 0:
		return sha256.Sum256(fmt.Appendf([]byte("call\x00"), "%s\x00%d", it.c.digest[:], it.rec.Occurrence))
	}
	return sha256.Sum256(append([]byte("call\x00"), it.c.digest[:]...))
}

// loadCalls reads what is known of the calls: their effects, and outcomes that came
// before their intents.
func (l *logReading) loadCalls(ctx context.Context) error {
	var ids []int64
	var names [][]byte
	for _, it := range l.items {
		if l.calls[it.id] == nil {
			l.calls[it.id] = &logfiles.Call{Run: it.id.run, Call: it.id.call[:], Log: l.log.ID}
			ids, names = append(ids, it.id.run), append(names, it.id.call[:])
		}
	}
	rows, err := logfiles.Calls(ctx, l.tx, ids, names)
	if err != nil {
		return err
	}
	var effects []string
	for i := range rows {
		*l.calls[logCall{rows[i].Run, [sha256.Size]byte(rows[i].Call)}] = rows[i]
		effects = append(effects, rows[i].Effect)
	}
	if err := l.load(ctx, store.Wanted{IDs: effects}); err != nil {
		return err
	}
	for _, it := range l.items {
		it.row = l.calls[it.id]
	}
	if l.handed, err = logfiles.HandedOut(ctx, l.tx, effects); err != nil {
		return err
	}
	waiting, err := logfiles.WaitingFor(ctx, l.tx, ids, names)
	if err != nil {
		return err
	}
	for _, x := range waiting {
		it, err := l.waited(x)
		if err != nil {
			return err
		}
		l.pended[it.id] = append(l.pended[it.id], it)
	}
	return nil
}

// mintedAgain is the key of a call that its file makes once more under the same name,
// after it was refused. No client can spell it: a key holds no NUL.
func mintedAgain(key string, times int) string { return fmt.Sprintf("%s\x00again\x00%d", key, times) }

// newCall computes the call of the times-th effect under one name.
func (l *logReading) newCall(ctx context.Context, it *logItem, times int) error {
	b := it.p.Begin
	if times == 1 && !it.fragment {
		return nil
	}
	in, err := l.keying(ctx)
	if err != nil {
		return err
	}
	opened, err := l.e.policyOf(ctx, l.tx, it.run.Policy)
	if err != nil {
		return err
	}
	occurrence, minted := times, ""
	switch {
	case it.fragment:
		minted = "\x00possible\x00" + string(it.id.call[:])
	case b.Key != "":
		minted = mintedAgain(b.Key, times)
	case it.rec.Occurrence > 0:
		occurrence = it.rec.Occurrence
		minted = mintedAgain("\x00"+it.c.key.String(), times)
	}
	var refusal *Refusal
	it.c, refusal = l.e.callOf(it.run.Row, opened, in, it.p, b.Tool, b.Arguments, occurrence, minted)
	if refusal != nil {
		return fmt.Errorf("couldn't name a call a second time: %w", refusal)
	}
	b.Occurrence = occurrence
	return nil
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
