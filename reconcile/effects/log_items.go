package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// waves lets the items count, in their order for each call. What lines say of different
// calls is written together: the first of each, then the second, and so on.
func (l *logReading) waves(ctx context.Context) error {
	queues := map[logCall][]*logItem{}
	var order []logCall // of the calls' first lines
	for _, it := range l.items {
		if queues[it.id] == nil {
			order = append(order, it.id)
		}
		queues[it.id] = append(queues[it.id], it)
	}
	for len(order) > 0 {
		wave := make([]*logItem, len(order))
		for i, id := range order {
			wave[i], queues[id] = queues[id][0], queues[id][1:]
		}
		if err := l.wave(ctx, wave); err != nil {
			return err
		}
		rest := order[:0]
		for _, id := range order {
			// An intent that came after its outcomes: they follow it now.
			if late := l.pended[id]; l.calls[id].Effect != "" && len(late) > 0 {
				for _, it := range late {
					if it.waited != 0 {
						l.paired = append(l.paired, it.waited)
					}
				}
				queues[id] = append(late, queues[id]...)
				delete(l.pended, id)
			}
			if len(queues[id]) > 0 {
				rest = append(rest, id)
			}
		}
		order = rest
	}
	return nil
}

// wave lets one item of each of several calls count.
func (l *logReading) wave(ctx context.Context, wave []*logItem) error {
	if err := l.meet(ctx, wave); err != nil {
		return err
	}
	for _, it := range wave {
		var err error
		switch {
		case it.p.Begin != nil:
			err = l.intent(ctx, it)
		case l.effects[it.row.Effect] == nil:
			l.pended[it.id] = append(l.pended[it.id], it)
			continue
		case !it.fragment && it.rec.Kind == logfile.Resolved && it.rec.Verdict != logfile.Taken:
			err = l.resolved(it)
		default:
			err = l.outcome(ctx, it)
		}
		if err != nil {
			return err
		}
		if it.line >= 0 && it.waited == 0 {
			l.lines[it.line].Effect = it.row.Effect
		}
	}
	return l.write(ctx)
}

// meet reads and locks what the wave's items have to know: effects under new keys, who
// holds their claims, and which effects their references prove.
func (l *logReading) meet(ctx context.Context, wave []*logItem) error {
	var look [][]byte
	var owners []string
	want := store.Wanted{}
	var accounts []int64
	var tools, refs []string
	for _, it := range wave {
		x := l.effects[it.row.Effect]
		if x != nil {
			if x.State != InFlight {
				look = append(look, digests(x.claims())...)
			} else {
				for _, owner := range []string{x.ClaimOwner, x.ClaimWasOwner} {
					if owner != "" && owner != x.ID && l.effects[owner] == nil {
						owners = append(owners, owner)
					}
				}
			}
			if f := it.p.Finish; f != nil && f.Reference != "" {
				accounts, tools, refs = append(accounts, x.Account), append(tools, x.Tool), append(refs, f.Reference)
			}
		}
		if it.p.Begin == nil {
			continue
		}
		if it.creates = l.makesNew(it, x); !it.creates {
			continue
		}
		if err := l.newCall(ctx, it, it.row.Times+1); err != nil {
			return err
		}
		want.Runs, want.Keys = append(want.Runs, it.run.ID), append(want.Keys, it.c.key[:])
	}
	if err := l.load(ctx, want); err != nil {
		return err
	}
	var take []store.Claim
	taken := map[string]bool{}
	for _, it := range wave {
		if !it.creates {
			continue
		}
		if x := l.keys[runKey{it.run.ID, string(it.c.key[:])}]; x != nil {
			// Another name for a call that is on record.
			it.creates, it.row.Effect, it.row.Begun = false, x.ID, x.Fence
			look = append(look, digests(x.claims())...)
			continue
		}
		it.p.newID = newID()
		for _, c := range it.c.claims {
			if !taken[string(c.digest)] {
				taken[string(c.digest)] = true
				take = append(take, l.claimRow(c, l.log.Account, it.p.Begin.Tool, it.p.newID))
			}
		}
	}
	if err := l.readOnly(ctx, owners); err != nil {
		return err
	}
	if err := l.lockClaims(ctx, look...); err != nil {
		return err
	}
	if err := l.takeOrLook(ctx, take); err != nil {
		return err
	}
	l.owned = map[store.Reference]string{}
	if len(refs) == 0 {
		return nil
	}
	var err error
	l.owned, err = store.OwnedReferences(ctx, l.tx, accounts, tools, refs)
	return err
}

// makesNew tells whether an intent is the first of its call, or of one more. What was
// refused for sure may be tried again under the same name; without a name of its own, an
// identical call after one that took effect is another call.
func (l *logReading) makesNew(it *logItem, x *effect) bool {
	switch {
	case x == nil:
		return true
	case it.fragment:
		return false
	case it.row.Possible:
		return true
	case x.State == Failed:
		return true
	}
	return x.State == Taken && it.rec.Key == "" && it.rec.Occurrence == 0
}

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
		if err := logfiles.Begun(ctx, l.tx, x.ID); err != nil {
			return err
		}
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

// waitingOutcome is an outcome as it is kept until its intent is read.
type waitingOutcome struct {
	Kind      logfile.Kind    `json:"kind"`
	Word      string          `json:"word"`
	Verdict   string          `json:"verdict,omitempty"`
	Time      string          `json:"time,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	Stored    Stored          `json:"stored"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Fragment  bool            `json:"fragment,omitempty"`
	Place     string          `json:"place"`
	First     int64           `json:"first"`
	Last      int64           `json:"last"`
	Start     int64           `json:"start"`
	Size      int64           `json:"size"`
}

func (it *logItem) body() (string, error) {
	p, s := it.p, it.span
	b, err := json.Marshal(waitingOutcome{it.rec.Kind, it.rec.Word, it.rec.Verdict, it.rec.Time, it.rec.Reference, raw(p.result.text), raw(p.failure.text),
		p.result.stored, it.rec.Key, it.rec.Tool, it.fragment, it.place, s.First, s.Last, s.Start, s.Size})
	if err != nil {
		return "", fmt.Errorf("couldn't encode an outcome: %w", err)
	}
	return storable(string(b)), nil
}

// waited is an outcome that waited for its intent since an earlier read.
func (l *logReading) waited(x logfiles.Waiting) (*logItem, error) {
	var o waitingOutcome
	if err := json.Unmarshal([]byte(x.Body), &o); err != nil {
		return nil, fmt.Errorf("couldn't read an outcome that waits: %w", err)
	}
	id := logCall{run: x.Run, call: [32]byte(x.Call)}
	it := &logItem{span: &LogSpan{First: o.First, Last: o.Last, Start: o.Start, Size: o.Size}, fragment: o.Fragment, line: -1, run: l.runs[x.Run], id: id,
		row: l.calls[id], waited: x.ID, place: o.Place,
		rec: logfile.Record{Kind: o.Kind, Word: o.Word, Verdict: o.Verdict, Time: o.Time, Reference: o.Reference, Result: o.Result, Error: o.Error, Key: o.Key, Tool: o.Tool}}
	op := l.opOf(it)
	op.Finish.RunID, op.Finish.Key = it.run.RunID, "waited" // found by its call
	it.p = l.e.prepare(op)
	it.p.answer = &Answer{}
	if it.p.refusal != nil {
		return nil, fmt.Errorf("couldn't use an outcome that waits: %w", it.p.refusal)
	}
	it.p.result.stored = o.Stored
	return it, nil
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
