package refunds

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	"quittance/ledger/where"
)

// Item is one row of finance's list of what is owed back.
type Item struct {
	ID          string       `db:"id"`
	Transfer    string       `db:"transfer_id"`
	OrderID     string       `db:"order_id"`
	Tx          string       `db:"tx_hash"` // by which the money came
	Final       bool         `db:"final"`
	Network     string       `db:"network"`
	Asset       string       `db:"asset"`
	Gateway     string       `db:"gateway"`
	Payer       string       `db:"payer"`
	Destination string       `db:"destination"`
	State       string       `db:"state"`
	Reason      string       `db:"reason"`
	Amount      money.Atomic `db:"amount"`
	Approved    money.Atomic `db:"approved"`
	Reserved    money.Atomic `db:"reserved"`
	Paid        money.Atomic `db:"paid"`
	WrittenOff  money.Atomic `db:"written_off"`
	WriteOff    money.Atomic `db:"write_off"`
	HeldWhy     string       `db:"held_why"`
	OpenedAt    time.Time    `db:"opened_at"`
	ChangedAt   time.Time    `db:"changed_at"`
	PayoutTx    string       `db:"payout_tx"` // of the last attempt
	Position    int64        `db:"position"`  // of the log, for [Stream]
}

// Open is what is neither paid nor written off.
func (i *Item) Open() money.Atomic { return i.Amount.Minus(i.Paid).Minus(i.WrittenOff) }

// Filter narrows a list; zero values filter nothing. Open ones have no lower date unless
// one is asked for.
type Filter struct {
	State    string // a state, or "open", or "" for all
	Network  string
	Asset    string
	Reason   string
	Gateway  string
	Payer    string
	From, To time.Time // of opening; To is not included
	AsOf     time.Time // as it stood then, folded from the events; zero is now
	After    *Place
	Limit    int
}

// Place is where a page ended.
type Place struct {
	At time.Time
	ID string
}

// openCond is in the words of the partial indexes.
const openCond = "f.state NOT IN ('confirmed','written_off','void')"

// source is what is owed, as it stands or as it stood.
func (f *Filter) source(c *where.Conds) string {
	if f.AsOf.IsZero() {
		return "refunds"
	}
	at := c.Arg(f.AsOf)
	then := ""
	if f.State == "open" { // what is closed since before then was closed then: it is not folded
		then = " AND (" + openCond + " OR f.changed_at >= " + at + ")"
	}
	return `(SELECT f.id, f.transfer_id, f.network, f.asset, f.gateway, f.payer, NULL::text AS destination, e.d->>'state' AS state, e.d->>'reason' AS reason,
		(e.d->>'amount')::numeric AS amount, (e.d->>'approved')::numeric AS approved, (e.d->>'reserved')::numeric AS reserved, (e.d->>'paid')::numeric AS paid,
		(e.d->>'written_off')::numeric AS written_off, NULL::numeric AS write_off, NULL::text AS held_why, f.opened_at, e.at AS changed_at
		FROM refunds f CROSS JOIN LATERAL (SELECT at, data::jsonb AS d FROM payment_events x WHERE x.refund_id = f.id AND x.at < ` + at + ` ORDER BY x.id DESC LIMIT 1) e
		WHERE f.opened_at < ` + at + then + `)`
}

func (f *Filter) conds(c *where.Conds) {
	switch f.State {
	case "":
	case "open":
		c.Add(openCond)
	default:
		c.Add("f.state = ?", f.State)
	}
	for _, x := range []struct{ column, value string }{
		{"network", f.Network}, {"asset", f.Asset}, {"reason", f.Reason}, {"gateway", f.Gateway}, {"payer", f.Payer},
	} {
		if x.value != "" {
			c.Add("f."+x.column+" = ?", x.value)
		}
	}
	if !f.From.IsZero() {
		c.Add("f.opened_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("f.opened_at < ?", f.To)
	}
}

const itemColumns = `f.id, f.transfer_id, COALESCE(t.order_id::text, '') AS order_id, t.tx_hash, t.final, f.network, f.asset, COALESCE(f.gateway, '') AS gateway, f.payer,
	COALESCE(f.destination, '') AS destination, f.state, f.reason, f.amount, f.approved, f.reserved, f.paid, f.written_off, COALESCE(f.write_off, 0) AS write_off,
	COALESCE(f.held_why, '') AS held_why, f.opened_at, f.changed_at,
	COALESCE((SELECT p.tx FROM payouts p WHERE p.refund_id = f.id ORDER BY p.attempt DESC LIMIT 1), '') AS payout_tx`

// Page reads one page, what was opened first in front.
func Page(ctx context.Context, r ledger.Reader, f Filter) (list []Item, err error) {
	var c where.Conds
	source := f.source(&c)
	f.conds(&c)
	if f.After != nil {
		c.Add("(f.opened_at, f.id) > (?, ?::uuid)", f.After.At, f.After.ID)
	}
	limit := c.Arg(f.Limit)
	err = r.Select(ctx, &list, `
		SELECT `+itemColumns+` FROM (SELECT * FROM `+source+` f WHERE `+c.String()+` ORDER BY f.opened_at, f.id LIMIT `+limit+`) f
		JOIN transfers t ON t.id = f.transfer_id ORDER BY f.opened_at, f.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list refunds: %w", err)
	}
	return list, nil
}

// Stream reads all that the filter matches in one statement, and so at one moment, row
// after row: the caller closes it. Each row carries the position of the log it was made at.
func Stream(ctx context.Context, db *ledger.DB, f Filter) (*sqlx.Rows, error) {
	var c where.Conds
	source := f.source(&c)
	f.conds(&c)
	rows, err := db.Query(ctx, `
		SELECT `+itemColumns+`, (SELECT COALESCE(max(id), 0) FROM payment_events) AS position
		FROM `+source+` f JOIN transfers t ON t.id = f.transfer_id WHERE `+c.String()+` ORDER BY f.opened_at, f.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read refunds: %w", err)
	}
	return rows, nil
}

// Sum is what is open of one asset of one rail in one bucket of ages.
type Sum struct {
	Network string       `db:"network"`
	Asset   string       `db:"asset"`
	Bucket  int          `db:"bucket"` // the first bound that it is not older than; len(bounds) for the oldest
	Count   int64        `db:"count"`
	Open    money.Atomic `db:"open"`
}

// Sums adds up what the filter matches, by asset and age. A row is in the first bucket
// whose bound is at or before its opening; bounds fall. Each bucket is a stretch of an index
// with a few groups: grouped by an expression, the rows would be sorted.
func Sums(ctx context.Context, r ledger.Reader, f Filter, bounds [4]time.Time) (list []Sum, err error) {
	var c where.Conds
	source := f.source(&c)
	f.conds(&c)
	var at [len(bounds)]string
	for i, b := range bounds {
		at[i] = c.Arg(b) + "::timestamptz"
	}
	buckets := "(0, " + at[0] + ", 'infinity'::timestamptz)"
	for i := 1; i < len(at); i++ {
		buckets += fmt.Sprintf(", (%d, %s, %s)", i, at[i], at[i-1])
	}
	buckets += fmt.Sprintf(", (%d, '-infinity', %s)", len(at), at[len(at)-1])
	err = r.Select(ctx, &list, `
		SELECT s.network, s.asset, b.bucket, s.count, s.open FROM (VALUES `+buckets+`) b(bucket, since, before)
		CROSS JOIN LATERAL (SELECT f.network, f.asset, count(*) AS count, sum(f.amount) - sum(f.paid) - sum(f.written_off) AS open
			FROM `+source+` f WHERE `+c.String()+` AND f.opened_at >= b.since AND f.opened_at < b.before GROUP BY 1, 2) s
		ORDER BY 1, 2, 3`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't add refunds up: %w", err)
	}
	return list, nil
}

// Position is the newest event of the log of payments.
func Position(ctx context.Context, r ledger.Reader) (at int64, err error) {
	if err = r.Get(ctx, &at, `SELECT COALESCE(max(id), 0) FROM payment_events`); err != nil {
		return 0, fmt.Errorf("couldn't read the log's position: %w", err)
	}
	return at, nil
}

// Names are what can be filtered by: rails with their assets, and gateways.
type Names struct {
	Network string `db:"network"`
	Asset   string `db:"asset"`
}

// NamesUsed are the rails and assets in which anything was ever owed back, found by
// walking the index from one to the next.
func NamesUsed(ctx context.Context, r ledger.Reader) (list []Names, err error) {
	err = r.Select(ctx, &list, `
		WITH RECURSIVE x AS (
			(SELECT network, asset FROM transfers ORDER BY network, asset LIMIT 1)
			UNION ALL
			SELECT n.network, n.asset FROM x CROSS JOIN LATERAL (SELECT network, asset FROM transfers t WHERE (t.network, t.asset) > (x.network, x.asset) ORDER BY network, asset LIMIT 1) n
		)
		SELECT network, asset FROM x LIMIT 200`)
	if err != nil {
		return nil, fmt.Errorf("couldn't read what is owed in: %w", err)
	}
	return list, nil
}

// Refund is the row in the form that rules ask about.
func (i *Item) Refund() payments.Refund {
	return payments.Refund{
		ID: i.ID, Transfer: i.Transfer, Network: i.Network, Asset: i.Asset, Payer: i.Payer, Destination: i.Destination, State: i.State, Reason: i.Reason,
		Amount: i.Amount, Approved: i.Approved, Reserved: i.Reserved, Paid: i.Paid, WrittenOff: i.WrittenOff, WriteOff: i.WriteOff, HeldWhy: i.HeldWhy, OpenedAt: i.OpenedAt,
	}
}
