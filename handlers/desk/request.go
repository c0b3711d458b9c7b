package desk

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger/audit"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/views"
	"quittance/web"
)

// audience is who a page is for.
type audience []string

var (
	anyone   audience = nil
	somebody          = audience{}             // whoever is signed in, whatever their roles
	reader            = audience(access.Roles) // anybody with a role
	decider           = audience(access.Deciders)
	auditor           = audience{"auditor", "admin"}
	admin             = audience{"admin"}
	tester            = audience{"operator", "admin"}
	finance           = audience{"finance", "admin"}
)

// request is one request of one person.
type request struct {
	echo.Context
	route   route
	session *access.Session // nil only where the route is for anyone
	form    *web.Form       // of a POST
	clock
}

func (r *request) ctx() context.Context { return r.Request().Context() }

// person is who decides.
func (r *request) person() effects.Person {
	return effects.Person{ID: r.session.Person.ID, Name: r.session.Person.Name}
}

func (r *request) may(a audience) bool { return r.session != nil && r.session.Person.Is(a...) }

// by is the person as the maker of a change.
func (r *request) by() access.MadeBy {
	return access.MadeBy{Person: &r.session.Person, RequestID: web.RequestID(r.Context)}
}

// denied is a refusal that belongs in the audit trail.
type denied struct {
	status        int
	heading, text string
	why           string // for the trail
}

func (d *denied) Error() string { return d.why }

// serve is what every page has in common. The order matters: who it is, what they may,
// and only then what they sent.
func (d *Desk) serve(rt route) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := &request{Context: c, route: rt}
		err := d.enter(r)
		if err == nil {
			err = rt.handle(d, r)
		}
		if err == nil {
			return nil
		}
		return d.fail(r, err)
	}
}

// enter finds out who is asking and whether they may.
func (d *Desk) enter(r *request) error {
	r.clock = clock{nowhereZone, time.Now()}
	byItself := r.Request().Header.Get("X-Live") != "" || r.route.stream
	session, err := d.access.Session(r.ctx(), d.cookie.Secret(r.Context), !byItself)
	over := errors.Is(err, access.ErrSessionOver)
	if err != nil && !over && !errors.Is(err, access.ErrNoSession) {
		return err
	}
	if session != nil {
		r.clock = clock{session.Zone, session.Now}
	}
	// Of somebody who was never signed in here nothing is read: a form may be 11 MB.
	if r.Request().Method == http.MethodPost && (r.route.who == nil || session != nil) {
		if r.form, err = web.ReadForm(r.Context); err != nil {
			return err
		}
	}
	if r.route.who == nil {
		if !over {
			r.session = session
		}
		return nil
	}
	if session == nil || over {
		return d.signInFirst(r, session)
	}
	r.session = session
	if len(r.route.who) > 0 && !r.may(r.route.who) {
		return &denied{http.StatusForbidden, "This is not for you to do",
			"It takes one of the roles " + strings.Join(r.route.who, ", ") + ". An admin can give it to you.", "role is missing"}
	}
	if r.Request().Method != http.MethodPost || r.route.unbound {
		return nil
	}
	return d.useForm(r)
}

// useForm checks the form's token and, except for drafts, uses it up.
func (d *Desk) useForm(r *request) (err error) {
	token := r.form.Text("form")
	if r.route.draft {
		err = r.session.CheckForm(token)
	} else {
		err = d.access.UseForm(r.ctx(), r.session, token)
	}
	switch {
	case errors.Is(err, access.ErrFormForeign):
		return &denied{http.StatusForbidden, "This form is not of your session",
			"It was made for somebody else, before you signed in again, or by another site. Nothing was changed. Open the page again.", "form token of another session"}
	case errors.Is(err, access.ErrFormUsed):
		if r.route.used != nil {
			return r.route.used(d, r)
		}
		return errUsed
	}
	return err
}

// errAnswered says that the answer was written already.
var errAnswered = errors.New("answered")

var errUsed = &web.Problem{Status: http.StatusConflict, Code: "form_used", Detail: "This form was sent already. Nothing was changed by sending it again."}

// signInFirst leads to the sign-in page and back. What was typed into a form of a
// session that is over is kept for the same person: the old secret and the form's
// token prove whose it is, and nobody else is ever shown it.
func (d *Desk) signInFirst(r *request, over *access.Session) error {
	back := r.Request().URL.RequestURI()
	if r.Request().Method == http.MethodPost {
		back = "/"
		for _, path := range []string{"/effects/", "/refunds/", "/recoveries/", "/transfers/"} {
			if id := r.Param("id"); strings.HasPrefix(r.Path(), path+":id") {
				back = path + url.PathEscape(id)
			}
		}
		if over != nil && r.route.keep != nil && over.CheckForm(r.form.Text("form")) == nil {
			r.session = over
			err := r.route.keep(d, r)
			r.session = nil
			if err != nil {
				return err
			}
		}
	}
	if err := web.Redirect(r.Context, "/sign-in?"+url.Values{"next": {back}}.Encode()); err != nil {
		return err
	}
	return errAnswered
}

// fail turns an error into a page. The cause of what is our own fault goes to the log.
func (d *Desk) fail(r *request, err error) error {
	if errors.Is(err, errAnswered) {
		return nil
	}
	f := views.Failure{RequestID: web.RequestID(r.Context)}
	status := http.StatusInternalServerError
	f.Heading, f.Text = "Something broke here", "It is not your fault, and it is in the server's log. Whether what you did was carried out is not sure: look again before you repeat it."
	deny, isDenied := errors.AsType[*denied](err)
	problem, isProblem := errors.AsType[*web.Problem](err)
	refusal, isRefusal := errors.AsType[*effects.Refusal](err)
	switch {
	case isDenied:
		status, f.Heading, f.Text = deny.status, deny.heading, deny.text
		d.audit(r, deny.why)
	case isProblem:
		status, f.Heading, f.Text = problem.Status, "That did not work", problem.Detail
	case isRefusal && refusal.Code == effects.CodeNotFound, errors.Is(err, echo.ErrNotFound):
		status, f.Heading, f.Text = http.StatusNotFound, "There is nothing here", "The address is wrong, or what it named is not in this database."
	case isRefusal:
		status, f.Heading, f.Text = http.StatusConflict, "That cannot be done now", refusal.Detail
		d.audit(r, string(refusal.Code))
	case errors.Is(err, access.ErrChanged), errors.Is(err, access.ErrLastAdmin):
		status, f.Heading, f.Text = http.StatusConflict, "That cannot be done now", err.Error()+"."
		d.audit(r, err.Error())
	case errors.Is(err, context.Canceled) && r.ctx().Err() != nil:
		return nil
	default:
		d.log.Error("page failed", "route", r.Path(), "request_id", f.RequestID, "error", err)
	}
	if id := r.Param("id"); strings.HasPrefix(r.Path(), "/effects/:id/") {
		f.Back = &views.Link{Text: "Back to the effect", URL: "/effects/" + url.PathEscape(id)}
	} else if r.session != nil {
		f.Back = &views.Link{Text: "To the queue", URL: "/"}
	}
	page, pageErr := d.page(r, f.Heading, "")
	if pageErr != nil { // the page around it needs the database too
		page = views.Page{Title: f.Heading, Assets: web.Assets()}
	}
	f.Page = page
	return web.Render(r.Context, status, views.FailurePage(f))
}

// audit writes that an attempt was denied. A read that was denied is one too.
func (d *Desk) audit(r *request, why string) {
	row := audit.Row{Via: "page", Action: r.route.action, Outcome: "denied", Note: why, RequestID: web.RequestID(r.Context)}
	if row.Action == "" {
		row.Action = "read"
	}
	if r.session != nil {
		row.Person, row.Actor = r.session.Person.ID, r.session.Person.Name
	}
	for path, subject := range map[string]string{"/effects/": "effect:", "/refunds/": "refund:", "/recoveries/": "recovery:", "/transfers/": "transfer:"} {
		if id := r.Param("id"); id != "" && strings.HasPrefix(r.Path(), path+":id") && len(id) <= 64 {
			row.Subject = subject + id
		}
	}
	if err := d.access.Record(context.WithoutCancel(r.ctx()), row); err != nil {
		d.log.Error("couldn't write the audit trail", "route", r.Path(), "error", err)
	}
}

// nowhere is the page for an address that is none. Programs get a problem document.
func (d *Desk) nowhere(c echo.Context) error {
	if strings.HasPrefix(c.Request().URL.Path, "/v1/") || !strings.Contains(c.Request().Header.Get("Accept"), "text/html") {
		return echo.ErrNotFound
	}
	return d.serve(route{who: anyone, handle: func(*Desk, *request) error { return echo.ErrNotFound }})(c)
}

// asked tells whether the address or the form carries a word.
func (r *request) asked(name string) bool {
	return r.QueryParam(name) != "" || r.form != nil && r.form.Text(name) != ""
}
