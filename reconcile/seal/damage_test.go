package seal_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/seal"
)

var quiet = slog.New(slog.DiscardHandler)

func (w *world) now(t *testing.T) time.Time {
	t.Helper()
	now, err := w.db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// off switches a table's guards off, as its owner can.
func (w *world) off(table string, f func()) {
	w.t.Helper()
	w.exec(`ALTER TABLE ` + table + ` DISABLE TRIGGER USER`)
	f()
	w.exec(`ALTER TABLE ` + table + ` ENABLE TRIGGER USER`)
}

// Whatever an owner does to the sealed record behind our back is found and named, once.
func TestDamageIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	const middle = `(SELECT min(id) FROM effect_events WHERE version = 2)`
	cases := map[string]struct {
		table, do string
		says      string // in the first finding
	}{
		"a row deleted":              {"effect_events", `DELETE FROM effect_events WHERE id = ` + middle, "chain: row 4 of effect_events is gone"},
		"the first row deleted":      {"effect_events", `DELETE FROM effect_events WHERE id = 1`, "chain: row 1 of effect_events is gone"},
		"a byte flipped in a row":    {"effect_events", `UPDATE effect_events SET data = overlay(data placing 'X' from 20 for 1) WHERE id = ` + middle, "chain: row 4 of effect_events (effect "},
		"a time moved":               {"effect_events", `UPDATE effect_events SET at = at + interval '1 microsecond' WHERE id = ` + middle, "its digest does not recompute"},
		"a digest flipped":           {"effect_events", `UPDATE effect_events SET digest = sha256(digest) WHERE id = ` + middle, "its digest does not recompute"},
		"a row added":                {"effect_events", `INSERT INTO effect_events (id, at, run_id, kind, data, digest) OVERRIDING SYSTEM VALUE SELECT 0, at, run_id, kind, data, digest FROM effect_events WHERE id = 1`, "chain: row 0 of effect_events (run number 1, run_opened) was added"},
		"evidence changed":           {"evidence", `UPDATE evidence SET seen = 'nothing'`, "chain: row 1 of evidence"},
		"a decision's note changed":  {"decisions", `UPDATE decisions SET note = 'x' WHERE seq = 1`, "chain: row 1 of decisions (effect "},
		"a decision's person wiped":  {"decisions", `UPDATE decisions SET decided_by = 'look_up', person_id = NULL`, "chain: row 1 of decisions"},
		"the trail emptied":          {"audit", `DELETE FROM audit`, "of audit is gone"},
		"a block deleted":            {"seal_blocks", `DELETE FROM seal_blocks WHERE number = 2`, "blocks 2 to 2 are gone"},
		"a block changed":            {"seal_blocks", `UPDATE seal_blocks SET at = at + interval '1 second' WHERE number = 2`, "block 2, rows 1 to"},
		"a block's list changed":     {"seal_blocks", `UPDATE seal_blocks SET marks = overlay(marks placing '\x00' from 1 for 1) WHERE number = 1`, "block 1 was changed: its list of rows cannot be read"},
		"a link changed":             {"seal_blocks", `UPDATE seal_blocks SET previous = sha256('') WHERE number = 2`, "block 2 does not follow block 1"},
		"an effect's state":          {"effects", `UPDATE effects SET reference = 'po_x' WHERE reference = 'po_1'`, `reference is "po_x" in the row and "po_1" in the log`},
		"an effect's result":         {"effects", `UPDATE effects SET result = '{"ok":false}' WHERE reference = 'po_1'`, "its result is not the one whose digest it carries"},
		"an effect's arguments":      {"effects", `UPDATE effects SET arguments = '{"invoice":"INV-9"}' WHERE reference = 'po_1'`, "its arguments are not those that its first event names"},
		"an effect deleted":          {"effects", `ALTER TABLE attempts DISABLE TRIGGER USER; DELETE FROM business_claims; ALTER TABLE attempts DROP CONSTRAINT attempts_effect_id_fkey; DELETE FROM effects WHERE reference = 'po_1'`, "the log speaks of it, and its row is gone"},
		"an attempt deleted":         {"attempts", `DELETE FROM attempts WHERE effect_id = (SELECT id FROM effects WHERE reference = 'po_1')`, "it counts 1 attempts, and 0 are stored"},
		"a row changed with its sum": {"effect_events", changedWithDigest, "chain: row 4 of effect_events (effect "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.effect()
			w.effect()
			w.judged()
			w.seal()
			w.effect()
			w.seal()
			w.clean()
			w.off(c.table, func() { w.exec(c.do) })
			r := w.verify(true)
			if list := findings(r); r.OK || len(list) == 0 || !strings.Contains(strings.Join(list, "\n"), c.says) {
				t.Fatalf("found %q, want %q", list, c.says)
			}
			w.behind()
			w.acknowledge()
			// Found again it is the same: no new gap, and never clean.
			again := w.verify(true)
			if again.OK {
				t.Error("after the acknowledgement it counts as clean")
			}
			for _, c := range again.Checks {
				for _, f := range c.Findings {
					if !f.Known {
						t.Errorf("found as new: %s", f.What)
					}
				}
			}
			if g, err := w.Gap(t.Context()); err != nil || g == nil || g.AcknowledgedAt.IsZero() {
				t.Fatalf("the gap opened again: %+v, %v", g, err)
			}
		})
	}
}

// changedWithDigest changes a row and recomputes the digest that it carries, as somebody
// would who has read how it is made.
const changedWithDigest = `
	UPDATE effect_events SET data = replace(data, '"taken"', '"failed"') WHERE id = 4;
	UPDATE effect_events SET digest = sha256(int8send(8) || int8send(run_id) || int8send(36) || convert_to(effect_id::text, 'UTF8') || int8send(8) || int8send(version)
		|| int8send(octet_length(kind)::bigint) || convert_to(kind, 'UTF8') || int8send(8) || int8send((extract(epoch FROM at) * 1000000)::bigint)
		|| int8send(octet_length(data)::bigint) || convert_to(data, 'UTF8')) WHERE id = 4`

// The running server finds damage by itself: what is at the end of a table within a
// second, what is older when the patrol comes by.
func TestTheServerFindsDamageByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ table, do, says string }{
		"truncated by the owner":     {"effect_events", `TRUNCATE effect_events`, "the last that was sealed, is gone"},
		"truncated, numbers restart": {"effect_events", `TRUNCATE effect_events RESTART IDENTITY`, "the last that was sealed, is gone"},
		"the last row changed":       {"effect_events", `UPDATE effect_events SET data = '{}' WHERE id = (SELECT max(id) FROM effect_events)`, "the last that was sealed, was changed"},
		"an old row changed":         {"effect_events", `UPDATE effect_events SET data = '{}' WHERE id = 2`, "row 2 of effect_events"},
		"an old row deleted":         {"audit", `DELETE FROM audit WHERE id = 1`, "row 1 of audit is gone"},
		"the chain truncated":        {"seal_head", `ALTER TABLE seal_blocks DISABLE TRIGGER USER; TRUNCATE seal_blocks CASCADE; ALTER TABLE seal_blocks ENABLE TRIGGER USER`, "the anchor outside the database names block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.judged()
			w.effect()
			w.seal()
			w.turn()
			w.off(c.table, func() { w.exec(c.do) })
			w.turn()
			w.turn()
			g, err := w.Gap(t.Context())
			if err != nil || g == nil {
				t.Fatalf("nothing was found: %v", err)
			}
			var what string
			w.get(&what, `SELECT string_agg(what, '; ') FROM seal_damage`)
			if !strings.Contains(what, c.says) {
				t.Errorf("found %q, want %q", what, c.says)
			}
			w.behind()
			w.acknowledge()
			// Sealing goes on with what is new, and nothing is found twice.
			if err := w.EndGap(t.Context(), w.person, "all seen"); err != nil {
				t.Fatal(err)
			}
			w.effect()
			w.turn()
			w.turn()
			var open, unsealed int
			w.get(&open, `SELECT count(*) FROM log_gaps WHERE ended_at IS NULL`)
			if open != 0 {
				t.Error("the same damage opened a gap again")
			}
			w.get(&unsealed, `SELECT count(*) FROM effect_events WHERE id > (SELECT max(last_id) FROM seal_blocks WHERE stream = 'effect_events')`)
			if unsealed != 0 {
				t.Errorf("%d new rows are not sealed", unsealed)
			}
		})
	}
}

// turn is one second of a server.
func (w *world) turn() {
	w.t.Helper()
	seal.Turn(w.sealer, w.t.Context())
	if s := w.sealer.Status(); s.Trouble != "" || s.AnchorTrouble != "" {
		w.t.Fatalf("%+v", s)
	}
}

// An anchor that this database does not hold opens a gap before anybody is served: an
// older database, another one, or an empty one in its place.
func TestAnAnchorThatTheDatabaseDoesNotHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.effect()
	w.seal()
	if err := w.sealer.Arrive(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.clean()
	if g, err := w.Gap(t.Context()); g != nil || err != nil {
		t.Fatalf("%+v %v", g, err)
	}
	empty := newWorld(t)
	empty.anchor = w.anchor
	s := empty.newSealer()
	if err := s.Arrive(t.Context()); err != nil {
		t.Fatal(err)
	}
	empty.behind()
	empty.acknowledge()
	if err := empty.EndGap(t.Context(), empty.person, "it is new on purpose"); err != nil {
		t.Fatal(err)
	}
	empty.effect()
	empty.seal()
	if err := s.Arrive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := empty.Gap(t.Context()); g != nil || err != nil {
		t.Fatalf("the anchor was not moved: %+v %v", g, err)
	}
	if kept, err := filepath.Glob(w.anchor.Path() + ".lost-*"); err != nil || len(kept) != 1 {
		t.Errorf("of the lost anchor is kept: %v, %v", kept, err)
	}
	// And now it is the first one's that is missing.
	if err := w.newSealer().Arrive(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.behind()
}

// A second loss while a first is acknowledged and not ended: what was said of the first
// does not cover it.
func TestALossAfterTheAcknowledgementOpensTheGapAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.effect()
	w.seal()
	w.turn()
	if err := w.FindGap(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	w.acknowledge()
	w.effectInGap()
	w.seal()
	w.off("effect_events", func() { w.exec(`DELETE FROM effect_events WHERE id = (SELECT max(id) FROM effect_events)`) })
	w.turn()
	w.behind()
	var n int
	w.get(&n, `SELECT count(*) FROM audit WHERE action = 'gap.found'`)
	if n != 2 {
		t.Errorf("found %d times in the trail, want 2", n)
	}
	w.acknowledge()
}

func (w *world) effectInGap() {
	w.t.Helper()
	defer func(n int) { w.n = n + 1 }(w.n)
	w.exec(`INSERT INTO effect_events (at, run_id, kind, data, digest) SELECT at, run_id, kind, data, digest FROM effect_events WHERE effect_id IS NULL ORDER BY id LIMIT 1`)
}

func TestAnAnchorIsReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.effect()
	w.seal()
	w.turn()
	whole, err := os.ReadFile(w.anchor.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", string(whole[:len(whole)/2]), strings.Replace(string(whole), `"block": `, `"block": -`, 1)} {
		if err := os.WriteFile(w.anchor.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := w.newSealer().Arrive(t.Context()); err == nil {
			t.Errorf("%q was taken for an anchor", text)
		}
	}
	if err := os.Remove(w.anchor.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.anchor.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.newSealer().Arrive(t.Context()); err == nil {
		t.Error("a folder was taken for an anchor")
	}
}
