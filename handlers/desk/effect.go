package desk

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	// repeats is of an effect that repeats another.
	repeats desk.Repeats
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
	if s.RepeatOf != "" {
		if s.repeats, err = desk.RepeatsOf(r.ctx(), d.db, s.EffectID); err != nil {
			return s, err
		}
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
