// Package web is the HTTP machinery that knows no page and no rule: the router and
// its middleware, strict decoding, problem documents and graceful serving.
//
// Handlers return errors; [New]'s error function turns each into a problem
// document. Nothing here writes a body, a query or a path's values to a log.
package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Options are what the machinery has to be told.
type Options struct {
	// Log receives one line a request and the cause of every 5xx.
	Log *slog.Logger
	// TrustedOrigins are origins that may send state-changing requests besides our
	// own, such as the public URL behind a proxy that rewrites Host.
	TrustedOrigins []string
	// BodyTimeout is how long a body may take to arrive; 0 means 30 s, which takes
	// 16 MiB at half a megabyte a second.
	BodyTimeout time.Duration
	// Proxies are the addresses and ranges of proxies in front of us: what they say of whom
	// they answer is believed.
	Proxies []string
	// Known tells that a bearer token opened something lately; nil limits no guesses.
	Known func(bearer string) bool
	// CrossOrigin hears of each request that was refused because a page of another site
	// sent it; may be nil.
	CrossOrigin func(*http.Request)
}

// New returns a router with everything a request passes before it meets a handler.
func New(o Options) (*echo.Echo, error) {
	cross := http.NewCrossOriginProtection()
	for _, origin := range o.TrustedOrigins {
		if err := cross.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	address, err := addressFrom(o.Proxies)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.IPExtractor = address
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = func(err error, c echo.Context) { writeProblem(c, o.Log, err) }
	e.Use(
		bound,
		requestID,
		accessLog(o.Log),
		securityHeaders,
		recoverPanics,
		plainAddress,
		limitGuesses(o.Known),
		limitBody(o.BodyTimeout),
		sameOrigin(cross, o.CrossOrigin),
	)
	return e, nil
}

// sameOrigin refuses what a page of another site sent, and tells denied of it.
func sameOrigin(cross *http.CrossOriginProtection, denied func(*http.Request)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if cross.Check(c.Request()) == nil {
				return next(c)
			}
			if denied != nil {
				denied(c.Request())
			}
			return &Problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "A page of another site may not send this request."}
		}
	}
}
