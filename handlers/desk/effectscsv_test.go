package desk_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

// exported are the records of the export of effects, by the name of their column.
func (v *visitor) exported(query string) (list []map[string]string, end map[string]string) {
	v.w.t.Helper()
	a := v.get("/effects.csv" + query)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if a.status != http.StatusOK || err != nil || len(rows) < 2 {
		v.w.t.Fatalf("%d, %v\n%s", a.status, err, a.body)
	}
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		list = append(list, record)
	}
	last := len(list) - 1
	if list[last]["record"] != "export" || list[last]["rows"] != fmt.Sprint(last) {
		v.w.t.Errorf("the last record is %v behind %d", list[last], last)
	}
	return list[:last], list[last]
}

func TestBC059_TheExportHoldsEveryDigit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arguments := []string{`{"order_id":9007199254740993,"amount":"9.00"}`, `{"order_id":3141592653589793239,"amount":"9.00"}`, `{"order_id":9007199254740992,"amount":"9.00"}`}
	ids := map[string]string{}
	for i, args := range arguments {
		ids[w.interrupted(fmt.Sprint("run-", i), "send_email", args)] = args
	}
	if len(ids) != 3 {
		t.Fatalf("%d effects: neighbours share a key", len(ids))
	}
	w.interrupted("run-paid", "send_payment", pay("Birch", "1", "90071992547409.93", "USD"))
	list, _ := w.signedIn("vera").exported("?tool=send_email")
	if len(list) != 3 {
		t.Fatalf("%d records", len(list))
	}
	for _, x := range list {
		if x["arguments"] != ids[x["id"]] || x["state"] != "interrupted" || x["attempts"] != "1" || x["account"] != "acme" {
			t.Errorf("%v, want %s", x, ids[x["id"]])
		}
	}
	list, _ = w.signedIn("vera").exported("?tool=send_payment")
	if len(list) != 1 || list[0]["amount"] != "90071992547409.93" || list[0]["amount_atomic"] != "9007199254740993" || list[0]["currency"] != "USD" {
		t.Errorf("%v", list)
	}
}

func TestBC060_TheExportHoldsPlainDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const result = `{"transfer":820311904417712129,"count":7264515}`
	id := w.interrupted("=2+3", "send_email", `{"to":"a@b.example"}`)
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken, Note: "@found", Reference: "+1", Result: []byte(result)})
	list, end := w.signedIn("vera").exported("?from=2020-01-01&zone=Europe/Lisbon")
	if len(list) != 1 || list[0]["result"] != result || list[0]["decided_by"] != "person" || list[0]["person"] != "Petra Lind" {
		t.Fatalf("%v", list)
	}
	for column, want := range map[string]string{"run": "'=2+3", "note": "'@found", "reference": "'+1"} {
		if list[0][column] != want {
			t.Errorf("%s is %q, want %q: a spreadsheet would take it for a formula", column, list[0][column], want)
		}
	}
	if !strings.Contains(end["filter"], "zone=Europe%2FLisbon") {
		t.Errorf("the filter is not told: %v", end)
	}
	if list, _ := w.signedIn("vera").exported("?to=2020-01-01"); len(list) != 0 {
		t.Errorf("%d records of other days", len(list))
	}
	page := w.signedIn("vera").get("/?closed=person&tool=send_email")
	if !strings.Contains(page.body, `href="/effects.csv?tool=send_email"`) {
		t.Error("the list of what is closed does not lead to the export")
	}
}
