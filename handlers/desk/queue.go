package desk

import (
	"errors"
	"net/http"
	"net/url"

	"quittance/ledger/money"
	"quittance/ledger/queue"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// pageRows is how many rows a page of a list has.
const pageRows = 50

func (d *Desk) queue(r *request) error {
	f := parseFilter(r.QueryParams(), r.zone)
	if f.closed != "" {
		return d.closedList(r, f)
	}
	q, problem := d.query(r, f)
	var rows effects.QueuePage
	var sums effects.QueueSums
	var err error
	if problem == "" {
		rows, err = d.engine.Queue(r.ctx(), q)
		if refusal, ok := errors.AsType[*effects.Refusal](err); ok {
			problem, err = refusal.Detail, nil
		}
	}
	if err != nil {
		return err
	}
	counted := true
	if problem == "" {
		if sums, counted, err = d.sums(r, q, f, rows); err != nil {
			return err
		}
	}
	view, err := d.queueView(r, f, sums)
	if err != nil {
		return err
	}
	if !counted {
		v := f.values()
		v.Set("count", "yes")
		view.Figures = views.Figures{Later: address("/", v)}
	}
	view.Filter.Problem = problem
	for _, x := range rows.Items {
		view.Rows = append(view.Rows, queueRow(r, x))
	}
	view.Pager = f.pager(rows.Next)
	view.Empty = d.emptyQueue(f, view.Page)
	view.CanBulk = r.may(decider) && len(view.Rows) > 0
	status := http.StatusOK
	if problem != "" {
		status = http.StatusUnprocessableEntity
	}
	return web.Render(r.Context, status, views.QueuePage(view))
}

// sums are the numbers over what the query matches. Those of a filter have to be
// counted, unless all of it is on this page: the page does not wait for that, it leaves
// a link by which it is counted (counted is false).
func (d *Desk) sums(r *request, q effects.QueueQuery, f filter, rows effects.QueuePage) (s effects.QueueSums, counted bool, err error) {
	if f.empty() || r.asked("count") {
		s, err = d.engine.QueueSums(r.ctx(), q)
		return s, true, err
	}
	if s, err = d.engine.QueueSums(r.ctx(), effects.QueueQuery{}); err != nil {
		return s, false, err
	}
	if f.cursor != "" || rows.Next != "" {
		return s, false, nil
	}
	s.Effects, s.AtStake, s.More = int64(len(rows.Items)), nil, false
	for _, x := range rows.Items {
		if x.Amount != nil {
			s.AtStake = addTo(s.AtStake, *x.Amount)
		}
	}
	return s, true, nil
}

// addTo adds an amount to the sum of its own asset.
func addTo(sums []money.Amount, a money.Amount) []money.Amount {
	for i := range sums {
		if total, err := sums[i].Add(a); err == nil {
			sums[i] = total
			return sums
		}
	}
	return append(sums, a)
}

// queueView is the page without its rows.
func (d *Desk) queueView(r *request, f filter, sums effects.QueueSums) (v views.Queue, err error) {
	if v.Page, err = d.page(r, "Queue", "/"); err != nil {
		return v, err
	}
	v.Live = "/events"
	names, err := d.names.get(r.ctx(), d.db)
	if err != nil {
		return v, err
	}
	v.Filter = f.view(r, names)
	v.Filtered = !f.empty()
	v.Query = f.values().Encode()
	v.Views = f.views(sums)
	v.Token = r.session.FormToken()
	v.Figures = figures(sums, v.Filtered)
	return v, nil
}

// stakesShown is how many currencies the head of the queue names.
const stakesShown = 4

func figures(s effects.QueueSums, filtered bool) views.Figures {
	f := views.Figures{Waiting: grouped(s.Effects)}
	if s.More {
		f.Waiting += "+"
	}
	f.Also = "at stake"
	for i, a := range s.AtStake {
		switch {
		case i == 0:
			f.Stake = amount(&a)
		case i == stakesShown:
			f.Also += " and " + grouped(int64(len(s.AtStake)-i)) + " more currencies"
		case i < stakesShown:
			f.Also += ", " + a.Display()
		}
	}
	if s.Effects > 0 && !filtered {
		f.Oldest = span(s.OldestFor)
	}
	if !filtered && s.Overdue > 0 {
		f.Overdue = capped(s.Overdue, queue.CountCap)
	}
	return f
}

func queueRow(r *request, x effects.QueueItem) views.QueueRow {
	row := views.QueueRow{
		ID: x.EffectID, URL: effectURL(x.EffectID), Version: whole(x.Version), What: line(x.Summary), Tool: name(x.Tool), Agent: name(x.Agent),
		Run: name(x.RunID), RunFull: x.RunID, Known: line(x.Known), Amount: amount(x.Amount),
		State:   standing{state: x.State, why: x.Why, contradicted: x.Contradicted, second: x.SecondWaits, confirm: x.Confirm}.badge(),
		Waiting: span(x.Waiting), Since: r.at(x.WaitingSince), Overdue: x.Overdue,
	}
	if !x.Provable.IsZero() {
		row.Known = line(x.Known + "; can be proven from " + r.at(x.Provable).Text)
	}
	if x.BusinessKey != "" && odd(line(x.BusinessKey)) || odd(row.What) {
		row.Known = append(row.Known, views.Piece{Text: " hidden characters", Mark: "The text holds characters that cannot be seen or that look like others."})
	}
	return row
}

func (d *Desk) emptyQueue(f filter, p views.Page) *views.Empty {
	if !f.empty() {
		return &views.Empty{Title: "Nothing matches", Text: "Nothing that waits fits this filter. " + p.Loops + "."}
	}
	if !p.Quiet {
		return &views.Empty{Title: "Nothing is listed, and the loops do not run", Text: p.Loops + ": an effect may be waiting that is not here yet."}
	}
	return &views.Empty{Title: "Nothing waits for a person", Text: "Agents go on by themselves. " + p.Loops + "."}
}

func effectURL(id string) string { return "/effects/" + url.PathEscape(id) }
