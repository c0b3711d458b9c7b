//go:build rounds

package main

import (
	"flag"
	"os"
	"testing"
	"time"

	"quittance/cmd/torture/payer"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(payer.Variable); text != "" {
		os.Exit(payer.Main(text))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// seedOf makes tests of one build try something else than the last ones did; a finding
// names it.
func seedOf() uint64 { return uint64(time.Now().Unix()) }

func small(runs int, k ...kind) options {
	return options{seed: seedOf(), kills: 1 << 40, size: size{runs: runs, agents: []string{"go", "python", "typescript"}, storms: true, kinds: k}}
}

// TestAShortTorture is the same program with few rounds: one of each kind.
func TestAShortTorture(t *testing.T) {
	o := small(16, kinds...)
	o.rounds = len(kinds)
	r, err := torture(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r.text(t.Output())
	if len(r.Findings) > 0 || r.Kills == 0 || r.Payments == 0 {
		t.Errorf("%d findings, %d kills, %d payments", len(r.Findings), r.Kills, r.Payments)
	}
}
