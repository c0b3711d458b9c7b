package effects

import (
	"context"

	"quittance/ledger"
	"quittance/ledger/logfiles"
	"quittance/ledger/lookups"
	"quittance/ledger/runs"
	"quittance/reconcile/guards"
)

// releaseDue makes visible, in the paused runs at hand, the decisions whose time has
// come, so that no answer waits for the loops.
func (w *work) releaseDue(ctx context.Context) error {
	released := false
	for _, x := range w.effects {
		if x.run == nil || x.run.State != runs.Paused {
			continue
		}
		may, err := w.mayRelease(ctx, x)
		if err != nil {
			return err
		}
		if may {
			if _, err := w.step(x, Event{Kind: KRelease}, "released", nil, nil); err != nil {
				return err
			}
			released = true
		}
	}
	if !released {
		return nil
	}
	return w.flush(ctx)
}

// mayRelease tells whether a decision may become visible now: its hold is over, the
// moment has passed, nobody has to confirm it, its downstream was asked once more, and the
// log file of its run, if it lives in one, holds what was read from it.
func (w *work) mayRelease(ctx context.Context, x *effect) (bool, error) {
	if !w.holdIsOver(x) {
		return false, nil
	}
	if alarmed, err := logfiles.Alarmed(ctx, w.tx, x.Run); alarmed || err != nil {
		return false, err
	}
	if !w.rechecked(x) || guards.Off(guards.ReleaseCheck) {
		return true, nil
	}
	if c := w.plans[x.ID]; c != nil {
		return c.RecheckFrom.IsZero(), nil
	}
	waits, err := lookups.Rechecking(ctx, w.tx, []string{x.ID})
	return !waits[x.ID], err
}

func (w *work) holdIsOver(x *effect) bool {
	return !x.Released && !x.ReleaseAt.IsZero() && !x.ReleaseAt.After(w.now) && !x.Early
}

// rechecked tells whether a decision is not released before a look-up: a person's word
// that it did not happen, or that it shall not, about what may have been sent.
func (w *work) rechecked(x *effect) bool {
	return x.DecidedBy == ByPerson && (x.State == Cleared && x.Why == WhyNotTaken || x.State == Cancelled) &&
		planOf(x.facts()) != lookups.None && w.tool(x).HasLookup()
}

// releaseNow makes a decision visible with its own transaction when nothing has to be
// waited for: a hold of 0 s, or a confirmation after it.
func (v *verdict) releaseNow(ctx context.Context) error {
	may, err := v.mayRelease(ctx, v.x)
	if !may || err != nil {
		return err
	}
	_, err = v.step(v.x, Event{Kind: KRelease}, "released", nil, nil)
	return err
}

// releaseTime is when a person's decision becomes visible to agents, and whether it
// was made too early to be released by silence: before anything sent can have
// landed and be seen.
func (w *work) releaseTime(x *effect, verdict Verdict) (at ledger.Time, early bool) {
	again := verdict == VerdictNotTaken
	hasAmount := x.Amount != "" || x.AmountProblem != ""
	t := w.now.Add(w.e.Policy().Hold(again, hasAmount))
	if (again || verdict == VerdictStop) && (x.Attempts > 0 || x.Gap) && !x.Moment.IsZero() {
		early = x.Moment.After(w.now) && !guards.Off(guards.ReleaseCheck)
		if x.Moment.After(t) {
			t = x.Moment.Time
		}
	}
	return ledger.At(t), early
}
