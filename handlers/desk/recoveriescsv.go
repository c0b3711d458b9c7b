package desk

import (
	"net/http"
	"time"

	"quittance/ledger/money"
	store "quittance/ledger/recoveries"
	"quittance/web"
)

var recoveryColumns = []string{
	"record", "id", "state", "origin", "counterparty", "code", "decimals", "amount_atomic", "amount", "open_atomic", "open", "recovered_atomic", "how", "owner", "claim", "reference",
	"tool", "effect_id", "refund_id", "opened_at", "changed_at", "age_days", "age_elapsed_seconds", "rows", "filter", "log_position",
}

// recoveriesCSV exports what the filter matches. Control totals are of what has an amount,
// a currency each; rows of which nobody has said how much have none.
func (d *Desk) recoveriesCSV(r *request) error {
	p, f := d.recoveryQuery(r)
	if p.problem != "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: p.problem}
	}
	rows, err := store.Stream(r.ctx(), d.db, f)
	if err != nil {
		return err
	}
	defer rows.Close()
	t, sums, position := r.table("recoveries.csv", recoveryColumns), controls{}, int64(0)
	plain := func(x money.Atomic, code string, decimals int) string {
		return money.Of(x, money.Asset{Code: code, Decimals: decimals}).String()
	}
	assets := map[assetKey]int{}
	for rows.Next() {
		var x store.Recovery
		if err := rows.StructScan(&x); err != nil {
			return err
		}
		position = x.Position
		row := map[string]string{
			"record": "recovery", "id": x.ID, "state": x.State, "origin": x.Origin, "counterparty": cell(x.Counterparty), "how": x.How, "owner": cell(x.Owner), "claim": cell(x.Claim),
			"reference": cell(x.Reference), "tool": cell(x.Tool), "effect_id": x.Effect, "refund_id": x.Refund, "opened_at": zoned(x.OpenedAt, p.zone), "changed_at": zoned(x.ChangedAt, p.zone),
			"age_days": whole(int64(calendarDays(x.OpenedAt, r.now, p.zone))), "age_elapsed_seconds": whole(int64(r.now.Sub(x.OpenedAt) / time.Second)),
		}
		if x.Amount.Valid {
			open, key := x.Amount.V.Minus(x.Recovered), assetKey{x.Currency, whole(int64(x.Decimals))}
			assets[key] = x.Decimals
			sums.add(key.network, key.asset, x.Amount.V, open)
			row["code"], row["decimals"] = cell(x.Currency), key.asset
			row["amount_atomic"], row["amount"] = x.Amount.V.String(), plain(x.Amount.V, x.Currency, x.Decimals)
			row["open_atomic"], row["open"] = open.String(), plain(open, x.Currency, x.Decimals)
			row["recovered_atomic"] = x.Recovered.String()
		}
		if err := t.write(row); err != nil {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return d.cutOff(r, err)
	}
	for _, k := range sums.keys() {
		c := sums[k]
		_ = t.write(map[string]string{
			"record": "total", "code": cell(k.network), "decimals": k.asset, "amount_atomic": c.amount.String(), "amount": plain(c.amount, k.network, assets[k]),
			"open_atomic": c.open.String(), "open": plain(c.open, k.network, assets[k]), "rows": whole(c.rows),
		})
	}
	_ = t.write(map[string]string{"record": "export", "rows": whole(int64(t.n - len(sums))), "filter": cell(p.filterText()), "log_position": whole(position), "changed_at": zoned(r.now, p.zone)})
	t.w.Flush()
	return nil
}
