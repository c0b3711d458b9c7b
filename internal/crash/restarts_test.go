package crash

import (
	"fmt"
	"testing"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// restarts is how often the server is killed under working agents.
const restarts = 10

// TestTenRestarts kills the server ten times while agents work, each time after all
// have done something more. Whatever an agent was ever told is on record afterwards,
// and each invoice is paid once.
func TestTenRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{own: true, deadline: time.Minute})
	var all []*work
	var agents []*process
	for i := range 4 {
		var invoices []string
		for n := range 25 {
			invoices = append(invoices, fmt.Sprintf("INV-%d-%d", i, n))
		}
		c := w.work(fmt.Sprintf("busy-%d", i), bank.Honour, invoices...)
		c.job.Lease = longLease
		all = append(all, c)
		agents = append(agents, c.start(func(j *job) { j.Wait = true }))
	}
	for range restarts {
		for _, p := range agents {
			p.event("begun", func(e event) bool { return e.Kind == begun })
		}
		w.server.kill()
		w.serve()
	}
	told := 0
	for i, c := range all {
		for agents[i].running() {
			c.decide() // what a long restart left in doubt
		}
		if agents[i].wait() != exitFinished {
			t.Errorf("an agent gave up:\n%s", agents[i].tail(3))
		}
		c.once(agents[i])
		for _, e := range agents[i].events() {
			if e.Effect == "" {
				continue
			}
			told++
			x, err := w.operator.Effect(t.Context(), e.Effect)
			if err != nil || x.State != "taken" || x.RunID != c.job.Run || e.Payment != "" && x.Reference != e.Payment {
				t.Errorf("the agent was told %+v; on record is %s %q, %v", e, x.State, x.Reference, err)
			}
		}
	}
	if want := 4 * 25 * 2; told < want {
		t.Errorf("agents were told %d things, want at least %d", told, want)
	}
	page, err := w.operator.Queue(t.Context(), client.QueueFilter{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%d effects are still open, %v", len(page.Items), err)
	}
}
