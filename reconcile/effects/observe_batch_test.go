package effects_test

import (
	"testing"

	"quittance/reconcile/effects"
)

// A list may hold the begin of an observed call and its finish: the finish is of that call,
// not one without an intent.
func TestAFinishBehindItsBeginInOneListOfAnObservedTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	lease := w.open("run", "pod")
	begin := effects.Begin{Account: w.account, RunID: "run", Lease: lease.Token, AttemptID: "a-1", Tool: "send_payment", Arguments: []byte(pay("INV-1", "1.00")), Key: "mine"}
	got := w.apply(
		effects.Op{Begin: &begin},
		effects.Op{Finish: &effects.Finish{Account: w.account, RunID: "run", Key: "mine", Outcome: "taken", Reference: "po_1"}},
	)
	if got[1].Finish == nil || got[1].Finish.State != "taken" || got[1].Finish.EffectID != got[0].Begin.EffectID {
		t.Fatalf("%+v, refused %+v", got[1].Finish, got[1].Refusal)
	}
	var kept int
	if err := w.db.Get(t.Context(), &kept, `SELECT count(*) FROM kept_finishes`); err != nil || kept != 0 {
		t.Errorf("%d kept as without an intent, %v", kept, err)
	}
}
