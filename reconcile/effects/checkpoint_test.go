package effects_test

import (
	"fmt"
	"testing"

	"quittance/reconcile/effects"
)

const keepThree = fastRelease + `
checkpoints: {keep: 3, redact: [/cookie]}
`

func (w *world) save(l effects.Lease, turn int64, state string) {
	w.t.Helper()
	if _, err := w.SaveCheckpoint(w.t.Context(), w.account, l.RunID, l.Token, turn, []byte(state), []byte(`{"c":1}`), ""); err != nil {
		w.t.Fatal(err)
	}
}

// The last few are kept, whichever lease saved them, and secrets are in none.
func TestTheLastCheckpointsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keepThree)
	l := w.open("a", "pod-1")
	for turn := range int64(4) {
		w.save(l, turn, fmt.Sprintf(`{"turn":%d,"cookie":"zz-secret"}`, turn))
	}
	w.die(l)
	l = w.open("a", "pod-2")
	w.save(l, 4, `{"turn":4}`)
	if n := w.count(`SELECT count(*) FROM checkpoints`); n != 3 {
		t.Errorf("%d are kept", n)
	}
	if n := w.count(`SELECT count(*) FROM checkpoints WHERE turn < 2 OR state LIKE '%zz-secret%'`); n != 0 {
		t.Errorf("%d are too old, or hold a secret", n)
	}
	if c, err := w.Checkpoint(t.Context(), w.account, "a"); err != nil || c.Turn != 4 || len(c.Skipped) != 0 {
		t.Errorf("%+v %v", c, err)
	}
}

// A damaged one is said, and an earlier one read; where none is left the run is not begun
// anew by mistake, and its effects can be decided all the same.
func TestADamagedCheckpointIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keepThree)
	if _, err := w.Checkpoint(t.Context(), w.account, "a"); refusalOf(err) == nil {
		t.Errorf("of no run: %v", err)
	}
	l := w.open("a", "pod-1")
	if _, err := w.Checkpoint(t.Context(), w.account, "a"); refusalOf(err) == nil || refusalOf(err).Code != effects.CodeNotFound {
		t.Errorf("a missing one: %v", err)
	}
	for turn := range int64(3) {
		w.save(l, turn, fmt.Sprintf(`{"turn":%d}`, turn))
	}
	b := w.proceed(l, "refund", `{"n":1}`)
	w.exec(`UPDATE checkpoints SET state = '{"turn":9}' WHERE turn = 2`)
	c, err := w.Checkpoint(t.Context(), w.account, "a")
	if err != nil || c.Turn != 1 || string(c.State) != `{"turn":1}` || len(c.Skipped) != 1 || c.Skipped[0].Turn != 2 || !c.Skipped[0].Damaged {
		t.Errorf("%+v %v", c, err)
	}
	w.exec(`UPDATE checkpoints SET occurrences = '{}'`)
	if _, err := w.Checkpoint(t.Context(), w.account, "a"); refusalOf(err) == nil || refusalOf(err).Code != effects.CodeDamaged {
		t.Errorf("none is intact: %v", err)
	}
	w.die(l)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Result: []byte(`{}`)})
	l = w.open("a", "pod-2")
	if l.Checkpoint == nil || !l.Checkpoint.Damaged || l.Checkpoint.Turn != 2 {
		t.Errorf("%+v", l.Checkpoint)
	}
	if a := w.begin(l, "refund", `{"n":1}`); a.Begin == nil || a.Begin.Do != "replay" {
		t.Errorf("%+v %v", a.Begin, a.Refusal)
	}
	w.save(l, 0, `{"anew":true}`) // a way on
	if c, err := w.Checkpoint(t.Context(), w.account, "a"); err != nil || string(c.State) != `{"anew":true}` {
		t.Errorf("%+v %v", c, err)
	}
}
