package desk

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"quittance/ledger"
	"quittance/ledger/desk"
	"quittance/reconcile/bulk"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// bulkShown is how many rows of a set a page lists.
const bulkShown = 200

// freeze makes a set of the chosen rows, or of all that a filter matches, and leads to
// the page where its verdict is given.
func (d *Desk) freeze(r *request) error {
	query, err := url.ParseQuery(r.form.Text("query"))
	if err != nil {
		query = url.Values{}
	}
	f := parseFilter(query, r.zone)
	var rows []desk.Frozen
	if r.form.Text("what") == "all" {
		if f.empty() {
			return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "Everything that waits is not a choice: filter first, or choose rows."}
		}
		if rows, err = d.matching(r, f); err != nil {
			return err
		}
	} else {
		for _, v := range r.form.All("effect") {
			id, version, _ := strings.Cut(v, " ")
			n, _ := strconv.ParseInt(version, 10, 64)
			rows = append(rows, desk.Frozen{Effect: id, Version: n})
		}
	}
	id, err := d.bulk.Freeze(r.ctx(), r.by(), f.values().Encode(), rows)
	if errors.Is(err, bulk.ErrEmpty) || errors.Is(err, bulk.ErrTooMany) {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: capital(err.Error()) + "."}
	}
	if err != nil {
		return err
	}
	return web.Redirect(r.Context, "/bulk/"+id)
}

// matching reads all that a filter matches, one more than a set may hold at the most.
func (d *Desk) matching(r *request, f filter) (rows []desk.Frozen, err error) {
	f.cursor = ""
	q, problem := d.query(r, f)
	if problem != "" {
		return nil, &web.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: problem}
	}
	q.Limit = 200
	for {
		page, err := d.engine.Queue(r.ctx(), q)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Items {
			rows = append(rows, desk.Frozen{Effect: x.EffectID, Version: x.Version})
		}
		if page.Next == "" || len(rows) > bulk.Limit {
			return rows, nil
		}
		q.Cursor = page.Next
	}
}

func (d *Desk) set(r *request) (b desk.Bulk, err error) {
	id, err := uuid.Parse(r.Param("set"))
	if err != nil {
		return b, echo.ErrNotFound
	}
	b, err = desk.BulkByID(r.ctx(), d.db, id.String())
	if errors.Is(err, ledger.ErrNotFound) {
		err = echo.ErrNotFound
	}
	return b, err
}

func (d *Desk) bulkPage(r *request) error {
	b, err := d.set(r)
	if err != nil {
		return err
	}
	return d.showBulk(r, http.StatusOK, b, bulk.Order{}, "")
}

func (d *Desk) showBulk(r *request, status int, b desk.Bulk, o bulk.Order, problem string) error {
	title := "A set of effects"
	if !b.OrderedAt.IsZero() {
		title = b.Name
	}
	page, err := d.page(r, title, "/")
	if err != nil {
		return err
	}
	counts, err := desk.BulkCounts(r.ctx(), d.db, b.ID)
	if err != nil {
		return err
	}
	sums, err := desk.BulkSums(r.ctx(), d.db, b.ID)
	if err != nil {
		return err
	}
	v := views.Bulk{Page: page, Name: title}
	in, done, out := 0, 0, 0
	for _, c := range counts {
		if c.Excluded != "" {
			out += c.Rows
			continue
		}
		in += c.Rows
		if c.Outcome != "" {
			done += c.Rows
		}
	}
	for _, s := range sums {
		if m := amountOf(s.Amount, s.Currency, s.Decimals); m != nil && s.Currency != "" {
			v.Sums = append(v.Sums, *m)
		}
	}
	v.Count = grouped(int64(in)) + " in the set"
	v.Lead = "Frozen at " + r.at(b.MadeAt).Text + " by " + b.PersonName + ". What comes later is not part of it; what changes meanwhile is left out."
	if v.Rows, v.RowsMore, err = d.bulkRows(r, b, false, in); err != nil {
		return err
	}
	if v.Left, v.LeftMore, err = d.bulkRows(r, b, true, out); err != nil {
		return err
	}
	switch {
	case !b.OrderedAt.IsZero():
		v.Live = "/events"
		v.Progress = d.progress(r, b, counts, in, done, problem)
	case b.Person == r.session.Person.ID && r.may(decider) && in > 0:
		v.Order = orderForm(r, b, o, in, problem)
	}
	return web.Render(r.Context, status, views.BulkPage(v))
}

func (d *Desk) bulkRows(r *request, b desk.Bulk, excluded bool, total int) (out []views.BulkRow, more string, err error) {
	rows, err := desk.BulkRows(r.ctx(), d.db, b.ID, excluded, -1, bulkShown)
	if err != nil {
		return nil, "", err
	}
	for _, x := range rows {
		row := views.BulkRow{URL: effectURL(x.Effect), What: line(x.Summary), Run: name(x.RunID), Amount: amountOf(x.Amount, x.Currency, x.Decimals), Why: x.Excluded, Detail: x.Detail}
		switch x.Outcome {
		case bulk.Done:
			row.State = &views.State{Kind: "ok", Word: "Decided"}
		case bulk.Waits:
			row.State = &views.State{Kind: "held", Word: "Second person"}
		case bulk.LeftOut:
			row.State = &views.State{Kind: "unknown", Word: "Left out"}
		}
		if x.Undone != "" {
			row.State, row.Detail = &views.State{Kind: "plain", Word: "Undo"}, x.Undone
		}
		out = append(out, row)
	}
	if total > len(rows) {
		more = fmt.Sprintf("and %s more", grouped(int64(total-len(rows))))
	}
	return out, more, nil
}

func orderForm(r *request, b desk.Bulk, o bulk.Order, n int, problem string) *views.BulkOrder {
	f := &views.BulkOrder{
		Action: "/bulk/" + b.ID + "/order", Token: r.session.FormToken(), Name: o.Name, Note: o.Note, Problem: problem,
		Typing: fmt.Sprintf("To send again, type the number: %d", n),
		Choices: []views.Choice{
			{Value: "taken", Title: "Yes, all of them took effect", Next: "They stay. The agents go on with an empty result."},
			{Value: "stop", Title: "No, and do not send them", Next: "They are closed. The agents are told to stop asking."},
			{Value: "not_taken", Title: "No, send all of them again", Next: "The agents will make each of these calls once more. Where a second person is needed, it waits for one.", Danger: true},
		},
	}
	if n > bulk.TypedAbove {
		f.Typing = fmt.Sprintf("Type the number: %d", n)
	}
	for i := range f.Choices {
		f.Choices[i].Picked = f.Choices[i].Value == string(o.Verdict)
	}
	return f
}

func (d *Desk) progress(r *request, b desk.Bulk, counts []desk.BulkCount, in, done int, problem string) *views.BulkProgress {
	p := &views.BulkProgress{
		Verdict: verdictText(b.Verdict), Note: note(b.Note), Action: "/bulk/" + b.ID + "/undo", Token: r.session.FormToken(), Problem: problem,
		CanUndo: b.UndoneAt.IsZero() && r.may(decider),
	}
	words := []string{}
	for _, c := range counts {
		if c.Excluded != "" {
			continue
		}
		if w := map[string]string{bulk.Done: "decided", bulk.Waits: "wait for a second person", bulk.LeftOut: "left out"}[c.Outcome]; w != "" {
			words = append(words, grouped(int64(c.Rows))+" "+w)
		}
	}
	p.Text = fmt.Sprintf("%s of %s are through: %s.", grouped(int64(done)), grouped(int64(in)), strings.Join(words, ", "))
	if done == 0 {
		p.Text = "The server begins in a moment. You can leave this page."
	}
	p.State = views.State{Kind: "info", Word: "Under way"}
	switch {
	case !b.UndoneAt.IsZero() && b.FinishedAt.IsZero():
		p.State = views.State{Kind: "info", Word: "Being taken back"}
	case !b.UndoneAt.IsZero():
		p.State = views.State{Kind: "plain", Word: "Taken back"}
	case !b.FinishedAt.IsZero():
		p.State = views.State{Kind: "ok", Word: "Finished"}
	}
	return p
}

func (d *Desk) orderBulk(r *request) error {
	b, err := d.set(r)
	if err != nil {
		return err
	}
	o := bulk.Order{Set: b.ID, Name: r.form.Text("name"), Verdict: effects.Verdict(r.form.Text("verdict")), Note: r.form.Text("note"), Typed: r.form.Text("typed")}
	return d.bulkDone(r, b, o, d.bulk.Order(r.ctx(), r.by(), o))
}

func (d *Desk) undoBulk(r *request) error {
	b, err := d.set(r)
	if err != nil {
		return err
	}
	return d.bulkDone(r, b, bulk.Order{}, d.bulk.Undo(r.ctx(), r.by(), b.ID, r.form.Text("note")))
}

// bulkDone leads back to the set, or shows what is missing.
func (d *Desk) bulkDone(r *request, b desk.Bulk, o bulk.Order, err error) error {
	invalid, isInvalid := errors.AsType[*bulk.Invalid](err)
	switch {
	case isInvalid:
		return d.showBulk(r, http.StatusUnprocessableEntity, b, o, invalid.Text)
	case errors.Is(err, bulk.ErrNotYours), errors.Is(err, bulk.ErrOrdered):
		return &denied{http.StatusConflict, "That cannot be done now", capital(err.Error()) + ".", err.Error()}
	case err != nil:
		return err
	}
	return web.Redirect(r.Context, "/bulk/"+b.ID)
}

func (d *Desk) backToBulk(r *request) error {
	if err := web.Redirect(r.Context, "/bulk/"+url.PathEscape(r.Param("set"))); err != nil {
		return err
	}
	return errAnswered
}
