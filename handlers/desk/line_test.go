package desk

import (
	"fmt"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// A queue that redelivers gives each try to a worker of another name, and one that
// begins too soon stands between: still a line for each kind.
func TestRepeatedRefusalsAreOneLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 14, 23, 30, 0, 0, time.UTC)
	var list []effects.RefusedView
	for i := range 25 {
		list = append(list, effects.RefusedView{At: at.Add(time.Duration(i) * 10 * time.Minute), Call: "start", Reason: "run_paused", Worker: fmt.Sprint("pod-", i)})
	}
	begin := effects.RefusedView{At: at.Add(time.Minute), Call: "begin", Reason: "run_paused", Worker: "pod-0"}
	list = append(list[:1], append([]effects.RefusedView{begin}, list[1:]...)...)
	lines := fromRefusals(list, clock{time.UTC, at})
	if len(lines) != 2 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	want := told{at: at, kind: "plain", title: "25 starts of the run were refused",
		detail: "run paused, the last at 15 May, 03:30:00 UTC, asked by pod-0, pod-1, pod-2, 22 more"}
	if lines[0] != want {
		t.Errorf("got  %+v\nwant %+v", lines[0], want)
	}
	if l := lines[1]; l.title != "A begin was refused" || l.detail != "run paused, asked by pod-0" || !l.at.Equal(begin.At) {
		t.Errorf("%+v", l)
	}
}
