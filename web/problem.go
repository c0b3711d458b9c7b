package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
)

// Problem is a refusal by the machinery itself, as an RFC 9457 document. Packages
// above have richer ones; see [Document].
type Problem struct {
	Title       string       `json:"title"`
	Status      int          `json:"status"`
	Detail      string       `json:"detail,omitempty"`
	Code        string       `json:"code"`
	Retryable   bool         `json:"retryable"`
	RetryAction string       `json:"retry_action,omitempty"`
	RetryAfter  int          `json:"retry_after,omitempty"`
	Final       bool         `json:"final"`
	Errors      []FieldError `json:"errors,omitempty"`
	Offset      *int64       `json:"offset,omitempty"`
	Pointer     string       `json:"pointer,omitempty"`
	Limit       int64        `json:"limit,omitempty"`
	RequestID   string       `json:"request_id,omitempty"`
}

// FieldError says what is wrong with one field, never its value.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Document implements [Document].
func (p *Problem) Document() (int, int, any) { return p.Status, p.RetryAfter, p }

// Document is an error that knows its own problem document. retryAfter is in whole
// seconds and becomes the Retry-After header; 0 sends none.
type Document interface {
	error
	Document() (status, retryAfter int, body any)
}

// writeProblem is the one function that turns an error into an answer. The cause of
// a 5xx goes to the log and never to the caller.
func writeProblem(c echo.Context, log *slog.Logger, err error) {
	if c.Response().Committed {
		log.Error("couldn't finish an answer", "route", c.Path(), "request_id", RequestID(c), "error", err)
		return
	}
	var doc Document
	if !errors.As(err, &doc) {
		doc = explain(c, err)
	}
	status, retryAfter, body := doc.Document()
	if status >= 500 {
		log.Error("request failed", "route", c.Path(), "request_id", RequestID(c), "error", err)
	}
	if p, ok := body.(*Problem); ok {
		filled := *p
		filled.RequestID = RequestID(c)
		if filled.Title == "" {
			filled.Title = http.StatusText(filled.Status)
		}
		body = &filled
	}
	if retryAfter > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if err := write(c, status, "application/problem+json", body); err != nil {
		log.Warn("couldn't write a problem", "route", c.Path(), "request_id", RequestID(c), "error", err)
	}
}

// explain gives an error that knows no document the one its kind deserves.
func explain(c echo.Context, err error) Document {
	if h, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch h.Code {
		case http.StatusNotFound:
			return &Problem{Status: h.Code, Code: "not_found", Detail: "There is no such address."}
		case http.StatusMethodNotAllowed:
			return &Problem{Status: h.Code, Code: "method_not_allowed", Detail: "This address does not take that method."}
		default:
			return &Problem{Status: h.Code, Code: "http_" + strconv.Itoa(h.Code), Detail: http.StatusText(h.Code)}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil {
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
			Detail:    "The request was not answered in time. Whether it was carried out is not known: send the same again.",
			Retryable: true, RetryAction: "retry_same", RetryAfter: 1}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal",
		Detail:    "The server failed; its log has the cause under the request id. Send the same again.",
		Retryable: true, RetryAction: "retry_same", RetryAfter: 1}
}

// JSON answers with v. It is written whole or not at all, and raw JSON in it keeps
// the characters it was sent with.
func JSON(c echo.Context, status int, v any) error {
	return write(c, status, echo.MIMEApplicationJSON, v)
}

func write(c echo.Context, status int, kind string, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return c.Blob(status, kind, buf.Bytes())
}
