package desk

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	store "quittance/ledger/access"
	"quittance/ledger/audit"
	"quittance/reconcile/access"
	"quittance/views"
	"quittance/web"
)

// exportBatch is how many lines an export reads at a time: it streams, whatever its
// length.
const exportBatch = 1000

func (d *Desk) auditPage(r *request) error {
	page, err := d.page(r, "Audit", "/audit")
	if err != nil {
		return err
	}
	f, form, problem := d.auditFilter(r)
	v := views.Audit{
		Page: page, Action: f.Action, Subject: f.Subject, From: form.Get("from"), To: form.Get("to"), Zone: form.Get("zone"), Problem: problem,
		Empty: &views.Empty{Title: "Nothing fits", Text: "No change and no denied attempt fits this filter."},
		CSV:   address("/audit.csv", form), JSONL: address("/audit.jsonl", form),
	}
	people, err := store.People(r.ctx(), d.db)
	if err != nil {
		return err
	}
	v.People = []views.Option{{Label: "Anybody"}}
	for _, p := range people {
		v.People = append(v.People, views.Option{Value: whole(p.ID), Label: cutText(p.Name, nameShown), Picked: p.ID == f.Person})
	}
	for _, o := range [][2]string{{"", "Any"}, {"done", "Done"}, {"denied", "Denied"}} {
		v.Outcome = append(v.Outcome, views.Option{Value: o[0], Label: o[1], Picked: o[0] == f.Outcome})
	}
	f.Limit = pageRows + 1
	var rows []audit.Row
	if problem == "" {
		if rows, err = audit.Page(r.ctx(), d.db, f); err != nil {
			return err
		}
	}
	if f.Before != 0 {
		v.Pager.First = address("/audit", form)
	}
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		form.Set("before", whole(rows[len(rows)-1].ID))
		v.Pager.Next = address("/audit", form)
	}
	for _, x := range rows {
		v.Rows = append(v.Rows, auditRow(r, x))
	}
	return web.Render(r.Context, http.StatusOK, views.AuditPage(v))
}

// auditFilter reads the filter from the address; form is it again, without the page.
func (d *Desk) auditFilter(r *request) (f audit.Filter, form url.Values, problem string) {
	q := r.QueryParams()
	form = url.Values{}
	for _, name := range []string{"person", "action", "outcome", "subject", "from", "to"} {
		if s := queryText(q, name); s != "" {
			form.Set(name, s)
		}
	}
	zone := r.zone
	if z, ok := access.Zone(queryText(q, "zone")); ok {
		zone = z
	}
	form.Set("zone", zone.String())
	days := filter{from: form.Get("from"), to: form.Get("to"), zone: zone}
	f.From, f.To, problem = days.days()
	f.Person, _ = strconv.ParseInt(form.Get("person"), 10, 64)
	f.Action, f.Outcome, f.Subject = form.Get("action"), form.Get("outcome"), form.Get("subject")
	f.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
	return f, form, problem
}

func auditRow(r *request, x audit.Row) views.AuditRow {
	v := views.AuditRow{
		At: r.at(x.At), Actor: line(x.Actor), Action: x.Action, Denied: x.Outcome == "denied", Subject: line(x.Subject),
		Before: line(plainJSON(x.Before)), After: line(plainJSON(x.After)), Note: show(x.Note, 1000, true),
		Via: map[string]string{"page": "on a page", "api": "by the API", "command": "by the command line", "record": ""}[x.Via],
	}
	if id, ok := strings.CutPrefix(x.Subject, "effect:"); ok {
		v.SubjectURL = effectURL(id)
	}
	return v
}

// plainJSON shows a small object in a line, without its nulls.
func plainJSON(s string) string {
	if s == "" {
		return ""
	}
	var m map[string]any
	if json.Unmarshal([]byte(s), &m) != nil {
		return strings.Trim(s, `"`)
	}
	var words []string
	for _, k := range []string{"state", "why", "decided_by", "verdict", "reference", "version", "name", "email", "roles"} {
		if v, ok := m[k]; ok && v != nil && v != "" {
			words = append(words, strings.ReplaceAll(k, "_", " ")+" "+strings.Trim(strings.ReplaceAll(fmtAny(v), "_", " "), "[]"))
		}
	}
	return strings.Join(words, ", ")
}

func fmtAny(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func (d *Desk) auditCSV(r *request) error {
	header := []string{"id", "at", "actor", "person", "via", "action", "outcome", "subject", "before", "after", "note", "request_id"}
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	return d.export(r, "text/csv; charset=utf-8", "audit.csv", func(rows []audit.Row, first bool) ([]byte, error) {
		buf.Reset()
		if first {
			_ = w.Write(header) // to memory: never fails
		}
		for _, x := range rows {
			_ = w.Write([]string{whole(x.ID), iso8601(x.At), cell(x.Actor), whole(x.Person), x.Via, x.Action, x.Outcome, cell(x.Subject), cell(x.Before), cell(x.After), cell(x.Note), x.RequestID})
		}
		w.Flush()
		return buf.Bytes(), w.Error()
	})
}

// cell makes text harmless in a spreadsheet: what would be taken for a formula gets an
// apostrophe in front. Characters that cannot be seen become their code.
func cell(s string) string {
	var b strings.Builder
	for _, p := range show(s, len(s)+1, true) {
		b.WriteString(p.Text)
	}
	s = b.String()
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

func (d *Desk) auditJSONL(r *request) error {
	return d.export(r, "application/x-ndjson", "audit.jsonl", func(rows []audit.Row, _ bool) ([]byte, error) {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		for _, x := range rows {
			err := enc.Encode(map[string]any{
				"id": x.ID, "at": iso8601(x.At), "actor": x.Actor, "person": x.Person, "via": x.Via, "action": x.Action, "outcome": x.Outcome,
				"subject": x.Subject, "before": raw(x.Before), "after": raw(x.After), "note": x.Note, "request_id": x.RequestID,
			})
			if err != nil {
				return nil, err
			}
		}
		return buf.Bytes(), nil
	})
}

func raw(s string) json.RawMessage {
	if s == "" || !json.Valid([]byte(s)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(s)
}

// iso8601 is a time for exports: UTC, with its offset, to the microsecond.
func iso8601(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// export streams everything that the filter matches, latest first.
func (d *Desk) export(r *request, kind, name string, encode func(rows []audit.Row, first bool) ([]byte, error)) error {
	f, _, problem := d.auditFilter(r)
	if problem != "" {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: problem}
	}
	f.Limit = exportBatch
	h := r.Response().Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	for first := true; ; first = false {
		rows, err := audit.Page(r.ctx(), d.db, f)
		if err != nil {
			return err
		}
		b, err := encode(rows, first)
		if err != nil {
			return err
		}
		if _, err := r.Response().Write(b); err != nil || len(rows) < exportBatch {
			return nil // whoever asked has left, or has it all
		}
		f.Before = rows[len(rows)-1].ID
	}
}
