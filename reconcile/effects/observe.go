package effects

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/observed"
	"quittance/ledger/templates"
	"quittance/reconcile/canon"
)

// Calls of tools in mode observe are recorded beside the effects, in a table of their
// own: they take no claim, pause no run, wait for nobody and prove nothing. What
// enforcing would have answered is worked out and stored with each.

// watches tells whether an op is about a call that is only observed. A finish that names
// its call by an effect_id is found out later: see [unknownFinishes].
func (e *Engine) watches(ctx context.Context, p *prepared) (bool, error) {
	if p.refusal != nil {
		return false, nil
	}
	if b := p.Begin; b != nil {
		t := e.Policy().Tool(b.Tool)
		return t.Guarded() && t.Observe(), nil
	}
	f := p.Finish
	if f.EffectID != "" || f.Key == "" && !e.Policy().Tool(f.Tool).Observe() && !e.keying.Load().observed[f.Tool] {
		return false, nil
	}
	keys, err := e.finishKeys(ctx, p)
	if len(keys) == 0 || err != nil {
		return false, err
	}
	seen, err := observed.ByKey(ctx, e.db, f.Account, f.RunID, keys)
	if seen != nil {
		p.watched = seen.ID
	}
	return seen != nil, err
}

// unknownFinishes are those whose effect_id names no effect: it may be an observed call's.
func unknownFinishes(ops []*prepared) (list []*prepared) {
	for _, p := range ops {
		if p.refusal == nil && p.Finish != nil && p.Finish.EffectID != "" && p.answer.Refusal != nil && p.answer.Refusal.Code == CodeNotFound {
			p.watched = p.Finish.EffectID
			list = append(list, p)
		}
	}
	return list
}

// watch records observed begins and finishes in one transaction, in their order.
func (e *Engine) watch(ctx context.Context, list []*prepared) error {
	if len(list) == 0 {
		return nil
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		w := e.work(ctx, tx)
		var names []runName
		for _, p := range list {
			if p.Begin != nil {
				names = append(names, runName{p.Begin.Account, p.Begin.RunID})
			}
		}
		// Under the runs' locks: the next attempt at a call must see this one.
		if err := w.lock(ctx, names, nil, nil); err != nil {
			return err
		}
		for _, p := range list {
			var err error
			if p.Begin != nil {
				err = w.watchBegin(ctx, p)
			} else {
				err = w.watchFinish(ctx, p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// watchBegin records a begin and lets it proceed. Only a run that does not exist, and a
// begin that cannot be read, are refused.
func (w *work) watchBegin(ctx context.Context, p *prepared) error {
	*p.answer = Answer{}
	b := p.Begin
	r := w.names[runName{b.Account, b.RunID}]
	if r == nil {
		p.refuse(&Refusal{Code: CodeNotFound, RunID: b.RunID, Detail: "There is no such run. Open it with PUT /v1/runs/{run_id} first."})
		return nil
	}
	in, err := w.keying(ctx)
	if err != nil {
		return err
	}
	if !in.observed[b.Tool] {
		// Whoever enforces the tool has to look for its calls from now on.
		added, err := observed.AddTool(ctx, w.tx, b.Tool)
		if err == nil && added {
			err = templates.Announce(ctx, w.tx)
		}
		if err != nil {
			return err
		}
	}
	opened, err := w.e.policyOf(ctx, w.tx, r.Policy)
	if err != nil {
		return err
	}
	c, refusal := w.e.callOf(r.Row, opened, in, p, b.Tool, b.Arguments, b.Occurrence, b.Key)
	if refusal != nil && c.key == (canon.Key{}) {
		p.refuse(refusal)
		return nil
	}
	if refusal != nil { // no business key can be made of them: as with a missing field
		own, _, _ := claimUnder(nil, b.Tool, b.Account, p.args, c.digest)
		c.claims, c.missing = []claim{own}, []string{"business_key"}
	}
	if err := w.rekeyObserved(ctx, b.Tool, in); err != nil {
		return err
	}
	last, err := observed.Last(ctx, w.tx, r.ID, c.key[:])
	if err != nil {
		return err
	}
	if last == nil || last.AttemptID != b.AttemptID || last.Epoch != r.Epoch || last.Outcome != "" {
		if last, err = w.addObserved(ctx, p, c, r, in, last); err != nil {
			return err
		}
	}
	if err := w.lastEvents(ctx, []int64{r.ID}); err != nil {
		return err
	}
	p.answer.Begin = &BeginAnswer{
		Do: "proceed", Observed: true, EffectID: last.ID, Key: c.key.String(), Attempt: last.Attempt, Fence: int64(last.Attempt),
		Deadline: last.Deadline.Time, PerformWithin: last.Deadline.Sub(w.now),
		VendorKey: canon.VendorKey(accountText(r.Account), r.RunID, c.key.String()), LogPosition: w.e.positionOf(r.Account, r.RunID, r.last),
	}
	return nil
}

func (w *work) addObserved(ctx context.Context, p *prepared, c call, r *run, in *keying, last *observed.Call) (*observed.Call, error) {
	b, i := p.Begin, intentOf(p, c)
	would, err := w.judge(ctx, p, c, r, last)
	if err != nil {
		return nil, err
	}
	x := &observed.Call{
		ID: newID(), Account: b.Account, Run: r.ID, Key: i.Key, CallDigest: i.CallDigest, Tool: b.Tool, Occurrence: b.Occurrence,
		Arguments: p.text, Claim: i.Claim, CallClaim: i.CallClaim, ClaimedBy: in.source(b.Tool), BusinessKey: i.BusinessKey, Summary: i.Summary,
		Amount: i.Amount, Currency: i.Currency, Decimals: i.Decimals, AmountProblem: i.AmountProblem, Attempt: 1,
		AttemptID: b.AttemptID, Epoch: r.Epoch, Worker: r.LeaseWorker, BegunAt: ledger.At(w.now), Deadline: ledger.At(w.now.Add(c.tool.Deadline)),
		Would: would.would, Why: would.why, MetCall: would.call, MetEffect: would.effect,
	}
	if last != nil {
		x.Attempt = last.Attempt + 1
	}
	return x, observed.Add(ctx, w.tx, x)
}

// watchFinish records what an agent says of an observed call. Its result is not kept: it
// is never replayed.
func (w *work) watchFinish(ctx context.Context, p *prepared) error {
	f := p.Finish
	said := observed.Finished{At: w.now, Outcome: string(wordOf(f.Outcome)), Said: cut(storable(f.Outcome), 256), Reference: f.Reference}
	x, err := observed.Finish(ctx, w.tx, f.Account, p.watched, said)
	if x == nil || err != nil {
		return err // what the effects said of it stands
	}
	*p.answer = Answer{Finish: &FinishAnswer{EffectID: x.ID, State: x.Outcome, Version: 1, Stored: p.result.stored}}
	if said.Outcome == string(WordUnknown) && x.Outcome == string(WordUnknown) && p.failure.value != nil && w.e.Policy().Tool(x.Tool).Refused(p.failure.value) {
		said.Outcome = string(WordFailed)
		if x, err = observed.Finish(ctx, w.tx, f.Account, p.watched, said); err == nil {
			p.answer.Finish.State = x.Outcome
		}
	}
	return err
}

// finishKeys are the readings of the key of a finish that names its call by key, or by
// tool and arguments; none where there is no such run.
func (e *Engine) finishKeys(ctx context.Context, p *prepared) (keys [][]byte, err error) {
	f := p.Finish
	if f.Key != "" {
		c := keyOf(f.RunID, f.Key)
		keys = append(keys, c.key[:])
		if c.minted != (canon.Key{}) {
			keys = append(keys, c.minted[:])
		}
		return keys, nil
	}
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		w := e.work(ctx, tx)
		if err := w.lock(ctx, []runName{{f.Account, f.RunID}}, nil, nil); err != nil {
			return err
		}
		r := w.names[runName{f.Account, f.RunID}]
		if r == nil {
			return nil
		}
		in, err := w.keying(ctx)
		if err != nil {
			return err
		}
		opened, err := e.policyOf(ctx, tx, r.Policy)
		if err != nil {
			return err
		}
		if c, _ := e.callOf(r.Row, opened, in, p, f.Tool, f.Arguments, f.Occurrence, ""); c.key != (canon.Key{}) {
			keys = [][]byte{c.key[:]}
		}
		return nil
	})
	return keys, err
}

// observedBefore finds the observed call that a new begin of an enforced tool may repeat.
// Where an effect holds its claim that one has met what was observed, and this one is held.
func (w *work) observedBefore(ctx context.Context, c call, r *run, taken bool) (*observed.Met, error) {
	in, err := w.keying(ctx)
	if err != nil || !in.observed[c.tool.Name] {
		return nil, err
	}
	if err := w.rekeyObserved(ctx, c.tool.Name, in); err != nil {
		return nil, err
	}
	var claims [][]byte
	if !taken {
		claims = digests(c.claims)
	}
	return observed.Before(ctx, w.tx, r.ID, c.key[:], claims, repeats(c), time.Time{})
}

// observedSince finds a call that was observed since an effect was cleared to be made
// again: it may have been made already.
func (w *work) observedSince(ctx context.Context, x *effect, c call) (*observed.Met, error) {
	in, err := w.keying(ctx)
	if err != nil || !in.observed[x.Tool] {
		return nil, err
	}
	if err := w.rekeyObserved(ctx, x.Tool, in); err != nil {
		return nil, err
	}
	return observed.Since(ctx, w.tx, x.ID, digests(x.claims()), repeats(c))
}

// tellObserved shows whoever decides what was observed.
func (w *work) tellObserved(x *effect, met *observed.Met) {
	said := "its agent never said what came of it"
	if met.Said != "" {
		said = fmt.Sprintf("its agent said %q", met.Said)
	}
	if met.Reference != "" {
		said += ", reference " + met.Reference
	}
	w.observe(evidenceOf(x, fmt.Sprintf("Made while the tool was only observed: at %s in run %q; %s. Nobody has checked it.",
		met.BegunAt.UTC().Format(time.RFC3339), met.RunName, said)))
}
