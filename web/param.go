package web

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// plainAddress refuses an address that holds what no text of ours can: PostgreSQL
// takes neither U+0000 nor bytes that are not UTF-8, and net/url drops a part of the
// query that it cannot read, with which a filter would be lost unseen.
func plainAddress(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		query, err := url.ParseQuery(u.RawQuery)
		ok := err == nil && isText(u.Path)
		for name, values := range query {
			ok = ok && isText(name) && isText(strings.Join(values, ""))
		}
		if !ok {
			return &Problem{Status: http.StatusBadRequest, Code: "malformed",
				Detail: "The address holds U+0000, a byte that is not UTF-8, or an escape that is none."}
		}
		return next(c)
	}
}

func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

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
