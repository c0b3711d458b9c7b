package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"quittance/cmd/torture/payer"
)

// broken is a guard that can be switched off, in which rounds that shows, and by which of
// the checker's words.
type broken struct {
	guard string
	kind  kind
	want  []string // any of them
}

var breaks = []broken{
	{"fence", ignores, []string{fences}},
	{"lease", ignores, []string{holders}},
	{"intent_first", keeps, []string{double}},
	{"overlap", keeps, []string{double}},
	{"lands_within", lands, []string{double}},
	{"reference", keeps, []string{shared}},
	{"release_recheck", lands, []string{double}},
}

func brokenOf(guard string) (b broken, known bool) {
	i := slices.IndexFunc(breaks, func(b broken) bool { return b.guard == guard })
	if i < 0 {
		return b, false
	}
	return breaks[i], true
}

func guardNames() (list []string) {
	for _, b := range breaks {
		list = append(list, b.guard)
	}
	return list
}

// storyOf makes a round in which everything depends on one guard, and no more befalls
// anybody than that takes.
func storyOf(r *rand.Rand, p plan, z size) plan {
	p.Late, p.Wrong = 0, 0
	var fates []fate
	twice := false
	switch z.story {
	case "fence":
		// Its request is late, and it has an outcome while the next attempt is under way.
		fates = []fate{{Do: "stop", At: payer.AfterIntent, Deaf: true}, {Do: "stand", At: payer.AfterIntent, For: 2500 * time.Millisecond}}
	case "lease":
		// A process goes on that has lost its run, while the next one has it.
		fates = []fate{{Do: "stop", At: payer.BeforeIntent}, {Do: "stand", At: payer.BeforeIntent, For: 2 * time.Second}}
	case "intent_first":
		fates = []fate{{Do: "kill", At: payer.AfterAct}, {Do: "kill", At: payer.AfterAct}}
	case "overlap":
		twice = true
	case "lands_within":
		// Sent at the last moment, by a process that dies, and late to land.
		fates = []fate{{Do: "stand", At: payer.AfterIntent, For: deadline - 700*time.Millisecond, Killed: 300 * time.Millisecond}}
		p.Late = 0.8
	case "reference":
		// Nothing is sent, and a person says that another's payment is this one's.
		fates = []fate{{Do: "kill", At: payer.AfterIntent}}
		p.Wrong = 14
	case "release_recheck":
		// It lands after a person has said that it has not, while nobody can be asked.
		fates = []fate{{Do: "kill", At: payer.InAct, After: 20 * time.Millisecond}}
		p.Late = 0.8
		p.Storms = []storm{{After: 500 * time.Millisecond, Do: "cut", To: "asking", For: 13 * time.Second}}
	}
	for i := range z.runs {
		name := fmt.Sprintf("s%d-r%d-%d", p.Seed, p.Round, i)
		one := runs{Name: name, Agent: "go", Server: r.IntN(2), Invoices: []string{name + "-i0"}, Fates: fates}
		if z.story == "reference" && i%2 == 0 {
			one.Fates = nil // there is another's payment
		}
		p.Runs = append(p.Runs, one)
		if twice {
			p.Runs = append(p.Runs, runs{Name: name + "-again", Agent: "go", Server: r.IntN(2), Invoices: one.Invoices})
		}
	}
	return p
}
