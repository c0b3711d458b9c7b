// Package echogateway lets a paid route be one of Echo.
package echogateway

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client/gateway"
)

// Paid is middleware that makes a route a paid one.
func Paid(g *gateway.Gateway, route gateway.Route) echo.MiddlewareFunc {
	return Through(func(h http.Handler) http.Handler { return g.Paid(route, h) })
}

// Through wraps a route in middleware of net/http that looks at its answer. The route's
// errors become answers first: Echo's own wrapper lets a handler that failed look like one
// that wrote nothing, and it would be paid for.
func Through(wrap func(http.Handler) http.Handler) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer, request := c.Response(), c.Request()
			defer func() { c.SetResponse(outer); c.SetRequest(request) }()
			wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.SetRequest(r)
				c.SetResponse(echo.NewResponse(w, c.Echo()))
				if err := next(c); err != nil {
					c.Error(err)
				}
			})).ServeHTTP(outer, request)
			return nil
		}
	}
}
