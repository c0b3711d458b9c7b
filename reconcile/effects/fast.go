package effects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	store "quittance/ledger/effects"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
	"quittance/reconcile/policy"
)

// The calls that nothing stands against, which are nearly all, are decided by their
// statement: a first begin of a call whose business key is free, and a finish "taken" by
// an effect's only attempt. They are rows B3 and F2 of the table. What such a statement
// finds anything in the way of it leaves untouched, and the general way decides.

// fastBegins records the begins that nothing stands against, answers them, and returns
// the other calls. Repeats go the general way, since they are marked with the earlier
// call, and so do tools whose template has just changed: they have two claims to check.
func (e *Engine) fastBegins(ctx context.Context, batch []*pending) (others []*pending) {
	now, in := e.Policy(), e.keying.Load()
	var list []store.FastBegin
	var tried []*pending
	taken := map[string]bool{} // a claim, or a run and key, that the statement has already
	for _, p := range batch {
		f, ok := e.fastBegin(p, now, in)
		claim, key := string(f.Claim), f.RunID+"\x00"+string(f.Key)
		if !ok || taken[claim] || taken[key] {
			others = append(others, p)
			continue
		}
		taken[claim], taken[key] = true, true
		list, tried = append(list, f), append(tried, p)
	}
	if len(list) == 0 {
		return others
	}
	got, err := store.FastBegins(ctx, e.db, policyDigest(now), in.number, list)
	for i, p := range tried {
		f := &list[i]
		v, done := got[f.ID]
		switch {
		case err != nil:
			p.end(err)
		case done:
			*p.ops[0].answer = Answer{Begin: &BeginAnswer{
				Do: "proceed", EffectID: f.ID, Key: canon.Key(f.Key).String(), Attempt: 1, Fence: v.Fence, Deadline: v.Deadline,
				PerformWithin: f.Deadline, VendorKey: canon.VendorKey(accountText(f.Account), f.RunID, canon.Key(f.Key).String()),
				LogPosition: e.positionOf(f.Account, f.RunID, v.Event),
			}}
			p.end(nil)
		default:
			others = append(others, p)
		}
	}
	return others
}

// fastBegin is a call as the statement takes it; false when it goes the general way.
func (e *Engine) fastBegin(p *pending, now *policy.Policy, in *keying) (f store.FastBegin, ok bool) {
	if len(p.ops) != 1 || p.ops[0].Begin == nil {
		return f, false
	}
	op := p.ops[0]
	b := op.Begin
	if b.Occurrence != 1 || !now.Tool(b.Tool).Guarded() || in.rekeying(b.Tool) {
		return f, false
	}
	c, refusal := e.callOf(&runs.Row{Account: b.Account, RunID: b.RunID}, now, in, op, b.Tool, b.Arguments, 1, b.Key)
	if refusal != nil || len(c.missing) > 0 {
		return f, false
	}
	sum := sha256.Sum256([]byte(op.text))
	f = store.FastBegin{
		Intent: intentOf(op, c), RunID: b.RunID, LeaseHash: op.lease, AttemptID: b.AttemptID, Deadline: c.tool.Deadline.Truncate(time.Microsecond),
		Lands: c.tool.Silence(), Cause: op.cause(), Shown: op.pos.shown(), ArgumentsDigest: hex.EncodeToString(sum[:]),
	}
	f.ID, f.Account, f.Intent.Arguments, f.Intent.Context = newID(), b.Account, op.text, string(b.Context)
	return f, true
}

// fastFinishes does the same for finishes.
func (e *Engine) fastFinishes(ctx context.Context, batch []*pending) (others []*pending) {
	var list []store.FastFinish
	var tried []*pending
	taken := map[string]bool{} // an effect that the statement has already
	for _, p := range batch {
		f, ok := fastFinish(p)
		if !ok || taken[f.Effect] {
			others = append(others, p)
			continue
		}
		taken[f.Effect] = true
		list, tried = append(list, f), append(tried, p)
	}
	if len(list) == 0 {
		return others
	}
	got, err := store.FastFinishes(ctx, e.db, redactedApart(e.Policy()), list)
	for i, p := range tried {
		v, done := got[list[i].Effect]
		switch {
		case err != nil:
			p.end(err)
		case done:
			*p.ops[0].answer = Answer{Finish: &FinishAnswer{
				EffectID: v.Effect, State: string(Taken), Version: v.Version, Stored: p.ops[0].result.stored,
				LogPosition: e.positionOf(list[i].Account, v.RunName, v.Event),
			}}
			p.end(nil)
		default:
			others = append(others, p)
		}
	}
	return others
}

func fastFinish(p *pending) (f store.FastFinish, ok bool) {
	if len(p.ops) != 1 || p.ops[0].Finish == nil {
		return f, false
	}
	op := p.ops[0]
	x := op.Finish
	if x.EffectID == "" || x.Tool != "" || wordOf(x.Outcome) != WordTaken {
		return f, false
	}
	return store.FastFinish{
		Account: x.Account, Effect: x.EffectID, Fence: x.Fence, Reference: x.Reference,
		Texts:      store.Texts{Result: op.result.text, Error: op.failure.text},
		ResultSize: op.result.stored.Size, ResultDigest: digestOf(op.result.stored.Digest), Cause: finishCause(x), Shown: op.pos.shown(),
	}, true
}

// redactedApart are the tools with pointers of their own to redact: what their finishes
// say can be stored only once the tool is known.
func redactedApart(p *policy.Policy) []string {
	list := []string{}
	for _, t := range p.Tools() {
		if len(t.Redact) != len(p.Tool("").Redact) {
			list = append(list, t.Name)
		}
	}
	return list
}

// shown is the position as a statement checks it.
func (p *position) shown() store.Shown {
	if p == nil {
		return store.Shown{}
	}
	return store.Shown{Event: p.id, Run: p.run, Prefix: p.digest[:]}
}
