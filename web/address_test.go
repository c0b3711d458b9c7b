package web

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
)

func TestOnlyAProxyOfOursSaysWhomItAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		proxies          []string
		peer, says, want string
	}{
		{nil, "203.0.113.9:4711", "", "203.0.113.9"},
		{nil, "203.0.113.9:4711", "198.51.100.1", "203.0.113.9"}, // anybody can write that
		{nil, "127.0.0.1:4711", "198.51.100.1", "127.0.0.1"},
		{nil, "[2001:db8:1:2:3:4:5:6]:4711", "", "2001:db8:1:2::/64"},
		{nil, "[::ffff:203.0.113.9]:4711", "", "203.0.113.9"},
		{[]string{"10.0.0.1"}, "10.0.0.1:4711", "198.51.100.1", "198.51.100.1"},
		{[]string{"10.0.0.1"}, "10.0.0.1:4711", "8.8.8.8, 198.51.100.1", "198.51.100.1"}, // what a client wrote before it counts for nothing
		{[]string{"10.0.0.1"}, "10.0.0.2:4711", "198.51.100.1", "10.0.0.2"},
		{[]string{"10.0.0.1"}, "127.0.0.1:4711", "198.51.100.1", "127.0.0.1"},
		{[]string{"10.0.0.0/8", "fd00::/8"}, "[fd00::1]:4711", "198.51.100.1, 10.9.9.9", "198.51.100.1"},
		{[]string{"10.0.0.1"}, "10.0.0.1:4711", "", "10.0.0.1"},
	} {
		e, err := New(Options{Log: slog.New(slog.DiscardHandler), Proxies: tc.proxies})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		e.GET("/", func(c echo.Context) error { got = Address(c); return nil })
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.peer
		if tc.says != "" {
			r.Header.Set("X-Forwarded-For", tc.says)
			r.Header.Set("X-Real-Ip", tc.says)
		}
		e.ServeHTTP(httptest.NewRecorder(), r)
		if got != tc.want {
			t.Errorf("%v, from %s saying %q: %s, want %s", tc.proxies, tc.peer, tc.says, got, tc.want)
		}
	}
	if _, err := New(Options{Log: slog.New(slog.DiscardHandler), Proxies: []string{"everybody"}}); err == nil {
		t.Error("a proxy that is no address is taken")
	}
}
