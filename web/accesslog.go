package web

import (
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"
)

// accessLog writes a line a request. It names the route, not the path: run ids and
// receipt tokens are the path's values, and secrets may be in the query.
func accessLog(log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			if err := next(c); err != nil {
				c.Error(err) // the status is only known once the error is answered
			}
			level := slog.LevelDebug
			if c.Response().Status >= 500 {
				level = slog.LevelWarn
			}
			log.LogAttrs(c.Request().Context(), level, "request",
				slog.String("method", c.Request().Method),
				slog.String("route", c.Path()),
				slog.Int("status", c.Response().Status),
				slog.Int64("bytes", c.Response().Size),
				slog.Duration("took", time.Since(start)),
				slog.String("request_id", RequestID(c)),
			)
			return nil
		}
	}
}
