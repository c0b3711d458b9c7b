// Package echogateway lets a paid route be one of Echo.
package echogateway

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client/gateway"
)

// Paid is middleware that makes a route a paid one. The route's errors become answers
// before they are looked at: Echo's own wrapper of net/http middleware would let a handler
// that failed look like one that wrote nothing, and be paid for.
func Paid(g *gateway.Gateway, route gateway.Route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer, request := c.Response(), c.Request()
			defer func() { c.SetResponse(outer); c.SetRequest(request) }()
			g.Paid(route, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
