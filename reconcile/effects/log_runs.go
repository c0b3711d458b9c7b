package effects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"quittance/ledger/logfiles"
	"quittance/ledger/runs"
)

// lockRuns locks the runs that the items name, opening those that are new.
func (l *logReading) lockRuns(ctx context.Context) error {
	var names []runName
	for _, it := range l.items {
		if it.p.refusal == nil {
			names = append(names, runName{l.log.Account, it.p.runID()})
		}
	}
	slices.SortFunc(names, func(a, b runName) int { return cmp.Compare(a.name, b.name) })
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
