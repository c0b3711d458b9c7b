package web

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"
)

// panicked carries where a handler panicked to the log; its text never reaches an
// answer.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler: // asks net/http to drop the connection
				panic(v)
			default:
				err = &panicked{value: v, stack: debug.Stack()}
			}
		}()
		return next(c)
	}
}
