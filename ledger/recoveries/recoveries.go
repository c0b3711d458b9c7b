// Package recoveries holds the statements about money that left twice and that others hold.
package recoveries

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/where"
)

// Recovery is one claim, from the suspicion on.
type Recovery struct {
	ID           string                 `db:"id"`
	Effect       string                 `db:"effect_id"` // "" for one of a payout
	Payout       string                 `db:"payout_id"`
	Refund       string                 `db:"refund_id"` // of the payout
	Origin       string                 `db:"origin"`
	Counterparty string                 `db:"counterparty"`
	Amount       sql.Null[money.Atomic] `db:"amount"` // unknown while nobody has said it
	Currency     string                 `db:"currency"`
	Decimals     int                    `db:"decimals"`
	State        string                 `db:"state"`
	How          string                 `db:"how"` // of one that was recovered: "cash" | "credit_note"
	OwnerID      int64                  `db:"owner_id"`
	Owner        string                 `db:"owner"`
	Claim        string                 `db:"claim"`
	Reference    string                 `db:"reference"`
	Recovered    money.Atomic           `db:"recovered"`
	OpenedAt     time.Time              `db:"opened_at"`
	ChangedAt    time.Time              `db:"changed_at"`
	Version      int64                  `db:"version"`
	Summary      string                 `db:"summary"` // of the effect
	Tool         string                 `db:"tool"`
	Position     int64                  `db:"position"` // of the log, for [Stream]
}

const columns = `v.id, COALESCE(v.effect_id::text, '') AS effect_id, COALESCE(v.payout_id::text, '') AS payout_id, COALESCE(p.refund_id::text, '') AS refund_id,
	v.origin, v.counterparty, v.amount, COALESCE(v.currency, '') AS currency, COALESCE(v.decimals, 0) AS decimals, v.state, COALESCE(v.how, '') AS how,
	COALESCE(v.owner_id, 0) AS owner_id, COALESCE(o.name, '') AS owner, COALESCE(v.claim, '') AS claim, COALESCE(v.reference, '') AS reference, v.recovered,
	v.opened_at, v.changed_at, v.version, COALESCE(e.summary, '') AS summary, COALESCE(e.tool, '') AS tool`

const joins = ` LEFT JOIN effects e ON e.id = v.effect_id LEFT JOIN payouts p ON p.id = v.payout_id LEFT JOIN people o ON o.id = v.owner_id`

// ByID reads a recovery; nil where there is none.
func ByID(ctx context.Context, r ledger.Reader, id string) (*Recovery, error) {
	return one(ctx, r, `SELECT `+columns+` FROM recoveries v`+joins+` WHERE v.id = $1::uuid`, id)
}

// Lock is ByID, and locks the row until the transaction ends.
func Lock(ctx context.Context, tx *ledger.Tx, id string) (*Recovery, error) {
	return one(ctx, tx, `SELECT `+columns+` FROM recoveries v`+joins+` WHERE v.id = $1::uuid FOR UPDATE OF v`, id)
}

// OpenOf reads and locks the open recovery of an effect; nil where there is none.
func OpenOf(ctx context.Context, tx *ledger.Tx, effect string) (*Recovery, error) {
	return one(ctx, tx, `SELECT `+columns+` FROM recoveries v`+joins+` WHERE v.effect_id = $1::uuid AND v.state IN ('suspected','confirmed','claimed') FOR UPDATE OF v`, effect)
}

func one(ctx context.Context, r ledger.Reader, query, id string) (*Recovery, error) {
	var v Recovery
	err := r.Get(ctx, &v, query, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read a recovery: %w", err)
	}
	return &v, nil
}

// Suspect opens a recovery for an effect of which more may have landed than was asked for,
// unless one is open. once: nor where one of the same origin ever was; the same finding is
// made again with every look.
func Suspect(ctx context.Context, tx *ledger.Tx, effect, origin string, once bool) error {
	_, err := tx.Exec(ctx, `
		WITH v AS (
			INSERT INTO recoveries (id, effect_id, origin, counterparty, amount, currency, decimals, state, opened_at, changed_at)
			SELECT $1::uuid, e.id, $3, left(COALESCE(e.business_key, e.summary), 1000), CASE WHEN e.amount > 0 THEN e.amount END, e.currency, e.decimals,
				'suspected', clock_timestamp(), clock_timestamp()
			FROM effects e WHERE e.id = $2::uuid AND NOT ($4 AND EXISTS (SELECT FROM recoveries WHERE effect_id = $2::uuid AND origin = $3))
			ON CONFLICT (effect_id) WHERE state IN ('suspected','confirmed','claimed') DO NOTHING
			RETURNING id, opened_at, state, amount, currency
		)
		INSERT INTO recovery_events (recovery_id, at, kind, data)
		SELECT id, opened_at, 'opened', json_build_object('state', state, 'amount', amount::text, 'currency', currency, 'origin', $3::text)::text FROM v`,
		uuid.Must(uuid.NewV7()).String(), effect, origin, once)
	if err != nil {
		return fmt.Errorf("couldn't open a recovery: %w", err)
	}
	return nil
}

// OpenForPayout opens a confirmed recovery for a payment that was made twice.
func OpenForPayout(ctx context.Context, tx *ledger.Tx, payout, counterparty string, amount money.Atomic, asset money.Asset) error {
	_, err := tx.Exec(ctx, `
		WITH v AS (
			INSERT INTO recoveries (id, payout_id, origin, counterparty, amount, currency, decimals, state, opened_at, changed_at)
			VALUES ($1::uuid, $2::uuid, 'payout', $3, $4, $5, $6, 'confirmed', clock_timestamp(), clock_timestamp())
			ON CONFLICT (payout_id) DO NOTHING RETURNING id, opened_at
		)
		INSERT INTO recovery_events (recovery_id, at, kind, data)
		SELECT id, opened_at, 'opened', json_build_object('state', 'confirmed', 'amount', $4::text, 'currency', $5::text, 'origin', 'payout')::text FROM v`,
		uuid.Must(uuid.NewV7()).String(), payout, counterparty, amount, asset.Code, asset.Decimals)
	if err != nil {
		return fmt.Errorf("couldn't open a recovery: %w", err)
	}
	return nil
}

// Change stores a recovery that was locked and decided about, and what happened.
func Change(ctx context.Context, tx *ledger.Tx, v *Recovery, kind string, person int64, more map[string]any) error {
	n, err := tx.Exec(ctx, `
		UPDATE recoveries SET counterparty = $3, amount = $4, currency = NULLIF($5, ''), decimals = CASE WHEN $5 <> '' THEN $6::smallint END, state = $7, how = NULLIF($8, ''),
			owner_id = NULLIF($9, 0::bigint), claim = NULLIF($10, ''), reference = NULLIF($11, ''), recovered = $12, version = version + 1, changed_at = clock_timestamp()
		WHERE id = $1::uuid AND version = $2`,
		v.ID, v.Version, v.Counterparty, v.Amount, v.Currency, v.Decimals, v.State, v.How, v.OwnerID, v.Claim, v.Reference, v.Recovered)
	if err != nil {
		return fmt.Errorf("couldn't change a recovery: %w", err)
	}
	if n != 1 {
		return errors.New("couldn't change a recovery: its guard did not hold")
	}
	v.Version++
	data := map[string]any{"state": v.State, "recovered": v.Recovered.String(), "owner": v.OwnerID, "version": v.Version}
	if v.Amount.Valid {
		data["amount"], data["currency"] = v.Amount.V.String(), v.Currency
	}
	for k, x := range more {
		data[k] = x
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("couldn't write an event: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO recovery_events (recovery_id, at, kind, person_id, data) VALUES ($1::uuid, clock_timestamp(), $2, NULLIF($3, 0::bigint), $4)`,
		v.ID, kind, person, string(raw))
	if err != nil {
		return fmt.Errorf("couldn't record an event: %w", err)
	}
	return nil
}

// Event is one line of a recovery's record.
type Event struct {
	At     time.Time `db:"at"`
	Kind   string    `db:"kind"`
	Person string    `db:"person"`
	Data   string    `db:"data"`
}

// History is what happened to a recovery, first to last.
func History(ctx context.Context, r ledger.Reader, id string) (list []Event, err error) {
	err = r.Select(ctx, &list, `
		SELECT e.at, e.kind, COALESCE(p.name, '') AS person, e.data FROM recovery_events e LEFT JOIN people p ON p.id = e.person_id
		WHERE e.recovery_id = $1::uuid ORDER BY e.id`, id)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a recovery's history: %w", err)
	}
	return list, nil
}

// Filter narrows the list; zero values filter nothing.
type Filter struct {
	State    string // a state, or "open", or "" for all
	Owner    int64
	Currency string
	From, To time.Time // of opening; To is not included
	After    *Place
	Limit    int
}

// Place is where a page ended.
type Place struct {
	At time.Time
	ID string
}

func (f *Filter) conds(c *where.Conds) {
	switch f.State {
	case "":
	case "open":
		c.Add("v.state IN ('suspected','confirmed','claimed')")
	default:
		c.Add("v.state = ?", f.State)
	}
	if f.Owner != 0 {
		c.Add("v.owner_id = ?", f.Owner)
	}
	if f.Currency != "" {
		c.Add("v.currency = ?", f.Currency)
	}
	if !f.From.IsZero() {
		c.Add("v.opened_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		c.Add("v.opened_at < ?", f.To)
	}
}

// Page reads one page, what was opened first in front.
func Page(ctx context.Context, r ledger.Reader, f Filter) (list []Recovery, err error) {
	var c where.Conds
	f.conds(&c)
	if f.After != nil {
		c.Add("(v.opened_at, v.id) > (?, ?::uuid)", f.After.At, f.After.ID)
	}
	limit := c.Arg(f.Limit)
	err = r.Select(ctx, &list, `SELECT `+columns+` FROM (SELECT * FROM recoveries v WHERE `+c.String()+` ORDER BY v.opened_at, v.id LIMIT `+limit+`) v`+joins+`
		ORDER BY v.opened_at, v.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't list recoveries: %w", err)
	}
	return list, nil
}

// Stream reads all that the filter matches in one statement, row after row: the caller
// closes it. Each row carries the position of the log of recoveries that it was made at.
func Stream(ctx context.Context, db *ledger.DB, f Filter) (*sqlx.Rows, error) {
	var c where.Conds
	f.conds(&c)
	rows, err := db.Query(ctx, `SELECT `+columns+`, (SELECT COALESCE(max(id), 0) FROM recovery_events) AS position FROM recoveries v`+joins+`
		WHERE `+c.String()+` ORDER BY v.opened_at, v.id`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't read recoveries: %w", err)
	}
	return rows, nil
}

// Sum is what is to come back of one currency in one bucket of ages; of those whose amount
// nobody has said the currency is "".
type Sum struct {
	Currency string       `db:"currency"`
	Decimals int          `db:"decimals"`
	Bucket   int          `db:"bucket"`
	Count    int64        `db:"count"`
	Open     money.Atomic `db:"open"`
}

// Sums adds up what the filter matches, by currency and age; see refunds.Sums.
func Sums(ctx context.Context, r ledger.Reader, f Filter, bounds [4]time.Time) (list []Sum, err error) {
	var c where.Conds
	f.conds(&c)
	bucket := "CASE"
	for i, b := range bounds {
		bucket += fmt.Sprintf(" WHEN v.opened_at >= %s THEN %d", c.Arg(b), i)
	}
	bucket += " ELSE 4 END"
	err = r.Select(ctx, &list, `
		SELECT CASE WHEN v.amount IS NULL THEN '' ELSE v.currency END AS currency, COALESCE(max(CASE WHEN v.amount IS NOT NULL THEN v.decimals END), 0) AS decimals,
			`+bucket+` AS bucket, count(*) AS count, COALESCE(sum(v.amount - v.recovered), 0) AS open
		FROM recoveries v WHERE `+c.String()+` GROUP BY 1, v.decimals, 3 ORDER BY 1, 3`, c.Args()...)
	if err != nil {
		return nil, fmt.Errorf("couldn't add recoveries up: %w", err)
	}
	return list, nil
}
