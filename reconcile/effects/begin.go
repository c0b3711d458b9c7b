package effects

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/observed"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
	"quittance/reconcile/guards"
	"quittance/reconcile/policy"
)

// mayBegin checks what every begin is guarded by, in the order of design section 3:
// the run is not closed, not paused, and the caller holds its lease.
func (w *work) mayBegin(r *run, lease []byte) *Refusal {
	switch {
	case r.State.Closed():
		return r.refusal(CodeRunClosed, fmt.Sprintf("The run is %s.", r.State))
	case r.State == runs.Paused || r.paused:
		return paused(r)
	case !sameLease(r, lease):
		return r.refusal(CodeLeaseLost, "This lease does not hold the run now.")
	}
	return nil
}

func sameLease(r *run, lease []byte) bool {
	return r.LeaseHash != nil && (string(r.LeaseHash) == string(lease) || guards.Off(guards.Lease))
}

// paused is completed with what the run waits for once everything is written.
func paused(r *run) *Refusal {
	return &Refusal{Code: CodeRunPaused, RunID: r.RunID, State: string(runs.Paused), Detail: "The run is paused: what became of an effect is not known, or a person has to decide."}
}

func (w *work) begin(ctx context.Context, p *prepared, c call) error {
	if !p.open() {
		return nil
	}
	b := p.Begin
	r := w.names[runName{b.Account, b.RunID}]
	refusal := w.mayBegin(r, p.lease)
	if refusal == nil && !c.tool.Guarded() {
		p.answer.Begin = &BeginAnswer{Do: "pass"}
		return nil
	}
	x := w.keys[runKey{r.ID, string(c.key[:])}]
	if refusal == nil && x != nil && string(x.CallDigest) != string(c.digest[:]) {
		refusal = x.refusal(CodeConflict, "This key was begun with other arguments.")
		refusal.Reason = "request"
	}
	if refusal == nil {
		var err error
		if refusal, err = w.beginEffect(ctx, p, c, r, x); err != nil {
			return err
		}
	}
	if refusal == nil {
		return nil
	}
	p.refuse(refusal)
	effect := refusal.EffectID
	if effect == "" && x != nil {
		effect = x.ID
	}
	w.refuse(r, runs.Refusal{
		Call: "begin", Reason: string(refusal.Code), Worker: r.LeaseWorker, AttemptID: b.AttemptID, Tool: b.Tool,
		Arguments: cut(p.text, 4096), Effect: effect,
	})
	return nil
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// beginEffect asks the state table about one begin whose run may act.
func (w *work) beginEffect(ctx context.Context, p *prepared, c call, r *run, x *effect) (*Refusal, error) {
	ev := Event{Kind: KBegin, SameLease: true, LogGap: w.sys.InGap()}
	var last store.Attempt
	var met *observed.Met
	if x == nil {
		if r.Kept > 0 {
			kept, err := store.KeptFinish(ctx, w.tx, r.ID, c.key[:])
			if err != nil {
				return nil, err
			}
			ev.Kept = kept
		}
		ev.NoKey = len(c.missing) > 0
		if p.newID == "" {
			p.newID = newID()
		}
		if err := w.adopt(ctx, c.claims, p.newID); err != nil {
			return nil, err
		}
		x = w.newEffect(p, c, r)
		ev.ClaimTaken = w.claimTaken(c.tool, c.claims, r.ID, x.ID)
		var err error
		if met, err = w.observedBefore(ctx, c, r, ev.ClaimTaken); err != nil {
			return nil, err
		}
	} else {
		switch x.State {
		case InFlight:
			// Time first: an attempt past its deadline is not in flight any more.
			if !x.Deadline.After(w.now) {
				_, err := w.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "begin"}, nil)
				return paused(r), err
			}
			last = w.last[x.ID]
			ev.SameLease = last.Epoch == r.Epoch
			ev.SameAttempt = last.AttemptID == p.Begin.AttemptID
		case Cleared:
			if expired, err := w.expire(x); err != nil || expired {
				return paused(r), err
			}
			ev.ClaimTaken = w.claimTaken(c.tool, x.claims(), r.ID, x.ID)
			ev.KeyDead = w.keyDead(x, c.tool)
			var err error
			if met, err = w.observedSince(ctx, x, c); err != nil {
				return nil, err
			}
		}
	}
	ev.Observed = met != nil

	m, err := w.step(x, ev, "begin", p.cause(), func(m Move) {
		if m.Attempt {
			last = w.newAttempt(x, c.tool, r, p.Begin.AttemptID)
		}
		if m.Gap {
			// No attempt is known here: one may be on its way all the same.
			x.Gap = true
			since := w.now
			if w.sys.InGap() {
				since = w.sys.AcknowledgedAt.Time
			}
			x.Deadline, x.Moment = w.moment(c.tool, since.Add(c.tool.Deadline))
		}
	})
	if err != nil {
		return nil, err
	}
	if met != nil && m.Gap && m.Why == WhyObserved {
		w.tellObserved(x, met)
	}
	switch m.Reply {
	case ReplyProceed, ReplyAgain:
		p.answer.Begin = &BeginAnswer{
			Do: "proceed", EffectID: x.ID, Key: canon.Key(x.Key).String(), Attempt: x.Attempts, Fence: x.Fence,
			Deadline: last.Deadline.Time, PerformWithin: last.Deadline.Sub(w.now), VendorKey: vendorKey(x, r),
		}
		return nil, nil
	case ReplyReplay:
		p.answer.Begin = &BeginAnswer{
			Do: "replay", EffectID: x.ID, Key: canon.Key(x.Key).String(), Attempt: x.Attempts, Fence: x.Fence,
			Outcome: string(x.State), Reference: x.Reference, DecidedBy: string(x.DecidedBy),
		}
		return nil, nil
	case ReplyInFlight:
		refusal := x.refusal(CodeInFlight, "Another attempt is performing this effect.")
		refusal.RetryAfter = max(time.Second, min(last.Deadline.Sub(w.now), 5*time.Second))
		return refusal, nil
	case ReplyCancelled:
		return x.refusal(CodeCancelled, "This effect was stopped and must not run."), nil
	}
	refusal := paused(r)
	refusal.EffectID = x.ID
	return refusal, nil
}

// cause is what the event of a begin remembers for people.
func (p *prepared) cause() map[string]string {
	c := map[string]string{"attempt_id": p.Begin.AttemptID}
	if p.Begin.CallID != "" {
		c["call_id"] = p.Begin.CallID
	}
	return c
}

func vendorKey(x *effect, r *run) string {
	return canon.VendorKey(accountText(r.Account), r.RunID, canon.Key(x.Key).String())
}

// newEffect makes the row of a first begin; its state is decided next.
func (w *work) newEffect(p *prepared, c call, r *run) *effect {
	b := p.Begin
	x := &effect{run: r, isNew: true, text: p.text, ctx: string(b.Context), Row: &store.Row{
		Intent: intentOf(p, c), Standing: store.Standing{Fence: w.sys.FenceBase},
	}}
	x.ID, x.Account, x.Run, x.OpenedAt = p.newID, r.Account, r.ID, ledger.At(w.now)
	if before := w.keys[runKey{r.ID, string(c.before[:])}]; before != nil && before.Tool == b.Tool {
		x.RepeatOf = before.ID
	} else {
		for _, claim := range c.claims {
			if holder := w.effects[w.claims[string(claim.digest)]]; holder != nil && holder.Run == r.ID && x.RepeatOf == "" {
				x.RepeatOf = holder.ID
			}
		}
	}
	w.add(x)
	return x
}

// intentOf is what a begin asks for, less what only the database knows.
func intentOf(p *prepared, c call) store.Intent {
	b := p.Begin
	in := store.Intent{
		Key: c.key[:], ClientKey: b.Key, Tool: b.Tool, Occurrence: b.Occurrence, CallDigest: c.digest[:], BusinessKey: c.claims[0].key,
		Claim: c.claims[0].digest, CallClaim: c.claims[0].call, Summary: cut(c.tool.Summary(p.args), 4000), CallID: b.CallID, ClientTime: b.ClientTime,
	}
	if len(c.claims) > 1 {
		in.ClaimWas = c.claims[1].digest
	}
	if amount, problem := c.tool.Amount(p.args); amount != nil {
		d := amount.Asset().Decimals
		in.Amount, in.Currency, in.Decimals = amount.Atomic().String(), amount.Asset().Code, &d
	} else {
		in.AmountProblem = problem
	}
	return in
}

// newAttempt raises the fence and starts the clock of an attempt.
func (w *work) newAttempt(x *effect, t *policy.Tool, r *run, id string) store.Attempt {
	x.Attempts++
	x.Fence = max(x.Fence, w.sys.FenceBase) + 1
	x.Gap = false
	x.Deadline, x.Moment = w.moment(t, w.now.Add(t.Deadline))
	a := store.Attempt{
		Effect: x.ID, Number: x.Attempts, Fence: x.Fence, AttemptID: id, Epoch: r.Epoch, BegunAt: ledger.At(w.now), Deadline: x.Deadline,
	}
	w.attempts = append(w.attempts, a)
	w.last[x.ID] = a
	return a
}

// moment is the time after which a request sent before deadline can have landed and
// be seen: until then no not-taken and no stop is released. What is not declared
// adds nothing for a person's decision.
func (w *work) moment(t *policy.Tool, deadline time.Time) (d, m ledger.Time) {
	return ledger.At(deadline), ledger.At(deadline.Add(t.Silence()))
}

// keyDead tells whether a repeat under the vendor's own key could outlive it.
func (w *work) keyDead(x *effect, t *policy.Tool) bool {
	return x.Why == WhySameKey && w.keyOutlived(x, t)
}

// keyOutlived tells whether a new attempt under the vendor's own key could land after
// that key's end, counted from the first attempt.
func (w *work) keyOutlived(x *effect, t *policy.Tool) bool {
	if t.VendorKey == nil {
		return true
	}
	lands, declared := t.LandsWithin()
	return !declared || w.now.Add(t.Deadline+lands).After(x.OpenedAt.Add(t.VendorKey.Life))
}

// expire takes back a permission that has stood unused too long since the run could
// resume.
func (w *work) expire(x *effect) (bool, error) {
	since := x.run.ResumableSince.Time
	if x.ReleaseAt.After(since) {
		since = x.ReleaseAt.Time
	}
	if !x.Released || since.Add(w.e.Policy().PermissionLife()).After(w.now) {
		return false, nil
	}
	_, err := w.step(x, Event{Kind: KExpire}, "expired", nil, nil)
	return true, err
}
