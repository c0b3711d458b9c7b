package desk

import (
	"context"
	"fmt"

	"quittance/ledger"
)

// Repeats is what an effect and the identical calls before it in its run came to.
type Repeats struct {
	Before   int    `db:"before"` // how many there were before it
	Taken    int    `db:"taken"`  // of all, it included
	Assets   int    `db:"assets"` // in how many currencies: a sum is of one
	Amount   string `db:"amount"` // of those that took effect, in the smallest unit; "" where there is none
	Currency string `db:"currency"`
	Decimals int    `db:"decimals"`
}

// RepeatsOf follows an effect back through those that it repeats, at most a thousand.
func RepeatsOf(ctx context.Context, r ledger.Reader, effect string) (x Repeats, err error) {
	err = r.Get(ctx, &x, `
		WITH RECURSIVE same AS (
			SELECT id, repeat_of, state, amount, currency, decimals, 1 AS n FROM effects WHERE id = $1::uuid
			UNION ALL
			SELECT e.id, e.repeat_of, e.state, e.amount, e.currency, e.decimals, n + 1 FROM same s JOIN effects e ON e.id = s.repeat_of WHERE n <= 1000)
		SELECT count(*) - 1 AS before, count(*) FILTER (WHERE state = 'taken') AS taken,
			count(DISTINCT (currency, decimals)) FILTER (WHERE state = 'taken') AS assets,
			COALESCE((sum(amount) FILTER (WHERE state = 'taken'))::text, '') AS amount,
			COALESCE(min(currency) FILTER (WHERE state = 'taken'), '') AS currency, COALESCE(min(decimals) FILTER (WHERE state = 'taken'), 0) AS decimals
		FROM same`, effect)
	if err != nil {
		return x, fmt.Errorf("couldn't read what an effect repeats: %w", err)
	}
	return x, nil
}
