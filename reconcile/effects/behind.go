package effects

import (
	"context"
	"fmt"

	store "quittance/ledger/effects"
	"quittance/ledger/system"
)

// shown is a log position as a call returned it: with the run it has to be an event
// of (0: there is no such run), and who showed it, for people.
type shown struct {
	pos *position
	run int64
	who string
}

// behind compares the positions with the log. One that names an event this database
// does not hold opens a log gap. While one is open that nobody has acknowledged it is
// true, and nobody may be told anything but that.
func (w *work) behind(ctx context.Context, list []shown) (bool, error) {
	if len(list) == 0 || w.sys.Behind() {
		return w.sys.Behind(), nil
	}
	runs, ids := make([]int64, len(list)), make([]int64, len(list))
	for i, s := range list {
		runs[i], ids[i] = s.run, s.pos.id
	}
	found, err := store.Events(ctx, w.tx, runs, ids)
	if err != nil {
		return false, err
	}
	for _, s := range list {
		if !s.pos.holds(found[s.pos.id], s.run) {
			if err := w.gapFound(ctx, s.who); err != nil {
				return false, err
			}
			break
		}
	}
	return w.sys.Behind(), nil
}

// shownBy is the position that a call for a run returned.
func (w *work) shownBy(pos *position, name runName) shown {
	s := shown{pos: pos, who: fmt.Sprintf("run %q", name.name)}
	if r := w.names[name]; r != nil {
		s.run = r.ID
	}
	return s
}

// shownIn are the positions that the calls of a batch returned.
func (w *work) shownIn(ops []*prepared) (list []shown) {
	for _, p := range ops {
		if p.pos == nil {
			continue
		}
		if f := p.Finish; f != nil && f.EffectID != "" {
			// Also when the effect itself is what was lost.
			list = append(list, shown{p.pos, p.pos.run, "the worker of effect " + f.EffectID})
			continue
		}
		list = append(list, w.shownBy(p.pos, runName{p.account(), p.runID()}))
	}
	return list
}

func (w *work) gapFound(ctx context.Context, who string) error {
	if w.sys.InGap() {
		return nil // already known, and acknowledged
	}
	if err := system.FindGap(ctx, w.tx, who+" showed a log position that this database does not hold"); err != nil {
		return err
	}
	w.e.log.Error("log gap: an agent showed a log position that this database does not hold; nothing is released until a person acknowledges it", "shown_by", who)
	w.hints[""] = struct{}{}
	sys, err := system.Read(ctx, w.tx)
	w.sys = sys
	return err
}

func logBehind() *Refusal {
	return &Refusal{Code: CodeLogBehind, Detail: "This server's log has lost events. Nothing is released until a person acknowledges it."}
}
