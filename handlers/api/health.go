package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/web"
)

// Health answers probes.
type Health struct {
	Status string `json:"status" enum:"alive,ready"`
}

func (a *API) healthz(c echo.Context, _ identity) error {
	return web.JSON(c, http.StatusOK, Health{"alive"})
}

// readyz takes a stopping server out of rotation before it stops to listen.
func (a *API) readyz(c echo.Context, _ identity) error {
	ctx := c.Request().Context()
	select {
	case <-web.Stopping(ctx):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "stopping", Detail: "The server is stopping.", Retryable: true, RetryAction: "retry_same", RetryAfter: 1}
	default:
	}
	if a.ready != nil {
		if err := a.ready(ctx); err != nil {
			// The cause is the log's: a probe is not authenticated.
			return &notReady{err}
		}
	}
	return web.JSON(c, http.StatusOK, Health{"ready"})
}

type notReady struct{ error }

func (n *notReady) Unwrap() error { return n.error }

// Document implements [web.Document].
func (n *notReady) Document() (int, int, any) {
	p := &web.Problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "The server cannot work now; its log says why.", Retryable: true, RetryAction: "retry_same", RetryAfter: 1}
	return p.Document()
}
