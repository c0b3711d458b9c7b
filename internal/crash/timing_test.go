package crash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// The promises are 250 ms and 3 s on a machine that is not busy. Tests allow the first
// more, because the machine they run on is.
const (
	wakeLimit  = time.Second
	queueLimit = 3 * time.Second
)

// TestAReleaseReachesAWaitingAgent measures from the release to the end of the agent's
// wait: with a server that both talk to, and with one for each. It is not run beside the
// others, which would be measured too.
func TestAReleaseReachesAWaitingAgent(t *testing.T) {
	for name, hold := range map[string]time.Duration{"at once": 0, "after a hold": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{hold: hold})
			other := *w // a second server on the same database
			other.gate = newGate(t)
			other.serve()
			other.agent = other.as(w.agentToken)
			var paused []*work
			for i := range 6 {
				c := w.work(fmt.Sprint("wait-", i), bank.Honour)
				c.crashed(afterAct)
				paused = append(paused, c)
			}
			var took []time.Duration
			for i, c := range paused {
				row := c.interrupted()
				reader := []*client.Client{w.agent, other.agent}[i%2]
				waited := make(chan time.Time, 1)
				go func() {
					v, err := reader.Run(t.Context(), c.job.Run, 30*time.Second)
					if err != nil || v.State != client.RunReady {
						t.Errorf("the wait ended with %s, %v", v.State, err)
					}
					waited <- time.Now()
				}()
				x, err := w.operator.Effect(t.Context(), row.EffectID)
				must(t, err)
				d, err := c.look(x)
				must(t, err)
				a, err := w.operator.Decide(t.Context(), row.EffectID, d)
				must(t, err)
				// The database's clock is this machine's.
				took = append(took, (<-waited).Sub(*a.ReleaseAt))
			}
			slices.Sort(took)
			t.Logf("a release reached a waiting agent after %v", took)
			if first, last := took[0], took[len(took)-1]; first < 0 || last > wakeLimit {
				t.Errorf("between %v and %v, want 0 to %v", first, last, wakeLimit)
			}
		})
	}
}

// TestADeadWorkersEffectIsInTheQueue measures from the end of a dead worker's lease,
// not beside other tests either.
func TestADeadWorkersEffectIsInTheQueue(t *testing.T) {
	w := newWorld(t, setting{deadline: time.Minute})
	for _, k := range keys {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			c := w.work("lease-"+string(k), k)
			c.t, c.job.Lease = t, 5
			c.crashed(afterIntent)
			v, err := w.agent.Run(t.Context(), c.job.Run, 0)
			if err != nil || v.HeldBy == nil || v.HeldBy.ExpiresAt == nil {
				t.Fatalf("the dead worker holds nothing any more: %+v, %v", v, err)
			}
			c.interrupted()
			late := time.Since(*v.HeldBy.ExpiresAt)
			t.Logf("in the queue %v after the lease", late)
			if late < 0 || late > queueLimit {
				t.Errorf("in the queue %v after the lease, want 0 to %v", late, queueLimit)
			}
		})
	}
}
