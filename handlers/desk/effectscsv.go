package desk

import (
	"net/http"

	"quittance/ledger/desk"
	"quittance/web"
)

var effectColumns = []string{
	"record", "id", "account", "run", "agent", "tool", "business_key", "occurrence", "attempts", "state", "why", "decided_by", "person", "note", "reference",
	"amount_atomic", "amount", "currency", "decimals", "arguments", "result", "error", "opened_at", "changed_at", "rows", "filter",
}

// effectsCSV is every effect that was recorded on some days, of one tool or of all. What was
// sent and what came back stand as they are kept: no number of them passes through a float.
func (d *Desk) effectsCSV(r *request) error {
	p := d.report(r, "tool")
	if p.problem != "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: p.problem}
	}
	rows, err := desk.EachRecorded(r.ctx(), d.db, desk.RecordedFilter{Tool: p.values.Get("tool"), From: p.from, To: p.to})
	if err != nil {
		return err
	}
	defer rows.Close()
	t := r.table("effects.csv", effectColumns)
	for rows.Next() {
		var x desk.Recorded
		if err := rows.StructScan(&x); err != nil {
			return d.cutOff(r, err)
		}
		record := map[string]string{
			"record": "effect", "id": x.ID, "account": cell(x.Account), "run": cell(x.RunID), "agent": cell(x.Agent), "tool": cell(x.Tool), "business_key": cell(x.Key),
			"occurrence": whole(x.Occurrence), "attempts": whole(int64(x.Attempts)), "state": x.State, "why": x.Why, "decided_by": x.DecidedBy, "person": cell(x.Person), "note": cell(x.Note),
			"reference": cell(x.Reference), "arguments": cell(x.Arguments), "result": cell(x.Result), "error": cell(x.Error),
			"opened_at": zoned(x.OpenedAt.Time, p.zone), "changed_at": zoned(x.ChangedAt.Time, p.zone),
		}
		if m := moneyOf(x.Amount, x.Currency, x.Decimals); m != nil {
			record["amount_atomic"], record["amount"], record["currency"], record["decimals"] = x.Amount, m.String(), cell(x.Currency), whole(int64(x.Decimals))
		}
		if t.write(record) != nil {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return d.cutOff(r, err)
	}
	_ = t.write(map[string]string{"record": "export", "rows": whole(int64(t.n)), "filter": cell(p.filterText()), "changed_at": zoned(r.now, p.zone)})
	t.w.Flush()
	return nil
}
