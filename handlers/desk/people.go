package desk

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	store "quittance/ledger/access"
	"quittance/reconcile/access"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) people(r *request) error { return d.showPeople(r, http.StatusOK, views.People{}) }

func (d *Desk) showPeople(r *request, status int, v views.People) (err error) {
	if v.Page, err = d.page(r, "People", "/people"); err != nil {
		return err
	}
	list, err := store.People(r.ctx(), d.db)
	if err != nil {
		return err
	}
	v.Roles, v.Token, v.Admin = access.Roles, r.session.FormToken(), r.may(admin)
	for _, p := range list {
		row := views.PersonRow{
			ID: whole(p.ID), Name: p.Name, Email: p.Email, RolesText: strings.Join(p.Roles, ", "), Disabled: !p.DisabledAt.IsZero(),
			Since: r.at(p.CreatedAt.Time), Was: strings.Join(p.Roles, " "), Token: r.session.FormToken(), Own: p.ID == r.session.Person.ID,
		}
		if row.RolesText == "" {
			row.RolesText = "no role"
		}
		for _, role := range access.Roles {
			row.Roles = append(row.Roles, views.Option{Value: role, Label: role, Picked: slices.Contains(p.Roles, role)})
		}
		v.Rows = append(v.Rows, row)
	}
	return web.Render(r.Context, status, views.PeoplePage(v))
}

func (d *Desk) invite(r *request) error {
	name, email := r.form.Text("name"), r.form.Text("email")
	secret, err := d.access.Add(r.ctx(), r.by(), name, email, roles(r.form.All("role")))
	if err != nil {
		return d.showPeople(r, http.StatusUnprocessableEntity, views.People{Problem: capital(err.Error()) + ".", Name: name, Email: email})
	}
	return d.showPeople(r, http.StatusOK, views.People{Invite: d.linkURL(r, secret), For: name})
}

func roles(sent []string) []string {
	out := []string{}
	for _, x := range access.Roles {
		if slices.Contains(sent, x) {
			out = append(out, x)
		}
	}
	return out
}

// linkURL is where a one-time link leads, from outside.
func (d *Desk) linkURL(r *request, secret string) string {
	base := d.public
	if base == "" {
		base = r.Scheme() + "://" + r.Request().Host
	}
	return base + "/enter/" + secret
}

// onPerson does one thing to a person and leads back to the list.
func (d *Desk) onPerson(r *request, f func(id int64) error) error {
	id, err := strconv.ParseInt(r.Param("person"), 10, 64)
	if err != nil {
		return echo.ErrNotFound
	}
	if err := f(id); err != nil {
		return err
	}
	return web.Redirect(r.Context, "/people?done=changed")
}

func (d *Desk) setRoles(r *request) error {
	return d.onPerson(r, func(id int64) error {
		return d.access.SetRoles(r.ctx(), r.by(), id, roles(strings.Fields(r.form.Text("was"))), roles(r.form.All("role")))
	})
}

func (d *Desk) disable(r *request) error {
	return d.onPerson(r, func(id int64) error { return d.access.Disable(r.ctx(), r.by(), id) })
}

func (d *Desk) enable(r *request) error {
	return d.onPerson(r, func(id int64) error { return d.access.Enable(r.ctx(), r.by(), id) })
}

func (d *Desk) newLink(r *request) error {
	id, err := strconv.ParseInt(r.Param("person"), 10, 64)
	if err != nil {
		return echo.ErrNotFound
	}
	p, err := store.PersonByID(r.ctx(), d.db, id)
	if err != nil {
		return echo.ErrNotFound
	}
	secret, err := d.access.Link(r.ctx(), r.by(), id, access.LinkInvite)
	if err != nil {
		return err
	}
	return d.showPeople(r, http.StatusOK, views.People{Invite: d.linkURL(r, secret), For: p.Name})
}

func (d *Desk) you(r *request) error { return d.showYou(r, http.StatusOK, views.You{}) }

func (d *Desk) showYou(r *request, status int, v views.You) (err error) {
	if v.Page, err = d.page(r, "You", ""); err != nil {
		return err
	}
	tokens, err := store.TokensOf(r.ctx(), d.db, r.session.Person.ID)
	if err != nil {
		return err
	}
	v.Token = r.session.FormToken()
	if v.Zone == "" {
		v.Zone = r.zone.String()
	}
	for _, t := range tokens {
		v.Tokens = append(v.Tokens, views.TokenRow{
			ID: whole(t.ID), Name: t.Name, Hint: t.Hint, Made: r.at(t.CreatedAt.Time), Expires: r.at(t.ExpiresAt.Time),
			Revoked: !t.RevokedAt.IsZero(), Token: r.session.FormToken(),
		})
	}
	return web.Render(r.Context, status, views.YouPage(v))
}

func (d *Desk) newToken(r *request) error {
	days := r.form.Whole("days")
	if days < 1 || days > 366 {
		return d.showYou(r, http.StatusUnprocessableEntity, views.You{Problem: "A token works for 1 to 366 days."})
	}
	token, err := d.access.NewPersonalToken(r.ctx(), r.by(), r.session.Person.ID, r.form.Text("name"), time.Duration(days)*24*time.Hour)
	if err != nil {
		return d.showYou(r, http.StatusUnprocessableEntity, views.You{Problem: capital(err.Error()) + "."})
	}
	return d.showYou(r, http.StatusOK, views.You{Secret: token})
}

func (d *Desk) revokeToken(r *request) error {
	id, err := strconv.ParseInt(r.Param("token"), 10, 64)
	if err != nil {
		return echo.ErrNotFound
	}
	if err := d.access.RevokePersonalToken(r.ctx(), r.by(), r.session.Person.ID, id); err != nil {
		return err
	}
	return web.Redirect(r.Context, "/you?done=changed")
}

func (d *Desk) setZone(r *request) error {
	if err := d.access.SetZone(r.ctx(), r.session, r.form.Text("zone")); err != nil {
		return d.showYou(r, http.StatusUnprocessableEntity, views.You{Problem: capital(err.Error()) + ".", Zone: r.form.Text("zone")})
	}
	return web.Redirect(r.Context, "/you?done=changed")
}
