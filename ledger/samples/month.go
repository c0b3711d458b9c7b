// Package samples fills an empty database with money of a made-up month, to look at
// finance's pages. It only inserts, in one transaction: what it makes has passed every
// guard of the tables, like what the engines make.
package samples

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
)

// ErrNotEmpty is returned for a database that holds payments or transfers: real money is
// never mixed with made-up money.
var ErrNotEmpty = errors.New("the database holds payments already: a made-up month goes into an empty one only")

// Who the month is made of.
type Who struct {
	Account                 int64
	Approver, Sender, Other int64 // three people
	// ReceiptHash is what the receipt of an order is found by.
	ReceiptHash func(order string) []byte
}

// Asset of the month; one unit is 10^decimals of its smallest.
type asset struct{ network, id, code, unit string }

// assets are those that the policy beside the month declares.
var assets = []asset{
	{"bank:main", "usd", "USD", "100"}, {"eip155:8453", "0x1000000000000000000000000000000000000001", "USDC", "1000000"}, {"bank:main", "jpy", "JPY", "1"},
	{"eip155:8453", "0x1000000000000000000000000000000000000018", "WETH", "1000000000000000000"}, {"eip155:8453", "0x1000000000000000000000000000000000000003", "PTS", "1000"},
}

// Counts say what was made.
type Counts struct{ Orders, Transfers, Refunds int }

// Month fills the database with orders of the last 75 days, and what is owed back of them.
func Month(ctx context.Context, db *ledger.DB, who Who, orders int) (n Counts, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		n = Counts{}
		var used bool
		if err := tx.Get(ctx, &used, `SELECT EXISTS (SELECT FROM payments) OR EXISTS (SELECT FROM transfers)`); err != nil {
			return err
		}
		if used {
			return ErrNotEmpty
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		m := &month{ctx: ctx, tx: tx, who: who, now: now, n: &n}
		for i := range orders {
			m.day(i, now.Add(-75*24*time.Hour*time.Duration(orders-i)/time.Duration(orders+1)))
		}
		m.tell()
		return m.err
	})
	return n, err
}

// month remembers the first error, so that what is made reads as a list.
type month struct {
	ctx context.Context
	tx  *ledger.Tx
	who Who
	now time.Time
	n   *Counts
	err error

	told []said // events, which the record has in the order of their time
}

// said is an event that is still to be written.
type said struct {
	at    time.Time
	query string
	args  []any
}

func (m *month) event(at time.Time, query string, args ...any) {
	m.told = append(m.told, said{at, query, args})
}

// tell writes the events.
func (m *month) tell() {
	slices.SortStableFunc(m.told, func(a, b said) int { return a.at.Compare(b.at) })
	for _, e := range m.told {
		m.insert(e.query, e.args...)
	}
}

func (m *month) insert(query string, args ...any) {
	if m.err == nil {
		if _, err := m.tx.Exec(m.ctx, query, args...); err != nil {
			m.err = fmt.Errorf("couldn't make up a month: %w", err)
		}
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func hash(s string) string { return fmt.Sprintf("0x%x", sha256.Sum256([]byte(s))) }

// movement is one transfer on its way into the tables.
type movement struct {
	asset
	id, order, payer, class string
	amount, over            int64 // in hundredths of a unit
	at                      time.Time
	reverted                bool
}

// day makes one order, and each fourth time something that is owed back.
func (m *month) day(i int, at time.Time) {
	a := assets[i%len(assets)]
	payer := "payer-" + fmt.Sprint(100+i%37)
	if a.network != "bank:main" {
		payer = hash("payer" + fmt.Sprint(i%37))[:42]
	}
	price := int64(100 * (1 + (i*i)%240)) // whole units, so that every asset can hold it
	reason, state := "", ""
	if i%4 == 1 {
		reason, state = reasons[(i/4)%len(reasons)], states[(i/4)%len(states)]
	}
	order := "paid"
	switch {
	case reason == "late":
		order = "expired"
	case reason == "failed_call":
		order = "failed"
	case i%29 == 3:
		order = "paying"
	}
	id := m.order(i, a, payer, order, price, at)
	move := movement{asset: a, id: newID(), order: id, payer: payer, class: "applied", amount: price, at: at.Add(40 * time.Second)}
	switch {
	case order == "paying":
		move.class, move.amount = "under", price/200*100
		if move.amount > 0 {
			m.transfer(move)
		}
	case reason == "over":
		move.amount, move.over = price+300, 300
		m.refunded(i, move, reason, state)
	case reason == "late" || reason == "failed_call":
		move.class = reason
		m.refunded(i, move, reason, state)
	default:
		m.transfer(move)
	}
	switch reason {
	case "duplicate":
		m.refunded(i, movement{asset: a, id: newID(), order: id, payer: payer, class: reason, amount: price, at: at.Add(5 * time.Minute)}, reason, state)
	case "given_back":
		m.refunded(i, movement{asset: a, id: newID(), payer: payer, class: reason, amount: price, at: at.Add(time.Hour)}, reason, state)
	}
	if i%31 == 7 {
		m.transfer(movement{asset: a, id: newID(), payer: payer, class: "unmatched", amount: 4700, at: at.Add(2 * time.Hour)})
	}
}

// units turns hundredths of a unit into the smallest unit, in SQL.
const units = `($%d::numeric * $%d::numeric / 100)`

func (m *month) order(i int, a asset, payer, state string, price int64, at time.Time) string {
	id, payment := newID(), map[string]string{"paid": "settled", "paying": "in_flight"}[state]
	if payment == "" {
		payment = "refused"
	}
	m.insert(`
		INSERT INTO payments (account_id, gateway, payment_id, payer, fingerprint, network, asset, amount, pay_to, tool, order_id, first_at, state, fence, claimed_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, `+fmt.Sprintf(units, 8, 9)+`, 'our-account', 'fetch_page', $10::uuid, $11, $12, 1, $11, CASE WHEN $12::text <> 'in_flight' THEN $11::timestamptz + interval '1 minute' END)`,
		m.who.Account, []string{"shop", "library"}[i%2], fmt.Sprintf("sample-payment-%06d", i), payer, []byte(hash(fmt.Sprint("f", i)))[:32], a.network, a.id, price, a.unit, id, at, payment)
	m.insert(`
		INSERT INTO orders (id, payment, account_id, gateway, payer, network, asset, amount, pay_to, state, created_at, expires_at, changed_at, receipt_hash)
		SELECT $1::uuid, id, account_id, gateway, payer, network, asset, amount, pay_to, $2, first_at, first_at + interval '2 minutes', first_at, $3 FROM payments WHERE order_id = $1::uuid`,
		id, state, m.who.ReceiptHash(id))
	m.event(at, `INSERT INTO payment_events (at, payment, kind, data) SELECT first_at, id, 'claimed', '{}' FROM payments WHERE order_id = $1::uuid`, id)
	m.event(at.Add(time.Minute), `INSERT INTO payment_events (at, payment, kind, data) SELECT first_at + interval '1 minute', id, 'order_' || $2, '{}' FROM payments WHERE order_id = $1::uuid`, id, state)
	m.n.Orders++
	return id
}

// transfer is a movement of which nothing is owed back.
func (m *month) transfer(t movement) {
	m.bare(t)
	account := map[string]string{"applied": "revenue", "under": "held", "unmatched": "unmatched"}[t.class]
	m.post(t, t.at, side{"incoming", t.amount}, side{account, -t.amount})
}

// bare is a movement without its double entries.
func (m *month) bare(t movement) {
	tx := hash("in" + t.id)
	if t.network == "bank:main" {
		tx = "IN-" + t.id[24:]
	}
	final := !t.reverted && m.now.Sub(t.at) > time.Hour
	m.insert(`
		INSERT INTO transfers (id, account_id, network, tx_hash, position, asset, sender, recipient, amount, known_by, seen_at, order_id, class, over, final, reverted_at, changed_at)
		VALUES ($1::uuid, $2, $3, $4, 0, $5, $6, 'our-account', `+fmt.Sprintf(units, 7, 8)+`, 'gateway', $9, NULLIF($10, '')::uuid, $11, `+fmt.Sprintf(units, 12, 8)+`, $13, CASE WHEN $14 THEN $9::timestamptz + interval '10 minutes' END, $9)`,
		t.id, m.who.Account, t.network, tx, t.asset.id, t.payer, t.amount, t.unit, t.at, t.order, t.class, t.over, final, t.reverted)
	m.event(t.at, `INSERT INTO payment_events (at, transfer_id, kind, data, payment) VALUES ($1, $2::uuid, 'transfer_' || $3, '{}', (SELECT payment FROM orders WHERE id = NULLIF($4, '')::uuid))`,
		t.at, t.id, t.class, t.order)
	m.n.Transfers++
}

type side struct {
	account string
	amount  int64
}

func (m *month) post(t movement, at time.Time, sides ...side) {
	entry := newID()
	for _, s := range sides {
		if s.amount != 0 {
			m.insert(`
				INSERT INTO postings (entry, at, account, network, asset, amount, transfer_id, refund_id)
				VALUES ($1::uuid, $2, $3, $4, $5, `+fmt.Sprintf(units, 6, 7)+`, $8::uuid, CASE WHEN $3 IN ('refund_owed','refund_in_transit','refund_wallet','write_off') THEN (SELECT id FROM refunds WHERE transfer_id = $8::uuid) END)`,
				entry, at, s.account, t.network, t.asset.id, s.amount, t.unit, t.id)
		}
	}
}
