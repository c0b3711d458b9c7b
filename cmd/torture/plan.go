package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"quittance/cmd/torture/payer"
)

// kind is what a round may hold against the program, and what it may then not do.
type kind string

const (
	// keeps: the bank honours the key; whatever happens and whatever people say, each
	// logical payment is made at most once.
	keeps kind = "keeps"
	// ignores: the bank enforces nothing; every payment too many is a contradiction.
	ignores kind = "ignores"
	// lands: the same bank, but what is sent lands within lands_within, nobody is stopped
	// past a deadline, and nobody says what is not so: nothing is paid twice.
	lands kind = "lands"
)

var kinds = []kind{keeps, ignores, lands}

// plan is all that is decided before a round begins; a seed and a number make it again.
type plan struct {
	Seed   uint64  `json:"seed"`
	Round  int     `json:"round"`
	Kind   kind    `json:"kind"`
	Runs   []runs  `json:"runs"`
	Storms []storm `json:"storms"`
	Late   float64 `json:"late"`    // the share of what is sent to a bank that the network holds back
	Wrong  uint64  `json:"against"` // of 20 decisions, those against what the bank's book has; none of the kind lands
}

// runs is one run of an agent and the fates of its processes, in their order. The
// process after the last fate is left alone, and started again until the run ends.
type runs struct {
	Name     string   `json:"name"`
	Agent    string   `json:"agent"` // go, python, typescript, or file: it keeps its own log
	Server   int      `json:"server"`
	Invoices []string `json:"invoices"`
	Fates    []fate   `json:"fates"`
}

// fate is what becomes of one process of a run.
type fate struct {
	Do     string        `json:"do"`               // kill, stop, stand: alive and with its lease, at the point; fill: its log file takes no more
	At     payer.Point   `json:"at,omitempty"`     // "": after a time
	Turn   int           `json:"turn"`             // the invoice
	After  time.Duration `json:"after"`            // from the point, or from when the run is open
	For    time.Duration `json:"for,omitempty"`    // of a stop or a stand; 0: a stop until the next process has met its own fate, or stands
	Killed time.Duration `json:"killed,omitempty"` // a stand ends with a kill, so long after it
	Room   int64         `json:"room,omitempty"`   // of a fill: bytes by which its log file may grow
	Deaf   bool          `json:"deaf,omitempty"`   // its tool does not heed its deadline
}

// storm is something that befalls a server, a bank, the database or a link.
type storm struct {
	After time.Duration `json:"after"` // the one before
	Do    string        `json:"do"`    // kill, stop, cut
	To    string        `json:"to"`    // server0, server1, keeps, ignores, postgres
	For   time.Duration `json:"for,omitempty"`
}

// size is how much of everything there is.
type size struct {
	runs   int
	fates  int      // of a run, at most, where nothing is drawn for a guard
	agents []string // which languages there are
	storms bool
	kinds  []kind
	story  string // the guard that is off: everything in a round depends on it
}

const (
	deadline    = 3 * time.Second // of every tool
	landsWithin = 7 * time.Second // of the third kind's tool
	delayed     = 6 * time.Second // at most, of what is sent to a bank: it lands in time
	shortLease  = 2               // seconds, the shortest there is
	calmLease   = 20              // seconds, once the fates are over: a busy machine renews no shorter one in time
)

// planOf makes a round's plan.
func planOf(seed uint64, round int, z size) plan {
	r := rand.New(rand.NewPCG(seed, uint64(round)))
	p := plan{Seed: seed, Round: round, Kind: z.kinds[round%len(z.kinds)], Late: 0.6, Wrong: 6}
	if z.story != "" {
		return storyOf(r, p, z)
	}
	for i := range z.runs {
		run := runs{Name: fmt.Sprintf("s%d-r%d-%d", seed, round, i), Agent: agentOf(r, z.agents), Server: r.IntN(2)}
		for n := range 1 + r.IntN(3) {
			run.Invoices = append(run.Invoices, fmt.Sprintf("%s-i%d", run.Name, n))
		}
		run.Fates = fatesOf(r, p.Kind, run, z.fates)
		p.Runs = append(p.Runs, run)
		// Somebody "just runs the failed ones again": another run, the same invoices.
		if r.IntN(8) == 0 {
			again := runs{Name: run.Name + "-again", Agent: "go", Server: r.IntN(2), Invoices: run.Invoices}
			p.Runs = append(p.Runs, again)
		}
	}
	for i := range 1 + z.runs/16 {
		if !slices.Contains(z.agents, "file") {
			break
		}
		p.Runs = append(p.Runs, keeperOf(r, fmt.Sprintf("s%d-r%d-file%d", seed, round, i), z.fates))
	}
	if z.storms && p.Kind == lands {
		// What lands while nobody can be asked is found by the look before the release alone.
		p.Storms = append(p.Storms, storm{After: 2 * time.Second, Do: "cut", To: "asking", For: 8 * time.Second})
	}
	if z.storms {
		for range 2 + r.IntN(4) {
			p.Storms = append(p.Storms, stormOf(r, p.Kind))
		}
	}
	return p
}

// keeperOf is a run of an agent that keeps its own log. Its processes are killed, and its
// file is full, in the middle of a line too.
func keeperOf(r *rand.Rand, name string, most int) runs {
	run := runs{Name: name, Agent: "file"}
	for n := range 1 + r.IntN(2) {
		run.Invoices = append(run.Invoices, fmt.Sprintf("%s-i%d", name, n))
	}
	points := []payer.Point{payer.BeforeIntent, payer.AfterIntent, payer.AfterAct, payer.AfterRecord}
	for range 1 + r.IntN(most) {
		f := fate{Do: "kill", At: points[r.IntN(len(points))], Turn: r.IntN(len(run.Invoices))}
		if r.IntN(2) == 0 {
			f = fate{Do: "fill", Room: 1 + r.Int64N(400)} // an intent has about 170 bytes, an outcome 130
		}
		run.Fates = append(run.Fates, f)
	}
	return run
}

// agentOf prefers the agent that starts fastest: it dies most.
func agentOf(r *rand.Rand, agents []string) string {
	if n := r.IntN(16); n < len(agents) && agents[n] != "file" {
		return agents[n]
	}
	return agents[0]
}

// fatesOf are those of one run: what is drawn, or, now and then, one of the stories in
// which everything depends on one guard.
func fatesOf(r *rand.Rand, k kind, run runs, most int) (list []fate) {
	n := r.IntN(12)
	switch {
	case run.Agent != "go" || n > 2 && k != lands || n > 5:
		for range 1 + r.IntN(most) {
			list = append(list, fateOf(r, k, run))
		}
	case k == lands:
		// Sent at the last moment, by a process that dies, and late to land.
		list = []fate{{Do: "stand", At: payer.AfterIntent, For: deadline - 700*time.Millisecond, Killed: 300 * time.Millisecond}}
	case n == 0:
		// A process goes on that has lost its run, while the next one has it.
		list = []fate{{Do: "stop", At: payer.BeforeIntent, For: 4500 * time.Millisecond}, {Do: "stand", At: payer.BeforeIntent, For: 4 * time.Second}}
	case n == 1:
		// Its request is late, and it has an outcome when the next attempt is under way.
		list = []fate{{Do: "stop", At: payer.AfterIntent, For: 6 * time.Second, Deaf: true}, {Do: "stand", At: payer.AfterIntent, For: 2500 * time.Millisecond}}
	default:
		list = []fate{{Do: "stop", At: payer.AfterAct, For: 6 * time.Second}, {Do: "kill", At: payer.AfterAct}, {Do: "kill", At: payer.InAct}}
	}
	return list
}

func fateOf(r *rand.Rand, k kind, run runs) fate {
	f := fate{Do: "kill", Turn: r.IntN(len(run.Invoices)), After: time.Duration(r.IntN(300)) * time.Millisecond}
	if run.Agent != "go" {
		return f // no named points
	}
	switch r.IntN(4) {
	case 0: // anywhere
	default:
		points := []payer.Point{payer.Opened, payer.BeforeIntent, payer.AfterIntent, payer.InAct, payer.InAct, payer.AfterAct, payer.AfterAct, payer.AfterRecord}
		f.At, f.After = points[r.IntN(len(points))], 0
		if f.At == payer.InAct {
			f.After = time.Duration(r.IntN(30)) * time.Millisecond
		}
	}
	if r.IntN(5) == 0 {
		f.Do, f.For = "stop", time.Duration(200+r.IntN(800))*time.Millisecond
		if f.Deaf = k != lands && r.IntN(2) == 0; k != lands { // past its lease and its deadline, while the next one goes on
			f.For = time.Duration(500+r.IntN(8000)) * time.Millisecond
		}
	}
	return f
}

func stormOf(r *rand.Rand, k kind) storm {
	all := []storm{
		{Do: "kill", To: "server0"}, {Do: "kill", To: "server1"}, {Do: "stop", To: "server0"}, {Do: "stop", To: "server1"},
		{Do: "cut", To: "server0"}, {Do: "cut", To: "server1"}, {Do: "cut", To: "postgres"}, {Do: "kill", To: "postgres"},
		{Do: "kill", To: "bank"}, {Do: "stop", To: "bank"}, {Do: "cut", To: "bank"},
	}
	s := all[r.IntN(len(all))]
	if s.To == "bank" {
		s.To = "ignores"
		if k == keeps {
			s.To = "keeps"
		}
	}
	s.After = time.Duration(300+r.IntN(2500)) * time.Millisecond
	if s.Do != "kill" {
		s.For = time.Duration(100+r.IntN(1500)) * time.Millisecond
	}
	return s
}

// draw is a number below n that hangs on the seed and on names alone, for what is decided
// on the way.
func draw(seed uint64, n uint64, names ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, append(names, seed)...)
	return h.Sum64() % n
}
