package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// cookieLife is longer than a session: the secret of one that is over still tells
// whose it was, so that what they typed is kept for them and nobody else.
const cookieLife = 30 * 24 * time.Hour

// SessionCookie reads and writes the cookie that holds a session's secret. Secure is
// for an installation that is reached by https.
type SessionCookie struct{ Secure bool }

// name ties the cookie to this very host where the browser can be made to enforce it.
func (s SessionCookie) name() string {
	if s.Secure {
		return "__Host-quittance"
	}
	return "quittance"
}

// Secret is what the browser sent, "" without a cookie.
func (s SessionCookie) Secret(c echo.Context) string {
	cookie, err := c.Cookie(s.name())
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Set gives the browser a new secret. Lax, so that a link from a chat arrives signed
// in; scripts never see it.
func (s SessionCookie) Set(c echo.Context, secret string) {
	s.write(c, secret, int(cookieLife/time.Second))
}

// Clear takes it away.
func (s SessionCookie) Clear(c echo.Context) { s.write(c, "", -1) }

func (s SessionCookie) write(c echo.Context, secret string, age int) {
	c.SetCookie(&http.Cookie{
		Name: s.name(), Value: secret, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteLaxMode,
	})
}
