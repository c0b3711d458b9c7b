package desk

import (
	"errors"
	"net/http"
	"strings"

	"quittance/reconcile/access"
	"quittance/views"
	"quittance/web"
)

// localPath is where to go after signing in: a path of ours, whatever the address said.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(next, `/\`) ||
		strings.ContainsAny(next, "\r\n\t") || strings.HasPrefix(next, "/sign-") || len(next) > 2048 {
		return "/"
	}
	return next
}

func (d *Desk) signInPage(r *request) error {
	next := localPath(r.QueryParam("next"))
	if r.session != nil {
		return web.Redirect(r.Context, next)
	}
	s := views.SignIn{Next: next}
	// The one whose session is over is told so; whoever else sits here sees no name.
	if _, err := d.access.Session(r.ctx(), d.cookie.Secret(r.Context), false); errors.Is(err, access.ErrSessionOver) {
		s.Notice = "Your session has ended. What you had typed is kept for you."
	}
	return d.showSignIn(r, http.StatusOK, s)
}

func (d *Desk) showSignIn(r *request, status int, s views.SignIn) error {
	page, err := d.page(r, "Sign in", "")
	if err != nil {
		return err
	}
	s.Page = page
	return web.Render(r.Context, status, views.SignInPage(s))
}

func (d *Desk) signIn(r *request) error {
	next := localPath(r.form.Text("next"))
	address := web.Address(r.Context)
	var secret string
	var err error
	if token := r.form.Text("token"); token != "" {
		secret, err = d.access.SignInByToken(r.ctx(), token, r.form.Text("zone"), address)
	} else {
		secret, err = d.access.SignIn(r.ctx(), r.form.Text("email"), r.form.Raw("password"), r.form.Text("zone"), address)
	}
	throttled, isThrottled := errors.AsType[*access.Throttled](err)
	switch {
	case isThrottled:
		r.Response().Header().Set("Retry-After", wholeSeconds(throttled.RetryAfter))
		return d.showSignIn(r, http.StatusTooManyRequests, views.SignIn{Next: next, Email: r.form.Text("email"),
			Problem: "Too many failed sign-ins. Try again in " + span(throttled.RetryAfter+999e6) + "."})
	case errors.Is(err, access.ErrWrong):
		return d.showSignIn(r, http.StatusUnauthorized, views.SignIn{Next: next, Email: r.form.Text("email"),
			Problem: "That does not open anything. Check both fields; an admin can send you a new link."})
	case err != nil:
		return err
	}
	return d.signedIn(r, secret, next)
}

// signedIn gives the browser its new session; the one it had before ends.
func (d *Desk) signedIn(r *request, secret, next string) error {
	if before, err := d.access.Session(r.ctx(), d.cookie.Secret(r.Context), false); err == nil {
		if err := d.access.SignOut(r.ctx(), before); err != nil {
			return err
		}
	}
	d.cookie.Set(r.Context, secret)
	return web.Redirect(r.Context, next)
}

func (d *Desk) signOut(r *request) error {
	if err := d.access.SignOut(r.ctx(), r.session); err != nil {
		return err
	}
	d.cookie.Clear(r.Context)
	return web.Redirect(r.Context, "/sign-in")
}

// linkPage shows what a one-time link is for. It changes nothing: a chat that looks at
// links must not use them up.
func (d *Desk) linkPage(r *request) error {
	secret, err := web.Param(r.Context, "link")
	if err != nil {
		return err
	}
	opened, err := d.access.OpenLink(r.ctx(), secret)
	if errors.Is(err, access.ErrNoLink) {
		return d.deadLink(r)
	}
	if err != nil {
		return err
	}
	return d.showLink(r, http.StatusOK, secret, opened, "")
}

func (d *Desk) showLink(r *request, status int, secret string, o access.Opened, problem string) error {
	r.session = nil // the page of somebody who may not be the one signed in here
	page, err := d.page(r, "Welcome", "")
	if err != nil {
		return err
	}
	return web.Render(r.Context, status, views.OneTimePage(views.OneTime{
		Page: page, Action: "/enter/" + secret, Name: o.Name, Email: o.Email, Invite: o.Kind == access.LinkInvite, Problem: problem,
	}))
}

func (d *Desk) deadLink(r *request) error {
	page, err := d.page(r, "Link", "")
	if err != nil {
		return err
	}
	return web.Render(r.Context, http.StatusNotFound, views.FailurePage(views.Failure{
		Page: page, Heading: "This link does not work any more",
		Text: "It was used already, has expired, or was cut short on its way. Ask an admin for a new one.", Back: &views.Link{Text: "Sign in", URL: "/sign-in"},
	}))
}

func (d *Desk) useLink(r *request) error {
	secret, err := web.Param(r.Context, "link")
	if err != nil {
		return err
	}
	opened, err := d.access.OpenLink(r.ctx(), secret)
	if err == nil && opened.Kind == access.LinkInvite {
		if weak := access.CheckPassword(r.form.Raw("password")); weak != nil {
			return d.showLink(r, http.StatusUnprocessableEntity, secret, opened, "This will not do: "+weak.Error()+".")
		}
	}
	var session string
	if err == nil {
		session, err = d.access.UseLink(r.ctx(), secret, r.form.Raw("password"), r.form.Text("zone"))
	}
	if errors.Is(err, access.ErrNoLink) {
		return d.deadLink(r)
	}
	if err != nil {
		return err
	}
	return d.signedIn(r, session, "/?done=welcome")
}
