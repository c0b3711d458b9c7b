package effects

import (
	"context"
	"maps"
	"slices"

	"quittance/ledger/logfiles"
)

// lockRuns locks the runs that the items name, opening those that are new.
func (l *logReading) lockRuns(ctx context.Context) error {
	names := map[runName]bool{}
	for _, it := range l.items {
		if it.p.refusal == nil {
			names[runName{l.log.Account, it.p.runID()}] = true
		}
	}
	locked := slices.Collect(maps.Keys(names))
	for _, x := range l.closings {
		locked = append(locked, runName{l.log.Account, x.run})
	}
	if err := l.lock(ctx, locked, nil, nil); err != nil {
		return err
	}
	var missing []string
	for n := range names {
		if l.names[n] == nil {
			missing = append(missing, n.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	opened, err := l.openRuns(ctx, l.log.Account, missing, l.log.Agent, map[string]string{"agent": l.log.Agent, "log": l.log.Path})
	if err != nil {
		return err
	}
	ids := make([]int64, len(opened))
	for i, r := range opened {
		ids[i] = r.ID
	}
	return logfiles.AddRuns(ctx, l.tx, l.log.ID, ids)
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
	return l.goOn(ctx)
}
