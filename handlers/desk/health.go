package desk

import (
	"fmt"
	"net/http"
	"time"

	"quittance/reconcile/refunds"
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
	v.Lines = []views.HealthLine{d.loopLine("Loops", d.engine.LastLoop(), loopLate, "they run each second and move what time moves.")}
	if d.pay != nil {
		v.Lines = append(v.Lines, d.loopLine("Loop of payments", d.pay.LastLoop(), loopLate, "it runs each second, ends orders, and heals what nobody asks about any more."))
	}
	if d.refund != nil {
		v.Lines = append(v.Lines, d.loopLine("Loop of refunds", d.refund.LastLoop(), refunds.RoundLimit, "it asks the networks whether what was sent back arrived."))
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
	v.Lines = append(v.Lines, []views.HealthLine{
		{Name: "Database", State: views.State{Kind: "ok", Word: "Answers"}, Text: "In " + time.Since(database).Round(10*time.Microsecond).String() + "."},
		clocks, schema,
		{Name: "This server", State: views.State{Kind: "ok", Word: "Serving"}, Text: "Version " + d.version + ", started " + r.at(d.began).Text + "."},
	}...)
	sealed, err := d.sealLines(r)
	if err != nil {
		return err
	}
	v.Lines = append(v.Lines, sealed...)
	gap, err := d.engine.Gap(r.ctx())
	if err != nil {
		return err
	}
	if gap != nil {
		v.Forms = append(v.Forms, gapForm(r, *gap, problem))
		problem = ""
	}
	copied, err := d.engine.Copy(r.ctx())
	if err != nil {
		return err
	}
	if copied != nil {
		v.Forms = append(v.Forms, copyForm(r, *copied, problem))
		problem = ""
	}
	files, err := d.engine.Logs(r.ctx())
	if err != nil {
		return err
	}
	for _, f := range files {
		v.Lines = append(v.Lines, logLine(r, f))
		if f.Alarm != nil {
			v.Forms = append(v.Forms, logForm(r, f, problem))
			problem = ""
		}
	}
	return web.Render(r.Context, status, views.HealthPage(v))
}

// loopLine is one loop of this server: late is when it counts as stuck.
func (d *Desk) loopLine(name string, last time.Time, late time.Duration, does string) views.HealthLine {
	ran, ok := d.lastRan(last, late)
	l := views.HealthLine{Name: name, State: views.State{Kind: "ok", Word: "Running"}, Text: ran + "; " + does}
	if !ok {
		l.State = views.State{Kind: "danger", Word: "Stuck"}
	}
	return l
}

// lastRan says when a loop last ran, and whether that is as it should be.
func (d *Desk) lastRan(last time.Time, late time.Duration) (text string, ok bool) {
	ago := time.Since(last)
	switch {
	case last.UnixMilli() == 0:
		return "Loops have not run yet", time.Since(d.began) < late
	case ago < late:
		return "Checked " + span(ago) + " ago", true
	}
	return "Loops last ran " + span(ago) + " ago", false
}
