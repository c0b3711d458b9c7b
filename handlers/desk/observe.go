package desk

import (
	"net/http"
	"net/url"
	"strconv"

	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// observe shows what enforcing would have done with the calls of observed tools.
func (d *Desk) observe(r *request) error {
	page, err := d.page(r, "Observed", "/observe")
	if err != nil {
		return err
	}
	values := r.QueryParams()
	q := effects.ObserveQuery{Tool: queryText(values, "tool"), Cursor: values.Get("cursor"), Limit: pageRows}
	days, _ := strconv.Atoi(values.Get("since"))
	v := views.Observe{Page: page, Tool: q.Tool, Empty: &views.Empty{Title: "Nothing was observed",
		Text: "A tool is observed with mode: observe in the policy. Its agents go on as before; what enforcing would have done appears here."}}
	for _, n := range []int{0, 1, 7, 30} {
		label := map[int]string{0: "Ever", 1: "Yesterday"}[n]
		if label == "" {
			label = strconv.Itoa(n) + " days ago"
		}
		v.Since = append(v.Since, views.Option{Value: strconv.Itoa(n), Label: label, Picked: n == days})
	}
	if days > 0 && days <= 36500 {
		q.Since = r.now.AddDate(0, 0, -days)
	}
	tools, err := d.engine.ObserveReport(r.ctx(), q)
	if err != nil {
		return err
	}
	for _, t := range tools {
		v.Tools = append(v.Tools, observedTool(t))
	}
	calls, next, err := d.engine.ObservedCalls(r.ctx(), q)
	if err != nil {
		return err
	}
	for _, x := range calls {
		v.Rows = append(v.Rows, observedRow(r, x))
	}
	back := url.Values{}
	for _, name := range []string{"tool", "since"} {
		if s := queryText(values, name); s != "" {
			back.Set(name, s)
		}
	}
	if q.Cursor != "" {
		v.Pager.First = address("/observe", back)
	}
	if next != "" {
		back.Set("cursor", next)
		v.Pager.Next = address("/observe", back)
	}
	return web.Render(r.Context, http.StatusOK, views.ObservePage(v))
}

func observedTool(t effects.ObservedTool) views.ObservedTool {
	v := views.ObservedTool{Name: line(t.Tool), URL: address("/observe", url.Values{"tool": {t.Tool}}), Mark: views.State{Kind: "plain", Word: "Enforced by now"}}
	if t.Observed {
		v.Mark = views.State{Kind: "info", Word: "Only observed"}
	}
	for _, s := range t.Sums {
		x := views.ObservedSum{Calls: grouped(s.Calls), Words: capital(s.Words())}
		for _, a := range s.Amounts {
			x.Amounts = append(x.Amounts, *amount(&a))
		}
		if s.Unpriced > 0 {
			x.Unpriced = grouped(s.Unpriced) + " without an amount"
		}
		v.Sums = append(v.Sums, x)
	}
	return v
}

func observedRow(r *request, x effects.ObservedCall) views.ObservedRow {
	v := views.ObservedRow{
		What: line(x.Summary), Sub: line(x.Tool + " · " + x.RunID + " · " + x.Agent + " · attempt " + strconv.Itoa(x.Attempt)),
		Amount: amount(x.Amount), At: r.at(x.BegunAt), State: wouldState(x),
	}
	if x.MetEffect != "" {
		v.MetURL = effectURL(x.MetEffect)
	}
	why := map[string]string{
		"overlap": "Another call has its business key.", "no_business_key": "A field of its business key is missing.",
		"unknown": "The agent did not know what came of the attempt before.", "deadline": "The attempt before ended without a word.",
		"lease": "The process of the attempt before had lost the run.", "effect_in_flight": "Another attempt was under way.",
		"lease_lost": "The process had lost the run.", "run_closed": "The run was over.", "run_paused": "Another call of the run had to be decided first.",
		"log_behind": "The log had lost events.", "conflict": "The key belonged to another call.", "effect_cancelled": "A person had stopped it.",
	}[x.Why]
	switch {
	case why == "" && x.Would == "replay":
		why = "Its outcome was on record."
	case why == "" && x.Would == "proceed":
		why = "It may have happened: its agent does not know, or never said."
	}
	v.Why = line(why)
	return v
}

func wouldState(x effects.ObservedCall) views.State {
	switch x.Would {
	case "replay":
		return views.State{Kind: "ok", Word: "Replayed"}
	case "hold":
		return views.State{Kind: "held", Word: "Held"}
	case "pause":
		return views.State{Kind: "unknown", Word: "Paused"}
	case "wait":
		return views.State{Kind: "held", Word: "Waiting for another"}
	case "refuse":
		return views.State{Kind: "stop", Word: "Turned away"}
	}
	return views.State{Kind: "unknown", Word: "Not known"}
}
