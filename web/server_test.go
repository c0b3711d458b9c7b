package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// lockedBuffer is a log that may be read while requests still write to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start serves a router with the given routes and returns its address and its log.
func start(t *testing.T, routes func(*echo.Echo)) (string, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	e, err := New(Options{
		Log:         slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		BodyTimeout: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	routes(e)
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL, log
}

func takeOrder(c echo.Context) error {
	v, err := Decode[order](c)
	if err != nil {
		return err
	}
	return JSON(c, http.StatusOK, map[string]any{"id": v.ID, "raw_bytes": len(v.Raw)})
}

func problemOf(t *testing.T, r *http.Response) Problem {
	t.Helper()
	defer r.Body.Close()
	if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	var p Problem
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		t.Fatalf("the problem is not JSON: %v", err)
	}
	if p.Status != r.StatusCode || p.Title == "" || p.Code == "" {
		t.Errorf("incomplete problem for %d: %+v", r.StatusCode, p)
	}
	return p
}

func TestBodyTooLargeStatesTheLimit(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) { e.POST("/", takeOrder, Timeout(time.Minute)) })
	body := `{"id":"x","count":1,"raw":"` + strings.Repeat("secret ", 20<<20/7) + `"}`
	for _, chunked := range []bool{false, true} {
		var r io.Reader = strings.NewReader(body)
		if chunked {
			r = io.MultiReader(r) // hides the length
		}
		resp, err := http.Post(url, "application/json", r)
		if err != nil {
			t.Fatalf("chunked %v: the client never saw the refusal: %v", chunked, err)
		}
		p := problemOf(t, resp)
		if p.Status != 413 || p.Limit != 16<<20 || !strings.Contains(p.Detail, "16777216") || strings.Contains(p.Detail, "secret") {
			t.Errorf("chunked %v: %+v", chunked, p)
		}
	}
}

func TestLargestBodyIsTaken(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) { e.POST("/", takeOrder, Timeout(time.Minute)) })
	frame := `{"id":"x","count":1,"raw":""}`
	body := strings.Replace(frame, `""`, `"`+strings.Repeat("a", BodyLimit-len(frame))+`"`, 1)
	for want, b := range map[int]string{200: body, 413: body + " "} {
		resp, err := http.Post(url, "", strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", len(b), resp.StatusCode, want)
		}
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) { e.POST("/", takeOrder) })
	for kind, want := range map[string]int{
		"":                                  200,
		"application/json":                  200,
		"application/json; charset=UTF-8":   200,
		"application/vnd.acme+json":         200,
		"application/json; charset=utf-16":  415,
		"text/plain":                        415,
		"application/x-www-form-urlencoded": 415,
		"nonsense;;":                        415,
	} {
		resp, err := http.Post(url, kind, strings.NewReader(`{"id":"x","count":1}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", kind, resp.StatusCode, want)
		}
	}
}

func TestSlowBodyIsCutAndTheServerLives(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) { e.POST("/", takeOrder, Timeout(time.Minute)) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	head := make([]byte, 12)
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 408" {
		t.Errorf("got %q, %v", head, err)
	}
}

func TestParam(t *testing.T) {
	t.Parallel()
	e := echo.New()
	var got string
	e.GET("/v1/runs/:run_id/checkpoint", func(c echo.Context) (err error) {
		got, err = Param(c, "run_id")
		return err
	})
	for path, want := range map[string]string{
		"plain":         "plain",
		"a%20b":         "a b",
		"a%2Fb":         "a/b",
		"a%2Fb%20c":     "a/b c",
		"100%25":        "100%",
		"100%2525":      "100%25",
		"100%25%2F2":    "100%/2",
		"a+b":           "a+b",
		"%C3%A9%2F":     "é/",
		"x%3Ay%3Fz%23":  "x:y?z#",
		"..%2F..%2Fetc": "../../etc",
	} {
		got = "(not called)"
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/runs/"+path+"/checkpoint", nil))
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestAddressesThatCannotBeStored(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) {
		e.GET("/r/:id", func(c echo.Context) error { return c.NoContent(204) })
	})
	for path, want := range map[string]int{
		"/r/a":                    204,
		"/r/%C3%A9?q=%C3%A9%26+x": 204,
		"/r/a%00b":                400,
		"/r/%ff":                  400,
		"/r/a%2F%00":              400,
		"/r/a?q=%00":              400,
		"/r/a?q=%ff":              400,
		"/r/a?%00=q":              400,
		"/r/a?p=1&q=%zz":          400,
		"/r/a?p=1;q=2":            400,
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestErrorsBecomeProblemsWithoutTheirCause(t *testing.T) {
	t.Parallel()
	url, log := start(t, func(e *echo.Echo) {
		e.GET("/panic", func(echo.Context) error { panic("secret in a panic") })
		e.GET("/fail", func(echo.Context) error { return errors.New("secret in an error") })
		e.GET("/slow", func(c echo.Context) error {
			<-c.Request().Context().Done()
			return context.Cause(c.Request().Context())
		}, Timeout(10*time.Millisecond))
		e.POST("/only-post", takeOrder)
	})
	for path, want := range map[string]struct {
		status int
		code   string
		retry  bool
	}{
		"/panic":     {500, "internal", true},
		"/fail":      {500, "internal", true},
		"/slow":      {503, "unavailable", true},
		"/nowhere":   {404, "not_found", false},
		"/only-post": {405, "method_not_allowed", false},
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		p := problemOf(t, resp)
		if p.Status != want.status || p.Code != want.code || p.Retryable != want.retry {
			t.Errorf("%s: %+v", path, p)
		}
		if want.retry && resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q differs from the body's", path, resp.Header.Get("Retry-After"))
		}
		if p.RequestID == "" || p.RequestID != resp.Header.Get("X-Request-Id") {
			t.Errorf("%s: request id %q", path, p.RequestID)
		}
		if strings.Contains(p.Detail, "secret") {
			t.Errorf("%s tells its cause", path)
		}
		if want.status == 500 && !strings.Contains(log.String(), p.RequestID) {
			t.Errorf("%s: the log does not know the request", path)
		}
	}
}

func TestLogHoldsNoValues(t *testing.T) {
	t.Parallel()
	url, log := start(t, func(e *echo.Echo) { e.POST("/r/:token", takeOrder) })
	req, _ := http.NewRequest("POST", url+"/r/secret-path?q=secret-query", strings.NewReader(`{"id":"secret-body","count":1}`))
	req.Header.Set("Authorization", "Bearer secret-token")
	req.Header.Set("X-Request-Id", "secret-id")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !strings.Contains(log.String(), "route=/r/:token status=200") {
		t.Errorf("no line for the request:\n%s", log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("a value reached the log:\n%s", log)
	}
}

func TestCrossOriginPostIsRefused(t *testing.T) {
	t.Parallel()
	url, _ := start(t, func(e *echo.Echo) { e.POST("/", takeOrder) })
	for _, tc := range []struct {
		header, value string
		want          int
	}{
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Origin", "https://evil.example", 403},
		{"Sec-Fetch-Site", "same-origin", 200},
		{"X-Agent", "no browser", 200},
	} {
		req, _ := http.NewRequest("POST", url, strings.NewReader(`{"id":"x","count":1}`))
		req.Header.Set(tc.header, tc.value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tc.want {
			t.Errorf("%s %s: %d, want %d", tc.header, tc.value, resp.StatusCode, tc.want)
		}
		if tc.want == 403 {
			if p := problemOf(t, resp); p.Code != "cross_origin" || p.RequestID == "" {
				t.Errorf("%s %s: %+v", tc.header, tc.value, p)
			}
		}
		resp.Body.Close()
	}
}

func TestServeStopsGracefully(t *testing.T) {
	t.Parallel()
	e, err := New(Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	entered, finish := make(chan string, 2), make(chan struct{})
	e.GET("/wait", func(c echo.Context) error {
		entered <- "wait"
		<-Stopping(c.Request().Context())
		return c.String(http.StatusOK, "told")
	})
	e.GET("/work", func(c echo.Context) error {
		entered <- "work"
		<-finish
		return c.Request().Context().Err()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, slog.New(slog.DiscardHandler), l, e) }()

	status := make(chan int, 2)
	for _, path := range []string{"/wait", "/work"} {
		go func() {
			resp, err := http.Get("http://" + l.Addr().String() + path)
			if err != nil {
				status <- 0
				return
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}()
	}
	<-entered
	<-entered
	stop()
	if got := <-status; got != 200 {
		t.Errorf("the waiting request got %d", got)
	}
	close(finish) // only now may the working one end: it must not have been cut
	if got := <-status; got != 200 {
		t.Errorf("the working request got %d", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serve returned %v", err)
	}
}
