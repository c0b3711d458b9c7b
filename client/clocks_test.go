package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The monotonic clock stands still while a machine sleeps, and the wall's may be set back:
// whichever says that the deadline passed wins.
func TestADeadlineHasPassedByEitherClock(t *testing.T) {
	now := time.Now()
	deadline := now.Add(time.Minute)
	wall := now.Round(0)
	for name, c := range map[string]struct {
		monotonic, wall time.Time
		want            bool
	}{
		"neither":           {now, now, false},
		"the machine slept": {now, wall.Add(time.Hour), true},
		"set back":          {now.Add(2 * time.Minute), wall.Add(-time.Hour), true},
		"just there":        {deadline, wall, true},
	} {
		if got := passed(deadline, c.monotonic, c.wall); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a look-up's error says stays here.
func TestOnlyAKindOfALookUpsErrorIsTold(t *testing.T) {
	for want, err := range map[string]error{
		"the worker could not look":                       errors.New("password hunter2"),
		"the worker could not look (time-out)":            fmt.Errorf("hunter2: %w", context.DeadlineExceeded),
		"the worker could not look (a record is no JSON)": fmt.Errorf("%w: hunter2", errUnwritable),
		"the worker could not look (network)":             &netError{},
	} {
		if got := kindOf(err); got != want || strings.Contains(got, "hunter2") {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

type netError struct{}

func (*netError) Error() string   { return "dial hunter2" }
func (*netError) Timeout() bool   { return false }
func (*netError) Temporary() bool { return false }
