package payments

import (
	"fmt"
	"time"

	"quittance/reconcile/rail"
)

// Verdict is what a person says became of a payment that no rail can tell about.
type Verdict string

const (
	VerdictSettled  Verdict = "settled"   // it moved, by a reference of its network
	VerdictNotTaken Verdict = "not_taken" // nothing moved, and nothing can
)

// Rules of what a person may decide. They hold when it is asked for and once more when
// somebody else lets it go; the database refuses the same.
//
// Undecidable says why a verdict cannot be given of a payment as it stands, in words; ""
// where it can. lag is how far final blocks of its rail may be behind: what ended so long
// ago would be seen by now.
func (p *Payment) Undecidable(v Verdict, lag time.Duration) string {
	switch {
	case p.State == string(InFlight):
		return "Its gateway may still be at work. Only a payment of which nobody knows what became is decided by a person."
	case p.State != string(Unknown):
		return "It is over: nothing is to be decided."
	case p.Now.Sub(p.ClaimedAt) <= HealAfter:
		return fmt.Sprintf("It is younger than %d s: what was sent may still be on its way.", HealAfter/time.Second)
	case p.Order != nil && standing(p.Order.State) == Paid:
		return "Its order is paid: it goes on by itself."
	case v == VerdictSettled:
		return ""
	case p.work() == Undecided:
		return "What it pays for is open too, and stands in the queue. Decide that first."
	}
	for i := range p.Transfers {
		if t := &p.Transfers[i]; !t.Reverted() && !owes(t.Class) {
			return "Money came in for its order. Give that back first, from its own page."
		}
	}
	if at := p.LandsUntil(lag); p.Now.Before(at) {
		return "What was signed may still land, and be seen, until " + at.UTC().Format("2006-01-02 15:04:05 UTC") + "."
	}
	return ""
}

// Undecidable is [Payment.Undecidable] with what is known of the payment's rail.
func (e *Engine) Undecidable(p *Payment, v Verdict) string {
	return p.Undecidable(v, e.lag(p.Network))
}

// LandsUntil is when the last of what was signed or sent under a payment has ended and
// would be seen; zero where nothing was.
func (p *Payment) LandsUntil(lag time.Duration) (until time.Time) {
	later := func(t time.Time) {
		if t = t.Add(lag); t.After(until) {
			until = t
		}
	}
	for i := range p.Authorizations {
		if a := &p.Authorizations[i]; !p.closed(a) {
			later(unix(a.ValidBefore))
		}
	}
	if len(p.Authorizations) == 0 && !p.BroadcastAt.IsZero() {
		later(p.BroadcastAt.Add(HealAfter))
	}
	return until
}

// unix is a time of blocks; one that lies too far off for the clock is far off enough.
func unix(seconds int64) time.Time {
	const far = 1 << 36 // about the year 4147
	return time.Unix(min(seconds, far), 0)
}

// lag of a network's final blocks.
func (e *Engine) lag(network string) time.Duration {
	if r := e.policy().Rail(network); r != nil && r.Chain != nil && r.Chain.Lag > 0 {
		return r.Chain.Lag
	}
	return rail.DefaultLag
}
