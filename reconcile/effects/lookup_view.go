package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	store "quittance/ledger/effects"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
)

// looksShown bounds how many looks a page lists.
const looksShown = 100

// LooksView is what is known from asking the downstream of one effect.
type LooksView struct {
	Blind bool // the tool has no look-up: nobody can be asked
	// Asking: a question is under way.
	Asking bool
	// Next is when the downstream is asked next; zero: not any more.
	Next time.Time
	// EndedAt is when the schedule ended without proof; zero while it goes on.
	EndedAt time.Time
	// Off: nobody is asked, because this is a copy of the database in another place, or it
	// may have lost events.
	Off bool
	// Recheck: a decision waits for a look before it is released, asked at RecheckFrom or
	// later; from RecheckUntil on it is released without one, unless it was made too early.
	Recheck                   bool
	RecheckFrom, RecheckUntil time.Time
	// KeyEnds is until when the vendor keeps its own key; zero where none is declared.
	KeyEnds time.Time
	Looks   []LookView // the latest first
	// NotOurs are references that a person said are none of this effect's.
	NotOurs lookups.Denials
}

// LookView is one look at the downstream.
type LookView struct {
	ID                  string
	Cause               lookups.Cause
	AskedAt, AnsweredAt time.Time
	Kind, Request       string
	Status, Pages       int
	Latency             time.Duration
	BodyDigest, Excerpt string
	Problem             lookup.Problem
	Verdict             string // "taken" | "not_taken" | "inconclusive"
	Reason              lookup.Reason
	Why                 string
	Reference           string
	Earliest            time.Time
	Showed
}

// Showed is what one look showed, and what a proven "not taken" still needed.
type Showed struct {
	Records    []lookup.Judged    `json:"records,omitempty"`
	Conditions []lookup.Condition `json:"conditions,omitempty"`
}

// Looks reads what asking the downstream of an effect has shown. The caller has read the
// effect, and may see it.
func (e *Engine) Looks(ctx context.Context, id string) (v LooksView, err error) {
	d, err := store.Get(ctx, e.db, 0, id)
	if err != nil {
		return v, err
	}
	t := e.Policy().Tool(d.Tool)
	v.Blind = !t.HasLookup()
	if t.VendorKey != nil && d.Attempts > 0 {
		v.KeyEnds = d.OpenedAt.Add(t.VendorKey.Life)
	}
	s, err := lookups.Get(ctx, e.db, id)
	if err != nil {
		return v, err
	}
	if s != nil {
		v.Asking, v.Next, v.EndedAt, v.Recheck = !s.AskedAt.IsZero(), s.Next.Time, s.EndedAt.Time, !s.RecheckFrom.IsZero()
		v.RecheckFrom, v.RecheckUntil = s.RecheckFrom.Time, s.RecheckUntil.Time
	}
	if v.Off, err = e.lookupsOff(ctx); err != nil {
		return v, err
	}
	if v.NotOurs, err = lookups.NotOurs(ctx, e.db, id); err != nil {
		return v, err
	}
	rows, err := lookups.Of(ctx, e.db, id, looksShown)
	if err != nil {
		return v, err
	}
	for _, r := range rows {
		look, err := lookOf(r)
		if err != nil {
			return v, err
		}
		v.Looks = append(v.Looks, look)
	}
	return v, nil
}

func lookOf(r lookups.Answer) (LookView, error) {
	look := LookView{
		ID: r.ID, Cause: r.Cause, AskedAt: r.AskedAt.Time, AnsweredAt: r.AnsweredAt.Time, Kind: r.Kind, Request: r.Request, Status: r.Status,
		Pages: r.Pages, Latency: time.Duration(r.Latency * float64(time.Second)), BodyDigest: r.BodyDigest, Excerpt: r.Excerpt,
		Problem: lookup.Problem(r.Problem), Verdict: r.Verdict, Reason: lookup.Reason(r.Reason), Why: r.Why, Reference: r.Reference,
		Earliest: r.Earliest.Time,
	}
	if err := json.Unmarshal([]byte(r.Found), &look.Showed); err != nil {
		return look, fmt.Errorf("couldn't read what a look showed: %w", err)
	}
	return look, nil
}

// FoundRecord is a record that looks showed.
type FoundRecord struct {
	lookup.Judged
	SeenAt time.Time // when it was asked for by the last look that showed it
	// Gone: the last look that could look does not show it.
	Gone bool
}

// Speaks tells whether the record speaks against "it did not take effect": it is not
// another effect's, no person said that it is not ours, and it is not cancelled for good.
func (r FoundRecord) Speaks() bool { return !r.Foreign && !r.Never }

// Records are all that any look showed, each as it was shown last. One that is not shown
// any more is among them: records do not un-happen.
func (v LooksView) Records() (list []FoundRecord) {
	known := map[string]bool{}
	current := true // until one look has been able to look
	for _, l := range v.Looks {
		for _, r := range l.Records {
			name := r.Name()
			if known[name] {
				continue
			}
			known[name] = true
			if v.NotOurs[name].After(l.AnsweredAt) && !r.Foreign { // a later look has weighed that word itself
				r.Foreign, r.Owner = true, ""
			}
			list = append(list, FoundRecord{r, l.AskedAt, !current})
		}
		current = current && !looked(l.Reason)
	}
	return list
}

// Last is the last look that could look, or else the last one; nil where nobody has.
func (v LooksView) Last() *LookView {
	for i, l := range v.Looks {
		if looked(l.Reason) {
			return &v.Looks[i]
		}
	}
	if len(v.Looks) > 0 {
		return &v.Looks[0]
	}
	return nil
}

// looked tells whether the source could be read, so that what it did not show is news.
func looked(r lookup.Reason) bool {
	switch r {
	case "", lookup.NoAttempt, lookup.CouldNot, lookup.Partial, lookup.WrongWorld:
		return false
	}
	return true
}
