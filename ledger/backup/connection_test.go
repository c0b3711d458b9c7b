package backup

import (
	"errors"
	"strings"
	"testing"
)

// What goes on a command line holds no password, wherever it was written, and nothing
// that PostgreSQL's programs would refuse.
func TestNoPasswordIsOnACommandLine(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://me:hush@db:5433/q?sslmode=verify-full":                         "postgres://me@db:5433/q?sslmode=verify-full",
		"postgresql://me@db/q?password=hush&plan_cache_mode=auto":                  "postgresql://me@db/q",
		"postgres://me:hush@/q?host=/run/a,/run/b&target_session_attrs=read-write": "postgres://me@/q?host=%2Frun%2Fa%2C%2Frun%2Fb&target_session_attrs=read-write",
		"postgres://me:hush@a:1,b:2/q":                                             "postgres://me@a:1,b:2/q",
	} {
		c, err := To(given)
		if err != nil || c.url != want || c.password != "hush" {
			t.Errorf("%s became %q with the password %q, %v; want %q", given, c.url, c.password, err, want)
		}
	}
	for _, given := range []string{"host=db password=hush", "mysql://me:hush@db/q", "::"} {
		if _, err := To(given); !errors.Is(err, ErrNotURL) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", given, err)
		}
	}
}
