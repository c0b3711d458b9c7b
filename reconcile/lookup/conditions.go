package lookup

import (
	"fmt"
	"slices"
	"time"
)

// Apart is how far apart two negative reads must be asked: a cache or a replica that lags
// for a moment must not answer both.
const Apart = 30 * time.Second

// conditions checks what a proven absence needs.
type conditions struct {
	q       Question
	t       Terms
	s       Seen
	this    Read
	earlier []Read
}

// list are all conditions, and when they can all hold at the earliest.
func (c *conditions) list() ([]Condition, time.Time) {
	moment, lands := c.q.Moment()
	list := []Condition{
		c.nothingFound(), c.authoritative(), c.wholeRead(), c.canary(), c.world(),
		c.kept(), c.cannotLand(moment, lands), c.fresh(moment, lands), c.twoReads(moment, lands),
	}
	var earliest time.Time
	for _, one := range list {
		if one.Never {
			return list, time.Time{}
		}
		if one.Earliest.After(earliest) {
			earliest = one.Earliest
		}
	}
	return list, earliest
}

func allMet(list []Condition) bool {
	return !slices.ContainsFunc(list, func(c Condition) bool { return !c.Met })
}

func (c *conditions) nothingFound() Condition {
	if len(c.this.Saw) > 0 {
		return Condition{Name: NothingFound, Why: "Something was found."}
	}
	if c.vanished(false) {
		return Condition{Name: NothingFound, Why: "An earlier look saw a record that is not shown any more."}
	}
	if !c.allRead() {
		return Condition{Name: NothingFound, Why: "Nothing was found in what could be read."}
	}
	return Condition{Name: NothingFound, Met: true, Why: "No record by our key, and none that may be ours."}
}

func (c *conditions) allRead() bool { return c.s.Complete && c.s.Problem == NoProblem }

func (c *conditions) authoritative() Condition {
	if !c.t.AbsenceIsProof {
		return Condition{Name: Authoritative, Never: true, Why: "The policy does not say that absence is proof here."}
	}
	if spelledTwoWays(c.q.Arguments) {
		return Condition{Name: Authoritative, Never: true, Why: "The call holds letters as several characters (not in Unicode NFC). The source may have stored the other spelling and not find it by this one."}
	}
	return Condition{Name: Authoritative, Met: true, Why: "The policy says that absence is proof here."}
}

func (c *conditions) wholeRead() Condition {
	if !c.allRead() {
		return Condition{Name: WholeRead, Why: "Not everything could be read this time."}
	}
	return Condition{Name: WholeRead, Met: true, Why: "Everything was read, to the last page."}
}

func (c *conditions) canary() Condition {
	if !c.s.Canary {
		return Condition{Name: CanarySeen, Why: "The canary, a record that exists, was not seen with these credentials."}
	}
	return Condition{Name: CanarySeen, Met: true, Why: "The canary was seen with the same credentials."}
}

func (c *conditions) world() Condition {
	if c.t.elsewhere(c.s) {
		return Condition{Name: SameWorld, Why: fmt.Sprintf("The source answered from %q, not %q.", c.s.World, c.t.World)}
	}
	return Condition{Name: SameWorld, Met: true, Why: "The source answered from the right world."}
}

func (c *conditions) kept() Condition {
	if c.t.KeptFor == nil {
		return Condition{Name: StillKept, Never: true, Why: "Nobody declared how long the source keeps records."}
	}
	begun, ok := c.q.begun()
	if !ok {
		return Condition{Name: StillKept, Never: true, Why: "It is not on record when the first attempt began."}
	}
	until := begun.Add(*c.t.KeptFor)
	if !c.q.AskedAt.Before(until) {
		return Condition{Name: StillKept, Never: true, Why: "The attempt is older than what the source keeps."}
	}
	return Condition{Name: StillKept, Met: true, Why: "The attempt is younger than what the source keeps."}
}

func (c *conditions) cannotLand(moment time.Time, known bool) Condition {
	switch {
	case !known && c.q.LandsWithin == nil:
		return Condition{Name: CannotLand, Never: true, Why: "Nobody declared how long a request may still land."}
	case !known:
		return Condition{Name: CannotLand, Never: true, Why: "The deadline of an attempt is not on record."}
	case c.q.AskedAt.Before(moment):
		return Condition{Name: CannotLand, Earliest: moment, Why: "The request may still land."}
	}
	return Condition{Name: CannotLand, Met: true, Why: "The request can no longer land."}
}

func (c *conditions) fresh(moment time.Time, known bool) Condition {
	switch view, ok := c.view(c.this); {
	case !known:
		return Condition{Name: FreshView, Never: true, Why: "It is not known until when the request may land."}
	case !ok:
		return Condition{Name: FreshView, Never: true, Why: "Nobody declared how soon the source shows what happened."}
	case !view.Before(moment):
		return Condition{Name: FreshView, Met: true, Why: "The source shows everything up to that moment."}
	case c.t.VisibleAfter != nil:
		return Condition{Name: FreshView, Earliest: moment.Add(*c.t.VisibleAfter), Why: "The source may not show it yet."}
	}
	return Condition{Name: FreshView, Earliest: moment, Why: "The source's own view is older than that moment."}
}

// view is up to when everything that happened was visible to a read.
func (c *conditions) view(r Read) (time.Time, bool) {
	view := r.AskedAt
	if c.t.VisibleAfter != nil {
		view = view.Add(-*c.t.VisibleAfter)
	}
	if !r.AsOf.IsZero() && r.AsOf.Before(view) {
		view = r.AsOf
	}
	return view, c.t.VisibleAfter != nil || !r.AsOf.IsZero()
}

func (c *conditions) twoReads(moment time.Time, known bool) Condition {
	if !known {
		return Condition{Name: TwoReads, Never: true, Why: "No read counts: it is not known until when the request may land."}
	}
	if !c.counts(c.this, moment) {
		next := moment
		if c.t.VisibleAfter != nil {
			next = moment.Add(*c.t.VisibleAfter)
		}
		if c.q.AskedAt.After(next) {
			next = c.q.AskedAt
		}
		return c.second(next.Add(Apart), "Two reads are needed that could have shown it, and this one could not.")
	}
	first := c.q.AskedAt
	for _, r := range c.earlier {
		if c.counts(r, moment) && r.AskedAt.Before(first) {
			first = r.AskedAt
		}
	}
	if c.q.AskedAt.Sub(first) < Apart {
		return c.second(first.Add(Apart), "A second read is needed, at least 30 s after the first.")
	}
	return Condition{Name: TwoReads, Met: true, Why: "Two reads, at least 30 s apart, would have shown it."}
}

// second is never met where the source will have forgotten the attempt by then.
func (c *conditions) second(at time.Time, why string) Condition {
	begun, ok := c.q.begun()
	if ok && c.t.KeptFor != nil && !at.Before(begun.Add(*c.t.KeptFor)) {
		return Condition{Name: TwoReads, Never: true, Why: "By then the attempt is older than what the source keeps."}
	}
	return Condition{Name: TwoReads, Earliest: at, Why: why}
}

// counts says whether a read would have shown the effect, and did not.
func (c *conditions) counts(r Read, moment time.Time) bool {
	view, ok := c.view(r)
	begun, known := c.q.begun()
	return ok && known && r.Whole && r.Source == c.t.Digest && len(r.Saw) == 0 &&
		!view.Before(moment) && // and so is r.AskedAt: no view reaches further
		c.t.KeptFor != nil && r.AskedAt.Before(begun.Add(*c.t.KeptFor))
}

// vanished says whether an earlier read saw what this one does not show in any state, and
// nobody else owns it: records do not un-happen. But for those that were seen passing by,
// which a source may be known to undo.
func (c *conditions) vanished(butPassing bool) bool {
	for _, r := range c.earlier {
		for _, name := range r.Saw {
			shown := slices.ContainsFunc(c.s.Hits, func(h Hit) bool { return h.Name() == name })
			if _, owned := c.q.Owned[name]; !owned && !shown && !(butPassing && slices.Contains(r.Passing, name)) {
				return true
			}
		}
	}
	return false
}
