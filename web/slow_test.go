package web

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// listening serves as the program does, and returns where.
func listening(t *testing.T, o Options, routes func(*echo.Echo)) string {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	RegisterStatic(e)
	routes(e)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, o.Log, l, e) }()
	t.Cleanup(func() { stop(); <-served })
	return l.Addr().String()
}

// TestWhoIsSlowIsLeft: whatever a client begins and does not end, its connection is closed.
// Each of them sends a byte now and then, as those do who want to hold a server up.
func TestWhoIsSlowIsLeft(t *testing.T) {
	t.Parallel()
	address := listening(t, Options{BodyTimeout: 3 * time.Second}, func(e *echo.Echo) {
		e.POST("/orders", takeOrder, Timeout(DefaultTimeout))
		e.POST("/unread", func(c echo.Context) error { return c.NoContent(204) }, Timeout(DefaultTimeout))
		e.GET("/read", func(c echo.Context) error { return c.NoContent(204) }, Timeout(DefaultTimeout))
	})
	const body = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	for name, begins := range map[string]string{
		"nothing":                        "",
		"half a request line":            "GET /re",
		"headers without an end":         "GET /read HTTP/1.1\r\nHost: x\r\nX-A: ",
		"a body without an end":          "POST /orders HTTP/1.1\r\nHost: x\r\n" + body,
		"a body in chunks":               "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
		"a body that nobody wants":       "POST /unread HTTP/1.1\r\nHost: x\r\n" + body,
		"a body of a GET":                "GET /read HTTP/1.1\r\nHost: x\r\n" + body,
		"a body for no route":            "POST /nowhere HTTP/1.1\r\nHost: x\r\n" + body,
		"a body for a wrong method":      "POST /read HTTP/1.1\r\nHost: x\r\n" + body,
		"a body for a file":              "GET /static/x/y.css HTTP/1.1\r\nHost: x\r\n" + body,
		"a body of another site's page":  "POST /orders HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: cross-site\r\n" + body,
		"a body that is too large":       "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{",
		"a body for an address not text": "POST /orders?%zz HTTP/1.1\r\nHost: x\r\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, begins); err != nil {
				t.Fatal(err)
			}
			dripped := make(chan struct{})
			go func() {
				defer close(dripped)
				for range time.Tick(500 * time.Millisecond) {
					if _, err := io.WriteString(conn, " "); err != nil {
						return
					}
				}
			}()
			began := time.Now()
			_ = conn.SetReadDeadline(began.Add(20 * time.Second))
			answer, err := io.ReadAll(conn)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Errorf("still connected after %v, answered %.40q", time.Since(began).Round(time.Second), answer)
			}
			_ = conn.Close()
			<-dripped
		})
	}
}

// TestOversizedHeadersAreRefused: a header is no way around the limit of bodies.
func TestOversizedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	address := listening(t, Options{}, func(e *echo.Echo) { e.GET("/", func(c echo.Context) error { return c.NoContent(204) }) })
	for name, header := range map[string][2]string{"a value": {"X-A", strings.Repeat("a", 200<<10)}, "a cookie": {"Cookie", "quittance=" + strings.Repeat("a", 200<<10)}} {
		r, _ := http.NewRequest("GET", "http://"+address+"/", nil)
		r.Header.Set(header[0], header[1])
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %d", name, resp.StatusCode)
			}
		}
	}
	resp, err := http.Get("http://" + address + "/" + fmt.Sprintf("?q=%s", strings.Repeat("a", 1000)))
	if err != nil || resp.StatusCode != 204 {
		t.Errorf("afterwards: %v", err)
	}
}

// TestGuessesOfTokensAreStopped, and whoever has a token that opened something is not.
func TestGuessesOfTokensAreStopped(t *testing.T) {
	t.Parallel()
	good := map[string]bool{"known": true}
	address := listening(t, Options{Known: func(b string) bool { return good[b] }}, func(e *echo.Echo) {
		e.GET("/", func(c echo.Context) error {
			if token := Bearer(c); token != "known" && token != "fresh" {
				return &Problem{Status: http.StatusUnauthorized, Code: "unauthorized"}
			}
			return c.NoContent(204)
		})
	})
	get := func(token string) int {
		r, _ := http.NewRequest("GET", "http://"+address+"/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
			t.Error("it is not told when to come back")
		}
		return resp.StatusCode
	}
	stopped := 0
	for range 2 { // a new minute may begin in between
		for i := range guessLimit + 20 {
			if get(fmt.Sprint("guess-", i)) == http.StatusTooManyRequests {
				stopped++
			}
		}
		if stopped > 0 {
			break
		}
	}
	if stopped == 0 || stopped > 20 {
		t.Errorf("%d guesses were stopped", stopped)
	}
	if get("known") != 204 || get("") != 401 {
		t.Error("whoever was let in before, or sends no token, is stopped too")
	}
}
