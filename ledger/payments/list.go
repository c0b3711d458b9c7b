package payments

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/where"
)

// Item is one row of the list of payments.
type Item struct {
	ID         int64        `db:"id"`
	OrderID    string       `db:"order_id"`
	PaymentID  string       `db:"payment_id"`
	Gateway    string       `db:"gateway"`
	Payer      string       `db:"payer"`
	Network    string       `db:"network"`
	Asset      string       `db:"asset"`
	Amount     money.Atomic `db:"amount"`
	State      string       `db:"state"`
	OrderState string       `db:"order_state"` // "" while there is none
	FirstAt    time.Time    `db:"first_at"`
	ClaimedAt  time.Time    `db:"claimed_at"`
	CheckAt    ledger.Time  `db:"check_at"` // when the rail is asked next
	CheckedAt  ledger.Time  `db:"checked_at"`
	CheckSaid  string       `db:"check_said"`
	Why        string       `db:"why"`
	WorkState  string       `db:"work_state"` // of the effect that it pays for; "" where none was recorded
	Alerts     int          `db:"alerts"`     // that nobody has seen
	Verdict    string       `db:"verdict"`    // of the decision that waits to be let go
	Now        time.Time    `db:"now"`
}

// Filter narrows the list; zero values filter nothing.
type Filter struct {
	View     string // one of [Views]
	ID       int64
	Gateway  string
	Network  string
	Payer    string
	Name     string // payment id, whole
	From, To time.Time
	After    int64 // the last row of the page before
	Limit    int
}

// Views of the list. The first is what a person should look at.
var Views = []string{"", "unknown", "unasked", "decide", "unpaid", "alerts", "in_flight", "over", "any"}

// Sets of payments by their numbers. Each is found by an index that holds only such rows.
const (
	openAlerts = `SELECT a.payment FROM payment_events a WHERE a.alert AND a.payment IS NOT NULL
		AND NOT EXISTS (SELECT FROM payment_events s WHERE s.payment = a.payment AND s.kind = 'alerts_seen' AND s.id > a.id)`
	// settled by its gateway for longer than the rail takes, and not paid
	unpaid = `SELECT o.payment FROM orders o JOIN payments q ON q.id = o.payment
		WHERE o.state IN ('created','paying') AND COALESCE(q.pruned_from, q.state) = 'settled' AND q.ended_at < clock_timestamp() - interval '10 minutes'`
	unknown = `SELECT q.id FROM payments q WHERE q.state IN ('in_flight','unknown') AND q.state = 'unknown'`
	waiting = `SELECT d.payment FROM payment_decisions d WHERE d.state = 'waiting'`
	toLook  = unknown + ` UNION ` + openAlerts + ` UNION ` + unpaid
)

func (f *Filter) conds(c *where.Conds) {
	switch f.View {
	case "":
		c.Add("p.id IN (" + toLook + ")")
	case "unknown":
		c.Add("p.state IN ('in_flight','unknown') AND p.state = 'unknown'")
	case "unasked":
		c.Add("p.state IN ('in_flight','unknown') AND p.state = 'unknown' AND (p.check_at IS NULL OR p.check_at < clock_timestamp() - interval '5 minutes')")
	case "decide":
		c.Add("p.id IN (" + waiting + ")")
	case "unpaid":
		c.Add("p.id IN (" + unpaid + ")")
	case "alerts":
		c.Add("p.id IN (" + openAlerts + ")")
	case "in_flight":
		c.Add("p.state IN ('in_flight','unknown') AND p.state = 'in_flight'")
	case "over":
		c.Add("p.state IN ('settled','refused','pruned')")
	}
	for _, x := range []struct{ column, value string }{{"gateway", f.Gateway}, {"network", f.Network}, {"payer", f.Payer}, {"payment_id", f.Name}} {
		if x.value != "" {
			c.Add("p."+x.column+" = ?", x.value)
		}
	}
	if f.ID != 0 {
		c.Add("p.id = ?", f.ID)
	}
	if !f.From.IsZero() {
		c.Add("p.first_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("p.first_at < ?", f.To)
	}
}

// Newest tells that a view shows what is newest first: what is over grows without end.
func Newest(view string) bool { return view == "over" || view == "any" }

// Page reads one page, oldest first but for what is [Newest].
func Page(ctx context.Context, r ledger.Reader, f Filter) (list []Item, err error) {
	var c where.Conds
	f.conds(&c)
	order := "ASC"
	if Newest(f.View) {
		order = "DESC"
	}
	switch {
	case f.After != 0 && order == "ASC":
		c.Add("p.id > ?", f.After)
	case f.After != 0:
		c.Add("p.id < ?", f.After)
	}
	limit := c.Arg(f.Limit)
	err = r.Select(ctx, &list, `
		SELECT p.id, p.order_id, p.payment_id, p.gateway, p.payer, p.network, p.asset, p.amount, p.state, COALESCE(o.state, '') AS order_state, p.first_at, p.claimed_at,
			p.check_at, p.checked_at, COALESCE(p.check_said, '') AS check_said, COALESCE(p.why, '') AS why, clock_timestamp() AS now,
			COALESCE((SELECT e.state FROM runs r JOIN effects e ON e.run_id = r.id
				WHERE r.account_id = p.account_id AND r.run_id = 'payment/' || p.gateway || '/' || p.payment_id ORDER BY e.opened_at DESC LIMIT 1), '') AS work_state,
			(SELECT count(*) FROM (`+openAlerts+` AND a.payment = p.id) x) AS alerts,
			COALESCE((SELECT d.verdict FROM payment_decisions d WHERE d.payment = p.id AND d.state = 'waiting'), '') AS verdict
		FROM (SELECT * FROM payments p WHERE `+c.String()+` ORDER BY p.id `+order+` LIMIT `+limit+`) p
		LEFT JOIN orders o ON o.payment = p.id ORDER BY p.id `+order, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list payments: %w", err)
	}
	return list, nil
}

// LookCount is how many payments a person should look at, counted to a limit.
func LookCount(ctx context.Context, r ledger.Reader, limit int) (n int, err error) {
	if err = r.Get(ctx, &n, `SELECT count(*) FROM (SELECT FROM (`+toLook+`) x LIMIT $1) y`, limit); err != nil {
		return 0, fmt.Errorf("couldn't count payments to look at: %w", err)
	}
	return n, nil
}

// AlertCount is how many payments have alerts that nobody has seen, and how many were settled
// and are not paid.
func AlertCount(ctx context.Context, r ledger.Reader) (alerts, notPaid int64, err error) {
	var n struct {
		Alerts int64 `db:"alerts"`
		Unpaid int64 `db:"unpaid"`
	}
	err = r.Get(ctx, &n, `SELECT (SELECT count(DISTINCT payment) FROM (`+openAlerts+`) x) AS alerts, (SELECT count(*) FROM (`+unpaid+`) y) AS unpaid`)
	if err != nil {
		return 0, 0, fmt.Errorf("couldn't count alerts: %w", err)
	}
	return n.Alerts, n.Unpaid, nil
}
