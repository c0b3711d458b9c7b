package effects

import (
	"context"
	"encoding/hex"

	"quittance/ledger"
	store "quittance/ledger/effects"
)

// answer completes the answers once everything is written: results of replays, what
// a paused run waits for, who stopped an effect, and the log position of each run.
func (w *work) answer(ctx context.Context, ops []*prepared) error {
	var replays, stopped []string
	var waiting, silent []int64
	for _, p := range ops {
		a := p.answer
		if p.refusal != nil {
			continue
		}
		if a.Begin != nil && a.Begin.Do == "replay" {
			replays = append(replays, a.Begin.EffectID)
		}
		if r := a.Refusal; r != nil && r.Code == CodeCancelled {
			stopped = append(stopped, r.EffectID)
		}
		run := w.runOf(p)
		if run == nil {
			continue
		}
		if r := a.Refusal; r != nil && r.Code == CodeRunPaused {
			waiting = append(waiting, run.ID)
		}
		if run.last.ID == 0 {
			silent = append(silent, run.ID)
		}
	}
	outcomes := map[string]store.Outcome{}
	waits := map[int64][]Waiting{}
	var err error
	if len(replays) > 0 {
		if outcomes, err = store.Outcomes(ctx, w.tx, replays); err != nil {
			return err
		}
	}
	if len(waiting) > 0 {
		if waits, err = waitingFor(ctx, w.tx, waiting); err != nil {
			return err
		}
	}
	if err := w.lastEvents(ctx, silent); err != nil {
		return err
	}
	var decided map[string][]store.Decision
	if len(stopped) > 0 {
		if decided, err = store.Decisions(ctx, w.tx, stopped); err != nil {
			return err
		}
	}
	for _, p := range ops {
		if p.refusal != nil {
			continue
		}
		a, position := p.answer, ""
		if run := w.runOf(p); run != nil {
			position = w.e.positionOf(run.Account, run.RunID, run.last)
			if r := a.Refusal; r != nil && r.Code == CodeRunPaused {
				r.WaitingFor = waits[run.ID]
			}
		}
		switch {
		case a.Begin != nil:
			a.Begin.LogPosition = position
			if a.Begin.Do == "replay" {
				a.Begin.fill(w.effects[a.Begin.EffectID], outcomes[a.Begin.EffectID])
			}
		case a.Finish != nil:
			a.Finish.LogPosition = position
		case a.Refusal != nil:
			a.Refusal.LogPosition = position
			if a.Refusal.Code == CodeCancelled {
				a.Refusal.Decided = w.decidedOf(w.effects[a.Refusal.EffectID], decided[a.Refusal.EffectID])
			}
		}
	}
	return nil
}

func (w *work) runOf(p *prepared) *run {
	if f := p.Finish; f != nil && f.EffectID != "" {
		if x := w.effects[f.EffectID]; x != nil && x.Account == f.Account {
			return x.run
		}
		return nil
	}
	return w.names[runName{p.account(), p.runID()}]
}

// lastEvents looks up the latest event of runs that got none in this transaction.
func (w *work) lastEvents(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	last, err := store.LastEvents(ctx, w.tx, ids)
	for id, v := range last {
		w.runs[id].last = v
	}
	return err
}

func (a *BeginAnswer) fill(x *effect, o store.Outcome) {
	a.Result, a.Error = bytesOf(o.Result), bytesOf(o.Error)
	a.Size, a.Digest = x.ResultSize, hex.EncodeToString(x.ResultDigest)
	a.Omitted = o.Result == "" && (x.ResultSize > 0 || x.ResultDigest != nil)
}

func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// decidedOf says who closed an effect, from the decision in force.
func (w *work) decidedOf(x *effect, list []store.Decision) *Decided {
	return decidedBy(x.Row, list)
}

func decidedBy(x *store.Row, list []store.Decision) *Decided {
	d := &Decided{By: string(x.DecidedBy), At: x.ChangedAt.Time, Verdict: string(x.State)}
	for _, c := range list {
		if c.ID == x.Decision {
			d.At, d.Verdict, d.Note, d.Person = c.At.Time, c.Verdict, c.Note, c.PersonName
		}
	}
	return d
}

// waitingFor lists what keeps runs paused, oldest first.
func waitingFor(ctx context.Context, r ledger.Reader, ids []int64) (map[int64][]Waiting, error) {
	rows, err := store.Blocking(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	m := map[int64][]Waiting{}
	for _, x := range rows {
		m[x.Run] = append(m[x.Run], waitingOf(x))
	}
	return m, nil
}

func waitingOf(x *store.Row) Waiting {
	w := Waiting{EffectID: x.ID, Tool: x.Tool}
	switch {
	case x.State == Interrupted:
		w.Reason = "interrupted"
	case x.State == Held:
		w.Reason = "held"
	case x.Contradictions > 0:
		w.Reason = "contradicted"
	default:
		w.Reason, w.ReleaseAt = "releasing", x.ReleaseAt.Time
	}
	return w
}
