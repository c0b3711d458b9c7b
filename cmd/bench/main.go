// Command bench measures Quittance against a bare commit and a hand-written ceiling
// on one PostgreSQL in one run, and prints lines that benchstat reads. Machines are
// shared and noisy: only the ratios of one run mean anything.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quittance/handlers/api"
	"quittance/ledger"
	"quittance/ledger/ceiling"
	"quittance/ledger/embedded"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
)

func main() {
	agents := flag.String("agents", "1,16,64,256", "how many closed-loop agents")
	length := flag.Duration("for", 5*time.Second, "how long each measurement lasts")
	rounds := flag.Int("rounds", 1, "how often everything is measured")
	sealing := flag.Bool("sealing", false, "measure instead what a sealer beside the agents costs")
	flag.Parse()
	// As serve does it: the heap is small, and collecting it often costs more.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agents, *length, *rounds, *sealing); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const source = `
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    lands_within: 10m
`

type bench struct {
	db      *ledger.DB
	engine  *effects.Engine
	account int64
	token   string
	base    string // URL of the server
	pid     int    // of PostgreSQL
	anchor  string // file of the sealer's anchor
	runs    atomic.Int64
}

func run(ctx context.Context, list string, length time.Duration, rounds int, sealing bool) error {
	dir, err := os.MkdirTemp("", "quittance-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Root's PostgreSQL runs as another user, who has to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	pg, err := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(dir, "db")})
	if err != nil {
		return err
	}
	defer func() { _ = pg.Stop(context.WithoutCancel(ctx)) }()
	b, closeAll, err := prepare(ctx, pg.DSN())
	if err != nil {
		return err
	}
	defer closeAll()
	b.anchor = filepath.Join(dir, "anchor.json")

	for range rounds {
		if !sealing {
			if err := b.alone(ctx, length); err != nil {
				return err
			}
		}
		if err := b.payments(ctx, length); err != nil {
			return err
		}
		for _, s := range strings.Split(list, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of agents", s)
			}
			measure := b.together
			if sealing {
				measure = b.sealing
			}
			if err := measure(ctx, n, length); err != nil {
				return err
			}
		}
	}
	return nil
}

func prepare(ctx context.Context, dsn string) (*bench, func(), error) {
	db, err := ledger.Open(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		return nil, nil, err
	}
	if err := ceiling.Create(ctx, db); err != nil {
		return nil, nil, err
	}
	p, mistakes := policy.Load("bench", []byte(source))
	if p == nil {
		return nil, nil, mistakes.Err()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e, err := effects.New(ctx, db, p, nil, log)
	if err != nil {
		return nil, nil, err
	}
	b := &bench{db: db, engine: e, token: access.NewToken(access.AgentPrefix)}
	backend, err := ceiling.Backend(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	b.pid = parent(strconv.Itoa(backend))
	a := access.New(db)
	if err := a.AddAgentToken(ctx, "bench", "bench", b.token, 0); err != nil {
		return nil, nil, err
	}
	who, err := a.Authenticate(ctx, b.token)
	if err != nil {
		return nil, nil, err
	}
	b.account = who.Account.ID
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	b.base = "http://" + l.Addr().String()
	pay, err := payments.New(ctx, payments.Options{DB: db, Effects: e, Policy: e.Policy, Log: log})
	if err != nil {
		return nil, nil, err
	}
	h, err := handler(api.Options{Engine: e, Access: a, Payments: pay}, log)
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	return b, func() { _ = server.Close(); _ = db.Close() }, nil
}

// alone measures one caller: what a begin costs in bare prepared commits.
func (b *bench) alone(ctx context.Context, length time.Duration) error {
	bare := ceiling.Bare(ctx, b.db, strings.Repeat("x", 400))
	inProcess, err := b.beginner(ctx)
	if err != nil {
		return err
	}
	overHTTP, err := b.httpBeginner(ctx)
	if err != nil {
		return err
	}
	// Interleaved, so that a slow moment of the machine meets all of them.
	var t [3][]time.Duration
	for end := time.Now().Add(3 * length); time.Now().Before(end); {
		for i, f := range []func() error{bare, inProcess, overHTTP} {
			start := time.Now()
			if err := f(); err != nil {
				return err
			}
			t[i] = append(t[i], time.Since(start))
		}
	}
	for i, name := range []string{"Bare/commit", "Begin/inprocess", "Begin/http"} {
		slices.Sort(t[i])
		fmt.Printf("Benchmark%s \t%d\t%d ns/op\t%.2f commits\n", name, len(t[i]), median(t[i]).Nanoseconds(), float64(median(t[i]))/float64(median(t[0])))
	}
	return nil
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

// together measures closed-loop agents, each recording an intent and an outcome.
func (b *bench) together(ctx context.Context, n int, length time.Duration) error {
	hand, stop := context.WithCancel(ctx)
	defer stop()
	h := ceiling.NewHand(hand, b.db)
	var base, cheapest float64
	for _, m := range []struct {
		name  string
		agent func() (func() error, error)
	}{
		{"Hand", func() (func() error, error) {
			return h.Agent(ctx, fmt.Sprintf("hand-%d", b.runs.Add(1)), b.arguments)
		}},
		{"Effects/inprocess", func() (func() error, error) { return b.effect(ctx) }},
		{"Effects/http", func() (func() error, error) { return b.httpEffect(ctx) }},
	} {
		times, processor, err := b.loop(ctx, n, length, m.agent)
		if err != nil {
			return err
		}
		cost := float64(processor.Microseconds()) / float64(len(times))
		rate := float64(len(times)) / length.Seconds()
		if base == 0 {
			base, cheapest = rate, cost
		}
		fmt.Printf("Benchmark%s/agents=%d \t%d\t%d ns/op\t%.0f effects/s\t%.2f of-hand\t%.0f cpu-us/op\t%.2f cpu-of-hand\t%d p50-ns\t%d p99-ns\n", m.name, n, len(times),
			length.Nanoseconds()/int64(len(times)), rate, rate/base, cost, cheapest/cost, median(times).Nanoseconds(), times[len(times)*99/100].Nanoseconds())
	}
	return nil
}

// loop runs n agents for length and returns every call's time, sorted, and the processor
// time that all of them took.
func (b *bench) loop(ctx context.Context, n int, length time.Duration, agent func() (func() error, error)) ([]time.Duration, time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	fail := make(chan error, n)
	calls := make([]func() error, n)
	for i := range calls {
		f, err := agent()
		if err != nil {
			return nil, 0, err
		}
		calls[i] = f
	}
	before := spent(b.pid)
	end := time.Now().Add(length)
	for _, f := range calls {
		wg.Go(func() {
			var mine []time.Duration
			for time.Now().Before(end) && ctx.Err() == nil {
				start := time.Now()
				if err := f(); err != nil {
					fail <- err
					return
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	processor := spent(b.pid) - before
	select {
	case err := <-fail:
		return nil, 0, err
	default:
	}
	slices.Sort(all)
	return all, processor, nil
}

func (b *bench) arguments(run string, i int) string {
	return fmt.Sprintf(`{"vendor":"ACME Tools","invoice":"%s-%d","amount":"4200.00","currency":"USD","memo":"monthly","account":"DE89370400440532013000"}`, run, i)
}

func (b *bench) open(ctx context.Context) (effects.Lease, error) {
	name := fmt.Sprintf("run-%d", b.runs.Add(1))
	return b.engine.Open(ctx, effects.Open{Account: b.account, RunID: name, Agent: "bench", Worker: name, AttemptID: name, Lease: 10 * time.Minute})
}

// beginner begins a new call each time, in process.
func (b *bench) beginner(ctx context.Context) (func() error, error) {
	l, err := b.open(ctx)
	i := 0
	return func() error {
		i++
		_, err := b.begin(ctx, l, i)
		return err
	}, err
}

func (b *bench) begin(ctx context.Context, l effects.Lease, i int) (*effects.BeginAnswer, error) {
	a, err := b.engine.Apply(ctx, []effects.Op{{Begin: &effects.Begin{
		Account: b.account, RunID: l.RunID, Lease: l.Token, AttemptID: strconv.Itoa(i), Tool: "send_payment",
		Arguments: []byte(b.arguments(l.RunID, i)),
	}}})
	if err != nil {
		return nil, err
	}
	if a[0].Refusal != nil {
		return nil, a[0].Refusal
	}
	return a[0].Begin, nil
}

// effect begins and finishes one call each time, in process.
func (b *bench) effect(ctx context.Context) (func() error, error) {
	l, err := b.open(ctx)
	i := 0
	return func() error {
		i++
		a, err := b.begin(ctx, l, i)
		if err != nil {
			return err
		}
		f, err := b.engine.Apply(ctx, []effects.Op{{Finish: &effects.Finish{
			Account: b.account, EffectID: a.EffectID, Fence: a.Fence, Outcome: "taken", Reference: a.EffectID, Result: []byte(`{"payment_id":"` + a.EffectID + `"}`),
		}}})
		if err == nil && f[0].Refusal != nil {
			err = f[0].Refusal
		}
		return err
	}, err
}
