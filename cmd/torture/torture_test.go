package main

import (
	"flag"
	"os"
	"testing"

	"quittance/cmd/torture/payer"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(payer.Variable); text != "" {
		os.Exit(payer.Main(text))
	}
	flag.Parse()
	// They wait far more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestAShortTorture is the same program with few rounds: one of each kind, side by side.
func TestAShortTorture(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			o := options{seed: 1, kills: 1 << 40, rounds: 1, size: size{runs: 6, fates: 3, agents: []string{"go", "python", "typescript"}, storms: true, kinds: []kind{k}}}
			r, err := torture(t.Context(), o, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			r.text(t.Output())
			if len(r.Findings) > 0 || r.Kills == 0 || r.Payments == 0 {
				t.Errorf("%d findings, %d kills, %d payments", len(r.Findings), r.Kills, r.Payments)
			}
		})
	}
}

// A checker that cannot fail is worthless: it notices a guard that is off.
func TestABrokenGuardIsNoticed(t *testing.T) {
	t.Parallel()
	for _, guard := range []string{"fence", "overlap"} {
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			noticed(t, guard)
		})
	}
}

// noticed plays a story with its guard off.
func noticed(t *testing.T, guard string) {
	t.Helper()
	b, _ := brokenOf(guard)
	o := options{seed: 1, kills: 1 << 40, rounds: 3, broken: guard, size: size{runs: 6, fates: 1, agents: []string{"go"}, kinds: []kind{b.kind}, story: guard}}
	r, err := torture(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r.text(t.Output())
	if !r.Noticed {
		t.Errorf("nobody noticed that %s is off", guard)
	}
}
