package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"quittance/ledger/desk"
	store "quittance/ledger/effects"
	"quittance/reconcile/canon"
	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
	"quittance/views"
	"quittance/web"
)

// subject is an effect as its pages need it.
type subject struct {
	effects.EffectView
	looks effects.LooksView
	run   int64
	tool  *policy.Tool
	args  *canon.Value // nil when they cannot be parsed any more
	draft *draft
}

func (d *Desk) subject(r *request) (s subject, err error) {
	id, err := web.Param(r.Context, "id")
	if err != nil {
		return s, err
	}
	if s.EffectView, err = d.engine.Effect(r.ctx(), 0, id); err != nil {
		return s, err
	}
	if s.looks, err = d.engine.Looks(r.ctx(), s.EffectID); err != nil {
		return s, err
	}
	s.tool = d.engine.Policy().Tool(s.Tool)
	if s.args, err = canon.ParseObject(s.Arguments); err != nil {
		s.args = nil // stored under older rules: it is shown as text all the same
	}
	if s.run, err = desk.RunOfEffect(r.ctx(), d.db, s.EffectID); err != nil {
		return s, err
	}
	s.draft, err = d.readDraft(r.ctx(), s.EffectID, r.session.Person.ID)
	return s, err
}

func (d *Desk) effect(r *request) error {
	if r.Request().Header.Get("X-Live") == "" { // a person opened it, and not the page itself
		if err := d.lookIfStale(r); err != nil {
			return err
		}
	}
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	return d.showEffect(r, http.StatusOK, s, problems{})
}

// problems are what to say beside which form.
type problems struct {
	verdict, second, undo, contradiction string
	notice                               *views.Notice
}

func (d *Desk) showEffect(r *request, status int, s subject, p problems) error {
	page, err := d.page(r, titleOf(s.Summary), "/")
	if err != nil {
		return err
	}
	page.Live = fmt.Sprintf("/events?run=%d", s.run)
	if p.notice != nil {
		page.Notice = p.notice
	}
	events, err := d.line(r.ctx(), r, s)
	if err != nil {
		return err
	}
	files, err := desk.AttachmentsOf(r.ctx(), d.db, s.EffectID)
	if err != nil {
		return err
	}
	e := views.Effect{
		Page: page, ID: s.EffectID, Version: whole(s.Version), What: show(s.Summary, 2000, false), Amount: unsent(amount(s.Amount), s.SameAs != ""),
		State: s.standing(r.now).badge(), Lead: lead(r, s), Line: events, Zone: r.zone.String(),
		Crumbs: []views.Link{{Text: "Queue", URL: "/"}, {Text: cutText(s.RunID, nameShown), URL: fmt.Sprintf("/runs/%d", s.run)}},
		Facts:  facts(s), Warnings: warnings(s), CanAct: r.may(decider),
		Arguments: code(s.Arguments, effectURL(s.EffectID)+"/arguments.json"),
		FileToken: r.session.FormToken(), FileURL: effectURL(s.EffectID) + "/files",
	}
	e.NotKnownLed, e.NotKnown = notKnown(r, s)
	e.Looks = d.looksPanel(r, s)
	if s.args != nil {
		for _, place := range s.tool.WhereToCheck(s.args) {
			e.Places = append(e.Places, views.Place{Text: show(place.Text, 500, false), URL: place.URL})
		}
	}
	if s.Result != nil {
		c := code(s.Result, effectURL(s.EffectID)+"/result.json")
		e.Result = &c
	} else if s.Stored != nil && s.Stored.Cut {
		e.Result = &views.Code{Cut: fmt.Sprintf("%s were sent, more than is kept. SHA-256 %s.", bytesText(s.Stored.Size), s.Stored.Digest)}
	}
	if s.Error != nil {
		c := code(s.Error, "")
		e.Error = &c
	}
	for _, o := range s.Overlaps {
		e.Overlaps = append(e.Overlaps, overlap(r, s, o))
	}
	for _, f := range files {
		e.Files = append(e.Files, views.File{
			URL: effectURL(s.EffectID) + "/files/" + f.ID, Name: line(f.Name), Size: bytesText(f.Size), Digest: fmt.Sprintf("%x", []byte(f.Digest)), By: f.By, At: r.at(f.At),
		})
	}
	e.Panel = d.panel(r, s, p)
	return web.Render(r.Context, status, views.EffectPage(e))
}

func titleOf(summary string) string { return cutText(summary, 80) }

func (d *Desk) line(ctx context.Context, r *request, s subject) ([]views.Event, error) {
	log, err := store.EventsOfEffect(ctx, d.db, s.EffectID)
	if err != nil {
		return nil, err
	}
	run, err := desk.EventsOfRun(ctx, d.db, s.run, 200)
	if err != nil {
		return nil, err
	}
	return history(r, s.EffectView, s.looks, log, run), nil
}

// contradicted tells whether an incident is open.
func (s subject) contradicted() bool {
	return slices.ContainsFunc(s.Contradictions, func(c effects.ContradictionView) bool { return c.AcknowledgedAt.IsZero() })
}

func (s subject) standing(now time.Time) standing {
	return standing{
		state: s.State, why: s.Why, contradicted: s.contradicted(), second: s.Proposal != nil, confirm: s.Early && !s.Moment.After(now), same: s.SameAs != "",
	}
}

// lead says in a sentence who asked for it and when.
func lead(r *request, s subject) string {
	text := s.Agent + " asked " + cutText(s.Tool, nameShown) + " for this at " + r.at(s.OpenedAt).Text
	if s.Occurrence > 1 {
		text += fmt.Sprintf(", as the %s identical call of its run", ordinal(s.Occurrence))
	}
	switch n := len(s.Attempts); {
	case n == 0:
		text += "; no attempt has begun"
	case n > 1:
		text += fmt.Sprintf("; %d attempts have begun", n)
	}
	if s.RepeatOf != "" {
		text += ". The same call was made before in this run"
	}
	return text + "."
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// notKnown says what nobody knows yet.
func notKnown(r *request, s subject) (led, text string) {
	switch s.State {
	case "interrupted":
		led = "We do not know whether it happened."
		switch n := len(s.Attempts); {
		case s.Why == "undone":
			text = "A decision was taken back, so it is open again."
		case s.Why == "hit":
			text = "Something was found at the downstream after it was decided, so it is open again."
		case s.Why == "log_gap", n == 0:
			text = "No attempt is on record, but one may have been made that this database does not hold."
		case s.Why == "unknown":
			text = "The agent came back and could not say itself. Its request may have arrived."
		default:
			a := s.Attempts[n-1]
			text = fmt.Sprintf("The intent was recorded at %s. %s stopped answering before it could say how it went.", r.at(a.BegunAt).Text, orSomebody(a.Worker))
		}
		text += whoFindsOut(r, s)
	case "held":
		led = "It has not started."
		text = "Another effect has the same business key, so it may be the same action a second time. A person says whether it is."
		if s.Why == "no_business_key" {
			text = "Its business key is incomplete, so nothing can tell whether it was done before. A person says whether it may run."
		}
	case "in_flight":
		led, text = "An attempt is under way.", "Its worker has until "+r.at(lastDeadline(s)).Text+" to send it and to say how it went."
	}
	return led, text
}

// whoFindsOut says what an effect waits for whose outcome nobody knows.
func whoFindsOut(r *request, s subject) string {
	if s.Blind {
		return " The run is paused and will not go on by itself. This tool has no look-up: only a person can find out."
	}
	text := " The run is paused until the downstream proves it, or a person decides."
	if !s.looks.EndedAt.IsZero() {
		text = " The run is paused until a person finds out: look-ups ended without proof."
	}
	if l := s.looks.Last(); l != nil {
		text += " The downstream, asked at " + r.at(l.AskedAt).Text + ": " + l.Says() + "."
	}
	return text
}

func lastDeadline(s subject) time.Time {
	if n := len(s.Attempts); n > 0 {
		return s.Attempts[n-1].Deadline
	}
	return time.Time{}
}

func orSomebody(worker string) string {
	if worker == "" {
		return "Its worker"
	}
	return worker
}

// conditions are what must hold before "not taken" can be sure, met or not.
func conditions(r *request, s subject) (list []views.Condition) {
	if deadline := lastDeadline(s); !deadline.IsZero() {
		met := deadline.Before(r.now)
		text := "No attempt can send its request any more (" + r.at(deadline).Text + ")"
		if !met {
			text = "An attempt may still send its request, until " + r.at(deadline).Text
		}
		list = append(list, views.Condition{Met: met, Text: text})
	}
	if _, declared := s.tool.LandsWithin(); !declared {
		list = append(list, views.Condition{Text: "How long a sent request may still land is not declared for this tool: that it is absent proves nothing by itself"})
	} else if !s.Moment.IsZero() {
		met := s.Moment.Before(r.now)
		text := "Nothing that was sent can land any more (since " + r.at(s.Moment).Text + ")"
		if !met {
			text = "Something that was sent may still land, until " + r.at(s.Moment).Text
		}
		list = append(list, views.Condition{Met: met, Text: text})
	}
	if s.Blind {
		list = append(list, views.Condition{Text: "No look-up can be asked: you are the evidence"})
	}
	return list
}

func facts(s subject) []views.Fact {
	list := []views.Fact{
		{Name: "Tool", Value: line(s.Tool)}, {Name: "Agent", Value: line(s.Agent)}, {Name: "Account", Value: line(s.Account)},
		{Name: "Run", Value: line(s.RunID), URL: fmt.Sprintf("/runs/%d", s.run)},
	}
	add := func(name, value string) {
		if value != "" {
			list = append(list, views.Fact{Name: name, Value: line(value)})
		}
	}
	add("Business key", s.BusinessKey)
	add("Reference", s.Reference)
	add("Occurrence", fmt.Sprint(s.Occurrence))
	for _, a := range s.Attempts {
		add(fmt.Sprintf("Attempt %d", a.Number), fmt.Sprintf("%s, fence %d", orSomebody(a.Worker), a.Fence))
	}
	add("Call id", s.CallID)
	add("Time by the client's clock", s.ClientTime)
	var context struct {
		Labels map[string]string `json:"labels"`
		Why    string            `json:"why"`
		DueAt  string            `json:"due_at"`
		Trace  string            `json:"trace"`
	}
	if json.Unmarshal(s.Context, &context) == nil {
		add("Why the agent wants it", context.Why)
		add("Due", context.DueAt)
		add("Trace", context.Trace)
		labels := make([]string, 0, len(context.Labels))
		for k, v := range context.Labels {
			labels = append(labels, k+"="+v)
		}
		slices.Sort(labels)
		add("Labels", strings.Join(labels, ", "))
	}
	if s.SameAs != "" {
		list = append(list, views.Fact{Name: "Same as", Value: line(s.SameAs), URL: effectURL(s.SameAs)})
	}
	if s.RepeatOf != "" {
		list = append(list, views.Fact{Name: "Repeats", Value: line(s.RepeatOf), URL: effectURL(s.RepeatOf)})
	}
	add("Key", s.Key)
	return append(list, views.Fact{Name: "Effect", Value: line(s.EffectID)})
}

// warnings are what a reader could be misled by.
func warnings(s subject) (list []string) {
	text, _ := prettyJSON(s.Arguments, shownJSON)
	if odd(text) || odd(line(s.BusinessKey)) || odd(line(s.Tool)) {
		list = append(list, "The arguments hold characters that cannot be seen, or that look like others. They are marked below: what you read may not be what the tool was sent.")
	}
	if s.AmountProblem != "" {
		list = append(list, "The amount cannot be read ("+s.AmountProblem+"). It counts as above every limit.")
	}
	return list
}

func overlap(r *request, s subject, o effects.OverlapView) views.Overlap {
	v := views.Overlap{
		URL: effectURL(o.EffectID), Run: cutText(o.RunID, nameShown), Opened: r.at(o.OpenedAt).Text, State: standing{state: o.State}.badge(),
		Amount: amount(o.Amount), Holds: o.Owner,
	}
	v.Differences, v.Same = differences(s.Arguments, o.Arguments)
	return v
}

func (d *Desk) arguments(r *request) error {
	return d.download(r, "arguments", func(s subject) []byte { return s.Arguments })
}

func (d *Desk) result(r *request) error {
	return d.download(r, "result", func(s subject) []byte { return s.Result })
}

// download gives JSON exactly as it was stored. It is never shown in the page's origin.
func (d *Desk) download(r *request, what string, of func(subject) []byte) error {
	s, err := d.subject(r)
	if err != nil {
		return err
	}
	r.Response().Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", what+"-"+s.EffectID+".json"))
	return r.Blob(http.StatusOK, "application/json", of(s))
}

func (d *Desk) backToEffect(r *request) error {
	if err := web.Redirect(r.Context, "/effects/"+url.PathEscape(r.Param("id"))+"?done=again"); err != nil {
		return err
	}
	return errAnswered
}
