package lookup

import (
	"fmt"
	"slices"
	"time"
)

// Terms are what a tool's policy declares of its source.
type Terms struct {
	// AbsenceIsProof: what the source does not show does not exist.
	AbsenceIsProof bool
	// VisibleAfter is how long the source may take to show what happened; nil, nobody knows.
	VisibleAfter *time.Duration
	// KeptFor is how long the source shows what happened; nil, nobody knows.
	KeptFor *time.Duration
	// World is where the effects take place; "" where there is only one.
	World string
	// Digest names the source as it is declared.
	Digest string
}

// Judge says what a look proves. It is a pure function and the only place where a look-up
// becomes a verdict:
//
// taken needs exactly one record by our key that no other effect owns, whose amount,
// currency and recipient match, that is final and has a reference, out of a whole read;
//
// not_taken needs a record of ours that is cancelled for good, a source that says that it
// did not happen and never can, or all of [Answer]'s Conditions.
//
// Everything else is inconclusive, and the zero [Seen] is.
func Judge(q Question, t Terms, s Seen, earlier []Read) Answer {
	var a Answer
	var live, dead, possible []Hit
	a.Hits = q.whose(distinct(s.Hits))
	for _, j := range a.Hits {
		h := j.Hit
		switch {
		case j.Foreign:
		case h.Possible:
			possible = append(possible, h)
		case h.Never:
			dead = append(dead, h)
		default:
			live = append(live, h)
		}
	}
	a.Free = len(live)
	a.Read = Read{AskedAt: q.AskedAt, AsOf: s.AsOf, Source: t.Digest, Whole: whole(t, s)}
	for _, h := range slices.Concat(live, possible) {
		a.Read.Saw = append(a.Read.Saw, h.Name())
		if h.Passing {
			a.Read.Passing = append(a.Read.Passing, h.Name())
		}
	}
	c := conditions{q: q, t: t, s: s, this: a.Read, earlier: earlier}
	a.Conditions, a.Earliest = c.list()

	switch {
	case len(q.Attempts) == 0:
		return a.is(Inconclusive, NoAttempt, "Nothing was ever sent, so there is nothing to look up.")
	case s.Problem != NoProblem:
		return a.is(Inconclusive, CouldNot, "Could not check: "+s.say())
	case !s.Complete || q.AskedAt.IsZero():
		return a.is(Inconclusive, Partial, "Not everything was read, so nothing is proven.")
	case t.elsewhere(s):
		return a.is(Inconclusive, WrongWorld, fmt.Sprintf("These credentials see %q, not %q.", s.World, t.World))
	case len(live) > 1:
		return a.is(Inconclusive, Multiple, fmt.Sprintf("%d records fit this one call: a possible double.", len(live)))
	case len(live) == 1:
		return a.one(q, live[0])
	case len(possible) > 0:
		return a.is(Inconclusive, Possible, "Nothing was found by our key, but something that may be ours was.")
	case s.Never != "" && !c.vanished(true):
		return a.is(NotTaken, NeverAgain, "It did not take effect, and never can: "+s.Never+".")
	case c.vanished(false):
		return a.is(Inconclusive, Vanished, "An earlier look saw a record that this one does not show.")
	case slices.ContainsFunc(dead, func(h Hit) bool { return h.Ours }):
		return a.is(NotTaken, NeverAgain, "The downstream has it as cancelled for good.")
	case allMet(a.Conditions):
		return a.is(NotTaken, Absent, "Nothing was found, twice, and nothing can arrive any more.")
	}
	return a.is(Inconclusive, NotYet, "Nothing was found, which does not prove yet that it did not happen.")
}

// one judges the only record by our key.
func (a Answer) one(q Question, h Hit) Answer {
	switch {
	case q.KeyOnly:
		return a.is(Inconclusive, NoCall, "A record was found; there is no call to compare it with.")
	case !h.Match:
		return a.is(Inconclusive, Mismatch, "A record with our key was found, but its amount, currency or recipient differs.")
	case !h.Final:
		return a.is(Inconclusive, NotFinal, "It was found, but it is not final.")
	case h.Reference == "":
		return a.is(Inconclusive, NoReference, "It was found without a reference, and such a record could prove two calls.")
	case q.Disputed[h.Name()] != "":
		return a.is(Inconclusive, Disputed, "It was found and fits, but a person closed another call with it, which no look at that one shows.")
	case q.Shared && !h.Ours:
		return a.is(Inconclusive, Shared, "It was found, but another open call has the same business key, and it could be that one's.")
	case q.Unreferenced && !h.Ours:
		return a.is(Inconclusive, Unreferenced, "It was found, but another call with the same business key took effect, and it could be that one's.")
	}
	a.Reference, a.Result, a.Reversed = h.Reference, h.Result, h.Reversed
	return a.is(Taken, Matched, "Exactly one final record with our key was found, and it matches.")
}

func (a Answer) is(v Verdict, r Reason, why string) Answer {
	a.Verdict, a.Reason, a.Why = v, r, why
	return a
}

func (s *Seen) say() string {
	words := problemWords[s.Problem]
	if words == "" {
		words = string(s.Problem)
	}
	if s.Status != 0 && s.Status != 200 {
		words += fmt.Sprintf(" (%d)", s.Status)
	}
	if s.Detail != "" {
		words += " (" + s.Detail + ")"
	}
	return words + "."
}

// elsewhere says whether s comes from another world than the effects take place in.
func (t Terms) elsewhere(s Seen) bool {
	return t.World != "" && s.World != "" && s.World != t.World
}

// whole says whether what is missing in s is missing at the source.
func whole(t Terms, s Seen) bool {
	return s.Problem == NoProblem && s.Complete && s.Canary && !t.elsewhere(s)
}
