package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/client"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// till counts how often each order was carried out.
type till struct {
	mu     sync.Mutex
	orders map[string]int
	reach  map[int]chan struct{} // closed when so many orders were carried out
}

func newTill(at ...int) *till {
	b := &till{orders: map[string]int{}, reach: map[int]chan struct{}{}}
	for _, n := range at {
		b.reach[n] = make(chan struct{})
	}
	return b
}

// pay enforces nothing: an order that comes twice is paid twice.
func (b *till) pay(order string) client.Perform {
	return func(context.Context, client.Call) (any, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.orders[order]++
		if c := b.reach[len(b.orders)]; c != nil {
			close(c)
			delete(b.reach, len(b.orders))
		}
		return client.Reference("po_"+order, map[string]bool{"ok": true}), nil
	}
}

// agents pay n orders each until all are paid, through whatever happens to the database.
func (b *till) agents(t *testing.T, p *process, agents, n int, name string) (wait func()) {
	var all sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	for a := range agents {
		all.Go(func() {
			c := client.New(p.url, agentToken)
			defer c.Close()
			var run *client.Run
			again := func(what string, f func() error) bool {
				for {
					err := f()
					if err == nil {
						return true
					}
					if paused, ok := errors.AsType[*client.Paused](err); ok || ctx.Err() != nil {
						t.Errorf("agent %d cannot %s: %v %v", a, what, err, paused)
						return false
					}
					time.Sleep(50 * time.Millisecond) // as an agent's own loop would
				}
			}
			if !again("open its run", func() (err error) {
				run, err = c.Open(ctx, fmt.Sprintf("%s-%d", name, a), client.RunOptions{Agent: "ap-bot"})
				return err
			}) {
				return
			}
			for i := range n {
				order := fmt.Sprintf("%s-%d-%d", name, a, i)
				if !again("pay "+order, func() error {
					_, err := run.Do(ctx, "send_payment", map[string]string{"invoice": order}, b.pay(order))
					if errors.Is(err, client.ErrLeaseLost) { // the database was away for longer than a lease
						next, reopen := c.Open(ctx, fmt.Sprintf("%s-%d", name, a), client.RunOptions{Agent: "ap-bot"})
						if reopen != nil {
							return reopen
						}
						run = next
					}
					return err
				}) {
					return
				}
			}
		})
	}
	return func() { all.Wait(); stop() }
}

// either is the URL of whichever of the servers takes writes.
func either(t *testing.T, servers ...*ledgertest.Private) string {
	t.Helper()
	u, err := url.Parse(servers[0].DSN())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, s := range servers[1:] {
		v, err := url.Parse(s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		q.Set("host", q.Get("host")+","+v.Query().Get("host"))
		q.Set("port", q.Get("port")+","+v.Query().Get("port"))
	}
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	return u.String()
}

// The primary is killed under load and its synchronous standby promoted: no order is paid
// twice, none that was confirmed is lost, agents go on by themselves, and nobody has to
// acknowledge anything, at the next start neither.
func TestASynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	const agents, each = 8, 40
	primary := ledgertest.Server(t)
	standby := primary.Standby(true)
	h := &house{t: t, admin: access.NewToken(access.PersonPrefix)}
	env := []string{
		"DATABASE_URL=" + either(t, primary, standby), "QUITTANCE_ENVIRONMENT=test",
		"QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken, "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + h.admin,
	}
	if code, _, errs := once(t, env, "migrate"); code != 0 {
		t.Fatalf("migrate: exit %d, %s", code, errs)
	}
	data := t.TempDir()
	p := serve(t, env, "--data", data)
	b := newTill(agents * each / 3)
	reached := b.reach[agents*each/3]
	wait := b.agents(t, p, agents, each, "agent")
	<-reached
	primary.Kill()
	standby.Promote()
	wait()

	for order, n := range b.orders {
		if n != 1 {
			t.Errorf("order %s was paid %d times", order, n)
		}
	}
	if len(b.orders) != agents*each {
		t.Errorf("%d orders were paid, want %d", len(b.orders), agents*each)
	}
	var taken int
	if err := standby.Open().Get(t.Context(), &taken, `SELECT count(*) FROM effects WHERE state = 'taken' AND reference LIKE 'po_%'`); err != nil || taken != len(b.orders) {
		t.Errorf("%d are on record as paid, %d were, %v", taken, len(b.orders), err)
	}
	for range 2 {
		if state, by := h.log(p); state != "whole" {
			t.Errorf("the log is %s (%s)", state, by)
		}
		p.end(syscall.SIGTERM)
		if code, out, errs := once(t, env, "verify", "--data", data); code != exitOK {
			t.Errorf("verify: exit %d, %s%s", code, out, errs)
		}
		p = serve(t, env, "--data", data)
	}
	var note string
	if err := standby.Open().Get(t.Context(), &note, `SELECT note FROM audit WHERE action = 'standby.promoted'`); err != nil || !strings.Contains(note, "timeline 1 became 2") {
		t.Errorf("the trail says %q, %v", note, err)
	}
}

// The same with a standby that nobody waited for, cut off before the end: what it did not
// get is lost, and the running server says so within seconds.
func TestAnAsynchronousStandbyMayHaveLostSomething(t *testing.T) {
	t.Parallel()
	primary := ledgertest.Server(t)
	standby := primary.Standby(false)
	h := &house{t: t, admin: access.NewToken(access.PersonPrefix)}
	env := []string{
		"DATABASE_URL=" + either(t, primary, standby), "QUITTANCE_ENVIRONMENT=test",
		"QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken, "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + h.admin,
	}
	if code, _, errs := once(t, env, "migrate"); code != 0 {
		t.Fatalf("migrate: exit %d, %s", code, errs)
	}
	p := serve(t, env)
	h.pay(p, "before", 3)
	primary.Kill()
	standby.Promote()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if strings.Contains(p.output(), "timeline changed from 1 to 2") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("nobody noticed:\n%s", p.output())
		}
	}
	h.acknowledged(p, "timeline changed from 1 to 2")
}
