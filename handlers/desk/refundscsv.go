package desk

import (
	"encoding/csv"
	"net/http"
	"slices"
	"time"

	"quittance/ledger/books"
	"quittance/ledger/money"
	store "quittance/ledger/refunds"
	"quittance/web"
)

// Every record of an export has the same columns. The first says what the record is:
// "refund" or "posting" for a row, "total" for a control total of an asset, "export" for
// the filter and the position of the log that all of it was made from.

var refundColumns = []string{
	"record", "id", "state", "reason", "network", "asset", "code", "decimals", "amount_atomic", "amount", "open_atomic", "open", "reserved_atomic", "paid_atomic", "written_off_atomic",
	"payer", "destination", "gateway", "order_id", "transfer_id", "transfer_tx", "payout_tx", "opened_at", "changed_at", "age_days", "age_elapsed_seconds", "blocked", "rows", "filter", "log_position",
}

// table writes the rows of an export as they are read: its memory does not grow with them.
type table struct {
	w       *csv.Writer
	columns []string
	n       int
}

func (r *request) table(name string, columns []string) *table {
	h := r.Response().Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	t := &table{w: csv.NewWriter(r.Response()), columns: columns}
	t.w.UseCRLF = true
	_ = t.w.Write(columns)
	return t
}

// write adds a record; what it does not name is empty. An error means that whoever asked
// has left.
func (t *table) write(record map[string]string) error {
	row := make([]string, len(t.columns))
	for i, c := range t.columns {
		row[i] = record[c]
	}
	if t.n++; t.n%500 == 0 {
		t.w.Flush()
	}
	return t.w.Write(row)
}

// exact is an amount for programs: an integer, and the plain decimal with its code where the
// policy declares the asset.
func (d *Desk) exact(network, asset string, x money.Atomic) (plain, code, decimals string) {
	if a := d.engine.Policy().RailAsset(network, asset); a != nil {
		return money.Of(x, a.Asset).String(), a.Asset.Code, whole(int64(a.Asset.Decimals))
	}
	return "", "", ""
}

// zoned is a time for exports in the report's zone, with its offset.
func zoned(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02T15:04:05.000000Z07:00")
}

type assetKey struct{ network, asset string }

// controls are the sums of what was written, by asset.
type controls map[assetKey]*control

type control struct {
	rows         int64
	amount, open money.Atomic
}

func (c controls) add(network, asset string, amount, open money.Atomic) {
	k := assetKey{network, asset}
	if c[k] == nil {
		c[k] = &control{}
	}
	c[k].rows++
	c[k].amount, c[k].open = c[k].amount.Plus(amount), c[k].open.Plus(open)
}

func (c controls) keys() []assetKey {
	var list []assetKey
	for k := range c {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b assetKey) int {
		if a.network != b.network {
			return compare(a.network, b.network)
		}
		return compare(a.asset, b.asset)
	})
	return list
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (d *Desk) refundsCSV(r *request) error {
	p, f := d.refundQuery(r)
	if p.problem != "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: p.problem}
	}
	position, err := store.Position(r.ctx(), d.db)
	if err != nil {
		return err
	}
	rows, err := store.Stream(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	defer rows.Close()
	now := p.at(r.now)
	t, sums := r.table("refunds.csv", refundColumns), controls{}
	for rows.Next() {
		var x store.Item
		if err := rows.StructScan(&x); err != nil {
			return err
		}
		position = x.Position
		sums.add(x.Network, x.Asset, x.Amount, x.Open())
		plain, code, decimals := d.exact(x.Network, x.Asset, x.Amount)
		open, _, _ := d.exact(x.Network, x.Asset, x.Open())
		row := x.Refund()
		err := t.write(map[string]string{
			"record": "refund", "id": x.ID, "state": x.State, "reason": x.Reason, "network": cell(x.Network), "asset": cell(x.Asset), "code": cell(code), "decimals": decimals,
			"amount_atomic": x.Amount.String(), "amount": plain, "open_atomic": x.Open().String(), "open": open, "reserved_atomic": x.Reserved.String(),
			"paid_atomic": x.Paid.String(), "written_off_atomic": x.WrittenOff.String(), "payer": cell(x.Payer), "destination": cell(x.Destination), "gateway": cell(x.Gateway),
			"order_id": x.OrderID, "transfer_id": x.Transfer, "transfer_tx": cell(x.Tx), "payout_tx": cell(x.PayoutTx), "opened_at": zoned(x.OpenedAt, p.zone),
			"changed_at": zoned(x.ChangedAt, p.zone), "age_days": whole(int64(calendarDays(x.OpenedAt, now, p.zone))), "age_elapsed_seconds": whole(int64(now.Sub(x.OpenedAt) / time.Second)),
			"blocked": cell(d.refund.Blocks(&row, x.Final)),
		})
		if err != nil {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return d.cutOff(r, err)
	}
	for _, k := range sums.keys() {
		c := sums[k]
		plain, code, decimals := d.exact(k.network, k.asset, c.amount)
		open, _, _ := d.exact(k.network, k.asset, c.open)
		_ = t.write(map[string]string{
			"record": "total", "network": cell(k.network), "asset": cell(k.asset), "code": cell(code), "decimals": decimals, "amount_atomic": c.amount.String(), "amount": plain,
			"open_atomic": c.open.String(), "open": open, "rows": whole(c.rows),
		})
	}
	_ = t.write(map[string]string{"record": "export", "rows": whole(int64(t.n - len(sums))), "filter": cell(p.filterText()), "log_position": whole(position), "changed_at": zoned(r.now, p.zone)})
	t.w.Flush()
	return nil
}

// filterText is the filter as it stands in an export: an address, whole.
func (p *report) filterText() string {
	v := p.values
	v.Set("zone", p.zone.String())
	return v.Encode()
}

// cutOff ends an export that failed half-way so that nobody takes it for a whole one: its
// last record, with the totals, is missing, and the connection breaks.
func (d *Desk) cutOff(r *request, err error) error {
	d.log.Error("an export was cut off", "route", r.Path(), "error", err)
	panic(http.ErrAbortHandler)
}

var journalColumns = []string{
	"record", "posting", "entry", "at", "account", "account_name", "network", "asset", "code", "decimals", "amount_atomic", "amount", "transfer_id", "transfer_tx", "refund_id", "order_id", "rows", "filter", "log_position",
}

// journalCSV is the double entries of some days, with the names that the team's books give
// the accounts.
func (d *Desk) journalCSV(r *request) error {
	p := d.report(r)
	if p.problem != "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: p.problem}
	}
	rows, err := books.Journal(r.ctx(), d.db, p.from, p.to)
	if err != nil {
		return err
	}
	defer rows.Close()
	t, sums := r.table("journal.csv", journalColumns), controls{}
	accounts, position := d.engine.Policy().Accounts(), int64(0)
	for rows.Next() {
		var x books.Posting
		if err := rows.StructScan(&x); err != nil {
			return err
		}
		position = x.Position
		sums.add(x.Network, x.Asset, x.Amount, money.Atomic{})
		plain, code, decimals := d.exact(x.Network, x.Asset, x.Amount)
		err := t.write(map[string]string{
			"record": "posting", "posting": whole(x.ID), "entry": x.Entry, "at": zoned(x.At, p.zone), "account": x.Account, "account_name": cell(accounts[x.Account]),
			"network": cell(x.Network), "asset": cell(x.Asset), "code": cell(code), "decimals": decimals, "amount_atomic": x.Amount.String(), "amount": plain,
			"transfer_id": x.Transfer, "transfer_tx": cell(x.Tx), "refund_id": x.Refund, "order_id": x.Order,
		})
		if err != nil {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return d.cutOff(r, err)
	}
	for _, k := range sums.keys() {
		plain, code, decimals := d.exact(k.network, k.asset, sums[k].amount)
		_ = t.write(map[string]string{"record": "total", "network": cell(k.network), "asset": cell(k.asset), "code": cell(code), "decimals": decimals,
			"amount_atomic": sums[k].amount.String(), "amount": plain, "rows": whole(sums[k].rows)})
	}
	_ = t.write(map[string]string{"record": "export", "at": zoned(r.now, p.zone), "rows": whole(int64(t.n - len(sums))), "filter": cell(p.filterText()), "log_position": whole(position)})
	t.w.Flush()
	return nil
}
