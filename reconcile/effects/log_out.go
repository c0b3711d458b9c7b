package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/ledger/lookups"
	"quittance/ledger/runs"
	"quittance/reconcile/logfile"
)

// OpenLog finds the account's log file at path, or adds it: agent is the name under
// which its runs are shown, run that of lines which name none.
func (e *Engine) OpenLog(ctx context.Context, account int64, path, agent, run string) (id int64, err error) {
	if r := firstRefusal(limited("path", path, 4096), limited("agent", agent, 256), limited("run", run, 512)); r != nil {
		return 0, r
	}
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		id, err = logfiles.Open(ctx, tx, account, path, agent, run)
		return err
	})
	return id, err
}

// RestLog says that nobody writes the file at present: what it leaves without an outcome
// is interrupted at once, and not at its deadline. An attempt that an appended line lets
// run waits for whoever reads that line.
func (e *Engine) RestLog(ctx context.Context, log int64) error {
	for {
		ids, err := logfiles.Resting(ctx, e.db, log, loopBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		moved := 0
		behind, err := e.onEffects(ctx, ids, func(w *work, x *effect) error {
			if x.State != InFlight {
				return nil
			}
			moved++
			w.hint(x.run)
			_, err := w.step(x, Event{Kind: KTime, Lease: true}, "interrupted", map[string]string{"by": "log"}, nil)
			return err
		})
		if behind {
			return logBehind()
		}
		if err != nil || moved == 0 {
			return err
		}
	}
}

// carryBatch is how many decisions are carried to a file at a time.
const carryBatch = 100

// CarryLog uses the decisions that wait to be told to the file's agent: each becomes a
// resolved line in the outbox, in the transaction that uses it. From then on it cannot be
// taken back. To the state table this is the begin that the agent does not make: it is
// answered by a line.
func (e *Engine) CarryLog(ctx context.Context, log int64) error {
	ids, err := logfiles.Unused(ctx, e.db, log, carryBatch)
	if err != nil || len(ids) == 0 {
		return err
	}
	var w *work
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		g, err := logfiles.Lock(ctx, tx, log)
		if err != nil {
			return err
		}
		if g.Alarm != 0 {
			return ErrLogAlarm
		}
		w = e.work(ctx, tx)
		if err := w.lock(ctx, nil, ids, nil); err != nil {
			return err
		}
		if w.sys.Behind() {
			return logBehind()
		}
		if err := w.load(ctx, store.Wanted{IDs: ids}); err != nil {
			return err
		}
		for _, id := range ids {
			if x := w.effects[id]; x != nil && x.run != nil {
				if err := w.carry(ctx, g, x); err != nil {
					return err
				}
			}
		}
		return w.flush(ctx)
	})
	if err == nil {
		w.tell()
	}
	return err
}

// carry uses one decision and posts its line.
func (w *work) carry(ctx context.Context, g logfiles.Log, x *effect) error {
	if x.run.State == runs.Paused || x.run.paused || x.run.State.Closed() || !x.Released || !x.UsedAt.IsZero() {
		return nil
	}
	if x.State == Cleared {
		if expired, err := w.expire(x); err != nil || expired {
			return err
		}
	}
	if err := w.lockClaims(ctx, digests(x.claims())...); err != nil {
		return err
	}
	t := w.tool(x)
	by := x.DecidedBy
	ev := Event{Kind: KBegin, ClaimTaken: w.claimTaken(t, x.claims(), x.Run, x.ID), KeyDead: w.keyDead(x, t)}
	line := logfiles.Resolved{ID: newID(), Log: g.ID, Effect: x.ID, MadeAt: ledger.At(w.now)}
	m, err := w.step(x, ev, "begin", map[string]string{"resolved_line": line.ID}, func(m Move) {
		if !m.Attempt {
			return
		}
		w.newAttempt(x, t, x.run, "resolved "+line.ID)
		// The agent may read the line much later; its intent line starts the deadline.
		x.Deadline, x.Moment = w.moment(t, w.now.Add(w.e.Policy().PermissionLife()))
		w.attempts[len(w.attempts)-1].Deadline = x.Deadline
	})
	if err != nil {
		return err
	}
	entry := logfile.Entry{Type: logfile.Resolved, ID: line.ID, At: logfile.Stamp(w.now), Run: x.run.RunID, Key: x.ClientKey, Tool: x.Tool, Occurrence: x.Occurrence, By: string(by)}
	switch m.Reply {
	case ReplyProceed:
		line.Verdict, line.Fence, entry.Attempt = logfile.NotTaken, x.Fence, x.Attempts
	case ReplyReplay:
		line.Verdict = logfile.Taken
		o, err := store.Outcomes(ctx, w.tx, []string{x.ID})
		if err != nil {
			return err
		}
		entry.Reference, entry.Result = x.Reference, raw(o[x.ID].Result)
	case ReplyCancelled:
		line.Verdict = logfile.Stop
	default:
		return nil // held, or interrupted again: a person sees it
	}
	entry.Verdict = line.Verdict
	if entry.Key == "" {
		arguments, err := store.Arguments(ctx, w.tx, x.ID)
		if err != nil {
			return err
		}
		entry.Arguments = json.RawMessage(arguments)
	}
	text, err := entry.Line()
	if err != nil {
		return err
	}
	line.Line = string(text)
	w.hint(x.run)
	return logfiles.Post(ctx, w.tx, line)
}

// AlarmLog records that a log file does not hold what was read from it. Nothing is read
// from it, released from its runs, or appended to it until a person acknowledges that.
func (e *Engine) AlarmLog(ctx context.Context, log int64, a *logfile.Alarm) error {
	var news bool
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		if _, err = logfiles.Lock(ctx, tx, log); err != nil {
			return err
		}
		news, err = logfiles.Alarm(ctx, tx, log, a.Kind, a.Detail)
		return err
	})
	if err == nil && news {
		e.log.Error("a log file was changed: nothing from it is released until a person acknowledges it", "log", log, "kind", a.Kind, "detail", a.Detail)
		e.hub.Changed("")
	}
	return err
}

// AcknowledgeLog is a person's word about an alarm. What the file may have lost is
// unknown from now on: what is in flight, held or cleared in its runs becomes
// interrupted. The file is then read from its beginning, and what is known of it counts
// no second time.
func (e *Engine) AcknowledgeLog(ctx context.Context, p Person, log int64, note string) error {
	if strings.TrimSpace(note) == "" || len(note) > noteLimit {
		return noteMissing("/note", "An acknowledgement says what happened to the file.")
	}
	var w *work
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		g, err := logfiles.Lock(ctx, tx, log)
		if errors.Is(err, ledger.ErrNotFound) {
			return &Refusal{Code: CodeNotFound, Detail: "There is no such log file."}
		}
		if err != nil {
			return err
		}
		if g.Alarm == 0 {
			return &Refusal{Code: CodeNotAllowed, Detail: "There is no alarm of this log file to acknowledge."}
		}
		ids, err := logfiles.OpenOf(ctx, tx, log)
		if err != nil {
			return err
		}
		w = e.work(ctx, tx)
		if err := w.lock(ctx, nil, ids, nil); err != nil {
			return err
		}
		if w.sys.Behind() {
			return logBehind()
		}
		if _, err := logfiles.Acknowledge(ctx, tx, log, p.ID, e.words(note)); err != nil {
			return err
		}
		if err := w.load(ctx, store.Wanted{IDs: ids}); err != nil {
			return err
		}
		return w.lostLines(ctx)
	})
	if err != nil {
		return err
	}
	w.tell()
	e.hub.Changed("")
	return nil
}

// lostLines makes unknown whatever lines that a file lost may have changed.
func (w *work) lostLines(ctx context.Context) error {
	for _, x := range w.effects {
		if x.run == nil {
			continue
		}
		unknown := func(Move) {
			x.Gap = true
			x.Deadline, x.Moment = w.moment(w.tool(x), w.now.Add(w.tool(x).Deadline))
		}
		m, err := w.step(x, Event{Kind: KGap}, "log_file_changed", nil, unknown)
		if err == nil && m.Refused && x.State == Interrupted {
			unknown(m)
			if asked(w.tool(x)) { // what an answer proved meanwhile did not count
				w.plans[x.ID] = &lookups.Change{Effect: x.ID, Tool: x.Tool, Plan: planOf(x.facts()), Next: ledger.At(w.now)}
			}
			err = w.record(x, "log_file_changed", nil)
		}
		if err != nil {
			return fmt.Errorf("couldn't make an effect of a changed log file unknown: %w", err)
		}
		w.settle[x.run.ID] = x.run
		w.hint(x.run)
	}
	return w.flush(ctx)
}
