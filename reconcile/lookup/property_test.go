package lookup_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quittance/reconcile/lookup"
)

// world is a downstream whose truth is known, seen through a source that errs, lags, stops
// half-way, repeats itself and answers from the wrong place.
type world struct {
	rng    *rand.Rand
	landed map[string][]time.Time // when something landed, by effect
	lag    time.Duration
}

// look is what a source shows of the world at a time: never more than is true.
func (w *world) look(effect string, at time.Time) lookup.Seen {
	s := lookup.Seen{Complete: true, Canary: true, World: "live"}
	switch w.rng.IntN(8) {
	case 0:
		return lookup.Seen{Problem: lookup.TimedOut}
	case 1:
		return lookup.Seen{Problem: lookup.PageFailed, Canary: true}
	case 2:
		s.World = "sandbox"
		return s
	case 3:
		s.Canary = false // blind: shows nothing of what there is
		return s
	}
	for i, landed := range w.landed[effect] {
		if landed.After(at) || w.lag > 0 && landed.Add(time.Duration(w.rng.Int64N(int64(w.lag)))).After(at) {
			continue
		}
		s.Hits = append(s.Hits, lookup.Hit{
			Reference: fmt.Sprintf("%s-%d", effect, i), Match: w.rng.IntN(4) > 0, Final: w.rng.IntN(4) > 0, Result: []byte("1"),
		})
	}
	if len(s.Hits) > 0 && w.rng.IntN(3) == 0 {
		s.Hits = append(s.Hits, s.Hits[0]) // on two pages
	}
	return s
}

// No sequence of answers, errors, delays and duplicates proves a wrong "not taken", a taken
// without a match, or two effects by one record. The downstream may do what a real one may:
// a sent request lands at any time until lands_within is over, and shows within
// visible_after.
func TestNoSequenceOfAnswersProvesWhatIsNotSo(t *testing.T) {
	t.Parallel()
	verdicts := map[lookup.Verdict]int{}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := &world{rng: rng, landed: map[string][]time.Time{}, lag: visible}
		owned := map[string]string{}
		reads := map[string][]lookup.Read{}
		open := map[string]lookup.Question{}
		for i := range 2 { // two effects of one business key
			name := fmt.Sprint("e", i)
			q := question()
			q.Effect, q.Shared = name, true
			open[name] = q
			for range rng.IntN(3) {
				w.landed[name] = append(w.landed[name], begun.Add(time.Duration(rng.Int64N(int64(moment.Sub(begun))))))
			}
		}
		at := begun
		for range 30 {
			at = at.Add(time.Duration(rng.Int64N(int64(3 * time.Minute))))
			for name, q := range open {
				// Both see both's records, by the one key they share.
				s := w.look("e0", at)
				other := w.look("e1", at)
				if s.Problem == lookup.NoProblem && other.Problem == lookup.NoProblem && s.World == other.World && s.Canary == other.Canary {
					s.Hits = append(s.Hits, other.Hits...)
				} else {
					s = lookup.Seen{Problem: lookup.Failing}
				}
				for j := range s.Hits {
					s.Hits[j].Ours = rng.IntN(2) == 0 && s.Hits[j].Reference[:2] == name
				}
				q.AskedAt, q.Owned = at, owned
				a := lookup.Judge(q, terms(), s, reads[name])
				if rng.IntN(5) == 0 { // delivered twice
					if again := lookup.Judge(q, terms(), s, append(reads[name], a.Read)); again.Verdict != a.Verdict {
						t.Fatalf("seed %d: the same answer twice turns %q into %q", seed, a.Verdict, again.Verdict)
					}
					reads[name] = append(reads[name], a.Read)
				}
				reads[name] = append(reads[name], a.Read)
				verdicts[a.Verdict]++
				switch a.Verdict {
				case lookup.NotTaken:
					if n := len(w.landed["e0"]) + len(w.landed["e1"]) - len(owned); n > 0 {
						t.Fatalf("seed %d: %s is proven not taken, and %d free records are there", seed, name, n)
					}
					delete(open, name)
				case lookup.Taken:
					if to, twice := owned[a.Reference]; twice {
						t.Fatalf("seed %d: %s proves %s and %s", seed, a.Reference, to, name)
					}
					found := false
					for _, h := range s.Hits {
						found = found || h.Reference == a.Reference && h.Match && h.Final
					}
					if !found {
						t.Fatalf("seed %d: taken by %s, which does not match", seed, a.Reference)
					}
					owned[a.Reference] = name
					delete(open, name)
				}
			}
		}
	}
	for _, v := range []lookup.Verdict{lookup.Taken, lookup.NotTaken, lookup.Inconclusive} {
		if verdicts[v] == 0 {
			t.Errorf("%q was never reached: the test tests nothing", v)
		}
	}
}
