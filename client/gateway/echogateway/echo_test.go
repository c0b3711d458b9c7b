package echogateway_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/client/gateway"
	"quittance/client/gateway/echogateway"
	"quittance/client/x402"
)

// A route of Echo is asked to be paid for, and its errors are answers when the gateway
// looks at them: the wrapped handler sees no success where the route failed.
func TestTheErrorsOfARouteAreItsAnswers(t *testing.T) {
	t.Parallel()
	q := client.New("http://127.0.0.1:1", "none")
	t.Cleanup(q.Close)
	g := gateway.New(gateway.Options{Quittance: q, Name: "shop"})
	e := echo.New()
	route := gateway.Route{Tool: "report", Accepts: []x402.Requirements{{Scheme: "exact", Network: "eip155:1", Amount: "1"}}}
	e.POST("/report/:id", func(c echo.Context) error { return c.String(http.StatusOK, c.Param("id")) }, echogateway.Paid(g, route))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/report/7", nil))
	if w.Code != http.StatusPaymentRequired || w.Header().Get(x402.RequiredHeader) == "" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}

	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"refused": {echo.NewHTTPError(http.StatusConflict, "out of stock"), http.StatusConflict},
		"broken":  {errors.New("boom"), http.StatusInternalServerError},
		"done":    {nil, http.StatusNoContent},
	} {
		e := echo.New()
		e.GET("/x", func(c2 echo.Context) error {
			if c.err != nil {
				return c.err
			}
			return c2.NoContent(http.StatusNoContent)
		}, echogateway.Through(func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				in := httptest.NewRecorder() // what a gateway would see
				h.ServeHTTP(in, r)
				if in.Code != c.want {
					t.Errorf("%s: the gateway sees %d, want %d", name, in.Code, c.want)
				}
				w.WriteHeader(http.StatusTeapot)
			})
		}))
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
		if w.Code != http.StatusTeapot {
			t.Errorf("%s: the payer sees %d", name, w.Code)
		}
	}
}
