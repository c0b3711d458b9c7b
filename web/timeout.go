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

// bound ends the connection of a client that does not take its answer, or goes on sending a
// body that nobody reads: net/http would read on before it lets the answer go. It holds for
// every request, also one that meets no route; [Timeout] leaves those that wait more time.
func bound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		// A recorder in a test has no deadlines to set.
		conn := http.NewResponseController(c.Response().Writer)
		_ = conn.SetWriteDeadline(time.Now().Add(DefaultTimeout + answerTimeout))
		// Not before: net/http cancels the request when it passes while a handler is at work.
		defer func() { _ = conn.SetReadDeadline(time.Now().Add(drainTimeout)) }()
		return next(c)
	}
}

// Timeout ends the context of a request after d, and the connection when its
// client does not take the answer. The server itself has no read or write time-out,
// because those would cut long polls.
func Timeout(d time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx, cancel := context.WithTimeout(c.Request().Context(), d)
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))

			_ = http.NewResponseController(c.Response().Writer).SetWriteDeadline(time.Now().Add(d + answerTimeout))
			return next(c)
		}
	}
}
