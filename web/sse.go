package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// An event stream says "something changed, read again" and nothing more. Changes that
// come closer together than ssePace are one; a reader who does not take what it is sent
// within sseSlow is dropped, and reads again when it is back.
const (
	ssePace      = 300 * time.Millisecond
	sseHeartbeat = 15 * time.Second
	sseSlow      = 5 * time.Second
)

// Events streams an event "changed" after hints until the client leaves, the server
// stops or live says that the stream should end (nil: never).
func Events(c echo.Context, hints <-chan struct{}, live func() bool) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not hold it back
	c.Response().WriteHeader(http.StatusOK)
	conn := http.NewResponseController(c.Response().Writer)
	send := func(text string) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(sseSlow))
		if _, err := c.Response().Write([]byte(text)); err != nil {
			return false
		}
		return conn.Flush() == nil
	}
	if !send("retry: 2000\n: open\n\n") {
		return nil
	}
	beat := time.NewTicker(sseHeartbeat)
	defer beat.Stop()
	var ready <-chan time.Time // set while a change waits for its pace
	last := time.Now().Add(-ssePace)
	for {
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-Stopping(c.Request().Context()):
			return nil
		case <-beat.C:
			if live != nil && !live() || !send(": beat\n\n") {
				return nil
			}
		case <-hints:
			if ready == nil {
				ready = time.After(time.Until(last.Add(ssePace)))
			}
		case <-ready:
			ready, last = nil, time.Now()
			if !send("event: changed\ndata: {}\n\n") {
				return nil
			}
		}
	}
}
