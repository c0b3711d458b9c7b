package web

import (
	"crypto/rand"

	"github.com/labstack/echo/v4"
)

// requestID gives each request an id of our own making, in the header and for the
// log. A caller's id is not taken over: it could forge log lines.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderXRequestID, rand.Text())
		return next(c)
	}
}

// RequestID is the id of the request c answers.
func RequestID(c echo.Context) string {
	return c.Response().Header().Get(echo.HeaderXRequestID)
}
