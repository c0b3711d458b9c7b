//go:build rounds

package main

import (
	"slices"
	"testing"
)

// TestEachBrokenGuardIsNoticed switches one guard off at a time, and expects the checker
// to say so, by what the guard is there for.
func TestEachBrokenGuardIsNoticed(t *testing.T) {
	for guard, c := range map[string]struct {
		kind kind
		want []string // any of them
	}{
		"fence":           {ignores, []string{fences}},
		"lease":           {ignores, []string{holders}},
		"intent_first":    {keeps, []string{double, lost}},
		"overlap":         {keeps, []string{double}},
		"lands_within":    {lands, []string{double}},
		"reference":       {keeps, []string{shared}},
		"release_recheck": {lands, []string{double}},
	} {
		t.Run(guard, func(t *testing.T) {
			o := small(24, c.kind)
			o.broken, o.size.agents, o.rounds = guard, []string{"go"}, 6
			r, err := torture(t.Context(), o, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			r.text(t.Output())
			if !slices.ContainsFunc(r.Findings, func(f roundFinding) bool { return slices.Contains(c.want, f.What) }) {
				t.Errorf("nobody noticed that %s is off", guard)
			}
		})
	}
}
