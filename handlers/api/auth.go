package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/web"
)

// caller is who a route is for.
type caller int

const (
	anyone  caller = iota // no token is looked at
	agent                 // an account's token
	reader                // any person's token
	decider               // a person's token with a role that decides
	agentOrReader
	administrator // a person's token with the role admin
)

func (w caller) String() string {
	return [...]string{"anyone", "an agent", "a person", "a person who decides", "an agent or a person", "an administrator"}[w]
}

// identity is who a request was found to come from.
type identity struct{ access.Identity }

// account is 0 for a person, who sees every account's things.
func (i identity) account() int64 {
	if i.Account == nil {
		return 0
	}
	return i.Account.ID
}

func (i identity) person() effects.Person {
	return effects.Person{ID: i.Person.ID, Name: i.Person.Name}
}

// authenticate finds who is calling and whether the route is for them. Which of
// unknown, expired and revoked a token is, is not told.
func (a *API) authenticate(c echo.Context, want caller) (identity, error) {
	if want == anyone {
		return identity{}, nil
	}
	token := web.Bearer(c)
	if token == "" {
		return identity{}, unauthorized(c, "Send the header Authorization: Bearer with a token.")
	}
	found, err := a.access.Authenticate(c.Request().Context(), token)
	if errors.Is(err, access.ErrUnknown) {
		return identity{}, unauthorized(c, "The token is not known, has expired, or was revoked.")
	}
	if err != nil {
		return identity{}, err
	}
	allowed := false
	switch want {
	case agent:
		allowed = found.Account != nil
	case reader:
		allowed = found.Person != nil
	case decider:
		allowed = found.Person.Is(access.Deciders...)
	case administrator:
		allowed = found.Person.Is("admin")
	case agentOrReader:
		allowed = found.Account != nil || found.Person != nil
	}
	if !allowed {
		detail := "This call is for the token of " + want.String() + "."
		if want == decider {
			detail += " The roles that decide are " + strings.Join(access.Deciders, ", ") + "."
		}
		return identity{}, &web.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: detail}
	}
	return identity{found}, nil
}

func unauthorized(c echo.Context, detail string) error {
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
	return &web.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: detail}
}
