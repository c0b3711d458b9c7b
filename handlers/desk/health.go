package desk

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) health(r *request) error { return d.showHealth(r, http.StatusOK, "") }

func (d *Desk) showHealth(r *request, status int, problem string) error {
	page, err := d.page(r, "Health", "/health")
	if err != nil {
		return err
	}
	page.Live = "/events"
	v := views.Health{Page: page}
	have, want, err := d.db.SchemaVersion(r.ctx())
	if err != nil {
		return err
	}
	loops := views.HealthLine{Name: "Loops", State: views.State{Kind: "ok", Word: "Running"}, Text: page.Loops + "; they run each second and move what time moves."}
	if !page.Quiet {
		loops.State = views.State{Kind: "danger", Word: "Stuck"}
	}
	database := time.Now()
	if err := d.db.Pool().PingContext(r.ctx()); err != nil {
		return err
	}
	skew := time.Since(r.now).Round(time.Millisecond).Abs()
	clocks := views.HealthLine{Name: "Clocks", State: views.State{Kind: "ok", Word: "Agree"}, Text: "This server and the database differ by about " + skew.String() + ". The database's clock decides."}
	if skew > 2*time.Second {
		clocks.State = views.State{Kind: "unknown", Word: "Differ"}
	}
	schema := views.HealthLine{Name: "Schema", State: views.State{Kind: "ok", Word: "Current"}, Text: fmt.Sprintf("Version %d.", have)}
	if have != want {
		schema.State, schema.Text = views.State{Kind: "unknown", Word: "Differs"}, fmt.Sprintf("Version %d; this program was built with %d.", have, want)
	}
	v.Lines = []views.HealthLine{
		loops,
		{Name: "Database", State: views.State{Kind: "ok", Word: "Answers"}, Text: "In " + time.Since(database).Round(10*time.Microsecond).String() + "."},
		clocks, schema,
		{Name: "This server", State: views.State{Kind: "ok", Word: "Serving"}, Text: "Version " + d.version + ", started " + r.at(d.began).Text + "."},
	}
	gap, err := d.engine.Gap(r.ctx())
	if err != nil {
		return err
	}
	if gap != nil {
		v.Gap = gapForm(r, *gap, problem)
		problem = ""
	}
	files, err := d.engine.Logs(r.ctx())
	if err != nil {
		return err
	}
	for _, f := range files {
		v.Lines = append(v.Lines, logLine(r, f))
		if f.Alarm != nil {
			v.Files = append(v.Files, logForm(r, f, problem))
			problem = ""
		}
	}
	return web.Render(r.Context, status, views.HealthPage(v))
}

func gapForm(r *request, g effects.GapView, problem string) *views.GapForm {
	f := &views.GapForm{ID: "gap-title", Title: "Log gap", Question: "What happened to the database?", Token: r.session.FormToken(), Problem: problem, CanAct: r.may(admin)}
	if g.AcknowledgedAt.IsZero() {
		f.Action, f.Button = "/health/gap/acknowledge", "Acknowledge: treat everything open as not known"
		f.Text = "This database does not hold an event that it once confirmed (" + g.FoundBy + ", " + r.at(g.FoundAt).Text + "). Nothing is released. Acknowledging makes every open effect not known, so that each is looked at."
		return f
	}
	f.Action, f.Button = "/health/gap/end", "End the gap: new effects may run"
	f.Text = "Acknowledged by " + g.AcknowledgedBy + " at " + r.at(g.AcknowledgedAt).Text + ". New effects start as not known until the gap is ended: do it when everything of the lost time was begun again or looked at."
	return f
}

func (d *Desk) acknowledgeGap(r *request) error {
	return d.onGap(r, func(note string) error { return d.engine.AcknowledgeGap(r.ctx(), r.person(), note) })
}

func (d *Desk) endGap(r *request) error {
	return d.onGap(r, func(note string) error { return d.engine.EndGap(r.ctx(), r.person(), note) })
}

// onGap acts on the log gap. The database writes the trail's line with it.
func (d *Desk) onGap(r *request, f func(note string) error) error {
	err := f(r.form.Text("note"))
	if refusal, ok := errors.AsType[*effects.Refusal](err); ok {
		d.audit(r, string(refusal.Code))
		return d.showHealth(r, http.StatusConflict, refusal.Detail)
	}
	if err != nil {
		return err
	}
	return web.Redirect(r.Context, "/health?done=changed")
}
