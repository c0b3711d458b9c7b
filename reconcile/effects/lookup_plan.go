package effects

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"quittance/ledger"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
)

// steps are how long after the step before each look of a plan comes. When they end
// nobody asks any more; what is unknown then stays unknown.
var steps = map[lookups.Plan][]time.Duration{
	lookups.Unknown: slices.Concat(
		[]time.Duration{0, 5 * time.Second, 15 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour},
		slices.Repeat([]time.Duration{4 * time.Hour}, 6), slices.Repeat([]time.Duration{24 * time.Hour}, 7)),
	lookups.Permission: slices.Concat(
		[]time.Duration{15 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour},
		slices.Repeat([]time.Duration{4 * time.Hour}, 6)),
	// From the decision: 10 minutes, 1 hour, 24 hours.
	lookups.Closed: {10 * time.Minute, 50 * time.Minute, 23 * time.Hour},
}

const (
	// recheckPatience is how long a decision waits for the look-up before its release.
	recheckPatience = time.Minute
	// recheckAgain is how soon that one is asked again while it has no answer.
	recheckAgain = 5 * time.Second
	// maxRetryAfter bounds how long a downstream may put a look off.
	maxRetryAfter = 24 * time.Hour
)

// planOf is for what the downstream of an effect is asked. One that never had an attempt
// has nothing to be asked about.
func planOf(f Facts) lookups.Plan {
	if f.Attempts == 0 && !f.Gap {
		return lookups.None
	}
	switch f.State {
	case Interrupted, Held:
		return lookups.Unknown
	case Cleared:
		return lookups.Permission
	case Taken, Failed, Cancelled:
		return lookups.Closed
	}
	return lookups.None
}

// planAfter is the plan that a move puts an effect under; ok is false where it goes on
// under the one it has. An agent's own word that it took effect needs no second look.
func planAfter(before, after Facts) (p lookups.Plan, ok bool) {
	was, is := planOf(before), planOf(after)
	if before.State == None && is == lookups.None || before.State == InFlight && after.State == Taken {
		return is, false
	}
	return is, was != is
}

// goOn says how a schedule goes on after an answer at now. quiet is how long the
// downstream wants to be left alone.
func goOn(s *lookups.Scheduled, now time.Time, a lookup.Answer, quiet time.Duration) (next lookups.Settled) {
	list := steps[s.Plan]
	next.Step = s.Step
	if s.Cause == lookups.BySchedule && s.Step < len(list) {
		next.Step++ // a look out of turn, for a release or somebody's wish, does not use up one
	}
	var at time.Time
	if next.Step < len(list) {
		at = now.Add(jitter(list[next.Step]))
	}
	sooner := func(t time.Time) bool { return at.IsZero() || t.Before(at) }
	// When everything can be proven it is asked once more, out of turn.
	if soon := a.Earliest; s.Plan == lookups.Unknown && a.Reason == lookup.NotYet && !s.Pulled && soon.After(now) && sooner(soon) {
		at, next.Step, next.Pulled = soon, s.Step, true
	}
	if !s.RecheckFrom.IsZero() {
		again := s.RecheckFrom.Time
		if !again.After(now) {
			again = now.Add(recheckAgain)
		}
		if again.Before(s.RecheckUntil.Time) && sooner(again) {
			at = again
		}
	}
	if until := now.Add(min(quiet, maxRetryAfter)); quiet > 0 && !at.IsZero() && at.Before(until) {
		at = until
	}
	next.Ended = at.IsZero() && s.Plan == lookups.Unknown
	next.Next = ledger.At(at)
	return next
}

// unclaimedFor is for how long, by its step, a question of the plan Unknown may wait for a
// worker: as long as the rest of the schedule would have lasted, had it been answered.
func unclaimedFor() []time.Duration {
	list := steps[lookups.Unknown]
	rest := make([]time.Duration, len(list)+1)
	for i := len(list) - 1; i > 0; i-- {
		rest[i-1] = rest[i] + list[i]
	}
	return rest
}

// jitter spreads what was interrupted at once over a tenth of its pause.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d + time.Duration(rand.Int64N(int64(d)/10+1))
}

// finding names what a look showed, so that a page that was read before can be told from
// one that shows it. Nothing is "".
func finding(a lookup.Answer) string {
	var list []string
	for _, h := range a.Hits {
		marks := ""
		for _, m := range []struct {
			set  bool
			mark string
		}{{h.Match, "m"}, {h.Final, "f"}, {h.Possible, "p"}, {h.Never, "n"}, {h.Reversed, "r"}, {h.Foreign, "o"}} {
			if m.set {
				marks += m.mark
			}
		}
		list = append(list, h.Reference+" "+marks)
	}
	slices.Sort(list)
	text := strings.Join(list, "\n")
	if len(text) > 4096 {
		text = text[:4096]
	}
	return strings.ToValidUTF8(text, "")
}
