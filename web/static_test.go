package web

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// TestStaticFilesStayInTheirFolder: whatever is asked for in raw bytes, nothing else of this
// machine or of the program comes back.
func TestStaticFilesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	address := listening(t, Options{}, func(*echo.Echo) {})
	for _, path := range []string{
		"/static/x/../../../../etc/passwd", "/static/x/..%2f..%2f..%2f..%2fetc%2fpasswd", "/static/x/%2e%2e/%2e%2e/etc/passwd", "/static/x/..%5c..%5cetc%5cpasswd",
		"/static/../web/static.go", "/static/x//etc/passwd", "/static/x/%2fetc%2fpasswd", "/static/x/static.go", "/static/x/.", "/static/x/..", "/static/x/%00", "//etc/passwd", "/../../etc/passwd",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		b, _ := io.ReadAll(conn)
		_ = conn.Close()
		if answer := string(b); strings.HasPrefix(answer, "HTTP/1.1 200") || strings.Contains(answer, "root:") || strings.Contains(answer, "package ") || answer == "" {
			t.Errorf("%s: %.80q", path, answer)
		}
	}
}
