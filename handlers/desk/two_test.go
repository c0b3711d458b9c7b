package desk

import (
	"testing"

	"quittance/reconcile/effects"
)

// Whoever reads the page later has to see both people of a verdict that needed two, and
// nobody who was sent back.
func TestBothPeopleOfAVerdictAreNamed(t *testing.T) {
	t.Parallel()
	acts := []effects.DecisionView{
		{ID: "1", Act: "propose", Person: "Ada"}, {ID: "2", Act: "send_back", Person: "Grace"},
		{ID: "3", Act: "propose", Person: "Ada"}, {ID: "4", Act: "decide", Person: "Grace"},
		{ID: "5", Act: "undo", Person: "Ada"}, {ID: "6", Act: "decide", Person: "Ada"},
	}
	s := subject{EffectView: effects.EffectView{Decisions: acts}}
	for i, want := range map[int]string{3: "Ada", 5: ""} {
		if got := firstOfTwo(s, &acts[i]); got != want {
			t.Errorf("before decision %s: %q, want %q", acts[i].ID, got, want)
		}
	}
}
