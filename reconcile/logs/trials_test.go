package logs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

// glued is a line that two writers wrote at once.
const glued = `{"type":"intent","key":"K-41","to{"type":"completion","key":"K-40","result":"ok"}`

func TestBC121_OneDamagedLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lines []string
	for i := range 39 { // line 40 is the intent of K-40
		lines = append(lines, intent(fmt.Sprintf("A-%d", i)))
	}
	lines = append(lines, intent("K-40"), glued)
	for i := range 19 {
		lines = append(lines, completed(fmt.Sprintf("A-%d", i)))
	}
	path := w.file("effects.jsonl", lines...)
	report := w.imports(path)
	if len(lines) != 60 || report.New != 59 || report.Damaged != 1 || len(report.Problems) != 1 {
		t.Fatalf("%d lines: %+v", len(lines), report)
	}
	start := int64(strings.Index(w.read(path), glued))
	if n := report.Problems[0]; n.First != 41 || n.Last != 41 || n.Start != start || n.Size != int64(len(glued)+1) || !strings.Contains(n.Text, "not JSON") {
		t.Errorf("reported as %+v, it stands at byte %d", n, start)
	}
	if n := w.count(`SELECT count(*) FROM logfile_damage WHERE first_line = 41 AND start = $1 AND excerpt LIKE '%K-41%'`, start); n != 1 {
		t.Error("it is not in quarantine")
	}
	k40 := w.want("K-40", "interrupted")
	if k40.Result != "" || w.evidence(k40.ID, "may say that this was completed: line 41") != 1 {
		t.Errorf("K-40 is not shown as possibly completed: %+v", k40)
	}
	k41 := w.want("K-41", "interrupted")
	if w.evidence(k41.ID, "may be an intent: line 41") != 1 || w.count(`SELECT count(*) FROM effects WHERE id = $1::uuid AND waiting_since IS NOT NULL`, k41.ID) != 1 {
		t.Error("K-41 opens no card")
	}
	if w.want("A-3", "taken").Result != `{"payment_id":"po_A-3"}` {
		t.Error("a good line was lost")
	}
	if s := w.state(path); s.Damaged != 1 {
		t.Errorf("the page would call it clean: %+v", s)
	}
	// The outcome of what may have been meant is the agent's own word all the same.
	w.add(path, completed("K-41")+"\n")
	w.imports(path)
	w.want("K-41", "taken")
}

func (w *world) evidence(effect, text string) int {
	return w.count(`SELECT count(*) FROM evidence WHERE effect_id = $1::uuid AND seen LIKE '%' || $2 || '%'`, effect, text)
}

func (w *world) state(path string) effects.LogState {
	w.t.Helper()
	list, err := w.Logs(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list {
		if s.Path == path {
			return s
		}
	}
	w.t.Fatalf("no log at %s", path)
	return effects.LogState{}
}

func TestBC122_ZerosBetweenRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := records(1, 20)
	lines = append(lines, strings.Repeat("\x00", 512))
	lines = append(lines, records(21, 50)...)
	path := w.file("effects.jsonl", lines...)
	report := w.imports(path)
	if report.New != 50 || report.Damaged != 1 || report.Problems[0].First != 21 || !strings.Contains(report.Problems[0].Text, "512 bytes of zero") {
		t.Fatalf("%+v", report)
	}
	if n := w.count(`SELECT count(*) FROM effects WHERE state = 'taken'`); n != 25 {
		t.Errorf("%d effects taken", n)
	}
	if w.state(path).Damaged != 1 {
		t.Error("the page does not say so")
	}
}

func TestBC124_ATornTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	torn := `{"type":"intent","key":"K-9","arguments":{"vendor":"Caf` + "\xC3"
	for name, goesOn := range map[string]string{"at once": "", "on a line of its own": "\n"} {
		path := w.file("effects-"+strings.ReplaceAll(name, " ", "-")+".jsonl", fmt.Sprintf(`{"type":"intent","run":%q,"key":"K-8","tool":"note"}`, name))
		w.add(path, strings.Replace(torn, `"key"`, fmt.Sprintf(`"run":%q,"key"`, name), 1))
		report := w.imports(path)
		if report.New != 1 || report.Torn != 1 || report.Damaged != 1 || !strings.Contains(report.Problems[0].Text, "no end") {
			t.Fatalf("%s: %+v", name, report)
		}
		card := func() (id string) {
			err := w.db.Get(t.Context(), &id, `
				SELECT e.id FROM effects e JOIN runs r ON r.id = e.run_id WHERE r.run_id = $1 AND client_key = 'K-9' AND e.state = 'interrupted'`, name)
			if err != nil {
				t.Fatalf("%s: there is no card: %v", name, err)
			}
			return id
		}
		first := card()
		// Looked at again as it is, it changes nothing.
		before := w.rows()
		if w.imports(path); !slices.Equal(before, w.rows()) {
			t.Errorf("%s: looking again changed something", name)
		}
		next := fmt.Sprintf(`{"type":"completed","run":%q,"key":"K-8"}`, name) + "\n"
		w.add(path, goesOn+strings.Repeat(next, 1)+fmt.Sprintf(`{"type":"intent","run":%q,"key":"K-10","tool":"note"}`, name)+"\n")
		report = w.imports(path)
		if want := 1 + len(goesOn); report.New != want || report.Damaged != 1 || report.Torn != 0 {
			t.Errorf("%s: the second time %+v", name, report)
		}
		if second := card(); second != first {
			t.Errorf("%s: another card", name)
		}
		if n := w.count(`SELECT count(*) FROM effects e JOIN runs r ON r.id = e.run_id WHERE r.run_id = $1 AND client_key = 'K-10'`, name); n != 1 {
			t.Errorf("%s: the new lines were not taken", name)
		}
	}
}

func TestBC125_ARecordOverThreeLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := append(records(1, 10), intent("K-77"), `{"type":"completed","key":"K-77","result":"first`, `second`, `third"}`)
	lines = append(lines, records(11, 20)...)
	report := w.imports(w.file("effects.jsonl", lines...))
	if report.New != 21 || report.Damaged != 1 || report.Problems[0].First != 12 || report.Problems[0].Last != 14 {
		t.Fatalf("%+v", report)
	}
	x := w.want("K-77", "interrupted")
	if x.Result != "" || w.evidence(x.ID, "lines 12 to 14") != 1 {
		t.Errorf("%+v", x)
	}
}

func TestBC126_EncodingsAndLineEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := func(run string) string {
		var b strings.Builder
		for i := range 3 {
			fmt.Fprintf(&b, `{"type":"intent","run":%q,"key":"K-%d","tool":"note"}`+"\r\n", run, i)
		}
		return b.String()
	}
	marked := w.dir + "/marked.jsonl"
	w.put(marked, "\xEF\xBB\xBF"+lines("marked"))
	if report := w.imports(marked); report.New != 3 || report.Damaged != 0 {
		t.Errorf("with mark and CRLF: %+v", report)
	}
	refused := func(name, text, says string) {
		path := w.dir + "/" + name
		w.put(path, text)
		_, err := w.tryImport(path)
		if _, ok := errors.AsType[*logfile.FormatError](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("cr.jsonl", strings.ReplaceAll(lines("cr"), "\r\n", "\r"), "lone carriage return")
	wide := func(mark bool, high bool) string {
		units := utf16.Encode([]rune(lines("wide")))
		if mark {
			units = append([]uint16{0xFEFF}, units...)
		}
		var b []byte
		for _, u := range units {
			if high {
				b = append(b, byte(u>>8), byte(u))
			} else {
				b = append(b, byte(u), byte(u>>8))
			}
		}
		return string(b)
	}
	refused("le.jsonl", wide(true, false), "UTF-16 (little end first)")
	refused("be.jsonl", wide(true, true), "UTF-16 (big end first)")
	refused("bare.jsonl", wide(false, false), "UTF-16 (little end first)")
	refused("packed.jsonl", "\x1F\x8B\x08\x00", "gzip")
	if n := w.count(`SELECT count(*) FROM effects`); n != 3 {
		t.Errorf("%d effects", n)
	}
}

func TestBC128_OrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	given := []string{
		completed("K-1"), intent("K-1"), // its completion first
		intent("K-2"), intent("K-3"), completed("K-3"), // two of one time
		intent("K-4"), strings.Replace(completed("K-4"), "2026", "2025", 1), // completed before it was meant
		strings.Replace(completed("K-5"), "completed", "failed", 1), intent("K-5"),
	}
	type end struct{ key, state, why, by, result, reference string }
	ends := func(lines []string, several bool) (list []end, warnings int) {
		w := newWorld(t)
		if several { // each line is read on its own
			path := w.file("effects.jsonl", lines[0])
			for _, l := range lines[1:] {
				r := w.reader(path)
				w.round(r)
				w.add(path, l+"\n")
			}
			r := w.reader(path)
			w.round(r)
			w.imports(path)
		} else {
			report := w.imports(w.file("effects.jsonl", lines...))
			if report.New != len(lines) || report.Damaged != 0 || report.Waiting != 0 {
				t.Fatalf("%+v", report)
			}
			warnings = len(report.Warnings)
		}
		for _, x := range w.rows() {
			list = append(list, end{x.Key, x.State, x.Why, x.By, x.Result, x.Reference})
		}
		return list, warnings
	}
	want, warnings := ends(given, false)
	if warnings != 1 {
		t.Errorf("%d warnings of odd times, want 1", warnings)
	}
	if want[0].state != "taken" || want[1].state != "interrupted" || want[4].state != "failed" || len(want) != 5 {
		t.Fatalf("%+v", want)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		lines := shuffled(rnd, given)
		if got, _ := ends(lines, i%2 == 1); !slices.Equal(got, want) {
			t.Errorf("in the order\n%s\n%+v, want\n%+v", strings.Join(lines, "\n"), got, want)
		}
	}
}

func TestBC129_ReadingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := records(1, 150)
	all[8] = strings.Replace(all[9], "completed", "unknown", 1) // K-5 begins with its outcome, which says nothing
	all[9] = intent("K-5")
	first := w.file("a.jsonl", all[:100]...)
	if report := w.imports(first); report.New != 100 {
		t.Fatalf("first: %+v", report)
	}
	w.passMoment()
	w.decide("K-5", effects.VerdictTaken)
	before := w.rows()
	events := w.count(`SELECT count(*) FROM effect_events`)
	same := w.file("copy-of-a.jsonl", all[:100]...)
	for _, path := range []string{first, same} {
		if report := w.imports(path); report.New != 0 || path == same && report.Repeats != 100 {
			t.Errorf("%s again: %+v", path, report)
		}
	}
	if !slices.Equal(before, w.rows()) || events != w.count(`SELECT count(*) FROM effect_events`) {
		t.Error("reading again changed something")
	}
	if report := w.imports(w.file("b.jsonl", all[50:]...)); report.New != 50 || report.Repeats != 50 {
		t.Errorf("lines 51 to 150: %+v", report)
	}
	if x := w.want("K-5", "taken"); x.By != "person" {
		t.Errorf("the card was decided, and is %+v", x)
	}
	if n := w.count(`SELECT count(*) FROM effects WHERE state = 'taken'`); n != 75 {
		t.Errorf("%d taken", n)
	}
}
