package logs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

func ended(run, outcome string) string {
	return fmt.Sprintf(`{"type":"closed","run":%q,"outcome":%q}`, run, outcome)
}

func (w *world) runState(run string) (state string) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), &state, `SELECT state FROM runs WHERE run_id = $1`, run); err != nil {
		w.t.Fatal(err)
	}
	return state
}

// A file closes its run once nothing in it is open, and goes on with it when it has more to
// say.
func TestAFileClosesItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"), completed("K-1"), ended("run-1", "finished"), ended("elsewhere", "finished"), `{"type":"closed","outcome":"odd"}`)
	r := w.reader(path)
	if got := w.round(r); got.Damaged != 1 || got.New != 4 {
		t.Errorf("%+v", got)
	}
	if s := w.runState("run-1"); s != "ready" {
		t.Errorf("closed with its completion unused: %s", s)
	}
	if err := w.CloseEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.runState("run-1"); s != "finished" {
		t.Errorf("it is %s", s)
	}
	w.add(path, intent("K-2")+"\n"+ended("run-1", "failed")+"\n")
	if got := w.round(r); len(got.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
	if err := w.CloseEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.runState("run-1"); s != "ready" {
		t.Errorf("closed although its call is not known: %s", s)
	}
	// Nor while a decision has not reached the file.
	w.imports(path)
	w.passMoment()
	w.decide("K-2", effects.VerdictTaken)
	if err := w.CloseEnded(t.Context()); err != nil || w.runState("run-1") != "ready" {
		t.Error(w.runState("run-1"), err)
	}
	w.round(r)
	w.round(r)
	if n := len(resolvedLines(t, w.read(path), "K-2")); n != 1 {
		t.Errorf("%d lines", n)
	}
	if err := w.CloseEnded(t.Context()); err != nil || w.runState("run-1") != "failed" {
		t.Error(w.runState("run-1"), err)
	}
	// An intent behind the line overtakes it.
	w.add(path, ended("run-1", "cancelled")+"\n"+intent("K-3")+"\n"+completed("K-3")+"\n")
	w.round(r)
	if err := w.CloseEnded(t.Context()); err != nil || w.runState("run-1") != "ready" {
		t.Error(w.runState("run-1"), err)
	}
}

// Half a line stands for an intent that may have been. Nothing is written to the file for
// it, so the end of its run does not wait for that once a person has decided it.
func TestARunEndsAlthoughALineWasTorn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := intent("K-1")
	path := w.file("effects.jsonl", line[:len(line)-3], line, completed("K-1"), ended("run-1", "finished"))
	r := w.reader(path)
	if got := w.round(r); got.Damaged != 1 {
		t.Errorf("%+v", got)
	}
	w.passMoment()
	var torn string
	for _, x := range w.rows() {
		if x.State == "interrupted" {
			torn = x.ID
		}
	}
	v, err := w.Effect(t.Context(), 0, torn)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Decide(t.Context(), w.person, []effects.Decide{{EffectID: torn, Version: v.Version, Verdict: effects.VerdictStop, Note: "half a line"}})
	if err != nil || list[0].Refusal != nil {
		t.Fatal(list, err)
	}
	if v.RunID != "run-1" {
		t.Fatalf("the torn line is of %s", v.RunID)
	}
	w.round(r)
	w.loops(func() bool { return w.runState("run-1") == "finished" })
}

func TestAPersonClosesARunOfAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	w.imports(path)
	id := w.state(path).ID
	refused := func(code effects.Code, run string) {
		t.Helper()
		err := w.CloseLogRun(t.Context(), id, run, "finished")
		if r, ok := errors.AsType[*effects.Refusal](err); !ok || r.Code != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
	refused(effects.CodeRunOpen, "")
	refused(effects.CodeNotFound, "no such run")
	if _, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: "over HTTP", Agent: "a", Worker: "w", AttemptID: "1"}); err != nil {
		t.Fatal(err)
	}
	refused(effects.CodeNotAllowed, "over HTTP")
	w.passMoment()
	w.decide("K-1", effects.VerdictNotTaken)
	for range 2 { // the answer to the first may have been lost
		if err := w.CloseLogRun(t.Context(), id, "run-1", "cancelled"); err != nil {
			t.Fatal(err)
		}
	}
	w.want("K-1", "cancelled") // nobody will use the permission
	if s := w.runState("run-1"); s != "cancelled" {
		t.Error(s)
	}
	refused(effects.CodeRunClosed, "run-1")
}

const lookedUp = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{invoice}"
    deadline: 60s
    lands_within: 1ms
    lookup: {worker: {pool: bank}, canary: CANARY, absence_is_proof: true, visible_after: 1ms, kept_for: 90d, world: live}
`

// answer lets a worker answer the one question that is due.
func (w *world) answer(brought string) {
	w.t.Helper()
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE next_lookup_at IS NOT NULL`)
	list, err := w.ClaimLookups(w.t.Context(), effects.ClaimLookups{Account: w.account, Pool: "bank", Max: 10})
	if err != nil || len(list) != 1 {
		w.t.Fatal(list, err)
	}
	if _, err := w.AnswerLookup(w.t.Context(), w.account, list[0].ID, []byte(brought)); err != nil {
		w.t.Fatal(err)
	}
}

// While a file is changed and nobody has acknowledged it no look-up releases anything: not
// the decision that waited for it, and not what it proves itself.
func TestNoLookUpReleasesDuringAnAlarm(t *testing.T) {
	t.Parallel()
	for how, brought := range map[string]string{
		"nothing found after a decision": `{"hits":[],"complete":true,"canary_seen":true,"world":"live"}`,
		"proof that it was taken":        `{"hits":[{"business_key":"INV-K-1","reference":"P-1","recipient_matches":true,"final":true,"result":{}}],"complete":true}`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, lookedUp)
			path := w.file("effects.jsonl", intent("K-1"))
			w.imports(path)
			r := w.reader(path)
			w.round(r)
			w.passMoment()
			if strings.Contains(how, "decision") {
				w.decide("K-1", effects.VerdictNotTaken)
			}
			before := w.of("K-1").State
			w.put(path, strings.Replace(w.read(path), "ACME", "EVIL", 1))
			if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatal(err)
			}
			w.answer(brought)
			w.want("K-1", before)
			if w.count(`SELECT count(*) FROM effects WHERE released`) != 0 {
				t.Fatal("released during the alarm")
			}
			if err := w.AcknowledgeLog(t.Context(), w.person, r.id, "edited by hand"); err != nil {
				t.Fatal(err)
			}
			w.want("K-1", "interrupted")
			if strings.Contains(how, "proof") {
				w.answer(brought) // asked again
				w.want("K-1", "taken")
			}
		})
	}
}

// Nobody can take a run that lives in a file, so nobody is woken for it.
func TestNobodyIsWokenForARunOfAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	w.imports(path)
	w.passMoment()
	w.decide("K-1", effects.VerdictTaken)
	if s := w.runState("run-1"); s != "ready" {
		t.Fatal(s)
	}
	if n := w.count(`SELECT count(*) FROM wakes`); n != 0 {
		t.Errorf("%d are to be told", n)
	}
}

// A tool that is only observed makes no effect, card or contradiction out of a file either.
func TestAnObservedToolInAFile(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, strings.Replace(rules, "  note:", "  try_payment: {mode: observe, business_key: \"{invoice}\", deadline: 60s}\n  note:", 1))
	try := func(kind, key, invoice string) string {
		return fmt.Sprintf(`{"type":%q,"key":%q,"tool":"try_payment","arguments":{"invoice":%q}}`, kind, key, invoice)
	}
	keyless := func(kind string) string {
		return fmt.Sprintf(`{"type":%q,"tool":"try_payment","arguments":{"invoice":"I-9"}}`, kind)
	}
	path := w.file("effects.jsonl",
		try("completed", "O-0", "I-0"), try("intent", "O-0", "I-0"), // in the wrong order
		try("intent", "O-1", "I-1"), `{"type":"completed","key":"O-1","reference":"po_1"}`,
		try("intent", "O-3", "I-3"), try("intent", "O-3", "I-3"), // begun again, nobody knows
		try("intent", "O-4", "I-4"), try("failed", "O-4", "I-4"), try("intent", "O-4", "I-4"), `{"type":"completed","key":"O-4"}`,
		keyless("intent"), keyless("completed"),
		intent("K-1"), completed("K-1"))
	report := w.imports(path)
	if report.Damaged != 0 || report.Waiting != 0 || report.Observed != 7 || len(report.Warnings) != 0 {
		t.Errorf("%+v", report)
	}
	w.add(path, keyless("intent")+"\n"+try("intent", "O-2", "I-1")+"\n") // another call for an invoice
	w.imports(path)
	if n := w.count(`SELECT count(*) FROM effects`); n != 1 {
		t.Errorf("%d effects", n)
	}
	w.want("K-1", "taken")
	var got []string
	err := w.db.Select(t.Context(), &got, `SELECT concat_ws(' ', arguments::json->>'invoice', attempt, would, outcome) FROM observed_calls ORDER BY arguments, begun_at, id`)
	want := []string{"I-0 1 proceed taken", "I-1 1 proceed taken", "I-1 1 hold", "I-3 1 proceed", "I-3 2 pause", "I-4 1 proceed failed", "I-4 1 proceed taken", "I-9 1 proceed taken", "I-9 1 hold"}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s\n\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if w.runState("run-1") != "ready" || w.imports(path).New != 0 || w.count(`SELECT count(*) FROM observed_calls`) != len(want) {
		t.Error("reading it again changed something")
	}
}
