package web

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
)

// Param is the value of a path parameter, unescaped. Echo routes on RawPath when
// net/url had to keep one (an escaped slash, for instance) and then gives the
// parameter as it was written; otherwise it is already unescaped, and doing it again
// would change a value that holds a percent sign.
func Param(c echo.Context, name string) (string, error) {
	value := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return value, nil
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return "", &Problem{Status: http.StatusBadRequest, Code: "malformed",
			Detail: "The path holds a percent sign that is not an escape (parameter " + name + ")."}
	}
	return plain, nil
}
