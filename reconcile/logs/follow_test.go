package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/ledger/logfiles"
	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

// resolvedLines are those that stand in the file, for a key.
func resolvedLines(t *testing.T, text, key string) (list []logfile.Entry) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e logfile.Entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == logfile.Resolved && e.Key == key && e.ID != "" {
			list = append(list, e)
		}
	}
	return list
}

// One effect from its line to the decision in the file, and on.
func TestADecisionIsAppendedOnceAndTheAgentGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"), intent("K-2"), intent("K-3"))
	r := w.reader(path)
	w.round(r)
	w.want("K-1", "in_flight") // somebody may be writing the file: its deadline decides
	w.imports(path)            // nobody is
	w.passMoment()
	w.decide("K-1", effects.VerdictTaken, func(d *effects.Decide) { d.Reference, d.Result = "po_1", []byte(`{"payment_id":"po_1"}`) })
	w.round(r)
	if text := w.read(path); strings.Contains(text, "resolved") {
		t.Fatalf("the agent is told of one while others of its run are not known:\n%s", text)
	}
	w.decide("K-2", effects.VerdictNotTaken)
	w.decide("K-3", effects.VerdictStop)
	w.round(r)
	w.round(r)
	text := w.read(path)
	for key, want := range map[string]logfile.Entry{
		"K-1": {Verdict: "taken", Reference: "po_1", By: "person"}, "K-2": {Verdict: "not_taken", Attempt: 2, By: "person"}, "K-3": {Verdict: "stop", By: "person"},
	} {
		got := resolvedLines(t, text, key)
		if len(got) != 1 || got[0].Verdict != want.Verdict || got[0].Reference != want.Reference || got[0].Attempt != want.Attempt || got[0].By != want.By || got[0].Run != "run-1" {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if got := resolvedLines(t, text, "K-1"); string(got[0].Result) != `{"payment_id":"po_1"}` {
		t.Errorf("its result: %s", got[0].Result)
	}
	// Appending used them: nobody takes them back.
	for _, key := range []string{"K-1", "K-2", "K-3"} {
		_, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: w.of(key).ID, Note: "no"})
		if refusal, ok := errors.AsType[*effects.Refusal](err); !ok || refusal.Code != effects.CodeNotAllowed {
			t.Errorf("undo of %s: %v", key, err)
		}
	}
	// The permission waits for the agent, also when the file is read again at rest.
	if x := w.want("K-2", "in_flight"); x.Attempts != 2 {
		t.Errorf("%+v", x)
	}
	w.imports(path)
	w.want("K-2", "in_flight")
	if d := w.deadline("K-2"); d < time.Hour {
		t.Errorf("the permission ends after %v", d)
	}
	w.add(path, intent("K-2")+"\n") // the same wording as its first: it counts
	w.round(r)
	if x := w.want("K-2", "in_flight"); x.Attempts != 2 || x.Open != 0 || w.deadline("K-2") > time.Hour {
		t.Errorf("begun: %+v", x)
	}
	w.add(path, completed("K-2")+"\n")
	w.round(r)
	if x := w.want("K-2", "taken"); x.By != "agent" || x.Reference != "po_K-2" {
		t.Errorf("%+v", x)
	}
	if n := w.count(`SELECT count(*) FROM logfile_outbox WHERE appended_at IS NULL`); n != 0 {
		t.Errorf("%d lines wait", n)
	}
}

// deadline is how far that of a key's effect is away.
func (w *world) deadline(key string) time.Duration {
	w.t.Helper()
	return time.Duration(w.count(`SELECT extract(epoch FROM deadline - clock_timestamp())::bigint FROM effects WHERE id = $1::uuid`, w.of(key).ID)) * time.Second
}

func TestADecisionIsAppendedOnlyAfterItsRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	w.imports(path)
	w.decide("K-1", effects.VerdictNotTaken) // before the moment: not released
	r := w.reader(path)
	w.round(r)
	if strings.Contains(w.read(path), "resolved") {
		t.Fatal("appended before its release")
	}
	if _, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: w.of("K-1").ID, Note: "too early"}); err != nil {
		t.Fatal(err)
	}
	w.want("K-1", "interrupted")
}

// decidedFile is a followed file whose one effect is decided and released.
func (w *world) decidedFile(name string) (path string, r *Reader) {
	w.t.Helper()
	path = w.file(name, intent("K-1"))
	w.imports(path)
	w.passMoment()
	r = w.reader(path)
	w.round(r)
	w.decide("K-1", effects.VerdictTaken, func(d *effects.Decide) { d.Reference = "po_1" })
	return path, r
}

// Killed between the outbox and the file, between the file and the note of it, with a
// part of the line written: the next one appends what is missing, once.
func TestTheLineIsThereOnceWhereverItStopped(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(w *world, path string, r *Reader){
		"before the outbox": func(*world, string, *Reader) {},
		"between outbox and append": func(w *world, path string, r *Reader) {
			if err := w.CarryLog(w.t.Context(), r.id); err != nil {
				w.t.Fatal(err)
			}
		},
		"between append and mark": func(w *world, path string, r *Reader) {
			if wrote, err := r.answer(w.t.Context()); err != nil || !wrote {
				w.t.Fatal(wrote, err)
			}
		},
		"half a line": func(w *world, path string, r *Reader) {
			if err := w.CarryLog(w.t.Context(), r.id); err != nil {
				w.t.Fatal(err)
			}
			p, err := logfiles.Pending(w.t.Context(), w.db, r.id, 10)
			if err != nil || len(p) != 1 {
				w.t.Fatal(p, err)
			}
			w.add(path, p[0].Line[:len(p[0].Line)/2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path, r := w.decidedFile("effects.jsonl")
			stop(w, path, r)
			_ = r.Close()
			again := w.reader(path)
			w.round(again)
			if name == "half a line" {
				if n := len(resolvedLines(t, w.read(path), "K-1")); n != 0 {
					t.Errorf("%d lines behind a line that may still be being written", n)
				}
				again.torn.since = again.torn.since.Add(-tornAfter)
				w.round(again)
			}
			w.round(again)
			w.round(w.reader(path))
			if got := resolvedLines(t, w.read(path), "K-1"); len(got) != 1 || got[0].Verdict != "taken" {
				t.Errorf("%+v in\n%s", got, w.read(path))
			}
			if n := w.count(`SELECT count(*) FROM logfile_outbox WHERE appended_at IS NOT NULL`); n != 1 {
				t.Errorf("%d lines are noted", n)
			}
			if x := w.want("K-1", "taken"); x.Open != 0 {
				t.Errorf("%+v", x)
			}
		})
	}
}

// Whatever the file says by the time the line would be appended is read first.
func TestNothingIsAppendedBehindLinesThatWereNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, r := w.decidedFile("effects.jsonl")
	if err := w.CarryLog(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
	w.add(path, intent("K-2")+"\n")
	if wrote, err := r.answer(t.Context()); err != nil || !wrote {
		t.Fatal(wrote, err)
	}
	if strings.Contains(w.read(path), "resolved") {
		t.Fatal("appended behind an unread line")
	}
	w.round(r)
	w.want("K-2", "in_flight")
	if n := len(resolvedLines(t, w.read(path), "K-1")); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// Two followers of one file write each line once and count each line once.
func TestTwoFollowers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, a := w.decidedFile("effects.jsonl")
	b := w.reader(path)
	if err := b.hear(t.Context(), func(effects.LogReport) {}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Reader{a, b} { // b does not know yet that a wrote
		if again, err := r.answer(t.Context()); err != nil || !again {
			t.Fatal(again, err)
		}
	}
	w.round(b)
	w.round(a)
	w.add(path, intent("K-2")+"\n")
	if got := w.round(a).New + w.round(b).New; got != 1 {
		t.Errorf("counted %d times", got)
	}
	if n := len(resolvedLines(t, w.read(path), "K-1")); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestAnAgentThatBeginsUnaskedIsAnIncident(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"), intent("K-1"), completed("K-1"), intent("K-2"), completed("K-2"), intent("K-2"),
		intent("K-3"), strings.Replace(completed("K-3"), "completed", "failed", 1), intent("K-3"), completed("K-3"))
	report := w.imports(path)
	if report.New != 10 || len(report.Warnings) != 2 {
		t.Errorf("%+v", report)
	}
	if x := w.want("K-1", "taken"); x.Attempts != 2 || x.Open != 1 {
		t.Errorf("begun twice: %+v", x)
	}
	if x := w.want("K-2", "taken"); x.Open != 1 {
		t.Errorf("begun after it was taken: %+v", x)
	}
	var k3 []string
	for _, x := range w.rows() {
		if x.Key == "K-3" {
			k3 = append(k3, x.State)
		}
	}
	if !slices.Equal(k3, []string{"failed", "taken"}) {
		t.Errorf("what was refused for sure may be tried again: %v", k3)
	}
}

// A person's decision is overtaken by an agent that did not wait for it.
func TestAnUnaskedBeginWithdrawsThePermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	w.imports(path)
	w.decide("K-1", effects.VerdictNotTaken)
	w.want("K-1", "cleared")
	w.add(path, strings.Replace(intent("K-1"), "03:04:05", "03:09:05", 1)+"\n")
	r := w.reader(path)
	w.round(r)
	if x := w.want("K-1", "interrupted"); x.Open != 1 || x.Attempts != 2 {
		t.Errorf("%+v", x)
	}
	if strings.Contains(w.read(path), "resolved") {
		t.Error("the permission went out all the same")
	}
}

// A resolved line that somebody else wrote: the agent has read it, so it counts as the
// file's word, and what it lets run is no incident. It decides nothing by itself.
func TestSomebodyElsesResolvedLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := func(key, verdict string) string {
		return fmt.Sprintf(`{"type":"resolved","key":%q,"verdict":%q,"reference":"r-%s"}`, key, verdict, key)
	}
	w.imports(w.file("effects.jsonl", intent("K-1"), line("K-1", "taken"), intent("K-2"), line("K-2", "not_taken"),
		intent("K-3"), line("K-3", "stop"), intent("K-4"), line("K-4", "not_taken"), intent("K-4"), completed("K-4")))
	if x := w.want("K-1", "taken"); x.Reference != "r-K-1" || x.By != "agent" {
		t.Errorf("%+v", x)
	}
	if x := w.want("K-2", "interrupted"); w.evidence(x.ID, "may run once more") != 1 || x.Attempts != 1 {
		t.Errorf("%+v", x)
	}
	if x := w.want("K-3", "interrupted"); w.evidence(x.ID, "must not run") != 1 {
		t.Errorf("%+v", x)
	}
	if x := w.want("K-4", "taken"); x.Attempts != 2 || x.Open != 0 {
		t.Errorf("%+v", x)
	}
}

// Without keys, tool and arguments name the call: after an outcome the next identical one
// is another, before it is the same.
func TestCallsWithoutKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begin, end := `{"event":"started","tool":"note","args":{"to":"ann","n":1.0}}`, `{"status":"done","tool":"note","args":{"n":1,"to":"ann"},"output":{"ok":true}}`
	w.imports(w.file("effects.jsonl", begin, end, begin, end, begin, `{"event":"started","tool":"note","args":{"to":"ann","n":1},"occurrence":7}`, `{"event":"started","tool":"read_mail","args":{}}`))
	var got []string
	for _, x := range w.rows() {
		got = append(got, fmt.Sprint(x.State, " ", x.Attempts, " ", x.Open))
	}
	if want := []string{"taken 1 0", "taken 1 0", "interrupted 1 0", "interrupted 1 0"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatABadLineMayHaveMeantIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	big := strings.Repeat("x", effects.ArgumentLimit)
	report := w.imports(w.file("effects.jsonl",
		fmt.Sprintf(`{"type":"intent","key":"K-1","tool":"note","arguments":{"text":%q}}`, big), // too large to be stored
		`{"type":"intent","key":"K-2","tool":"note","arguments":[1]}`,
		`{"type":"intent","key":"K-3","key":"K-4","tool":"note"}`,
		`{"type":"heartbeat","key":"K-5"}`, `[1,2]`, `{"v":2,"type":"intent","key":"K-6","tool":"note"}`,
		`{"type":"completed","result":{"password":"hunter2"}}`, `{"type":"completed","key":"K-7","result":{"password":"hunter2"}}`))
	if report.Damaged != 2 || report.New != 1 || report.Waiting != 1 { // 2 to 7 are one span
		t.Errorf("%+v", report)
	}
	for _, key := range []string{"K-1", "K-2", "K-3", "K-6"} {
		w.want(key, "interrupted")
	}
	for _, q := range []string{`SELECT count(*) FROM logfile_damage WHERE excerpt LIKE '%hunter2%'`, `SELECT count(*) FROM logfile_waiting WHERE body LIKE '%hunter2%'`,
		`SELECT count(*) FROM effects WHERE arguments LIKE '%hunter2%'`} {
		if w.count(q) != 0 {
			t.Errorf("a secret is in a row: %s", q)
		}
	}
}

// Whoever writes the file acts for its runs.
func TestARunOfAFileIsNobodyElses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.imports(w.file("effects.jsonl", intent("K-1"), completed("K-1")))
	_, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: "run-1", Agent: "ap-bot", Worker: "pod", AttemptID: "1"})
	if r, ok := errors.AsType[*effects.Refusal](err); !ok || r.Code != effects.CodeRunHeld || !strings.HasSuffix(r.HeldBy, "effects.jsonl") {
		t.Errorf("opened: %v", err)
	}
	if l, err := w.Claim(t.Context(), effects.Claim{Account: w.account, Agents: []string{"ap-bot"}, Worker: "pool", AttemptID: "1"}); l != nil || err != nil {
		t.Errorf("claimed: %+v %v", l, err)
	}
	// And the other way round.
	if _, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: "run-http", Agent: "ap-bot", Worker: "pod", AttemptID: "1"}); err != nil {
		t.Fatal(err)
	}
	report := w.imports(w.file("b.jsonl", `{"type":"intent","run":"run-http","key":"X","tool":"note"}`))
	if report.Damaged != 1 || !strings.Contains(report.Problems[0].Text, "over HTTP") || w.count(`SELECT count(*) FROM effects`) != 1 {
		t.Errorf("%+v", report)
	}
}

func TestExportReadsBackTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", append(records(1, 20), intent("K-77"), intent("K-78"), strings.Replace(completed("K-78"), "completed", "failed", 1), intent("K-79"))...)
	w.imports(path)
	w.passMoment()
	w.decide("K-79", effects.VerdictTaken)
	var out strings.Builder
	if n, err := Export(t.Context(), w.db, w.account, "", &out); err != nil || n != 13 {
		t.Fatal(n, err)
	}
	v := newWorld(t)
	v.put(v.dir+"/copy.jsonl", out.String())
	if report := v.imports(v.dir + "/copy.jsonl"); report.Damaged != 0 || report.Waiting != 0 || len(report.Warnings) != 0 {
		t.Errorf("%+v", report)
	}
	ends := func(w *world) (list []string) {
		err := w.db.Select(t.Context(), &list, `SELECT concat_ws(' ', tool, arguments, e.state, result, reference) FROM effects e ORDER BY arguments, e.state`)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if a, b := ends(w), ends(v); !slices.Equal(a, b) || len(a) != 13 {
		t.Errorf("%s\n\nbecame\n\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

func TestPreviewChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"), completed("K-1"))
	w.imports(path)
	w.add(path, glued+"\n"+intent("K-2")+"\n"+`{"type":"int`)
	tables := func() (n int) {
		return w.count(`SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM effect_events) + (SELECT count(*) FROM logfile_lines) + (SELECT count(*) FROM logfile_damage)`)
	}
	before := tables()
	var out strings.Builder
	report, err := Preview(t.Context(), w.Engine, w.account, path, "effects.jsonl", &out)
	if err != nil || report.New != 1 || report.Repeats != 2 || report.Damaged != 2 || report.Torn != 1 || tables() != before {
		t.Errorf("%+v %v", report, err)
	}
	for i, want := range []string{`1: known intent key="K-1" tool="send_payment"`, `2: known completed key="K-1"`, `3: damaged, byte `, `4: new intent`, `5: damaged`} {
		if line := strings.Split(out.String(), "\n")[i]; !strings.HasPrefix(line, "effects.jsonl:"+want) {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
	if !strings.Contains(out.String(), "it may have been: intent K-41, completed K-40") {
		t.Error(out.String())
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
