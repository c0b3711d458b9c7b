package crash

import (
	"testing"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// TestABankThatBreaksItsPromise: the policy says that the bank keeps the key, and it
// books both attempts. Whichever outcome comes first, both names are on record and
// disagree: that is a contradiction.
func TestABankThatBreaksItsPromise(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{})
	for name, lateFirst := range map[string]bool{"the late one last": false, "the late one first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.work("promise, "+name, bank.Ignore)
			c.t = t
			c.job.Tool = breaks
			first := c.start(parkAt(afterAct))
			effect := first.event("begun", func(e event) bool { return e.Kind == begun }).Effect
			first.parked(afterAct)
			first.freeze()
			c.interrupted()
			c.say(effect, client.VerdictNotTaken)
			at := afterRecord
			if lateFirst {
				at = afterAct
			}
			next := c.start(parkAt(at))
			next.parked(at)
			first.thaw()
			first.goOn()
			first.wait()
			next.goOn()
			next.wait()
			x, err := c.operator.Effect(t.Context(), effect)
			if ids := c.payments(c.job.Invoices[0]); err != nil || len(ids) != 2 || len(x.Contradictions) != 1 {
				t.Errorf("the bank paid %v; %d contradictions, %v", ids, len(x.Contradictions), err)
			}
		})
	}
}
