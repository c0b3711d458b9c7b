package effects

import (
	"context"
	"fmt"

	store "quittance/ledger/effects"
	"quittance/reconcile/logfile"
)

// cause is what the event of an item remembers for people.
func (it *logItem) cause() map[string]string { return map[string]string{"line": it.place} }

// intent records an attempt that the agent has begun by itself.
func (l *logReading) intent(ctx context.Context, it *logItem) error {
	row, x := it.row, l.effects[it.row.Effect]
	switch {
	case it.creates:
		x = l.newEffect(it.p, it.c, it.run)
	case it.fragment:
		// It is on record that something may have been meant; or its own line was read.
		l.observe(store.Evidence{Effect: x.ID, Source: "agent", Fence: row.Begun, Verdict: "inconclusive",
			Seen: "A damaged place of the log file may be an intent of this call: " + it.place + "."})
		return nil
	default:
		if err := l.timeFirst(ctx, x); err != nil {
			return err
		}
	}
	ev := Event{Kind: KIntent, Permitted: !it.creates && row.Permitted}
	if fence, ok := l.handed[x.ID]; ok && !it.creates {
		ev.SameAttempt = fence == x.Fence && x.Attempts > 0
	}
	m, err := l.step(x, ev, "written", it.cause(), func(m Move) {
		if m.Attempt {
			l.newAttempt(x, l.tool(x), it.run, it.p.Begin.AttemptID)
		}
	})
	if err != nil {
		return err
	}
	if ev.SameAttempt && m.Row == "W2" {
		x.Deadline, x.Moment = l.moment(l.tool(x), l.now.Add(l.tool(x).Deadline))
		delete(l.handed, x.ID)
		l.begun = append(l.begun, x.ID)
		if err := l.record(x, "written", it.cause()); err != nil {
			return err
		}
	}
	if m.Contradiction != "" {
		id := l.observe(store.Evidence{Effect: x.ID, Source: "agent", Fence: x.Fence, Verdict: "inconclusive",
			Seen: "The agent began it again, and nothing had let it: " + it.place + "."})
		l.contradicted(x, m, id)
		l.report.warn(it.span.note("an attempt began that nothing had let run; it is in the queue as a contradiction"))
	}
	row.Effect, row.Begun, row.Permitted = x.ID, x.Fence, false
	if it.creates {
		row.Times++
		row.Possible = it.fragment
		row.Log = l.log.ID
	}
	l.touch(row)
	l.hint(x.run)
	if it.fragment {
		return l.possible(x, it)
	}
	return nil
}

// possible leaves an effect in the queue that stands for a damaged intent.
func (l *logReading) possible(x *effect, it *logItem) error {
	_, err := l.step(x, Event{Kind: KFinish, Word: WordUnknown}, "finish", it.cause(), nil)
	l.observe(store.Evidence{Effect: x.ID, Source: "agent", Fence: x.Fence, Verdict: "inconclusive",
		Seen: "A damaged place of the log file may be an intent: " + it.place + " (" + it.span.Problem + "). It may have been performed, or never begun."})
	return err
}

// timeFirst interrupts an effect whose deadline has passed, as a move of its own.
func (l *logReading) timeFirst(ctx context.Context, x *effect) error {
	if x.State != InFlight || x.Deadline.After(l.now) {
		return nil
	}
	if _, err := l.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "log"}, nil); err != nil {
		return err
	}
	return l.write(ctx)
}

// outcome is a finish by the attempt whose intent was read last.
func (l *logReading) outcome(ctx context.Context, it *logItem) error {
	x, f := l.effects[it.row.Effect], it.p.Finish
	f.EffectID, f.Fence = x.ID, it.row.Begun
	if before, then := logfile.When(x.ClientTime), logfile.When(it.rec.Time); !before.IsZero() && !then.IsZero() && then.Before(before) {
		l.report.warn(it.span.note("its time is before that of its intent"))
	}
	if err := l.finish(ctx, it.p, call{}, l.owned); err != nil {
		return err
	}
	l.hint(x.run)
	if it.fragment {
		l.observe(store.Evidence{Effect: x.ID, Source: "agent", Fence: f.Fence, Verdict: "inconclusive",
			Seen: fmt.Sprintf("A damaged place of the log file may say that this was %s: %s.", it.rec.Kind, it.place)})
		return nil
	}
	if r := it.p.answer.Refusal; r != nil && r.Code != CodeStaleFence {
		s := *it.span
		s.Problem = "it cannot be used: " + r.Pointer + ": " + r.Detail
		l.report.New--
		_, err := l.quarantine(ctx, &s)
		return err
	}
	return nil
}

// resolved is a line by somebody who found out, other than "it took effect". That an
// attempt may run is theirs to say: the agent reads it too. It decides nothing here.
func (l *logReading) resolved(it *logItem) error {
	x := l.effects[it.row.Effect]
	says := "that it was resolved, not how"
	switch it.rec.Verdict {
	case logfile.NotTaken:
		says = "that it did not take effect and may run once more"
		it.row.Permitted = x.State == InFlight || x.State == Interrupted
		l.touch(it.row)
	case logfile.Stop:
		says = "that it must not run"
	}
	l.observe(store.Evidence{Effect: x.ID, Source: "agent", Fence: it.row.Begun, Verdict: "inconclusive",
		Seen: "The log file says " + says + ": " + it.place + "."})
	l.hint(x.run)
	return nil
}
