package observed

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/where"
)

// Filter narrows what is reported; zero values filter nothing.
type Filter struct {
	Account, Tool string
	Since         time.Time
}

func (f Filter) where() (c where.Conds) {
	if f.Account != "" {
		c.Add("o.account_id = (SELECT id FROM accounts WHERE name = ?)", f.Account)
	}
	if f.Tool != "" {
		c.Add("o.tool = ?", f.Tool)
	}
	if !f.Since.IsZero() {
		c.Add("o.begun_at >= ?", f.Since)
	}
	return c
}

// Sum is how many calls of a tool have one thing in common, and for how much in one
// currency: whole smallest units as a decimal number. Currency "" are those without an
// amount.
type Sum struct {
	Tool     string `db:"tool"`
	Would    Would  `db:"would"`
	Unknown  bool   `db:"unknown"` // nobody knows what came of them
	Currency string `db:"currency"`
	Decimals int    `db:"decimals"`
	Calls    int64  `db:"calls"`
	Amount   string `db:"amount"`
}

// unknown is true of a call about which a person would have been asked.
const unknown = `(o.outcome IS NOT DISTINCT FROM 'unknown' OR o.outcome IS NULL AND o.deadline <= clock_timestamp())`

// Sums reads what the calls of each tool come to.
func Sums(ctx context.Context, r ledger.Reader, f Filter) (list []Sum, err error) {
	c := f.where()
	err = r.Select(ctx, &list, `
		SELECT o.tool, o.would, `+unknown+` AS unknown, COALESCE(o.currency, '') AS currency, COALESCE(o.decimals, 0) AS decimals,
			count(*) AS calls, COALESCE(sum(o.amount), 0)::text AS amount
		FROM observed_calls o WHERE `+c.String()+` GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 4`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't sum the observed calls: %w", err)
	}
	return list, nil
}

// Listed is one call for people.
type Listed struct {
	Call
	RunName     string `db:"run_name"`
	AccountName string `db:"account_name"`
	Agent       string `db:"agent"`
	Unknown     bool   `db:"unknown"`
}

// Stopped lists the calls that enforcing would have stopped, or would have asked a person
// about, latest first, at most n; after a place, those that follow it.
func Stopped(ctx context.Context, r ledger.Reader, f Filter, after *Place, n int) (list []Listed, err error) {
	c := f.where()
	c.Add("(o.would <> 'proceed' OR " + unknown + ")")
	if after != nil {
		c.Add("(o.begun_at, o.id) < (?, ?::uuid)", after.BegunAt, after.ID)
	}
	limit := c.Arg(n)
	err = r.Select(ctx, &list, `
		SELECT `+columns+`, r.run_id AS run_name, a.name AS account_name, r.agent, `+unknown+` AS unknown
		FROM observed_calls o JOIN runs r ON r.id = o.run_id JOIN accounts a ON a.id = o.account_id
		WHERE `+c.String()+` ORDER BY o.begun_at DESC, o.id DESC LIMIT `+limit, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list the observed calls: %w", err)
	}
	return list, nil
}

// Place is where a page ended.
type Place struct {
	BegunAt time.Time
	ID      string
}
