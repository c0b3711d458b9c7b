package desk

import (
	"errors"
	"net/http"

	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// gapForm is what an admin says of a log gap.
func gapForm(r *request, g effects.GapView, problem string) views.GapForm {
	f := views.GapForm{ID: "gap-title", Title: "Log gap", Question: "What happened to the database?", Token: r.session.FormToken(), Problem: problem, CanAct: r.may(admin)}
	if g.AcknowledgedAt.IsZero() {
		f.Action, f.Button = "/health/gap/acknowledge", "Acknowledge: treat everything open as not known"
		f.Text = "This database does not hold what it once confirmed, or it was changed: " + cutText(g.FoundBy, foundShown) + " (" + r.at(g.FoundAt).Text + "). Nothing is released. Acknowledging makes every open effect not known, so that each is looked at."
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

// foundShown bounds what is shown of a finding; all of it is in the record.
const foundShown = 1000

func placeName(s string) string {
	if s == "" {
		return "a place without a name"
	}
	return `"` + cutText(s, 100) + `"`
}

func copyText(c effects.CopyView) string {
	return "This is a copy of the database of " + placeName(c.BelongsTo) + ", or was started in another place: look-ups and deliveries are off."
}

// copyForm says that a copied database belongs where it is.
func copyForm(r *request, c effects.CopyView, problem string) views.GapForm {
	return views.GapForm{
		ID: "copy-title", Title: "A copy", Question: "What became of the database of " + placeName(c.BelongsTo) + "?", Token: r.session.FormToken(), Problem: problem, CanAct: r.may(admin),
		Action: "/health/copy/adopt", Button: "It belongs here: switch look-ups and deliveries on",
		Text: copyText(c) + " This server runs in " + placeName(c.Here) + ". Leave them off in a drill. Where two databases act for the same agents, each pays.",
	}
}

func (d *Desk) adopt(r *request) error {
	return d.onGap(r, func(note string) error { return d.engine.Adopt(r.ctx(), r.person(), note) })
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
