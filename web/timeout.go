package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// DefaultTimeout bounds a request that does not wait for anything.
	DefaultTimeout = 30 * time.Second
	// answerTimeout is left for writing the answer after the handler's time is up.
	answerTimeout = 10 * time.Second
	// drainTimeout bounds what net/http reads of a body that no handler wanted.
	drainTimeout = 5 * time.Second
)

// Timeout ends the context of a request after d, and the connection when its
// client does not take the answer. The server itself has no read or write time-out,
// because those would cut long polls.
func Timeout(d time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx, cancel := context.WithTimeout(c.Request().Context(), d)
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))

			// A recorder in a test has no deadlines to set.
			conn := http.NewResponseController(c.Response().Writer)
			_ = conn.SetWriteDeadline(time.Now().Add(d + answerTimeout))
			defer func() { _ = conn.SetReadDeadline(time.Now().Add(drainTimeout)) }()
			return next(c)
		}
	}
}
