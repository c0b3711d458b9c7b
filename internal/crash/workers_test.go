package crash

import (
	"testing"
)

// TestWorkersOfOneRun starts several workers of one run at once. One holds it; when it
// dies over a payment, the next finds the run paused and not free.
func TestWorkersOfOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{})
	for _, k := range keys {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			c := w.work("workers-"+string(k), k)
			c.t, c.job.Lease = t, 6 // a busy machine must not lose it
			holder := c.start(parkAt(afterAct))
			holder.parked(afterAct)
			var others []*process
			for range 3 {
				others = append(others, c.start())
			}
			refused := c.start(func(j *job) { j.Held = 0 })
			if refused.wait() != exitFailed {
				t.Errorf("a second worker was let in beside the first:\n%s", refused.tail(3))
			}
			holder.kill()
			for _, p := range others {
				if p.wait() != exitPaused {
					t.Errorf("a worker went on after another's crash:\n%s", p.tail(3))
				}
			}
			c.once(c.finish())
		})
		t.Run(string(k)+" with no crash", func(t *testing.T) {
			t.Parallel()
			c := w.work("race-"+string(k), k)
			c.t = t
			var all []*process
			for range 4 {
				all = append(all, c.start())
			}
			performed := 0
			for _, p := range all {
				p.wait()
				for _, e := range p.events() {
					if e.Kind == begun {
						performed++
					}
				}
			}
			if performed != 1 {
				t.Errorf("%d workers were let through to the bank", performed)
			}
			if ids := c.payments(c.job.Invoices[0]); len(ids) != 1 {
				t.Errorf("the bank paid %v", ids)
			}
		})
	}
}
