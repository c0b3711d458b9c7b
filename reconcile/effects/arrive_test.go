package effects_test

import (
	"fmt"
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

// What a start finds: where the database lives, and whether it may have lost events.
func TestArrival(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   string // what became of the database since the first start
		place    string
		restored bool
		gap      string // what the gap says; "" for none
		outward  bool
	}{
		"the same again":           {place: "production", outward: true},
		"restored, says the flag":  {place: "production", restored: true, gap: "--restored", outward: true},
		"another cluster":          {change: `UPDATE installation SET system_identifier = '1'`, place: "production", gap: "another PostgreSQL cluster", outward: true},
		"another timeline":         {change: `UPDATE installation SET timeline = timeline + 1`, place: "production", gap: "timeline", outward: true},
		"a synchronous standby":    {change: `UPDATE installation SET timeline = timeline - 1, synchronous = true`, place: "production", outward: true},
		"a standby of before":      {change: `UPDATE installation SET timeline = timeline + 1, synchronous = true`, place: "production", gap: "timeline", outward: true},
		"a copy in another place":  {place: "drill"},
		"a drill from a backup":    {change: `UPDATE installation SET system_identifier = '1'`, place: "drill", gap: "another PostgreSQL cluster"},
		"a drill, with the flag":   {place: "drill", restored: true, gap: "--restored"},
		"restored before a start":  {change: `UPDATE installation SET system_identifier = NULL, environment = NULL, timeline = NULL`, place: "production", restored: true, gap: "--restored", outward: true},
		"never started, and empty": {change: `UPDATE installation SET system_identifier = NULL, environment = NULL, timeline = NULL`, place: "production", outward: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fastRelease)
			w.start("production", false)
			if c.change != "" {
				w.exec(c.change)
			}
			w.start(c.place, c.restored)
			g, err := w.Gap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (g != nil) != (c.gap != "") || g != nil && !strings.Contains(g.FoundBy, c.gap) {
				t.Fatalf("gap: %+v", g)
			}
			if n := w.count(`SELECT count(*) FROM installation WHERE outward`); (n == 1) != c.outward {
				t.Errorf("outward: %d", n)
			}
			if g == nil {
				w.open("a", "p")
				return
			}
			wantErr(t, w.openErr("a", "p", "1"), effects.CodeLogBehind)
			// Another loss while this one is acknowledged and not ended is one more to acknowledge.
			if err := w.AcknowledgeGap(t.Context(), w.person, "known"); err != nil {
				t.Fatal(err)
			}
			w.open("a", "p")
			w.start(c.place, true)
			wantErr(t, w.openErr("b", "p", "1"), effects.CodeLogBehind)
			if n := w.count(`SELECT count(*) FROM audit WHERE action = 'gap.found'`); n != 2 {
				t.Errorf("found %d times in the trail, want 2", n)
			}
			if n := w.count(`SELECT count(*) FROM audit WHERE action = 'gap.found' AND before LIKE '%known%'`); n != 1 {
				t.Error("what was said of the first is not in the trail of the second")
			}
		})
	}
}

func (w *world) start(place string, restored bool) {
	w.t.Helper()
	if err := w.Arrive(w.t.Context(), place, restored, true); err != nil {
		w.t.Fatal(err)
	}
}

// A standby that was promoted while the server runs is seen then, and not at the next
// start. Without an anchor nothing would tell one that had fallen behind.
func TestAPromotionIsSeenWhileRunning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ synchronous, anchored, gap bool }{
		"synchronous":            {true, true, false},
		"asynchronous":           {false, true, true},
		"synchronous, no anchor": {true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fastRelease)
			if err := w.Attend(t.Context()); err != nil {
				t.Fatalf("before it arrived: %v", err)
			}
			if err := w.Arrive(t.Context(), "production", false, c.anchored); err != nil {
				t.Fatal(err)
			}
			w.exec(fmt.Sprintf(`UPDATE installation SET timeline = timeline - 1, synchronous = %t`, c.synchronous))
			for range 2 {
				if err := w.Attend(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if g, err := w.Gap(t.Context()); err != nil || (g != nil) != c.gap {
				t.Fatalf("gap: %+v, %v", g, err)
			}
			if n := w.count(`SELECT count(*) FROM audit WHERE action = 'standby.promoted'`); (n == 1) == c.gap {
				t.Errorf("%d promotions in the trail", n)
			}
		})
	}
}
