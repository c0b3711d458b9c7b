package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// BodyLimit is the most a request may carry. A client that has more sends size and
// digest in place of the result.
const BodyLimit = 16 << 20

// drainLimit is how much of a body that is too large is still read and dropped:
// without it the client sees a reset connection in place of the 413.
const drainLimit = 64 << 20

const bodyTimeoutKey = "web.body_timeout"

// limitBody refuses at once what is not even worth draining, and tells readBody how
// long it may take.
func limitBody(timeout time.Duration) echo.MiddlewareFunc {
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().ContentLength > drainLimit {
				return tooLarge(BodyLimit)
			}
			c.Set(bodyTimeoutKey, timeout)
			return next(c)
		}
	}
}

func tooLarge(most int64) *Problem {
	p := &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Limit: most,
		Detail: fmt.Sprintf("The body is larger than %d bytes (%d MiB).", most, most>>20)}
	if most == BodyLimit {
		p.Detail += " Send result_omitted with result_size and result_digest in place of a large result."
	}
	return p
}

// Body reads the body as it came, whatever its type. Refused with 413 where it is larger
// than most bytes, which is at most [BodyLimit].
func Body(c echo.Context, most int64) ([]byte, error) { return readBody(c, most) }

// readBody reads the whole body within its limit and time.
func readBody(c echo.Context, most int64) ([]byte, error) {
	timeout, _ := c.Get(bodyTimeoutKey).(time.Duration)
	conn := http.NewResponseController(c.Response().Writer)
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	// net/http cancels the request when a read deadline passes while the handler is
	// still at work, so it must not stay.
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()

	r := c.Request()
	size := r.ContentLength
	if size < 0 || size > most {
		size = 512
	}
	body := make([]byte, 0, size+1) // one more, so that EOF is met without growing
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > most {
			_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
			return nil, tooLarge(most)
		}
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &Problem{Status: http.StatusRequestTimeout, Code: "slow_body",
				Detail:    fmt.Sprintf("The body did not arrive within %v.", timeout),
				Retryable: true, RetryAction: "retry_same"}
		case err != nil:
			return nil, &Problem{Status: http.StatusBadRequest, Code: "malformed",
				Detail:    "The body ended before its declared length.",
				Retryable: true, RetryAction: "retry_same"}
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
}

// wantJSON refuses a body that says it is something else. A body that says nothing
// is taken for JSON.
func wantJSON(r *http.Request) error {
	header := r.Header.Get(echo.HeaderContentType)
	if header == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(header)
	isJSON := kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	charset, ok := params["charset"]
	if err == nil && isJSON && (!ok || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_type",
		Detail: "The body must be application/json in UTF-8."}
}
