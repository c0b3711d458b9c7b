package effects

import (
	"context"

	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// What a file says of a tool in mode observe goes the way of observed calls: it makes no
// effect, no card and no contradiction.

// loadObserved reads which observed calls the items may speak of.
func (l *logReading) loadObserved(ctx context.Context, ids []int64, names [][]byte) error {
	l.seen = map[logCall]*logfiles.Observed{}
	in, err := l.keying(ctx)
	if err != nil || len(in.observed) == 0 {
		return err
	}
	rows, err := logfiles.ObservedCalls(ctx, l.tx, ids, names)
	for i := range rows {
		l.seen[logCall{rows[i].Run, [32]byte(rows[i].Call)}] = &rows[i]
	}
	return err
}

// watchedOutcome tells whether an outcome is of an observed call: of the one whose intent
// was read and that has none, or where there is no effect that it could be of.
func (l *logReading) watchedOutcome(it *logItem) bool {
	s := l.seen[it.id]
	return it.p.Begin == nil && s != nil && (s.Outcome == "" || s.Outcome == "unknown" || l.effects[it.row.Effect] == nil)
}

// watchIntent records an observed call that the agent has begun. As with effects, what was
// refused may be tried again under its name, and without a name of its own a call after one
// that took effect is another.
func (l *logReading) watchIntent(ctx context.Context, it *logItem) error {
	s, b := l.seen[it.id], it.p.Begin
	next := logfiles.Observed{Run: it.run.ID, Call: it.id.call[:], Times: 1}
	if s != nil {
		next.Times = s.Times
		if s.Outcome == string(WordFailed) || s.Outcome == string(WordTaken) && it.rec.Key == "" && it.rec.Occurrence == 0 {
			next.Times++
		}
	}
	if next.Times > 1 {
		switch {
		case b.Key != "":
			b.Key = mintedAgain(b.Key, next.Times)
		case it.rec.Occurrence > 0:
			b.Key = mintedAgain("\x00"+it.c.key.String(), next.Times)
		default:
			b.Occurrence = next.Times
		}
	}
	it.p.written = true
	if err := l.watchBegin(ctx, it.p); err != nil {
		return err
	}
	if r := it.p.answer.Refusal; r != nil {
		_, err := l.unusable(ctx, it, r)
		return err
	}
	next.Seen = it.p.answer.Begin.EffectID
	l.seen[it.id] = &next
	l.report.Observed++
	return logfiles.Observe(ctx, l.tx, next)
}

// watchOutcome records what came of an observed call. A damaged line, and somebody else's
// word that it did not take effect, say nothing here: nothing waits for them.
func (l *logReading) watchOutcome(ctx context.Context, it *logItem) error {
	if it.fragment || it.rec.Kind == logfile.Resolved && it.rec.Verdict != logfile.Taken {
		return nil
	}
	s := l.seen[it.id]
	it.p.watched = s.Seen
	if err := l.watchFinish(ctx, it.p); err != nil {
		return err
	}
	if f := it.p.answer.Finish; f != nil {
		s.Outcome = f.State
	}
	return nil
}
