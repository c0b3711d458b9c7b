//go:build rounds

package main

import "testing"

// TestEachBrokenGuardIsNoticed plays the story of each guard twice: with the guard off,
// which the checker has to notice by what the guard is there for, and with it on, where
// there is nothing to be found.
func TestEachBrokenGuardIsNoticed(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.guard, func(t *testing.T) {
			noticed(t, b.guard)
		})
		t.Run(b.guard+" is on", func(t *testing.T) {
			o := options{seed: 1, kills: 1 << 40, rounds: 1, size: size{runs: 6, fates: 1, agents: []string{"go"}, kinds: []kind{b.kind}, story: b.guard}}
			r, err := torture(t.Context(), o, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			r.text(t.Output())
			if len(r.Findings) > 0 {
				t.Errorf("%d findings", len(r.Findings))
			}
		})
	}
}
