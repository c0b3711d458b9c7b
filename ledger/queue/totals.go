package queue

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Total is how many effects wait in one currency, and for how much: whole smallest
// units as a decimal number. Currency "" are those without an amount.
type Total struct {
	Currency string `db:"currency"`
	Decimals int    `db:"decimals"`
	Effects  int64  `db:"effects"`
	Amount   string `db:"amount"`
}

// Totals reads the maintained sums over everything that waits for a first decision:
// its cost does not depend on how much that is.
func Totals(ctx context.Context, r ledger.Reader) ([]Total, error) {
	var rows []Total
	err := r.Select(ctx, &rows, `
		SELECT currency, decimals, sum(effects) AS effects, sum(amount)::text AS amount
		FROM waiting_totals GROUP BY 1, 2 HAVING sum(effects) <> 0 ORDER BY sum(effects) DESC, 1`)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the totals: %w", err)
	}
	return rows, nil
}

// FilteredTotals sums what a filter matches, counting at most capped effects: more
// tells that there were more.
func FilteredTotals(ctx context.Context, r ledger.Reader, f Filter, capped int) (rows []Total, more bool, err error) {
	f.After = nil
	c := f.where()
	limit := c.Arg(capped + 1)
	err = r.Select(ctx, &rows, `
		SELECT COALESCE(currency, '') AS currency, COALESCE(decimals, 0) AS decimals, count(*) AS effects,
			COALESCE(sum(amount), 0)::text AS amount
		FROM (SELECT w.currency, w.decimals, w.amount FROM waiting w WHERE `+c.String()+` LIMIT `+limit+`) AS w
		GROUP BY 1, 2 ORDER BY 3 DESC, 1`, c.Args()...)
	if err != nil {
		return nil, false, fmt.Errorf("couldn't sum the queue: %w", err)
	}
	var n int64
	for _, t := range rows {
		n += t.Effects
	}
	return rows, n > int64(capped), nil
}

// Counts are the numbers beside the views, each counted to at most its cap.
type Counts struct {
	Contradicted int         `db:"contradicted"`
	Second       int         `db:"second"`
	Confirm      int         `db:"confirm"`
	Held         int         `db:"held"`
	Oldest       ledger.Time `db:"oldest"`
	Now          ledger.Time `db:"now"`
}

// CountCap is how far the counts beside the views go.
const CountCap = 1000

// CountViews counts the rare kinds, by indexes that hold only them.
func CountViews(ctx context.Context, r ledger.Reader) (Counts, error) {
	var c Counts
	err := r.Get(ctx, &c, `
		SELECT (SELECT count(*) FROM (SELECT FROM waiting WHERE contradicted LIMIT $1) AS x) AS contradicted,
			(SELECT count(*) FROM (SELECT FROM waiting WHERE second LIMIT $1) AS x) AS second,
			(SELECT count(*) FROM (SELECT FROM waiting WHERE early AND since <= clock_timestamp() LIMIT $1) AS x) AS confirm,
			(SELECT count(*) FROM (SELECT FROM waiting WHERE state = 'held' LIMIT $1) AS x) AS held,
			(SELECT min(since) FROM waiting) AS oldest, clock_timestamp() AS now`, CountCap)
	if err != nil {
		return c, fmt.Errorf("couldn't count the queue: %w", err)
	}
	return c, nil
}

// CountOverdue counts what waits longer than it may, to at most the cap.
func CountOverdue(ctx context.Context, r ledger.Reader, o Overdue) (int, error) {
	f := Filter{Overdue: &o}
	c := f.where()
	limit := c.Arg(CountCap)
	var n int
	err := r.Get(ctx, &n, `
		SELECT count(*) FROM (SELECT FROM waiting w WHERE `+c.String()+` ORDER BY w.since LIMIT `+limit+`) AS x`, c.Args()...)
	if err != nil {
		return 0, fmt.Errorf("couldn't count what is overdue: %w", err)
	}
	return n, nil
}

// Names are the values a filter may take, at most n of each, found by stepping from
// one to the next through an index.
type Names struct {
	Tools, Agents, Accounts, Currencies []string
}

// NamesWaiting lists what the queue holds.
func NamesWaiting(ctx context.Context, r ledger.Reader, n int) (names Names, err error) {
	for column, dst := range map[string]*[]string{
		"tool": &names.Tools, "agent": &names.Agents, "account": &names.Accounts, "currency": &names.Currencies,
	} {
		err := r.Select(ctx, dst, `
			WITH RECURSIVE step(v) AS (
				(SELECT `+column+` FROM waiting WHERE `+column+` IS NOT NULL ORDER BY 1 LIMIT 1)
				UNION ALL
				SELECT (SELECT `+column+` FROM waiting WHERE `+column+` > step.v ORDER BY 1 LIMIT 1) FROM step WHERE step.v IS NOT NULL
			) SELECT v FROM step WHERE v IS NOT NULL LIMIT $1`, n)
		if err != nil {
			return names, fmt.Errorf("couldn't list the queue's %ss: %w", column, err)
		}
	}
	return names, nil
}
