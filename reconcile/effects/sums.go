package effects

import (
	"context"
	"math/big"
	"time"

	"quittance/ledger/money"
	"quittance/ledger/queue"
)

// QueueSums is what waits, in numbers. Amounts of different assets are never added.
type QueueSums struct {
	Effects   int64
	More      bool // the count stopped at its cap: there are more
	AtStake   []money.Amount
	Unpriced  int64 // effects without a readable amount
	Views     queue.Counts
	Overdue   int
	OldestFor time.Duration
}

// sumsCap is how many effects a filtered sum counts before it says "more than".
const sumsCap = 100_000

// QueueSums sums what the query matches: without a filter from maintained sums,
// which cost nothing; with one by counting, to a cap.
func (e *Engine) QueueSums(ctx context.Context, q QueueQuery) (s QueueSums, err error) {
	f, r := e.filter(q)
	if r != nil {
		return s, r
	}
	var totals []queue.Total
	if f.Empty() {
		totals, err = queue.Totals(ctx, e.db)
	} else {
		totals, s.More, err = queue.FilteredTotals(ctx, e.db, f, sumsCap)
	}
	if err != nil {
		return s, err
	}
	for _, t := range totals {
		s.Effects += t.Effects
		if t.Currency == "" {
			s.Unpriced += t.Effects
			continue
		}
		asset, err := money.NewAsset(t.Currency, t.Decimals)
		n, ok := new(big.Int).SetString(t.Amount, 10)
		if err != nil || !ok {
			s.Unpriced += t.Effects
			continue
		}
		a, err := money.FromMinor(n, asset)
		if err != nil { // more digits than an amount may have: a sum that nobody would read
			s.Unpriced += t.Effects
			continue
		}
		s.AtStake = append(s.AtStake, a)
	}
	if s.Views, err = queue.CountViews(ctx, e.db); err != nil {
		return s, err
	}
	if !s.Views.Oldest.IsZero() {
		s.OldestFor = max(0, s.Views.Now.Sub(s.Views.Oldest.Time))
	}
	s.Overdue, err = queue.CountOverdue(ctx, e.db, e.overdue())
	return s, err
}
