package effects

import (
	"context"
	"crypto/sha256"
	"fmt"

	store "quittance/ledger/effects"
	"quittance/ledger/logfiles"
)

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
		if it.observed = it.p.Begin != nil && it.rec.Tool != "" && l.e.Policy().Tool(it.rec.Tool).Observe(); it.observed && it.fragment {
			continue // it is in quarantine, and nothing waits for it
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
	if err := l.loadObserved(ctx, ids, names); err != nil {
		return err
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
