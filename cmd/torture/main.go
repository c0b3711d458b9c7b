// Torture kills, stops, cuts off and delays a whole Quittance (two servers, PostgreSQL,
// agents and banks, each a process of its own) and then proves from the banks' books
// that nothing was paid twice unseen, and nothing was lost.
//
//	go run ./cmd/torture -kills 10000 -seed 7
//
// docs/torture.md says what a round is and what its checker proves. It ends with 1 when
// something was found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quittance/cmd/torture/payer"
	"quittance/internal/typescript"
)

// options are what a torture is told.
type options struct {
	seed   uint64
	kills  int64         // at least; then the round is played to its end
	rounds int           // at most; 0 without limit
	most   time.Duration // after which no round begins; 0 without limit
	only   kind
	clocks bool // of servers and agents are wrong
	size   size
	broken string
	report string // file of the JSON
	plans  bool
	keep   string // folder; "" for one that is removed
}

func main() {
	if text := os.Getenv(payer.Variable); text != "" {
		os.Exit(payer.Main(text))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout))
}

func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
		return 2
	}
	r, err := torture(ctx, o, out)
	if err != nil {
		fmt.Fprintln(out, "torture:", err)
		return 1
	}
	r.text(out)
	if len(r.Findings) > 0 {
		return 1
	}
	return 0
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "makes the plans of the rounds")
	f.Int64Var(&o.kills, "kills", 1000, "how many processes are killed, at least")
	f.IntVar(&o.rounds, "rounds", 0, "how many rounds are played, at most; 0 without limit")
	f.DurationVar(&o.most, "for", 0, "after which time no round begins any more; 0 without limit")
	f.IntVar(&o.size.runs, "runs", 24, "agents' runs side by side in a round")
	f.IntVar(&o.size.fates, "fates", 8, "what befalls the processes of a run, one after the other, at most")
	only := f.String("kind", "", "only rounds of this kind: keeps, ignores or lands")
	agents := f.String("agents", "go,python,typescript,file", "the agents' languages; file: one that keeps its own log")
	f.BoolVar(&o.size.storms, "storms", true, "servers, banks, database and links have their share, not the agents alone")
	f.BoolVar(&o.clocks, "clocks", true, "the clocks of servers and agents are wrong, each by up to "+mostWrong.String())
	f.StringVar(&o.broken, "break", "", "switch off one guard, to see that it is noticed: "+strings.Join(guardNames(), ", ")+"; ends as soon as that is noticed")
	f.StringVar(&o.report, "report", "", "write the report to this file as JSON, too")
	f.StringVar(&o.keep, "dir", "", "work in this folder, and leave it")
	f.BoolVar(&o.plans, "plan", false, "print the plan of each round instead of playing it; needs -rounds")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.size.agents, o.size.kinds = strings.Split(*agents, ","), kinds
	if o.only = kind(*only); o.only != "" {
		o.size.kinds = []kind{o.only}
	}
	if o.broken != "" {
		b, known := brokenOf(o.broken)
		if !known {
			return o, fmt.Errorf("there is no guard %q", o.broken)
		}
		o.size.story, o.size.kinds = o.broken, []kind{b.kind}
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not understood", f.Arg(0))
	case o.size.runs < 1 || o.size.fates < 1:
		return o, errors.New("-runs and -fates are at least 1")
	case o.only != "" && !slices.Contains(kinds, o.only):
		return o, fmt.Errorf("there is no kind %q", o.only)
	case o.plans && o.rounds == 0:
		return o, errors.New("-plan needs -rounds")
	}
	return o, nil
}

// torture plays rounds until enough was killed, and says what came of it.
func torture(ctx context.Context, o options, out io.Writer) (r *report, err error) {
	began := time.Now()
	r = &report{Command: command(o), Seed: o.seed, Broken: o.broken, People: map[string]int{}}
	if o.plans {
		for n := range o.rounds {
			fmt.Fprintln(out, asJSON(planOf(o.seed, n, o.size)))
		}
		return r, nil
	}
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "quittance-torture-"); err != nil {
			return nil, fmt.Errorf("couldn't make a folder: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	p, err := build(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	// PostgreSQL refuses to be root, and has to enter the folder.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, fmt.Errorf("couldn't open the folder: %w", err)
	}
	w, err := openWorld(ctx, dir, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for n := 0; w.kills.Load() < o.kills && (o.rounds == 0 || n < o.rounds) && (o.most == 0 || time.Since(began) < o.most); n++ {
		p := planOf(o.seed, n, o.size)
		f, people, err := w.play(ctx, p)
		if ctx.Err() != nil {
			break // of what was played until now something is known
		}
		if err != nil {
			return nil, fmt.Errorf("round %d of seed %d: %w", n, o.seed, err)
		}
		r.add(p, f, people.acts)
		r.Kills, r.Stops, r.Cuts, r.Took = w.kills.Load(), w.stops.Load(), w.cuts.Load(), time.Since(began)
		fmt.Fprintf(out, "%7v round %d (%s): %d kills so far, %d payments, %d doubles detected, %d findings\n",
			time.Since(began).Round(time.Second), n, p.Kind, r.Kills, f.Payments, f.Doubles, len(f.Findings))
		for _, one := range f.Findings {
			fmt.Fprintln(out, one)
		}
		if err := r.write(o.report); err != nil {
			return nil, err
		}
		if b, _ := brokenOf(o.broken); r.has(b.want) {
			r.Noticed = true
			break
		}
	}
	return r, nil
}

// command is how to do the same again.
func command(o options) string {
	c := fmt.Sprintf("go run ./cmd/torture -seed %d -kills %d -runs %d -fates %d -agents %s", o.seed, o.kills, o.size.runs, o.size.fates, strings.Join(o.size.agents, ","))
	if o.rounds > 0 {
		c += fmt.Sprintf(" -rounds %d", o.rounds)
	}
	if o.most > 0 {
		c += fmt.Sprintf(" -for %v", o.most)
	}
	if o.only != "" {
		c += " -kind " + string(o.only)
	}
	if o.broken != "" {
		c += " -break " + o.broken
	}
	if !o.size.storms {
		c += " -storms=false"
	}
	if !o.clocks {
		c += " -clocks=false"
	}
	return c
}

// build makes the programs under test. A guard can be switched off only in programs that
// are built for it; every other torture is of the program as it is.
func build(ctx context.Context, dir string, o options) (p programs, err error) {
	p = programs{quittance: filepath.Join(dir, "quittance"), payer: filepath.Join(dir, "payer"), broken: o.broken, seed: o.seed}
	tags := "-tags="
	if o.broken != "" {
		tags = "-tags=torture"
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return p, fmt.Errorf("couldn't find the repository: %w", err)
	}
	p.root = strings.TrimSpace(string(root))
	flags := []string{"build", tags}
	if o.clocks {
		p.clocks = filepath.Join(dir, "clocks")
		overlay, err := wrongClocks(ctx, p.root, p.clocks)
		if err != nil {
			return p, err
		}
		flags = append(flags, overlay)
	}
	for program, from := range map[string]string{p.quittance: "quittance/cmd/quittance", p.payer: "quittance/cmd/torture"} {
		if text, err := exec.CommandContext(ctx, "go", append(slices.Clip(flags), "-o", program, from)...).CombinedOutput(); err != nil {
			return p, fmt.Errorf("couldn't build %s: %w\n%s", from, err, text)
		}
	}
	if slices.Contains(o.size.agents, "typescript") {
		if p.node, err = typescript.Example(); err != nil {
			return p, err
		}
	}
	return p, nil
}
