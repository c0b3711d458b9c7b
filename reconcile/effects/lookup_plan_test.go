package effects

import (
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
)

// Whatever the state, somebody is asked as long as something may have been sent and is
// not settled, and nobody about what never was.
func TestEveryUnsettledEffectIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, f := range allFacts() {
		want := map[State]lookups.Plan{
			Interrupted: lookups.Unknown, Held: lookups.Unknown, Cleared: lookups.Permission,
			Taken: lookups.Closed, Failed: lookups.Closed, Cancelled: lookups.Closed, InFlight: lookups.None, None: lookups.None,
		}[f.State]
		if f.Attempts == 0 && !f.Gap {
			want = lookups.None
		}
		if got := planOf(f); got != want {
			t.Errorf("%s: %s, want %s", shapeText(f), got, want)
		}
	}
}

// What a move does to the schedule: an agent's own word starts none, anything that opens
// an effect again starts the first.
func TestAPlanFollowsItsEffect(t *testing.T) {
	t.Parallel()
	flying := Facts{State: InFlight, Attempts: 1}
	unknown := Facts{State: Interrupted, Why: WhyDeadline, Attempts: 1}
	for name, c := range map[string]struct {
		before, after Facts
		plan          lookups.Plan
		changed       bool
	}{
		"a begin":                         {Facts{}, flying, lookups.None, false},
		"finished by its agent":           {flying, Facts{State: Taken, By: ByAgent, Attempts: 1, Released: true, Used: true}, lookups.Closed, false},
		"refused":                         {flying, Facts{State: Failed, By: ByAgent, Attempts: 1, Released: true, Used: true}, lookups.Closed, true},
		"interrupted":                     {flying, unknown, lookups.Unknown, true},
		"interrupted for another reason":  {unknown, Facts{State: Interrupted, Why: WhyHit, Attempts: 1}, lookups.Unknown, false},
		"decided":                         {unknown, Facts{State: Taken, By: ByPerson, From: Interrupted, Attempts: 1}, lookups.Closed, true},
		"cleared":                         {unknown, Facts{State: Cleared, Why: WhyNotTaken, By: ByLookup, From: Interrupted, Attempts: 1, Released: true}, lookups.Permission, true},
		"begun again":                     {Facts{State: Cleared, Why: WhyNotTaken, By: ByLookup, From: Interrupted, Attempts: 1, Released: true}, Facts{State: InFlight, Attempts: 2}, lookups.None, true},
		"undone":                          {Facts{State: Taken, By: ByPerson, From: Interrupted, Attempts: 1}, Facts{State: Interrupted, Why: WhyUndone, Attempts: 1}, lookups.Unknown, true},
		"held from the start":             {Facts{}, Facts{State: Held, Why: WhyOverlap}, lookups.None, false},
		"begun in a log gap":              {Facts{}, Facts{State: Interrupted, Why: WhyLogGap, Gap: true}, lookups.Unknown, true},
		"stopped without an attempt":      {Facts{State: Held, Why: WhyOverlap}, Facts{State: Cancelled, By: ByPerson, From: Held}, lookups.None, false},
		"allowed after it was interupted": {Facts{State: Held, Why: WhyUndone, Attempts: 1}, Facts{State: Cleared, Why: WhyAllowed, By: ByPerson, From: Held, Attempts: 1}, lookups.Permission, true},
	} {
		if p, changed := planAfter(c.before, c.after); p != c.plan || changed != c.changed {
			t.Errorf("%s: %s %v, want %s %v", name, p, changed, c.plan, c.changed)
		}
	}
}

// The schedule to its end: at once, 5 s, 15 s, 60 s, 3 min, 10 min, 30 min, 1 h, six times
// 4 h, seven times a day. Then nobody asks, and nothing else changes.
func TestTheScheduleToItsEnd(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 5 * time.Second, 15 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	for range 6 {
		want = append(want, 4*time.Hour)
	}
	for range 7 {
		want = append(want, 24*time.Hour)
	}
	now := time.Date(2026, 5, 14, 12, 0, 0, 0, time.UTC)
	s := &lookups.Scheduled{Plan: lookups.Unknown, Cause: lookups.BySchedule}
	for i := 1; i < len(want); i++ {
		next := goOn(s, now, lookup.Answer{}, 0)
		if d := next.Next.Sub(now); d < want[i] || d > want[i]+want[i]/10+1 || next.Ended || next.Step != i {
			t.Fatalf("look %d comes after %v (ended %v), want %v and at most a tenth more", i, d, next.Ended, want[i])
		}
		s.Step, now = next.Step, next.Next.Time
	}
	for range 3 {
		next := goOn(s, now, lookup.Answer{}, 0)
		if !next.Next.IsZero() || !next.Ended {
			t.Fatalf("after the end: %+v", next)
		}
		s.Step = next.Step
	}
}

func TestWhenTheNextLookComes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 14, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) ledger.Time { return ledger.At(now.Add(d)) }
	soon := lookup.Answer{Reason: lookup.NotYet, Earliest: now.Add(20 * time.Second)}
	for name, c := range map[string]struct {
		s      lookups.Scheduled
		a      lookup.Answer
		quiet  time.Duration
		from   time.Duration
		to     time.Duration // 0: as from
		step   int
		pulled bool
	}{
		"as scheduled":                           {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 2}, from: time.Minute, to: 66 * time.Second, step: 3},
		"out of turn, nothing is used up":        {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 2, Cause: lookups.ByPage}, from: 15 * time.Second, to: 17 * time.Second, step: 2},
		"sooner, when it can be proven":          {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 2}, a: soon, from: 20 * time.Second, step: 2, pulled: true},
		"not sooner where nobody could look":     {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 2}, a: lookup.Answer{Reason: lookup.CouldNot, Earliest: soon.Earliest}, from: time.Minute, to: 66 * time.Second, step: 3},
		"sooner only once a step":                {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 2, Pulled: true}, a: soon, from: time.Minute, to: 66 * time.Second, step: 3},
		"not later for it":                       {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 0}, a: soon, from: 5 * time.Second, to: 6 * time.Second, step: 1},
		"the host wants to be left alone":        {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 0}, quiet: 30 * time.Second, from: 30 * time.Second, step: 1},
		"for ever is not granted":                {s: lookups.Scheduled{Plan: lookups.Unknown, Step: 0}, quiet: 1000 * time.Hour, from: 24 * time.Hour, step: 1},
		"before a release, again soon":           {s: lookups.Scheduled{Plan: lookups.Permission, Step: 5, Cause: lookups.ByRelease, RecheckFrom: at(-time.Second), RecheckUntil: at(59 * time.Second)}, from: recheckAgain, step: 5},
		"before a release, not before its time":  {s: lookups.Scheduled{Plan: lookups.Closed, Cause: lookups.ByRelease, RecheckFrom: at(40 * time.Second), RecheckUntil: at(100 * time.Second)}, from: 40 * time.Second, step: 0},
		"before a release, in vain to the end":   {s: lookups.Scheduled{Plan: lookups.Closed, Cause: lookups.ByRelease, RecheckFrom: at(-58 * time.Second), RecheckUntil: at(2 * time.Second)}, from: 10 * time.Minute, to: 11 * time.Minute, step: 0},
		"closed: an hour after its ten minutes":  {s: lookups.Scheduled{Plan: lookups.Closed}, from: 50 * time.Minute, to: 55 * time.Minute, step: 1},
		"closed: a day after":                    {s: lookups.Scheduled{Plan: lookups.Closed, Step: 1}, from: 23 * time.Hour, to: 26 * time.Hour, step: 2},
		"a permission's first look is soon over": {s: lookups.Scheduled{Plan: lookups.Permission}, from: time.Minute, to: 66 * time.Second, step: 1},
	} {
		if c.s.Cause == "" {
			c.s.Cause = lookups.BySchedule
		}
		next := goOn(&c.s, now, c.a, c.quiet)
		d := next.Next.Sub(now)
		if d < c.from || d > max(c.from, c.to) || next.Step != c.step || next.Pulled != c.pulled || next.Ended {
			t.Errorf("%s: after %v, step %d, pulled %v, ended %v", name, d, next.Step, next.Pulled, next.Ended)
		}
	}
	// Closed and looked at three times: over, and not an open question.
	if next := goOn(&lookups.Scheduled{Plan: lookups.Closed, Step: 2, Cause: lookups.BySchedule}, now, lookup.Answer{}, 0); !next.Next.IsZero() || next.Ended {
		t.Errorf("%+v", next)
	}
}
