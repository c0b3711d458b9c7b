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
	// Recheck: a decision waits for a look before it is released.
	Recheck bool
	// KeyEnds is until when the vendor keeps its own key; zero where none is declared.
	KeyEnds time.Time
	Looks   []LookView // the latest first
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
	}
	rows, err := lookups.Of(ctx, e.db, id, looksShown)
	if err != nil {
		return v, err
	}
	for _, r := range rows {
		look := LookView{
			ID: r.ID, Cause: r.Cause, AskedAt: r.AskedAt.Time, AnsweredAt: r.AnsweredAt.Time, Kind: r.Kind, Request: r.Request, Status: r.Status,
			Pages: r.Pages, Latency: time.Duration(r.Latency * float64(time.Second)), BodyDigest: r.BodyDigest, Excerpt: r.Excerpt,
			Problem: lookup.Problem(r.Problem), Verdict: r.Verdict, Reason: lookup.Reason(r.Reason), Why: r.Why, Reference: r.Reference,
			Earliest: r.Earliest.Time,
		}
		if err := json.Unmarshal([]byte(r.Found), &look.Showed); err != nil {
			return v, fmt.Errorf("couldn't read what a look showed: %w", err)
		}
		v.Looks = append(v.Looks, look)
	}
	return v, nil
}
