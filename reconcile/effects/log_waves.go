package effects

import (
	"context"

	store "quittance/ledger/effects"
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
			if late := l.pended[id]; (l.calls[id].Effect != "" || l.seen[id] != nil) && len(late) > 0 {
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
		case it.observed:
			err = l.watchIntent(ctx, it)
		case l.watchedOutcome(it):
			err = l.watchOutcome(ctx, it)
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
	var want wanted
	var refs []store.Reference
	under := store.Wanted{}
	for _, it := range wave {
		x := l.effects[it.row.Effect]
		if x != nil {
			l.wantKnown(&want, x)
			if f := it.p.Finish; f != nil && f.Reference != "" {
				refs = append(refs, store.Reference{Account: x.Account, Tool: x.Tool, Ref: f.Reference})
			}
		}
		if it.p.Begin == nil || it.observed {
			continue
		}
		if it.creates = l.makesNew(it, x); !it.creates {
			continue
		}
		if err := l.newCall(ctx, it, it.row.Times+1); err != nil {
			return err
		}
		under.Runs, under.Keys = append(under.Runs, it.run.ID), append(under.Keys, it.c.key[:])
	}
	if err := l.load(ctx, under); err != nil {
		return err
	}
	for _, it := range wave {
		if !it.creates {
			continue
		}
		if x := l.keys[runKey{it.run.ID, string(it.c.key[:])}]; x != nil {
			// Another name for a call that is on record.
			it.creates, it.row.Effect, it.row.Begun = false, x.ID, x.Fence
			want.look = append(want.look, digests(x.claims())...)
			continue
		}
		it.p.newID = newID()
		l.wantNew(&want, it.c.claims, l.log.Account, it.p.Begin.Tool, it.p.newID)
	}
	if err := l.lookAt(ctx, want); err != nil {
		return err
	}
	if err := l.takeOrLook(ctx, want.take); err != nil {
		return err
	}
	var err error
	l.owned, err = store.OwnedReferences(ctx, l.tx, refs)
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
