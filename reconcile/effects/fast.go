package effects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	store "quittance/ledger/effects"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
)

// fastBegin tries the begin that nothing stands against as one prepared statement.
// When that finds anything in its way it has written nothing, and the general way
// decides. Repeats go the general way, since they are marked with the earlier call, and
// so do tools whose template has just changed: they have two claims to check.
func (e *Engine) fastBegin(ctx context.Context, p *prepared) (done bool, err error) {
	b := p.Begin
	policy, in := e.Policy(), e.keying.Load()
	if b == nil || b.Occurrence != 1 || !policy.Tool(b.Tool).Guarded() || in.rekeying(b.Tool) {
		return false, nil
	}
	r := &runs.Row{Account: b.Account, RunID: b.RunID}
	c, refusal := e.callOf(r, policy, in, p, b.Tool, b.Arguments, 1, b.Key)
	if refusal != nil || len(c.missing) > 0 {
		return false, nil
	}
	sum := sha256.Sum256([]byte(p.text))
	f := store.FastBegin{
		Intent: intentOf(p, c), RunID: b.RunID, LeaseHash: p.lease, Policy: policyDigest(policy), AttemptID: b.AttemptID,
		Deadline: c.tool.Deadline, Lands: c.tool.Silence(), Cause: p.cause(), Keying: in.number,
	}
	f.ID, f.Account, f.Intent.Arguments, f.Intent.Context = newID(), b.Account, p.text, string(b.Context)
	if p.pos != nil {
		f.Position, f.Prefix = p.pos.id, p.pos.digest[:]
	}
	got, ok, err := store.Begin(ctx, e.db, &f, hex.EncodeToString(sum[:]))
	if err != nil || !ok {
		return false, err
	}
	p.answer.Begin = &BeginAnswer{
		Do: "proceed", EffectID: f.ID, Key: c.key.String(), Attempt: 1, Fence: got.Fence, Deadline: got.Deadline,
		PerformWithin: got.Deadline.Sub(got.Now), VendorKey: canon.VendorKey(accountText(b.Account), b.RunID, c.key.String()),
		LogPosition: e.positionOf(b.Account, b.RunID, got.Event),
	}
	return true, nil
}
