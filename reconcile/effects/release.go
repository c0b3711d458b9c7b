package effects

import (
	"context"

	"quittance/ledger"
	"quittance/ledger/runs"
)

// releaseDue makes visible, in the paused runs at hand, the decisions whose time has
// come, so that no answer waits for the loops.
func (w *work) releaseDue(ctx context.Context) error {
	released := false
	for _, x := range w.effects {
		if x.run != nil && x.run.State == runs.Paused && w.mayRelease(x) {
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
// moment has passed, and nobody has to confirm it.
func (w *work) mayRelease(x *effect) bool {
	return !x.Released && !x.ReleaseAt.IsZero() && !x.ReleaseAt.After(w.now) && !x.Early
}

// releaseNow makes a decision visible with its own transaction when nothing has to be
// waited for: a hold of 0 s, or a confirmation after it.
func (v *verdict) releaseNow() error {
	if !v.mayRelease(v.x) {
		return nil
	}
	_, err := v.step(v.x, Event{Kind: KRelease}, "released", nil, nil)
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
		early = x.Moment.After(w.now)
		if x.Moment.After(t) {
			t = x.Moment.Time
		}
	}
	return ledger.At(t), early
}
