package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"quittance/client"
	"quittance/cmd/torture/payer"
	"quittance/reconcile/guards"
)

// Limits of a run's end, once its fates are over.
const (
	runLimit     = 3 * time.Minute
	processLimit = 90 * time.Second
	brokenLimit  = 20 * time.Second // of both, with a guard off: what is broken need not end
	tries        = 6                // processes for one fate: a run may be paused before it is met
)

// told is what an agent said, with the process that said it.
type told struct {
	Run     string
	Process int
	payer.Event
}

// lane is a run at work: its processes, one after the other, and beside each other where
// one that was stopped goes on.
type lane struct {
	w    *world
	p    plan
	r    runs
	n    int
	last *process
	ways []string // how its processes ended

	mu    sync.Mutex
	told  []told
	stray sync.WaitGroup // processes that were stopped, and go on
	let   func()         // lets one go on that was stopped until the next stands
}

// run lets the run meet its fates and sees it to its end. It returns what it waits for at
// the end of its time; "" when it is finished.
func (l *lane) run(ctx context.Context) (waits string, err error) {
	defer func() { l.let(); l.stray.Wait() }()
	if l.r.Agent == "file" {
		end, err := l.follow()
		if err != nil {
			return "", err
		}
		defer end()
	}
	for _, f := range l.r.Fates {
		over, err := l.meet(ctx, f)
		if over || err != nil {
			return "", err
		}
	}
	for end := time.Now().Add(l.limit(runLimit)); time.Now().Before(end) && ctx.Err() == nil; {
		p, err := l.start(nil)
		if err != nil {
			return "", err
		}
		if over := l.ended(ctx, p.wait(l.limit(processLimit)), 10*time.Second); over {
			return "", nil
		}
	}
	return l.last.tail(3), ctx.Err()
}

// story tells how the run's processes ended, for whoever has to find out why.
func (l *lane) story() string {
	if l.last == nil {
		return "no process was started"
	}
	return strings.Join(l.ways, ", ") + "; the last said: " + l.last.tail(3)
}

// meet starts a process and lets it meet its fate. over: the run is finished.
func (l *lane) meet(ctx context.Context, f fate) (over bool, err error) {
	var p *process
	for try := 1; ; try++ {
		if p, err = l.start(&f); err != nil {
			return false, err
		}
		if f.Do == "fill" {
			return l.ended(ctx, p.wait(l.limit(processLimit)), 10*time.Second), nil
		}
		if l.stands(p, f.At) {
			break
		}
		if over := l.ended(ctx, p.wait(l.limit(processLimit)), 10*time.Second); over || try == tries {
			return over, ctx.Err()
		}
	}
	l.let()
	time.Sleep(f.After)
	if f.Do == "kill" {
		if p.kill() {
			l.w.kills.Add(1)
			l.ways = append(l.ways, fmt.Sprint(l.n, " is killed"))
			return false, nil
		}
		return l.ended(ctx, p.cmd.ProcessState.ExitCode(), 10*time.Second), nil
	}
	if f.Do == "stand" {
		l.ways = append(l.ways, fmt.Sprint(l.n, " stands"))
		time.Sleep(f.For)
		_, _ = p.stdin.Write([]byte("go\n"))
		if f.Killed == 0 {
			return l.ended(ctx, p.wait(l.limit(processLimit)), 10*time.Second), nil
		}
		time.Sleep(f.Killed)
		if p.kill() {
			l.w.kills.Add(1)
		}
		return false, nil
	}
	l.w.stops.Add(1)
	l.ways = append(l.ways, fmt.Sprint(l.n, " is stopped"))
	p.signal(syscall.SIGSTOP)
	next, most := make(chan struct{}), f.For
	if most == 0 {
		most, l.let = processLimit, sync.OnceFunc(func() { close(next) })
	}
	l.stray.Go(func() {
		select {
		case <-next:
		case <-time.After(most):
		}
		p.signal(syscall.SIGCONT)
		_, _ = p.stdin.Write([]byte("go\n"))
		p.wait(l.limit(processLimit))
	})
	return false, nil
}

func (l *lane) limit(d time.Duration) time.Duration {
	if l.w.broken != "" {
		return brokenLimit
	}
	return d
}

// stands waits until a process stands at a point, or has its run; false when it ends
// before.
func (l *lane) stands(p *process, at payer.Point) bool {
	_, said := p.says(l.limit(processLimit), func(line string) bool {
		if l.r.Agent != "go" && l.r.Agent != "file" {
			return line == "the run is open"
		}
		var e payer.Event
		_ = json.Unmarshal([]byte(line), &e)
		return at == "" && e.Kind == payer.Holds || at != "" && e.At == at
	})
	return said
}

// ended tells whether the run is over after a process has ended. A run that is paused is
// waited for.
func (l *lane) ended(ctx context.Context, code int, wait time.Duration) bool {
	l.ways = append(l.ways, fmt.Sprint(l.n, " exits with ", code))
	if code == payer.ExitFinished {
		return l.r.Agent != "file" || l.read(ctx)
	}
	if code != payer.ExitPaused {
		wait = 0
		time.Sleep(200 * time.Millisecond)
	}
	v, err := l.w.reader.Run(ctx, l.r.Name, wait)
	return err == nil && v.State == client.RunFinished
}

// start starts one more process of the run.
func (l *lane) start(f *fate) (p *process, err error) {
	l.n++
	process, lease := l.n, calmLease
	if f != nil {
		lease = shortLease
	}
	bank := "http://" + l.w.pay[bankOf[l.p.Kind]].address()
	server := "http://" + l.w.servers[(l.r.Server+l.n)%2].link.address()
	spool := l.w.path("spool-" + l.r.Name)
	name := fmt.Sprintf("agent %d of %s", l.n, l.r.Name)
	if l.r.Agent == "go" || l.r.Agent == "file" {
		j := payer.Job{
			Server: server, Token: l.w.agentToken, Bank: bank, Spool: spool,
			Run: l.r.Name, Tool: tools[l.p.Kind], Invoices: l.r.Invoices, Lease: lease, Held: 30, WrongBy: l.w.wrongBy(name, 0),
		}
		if l.r.Agent == "file" {
			j.Server, j.Token, j.File = "", "", l.file()
		}
		if f != nil {
			j.Room = f.Room
		}
		if f != nil && f.At != "" {
			j.Park, j.Turn, j.Deaf = []payer.Point{f.At}, f.Turn, f.Deaf
		}
		p, err = l.w.guard.start(name, append(environ(), payer.Variable+"="+asJSON(j), guards.Variable+"="+l.w.broken, l.w.clock(name, 0)), func(line string) { l.hear(process, line) }, l.w.payer)
	} else {
		p, err = l.example(name, server, bank, spool, lease)
	}
	l.last = p
	return p, err
}

// hear keeps what an agent says.
func (l *lane) hear(process int, line string) {
	var e payer.Event
	if json.Unmarshal([]byte(line), &e) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, told{l.r.Name, process, e})
}

// example starts an agent as its users write them.
func (l *lane) example(name, server, bank, spool string, lease int) (*process, error) {
	file := l.w.path(strings.ReplaceAll(l.r.Name, "/", "-") + ".json")
	var invoices []map[string]any
	for _, invoice := range l.r.Invoices {
		invoices = append(invoices, map[string]any{"vendor": payer.Payee, "invoice": invoice, "amount": 420000, "currency": "USD"})
	}
	if err := os.WriteFile(file, []byte(asJSON(invoices)), 0o600); err != nil {
		return nil, fmt.Errorf("couldn't write the invoices: %w", err)
	}
	command := []string{"python3", filepath.Join(l.w.root, "examples/invoices-python/agent.py")}
	if l.r.Agent == "typescript" {
		command = []string{"node", l.w.node}
	}
	args := append(command[1:], "--run", l.r.Name, "--bank", bank, "--tool", tools[l.p.Kind],
		"--spool", spool, "--lease", fmt.Sprint(lease), file)
	env := append(environ(), "QUITTANCE_URL="+server, "QUITTANCE_TOKEN="+l.w.agentToken,
		"PYTHONPATH="+filepath.Join(l.w.root, "client/python"), l.w.clock(name, 0))
	if l.w.clocks != "" {
		env = append(env, "PYTHONPATH="+filepath.Join(l.w.root, "client/python")+":"+l.w.clocks, "NODE_OPTIONS=--require="+filepath.Join(l.w.clocks, "clock.cjs"))
	}
	return l.w.guard.start(name, env, nil, command[0], args...)
}
