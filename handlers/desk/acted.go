package desk

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/web"
)

// declined is what an engine refused: in a word for the trail, and in words for the person.
// The zero value is no refusal.
type declined struct {
	why, detail string
	notFound    bool
}

// acted answers the form of an act: back to what it was about, or its confirmation again with
// what was typed and why it cannot be. failed is an error that is no refusal.
func (d *Desk) acted(r *request, page, done string, no declined, failed error, again func(r *request, status int, get func(string) string, problem string) error) error {
	switch {
	case no.notFound:
		return echo.ErrNotFound
	case no.why != "":
		d.audit(r, no.why)
		return again(r, http.StatusConflict, r.form.Text, no.detail)
	case failed != nil:
		return failed
	}
	return web.Redirect(r.Context, page+"?done="+done)
}
