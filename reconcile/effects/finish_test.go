package effects_test

import (
	"fmt"
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

// contradicted checks how many contradictions an effect has and how many are open.
func (w *world) contradicted(id string, all, open int) {
	w.t.Helper()
	v := w.effect(id)
	n := 0
	for _, c := range v.Contradictions {
		if c.AcknowledgedAt.IsZero() {
			n++
		}
	}
	if len(v.Contradictions) != all || n != open {
		w.t.Fatalf("%d contradictions, %d open, want %d, %d: %+v", len(v.Contradictions), n, all, open, v.Contradictions)
	}
}

func TestFinishWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
tools:
  charge: {refusal: 'error.code == "card_declined"'}
`)
	for i, c := range []struct {
		outcome, err string
		want         effects.State
	}{
		{"taken", "", effects.Taken}, {"completed", "", effects.Taken}, {"failed", `{"code":"x"}`, effects.Failed},
		{"unknown", "", effects.Interrupted}, {"Taken", "", effects.Interrupted}, {"success", "", effects.Interrupted}, {"timeout\x00odd", "", effects.Interrupted},
		{"error", `{"code":"card_declined"}`, effects.Failed}, {"error", `{"code":"gateway_timeout"}`, effects.Interrupted},
		{"error", `"card_declined"`, effects.Interrupted},
	} {
		l := w.open(fmt.Sprintf("run %d", i), "pod-1")
		b := w.proceed(l, "charge", fmt.Sprintf(`{"n":%d}`, i))
		w.finish(b, c.outcome, func(f *effects.Finish) { f.Error = []byte(c.err) })
		if got := w.effect(b.EffectID).State; got != string(c.want) {
			t.Errorf("%q with error %s: %s, want %s", c.outcome, c.err, got, c.want)
		}
	}
}

func TestFinishTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	for range 3 { // the answer was lost
		if a := w.finish(b, "taken", reference("po_1"), result(`{"id":"po_1"}`)); a.Finish == nil || a.Finish.State != "taken" {
			t.Fatalf("finish: %v", a.Refusal)
		}
	}
	if v := w.effect(b.EffectID); v.Version != 2 || len(v.Evidence) != 0 {
		t.Fatalf("repeats changed something: version %d, evidence %+v", v.Version, v.Evidence)
	}
	// The same without references: the result decides; another one is only kept.
	c := w.proceed(l, "refund", `{"order":"O-1"}`)
	w.finish(c, "taken", result(`{"id":1}`))
	if a := w.finish(c, "taken", result(`{"id":1}`)); a.Finish == nil {
		t.Fatal(a.Refusal)
	}
	w.wantRefusal(w.finish(c, "taken", result(`{"id":2}`)), effects.CodeStaleFence)
	w.contradicted(c.EffectID, 0, 0)
	// Another reference is a contradiction, once.
	for range 3 {
		w.wantRefusal(w.finish(b, "taken", reference("po_2")), effects.CodeStaleFence)
	}
	w.contradicted(b.EffectID, 1, 1)
	w.wantRun("a", "paused")
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictAcknowledge, Recovery: true})
	w.wantRun("a", "running")
	w.wantRefusal(w.finish(b, "taken", reference("po_2")), effects.CodeStaleFence)
	w.contradicted(b.EffectID, 1, 0)
	// ... but a third reference is another.
	w.wantRefusal(w.finish(b, "taken", reference("po_3")), effects.CodeStaleFence)
	w.contradicted(b.EffectID, 2, 1)
}

// Every verdict, then the worker that everybody thought dead.
func TestLateAgentAfterEachVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	for _, c := range []struct {
		name    string
		verdict effects.Verdict // "" for none yet
		used    bool
		word    string
		want    effects.State
		by      string
		open    int
	}{
		{name: "undecided, taken", word: "taken", want: effects.Taken, by: "late_agent"},
		{name: "undecided, failed", word: "failed", want: effects.Failed, by: "late_agent"},
		{name: "undecided, unknown", word: "no idea", want: effects.Interrupted},
		{name: "taken, taken", verdict: effects.VerdictTaken, word: "taken", want: effects.Taken, by: "person"},
		{name: "taken, failed", verdict: effects.VerdictTaken, word: "failed", want: effects.Interrupted},
		{name: "taken, used, failed", verdict: effects.VerdictTaken, used: true, word: "failed", want: effects.Taken, by: "person", open: 1},
		{name: "not taken, taken", verdict: effects.VerdictNotTaken, word: "taken", want: effects.Taken, by: "late_agent"},
		{name: "not taken, failed", verdict: effects.VerdictNotTaken, word: "failed", want: effects.Cleared, by: "person"},
		{name: "not taken, used, taken", verdict: effects.VerdictNotTaken, used: true, word: "taken", want: effects.InFlight, open: 1},
		{name: "not taken, used, failed", verdict: effects.VerdictNotTaken, used: true, word: "failed", want: effects.InFlight},
		{name: "stop, taken", verdict: effects.VerdictStop, word: "taken", want: effects.Interrupted},
		{name: "stop, failed", verdict: effects.VerdictStop, word: "failed", want: effects.Cancelled, by: "person"},
		{name: "stop, used, taken", verdict: effects.VerdictStop, used: true, word: "taken", want: effects.Cancelled, by: "person", open: 1},
	} {
		args := pay(c.name, "10.00")
		_, b := w.interrupted(c.name, "send_payment", args)
		if c.verdict != "" {
			w.passDeadline(b.EffectID)
			w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: c.verdict})
		}
		if c.used {
			w.begin(w.open(c.name, "pod-2"), "send_payment", args)
		}
		w.finish(b, c.word)
		v := w.effect(b.EffectID)
		if v.State != string(c.want) || v.DecidedBy != c.by {
			t.Errorf("%s: %s by %q, want %s by %q", c.name, v.State, v.DecidedBy, c.want, c.by)
		}
		if len(v.Contradictions) != c.open {
			t.Errorf("%s: %d contradictions, want %d", c.name, len(v.Contradictions), c.open)
		}
		needs := c.open > 0 || c.want == effects.Interrupted
		if got := w.run(c.name).State; (got == "paused") != needs {
			t.Errorf("%s: the run is %s", c.name, got)
		}
		if (c.word == "taken" || c.open > 0) && c.want != effects.Taken && len(v.Evidence) == 0 {
			t.Errorf("%s: what the worker said is lost", c.name)
		}
	}
}

// Two attempts under one vendor key are one object, unless their references say
// otherwise; and then whichever of the two is heard of last says it.
func TestTwoAttemptsUnderOneVendorKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment: {business_key: "{vendor}/{invoice}", vendor_key: {life: 24h}}
`)
	for _, c := range []struct {
		name           string
		first, second  string // references
		secondFirst    bool   // it is heard of first
		batch          bool   // both come in one batch
		contradictions int
	}{
		{name: "one object", first: "po_1", second: "po_1"},
		{name: "one object, second first", first: "po_2", second: "po_2", secondFirst: true},
		{name: "one without a name", second: "po_3"},
		{name: "two objects", first: "po_4", second: "po_5", contradictions: 1},
		{name: "two objects, second first", first: "po_6", second: "po_7", secondFirst: true, contradictions: 1},
		{name: "two objects in a batch", first: "po_8", second: "po_9", batch: true, contradictions: 1},
	} {
		args := pay(c.name, "10.00")
		_, one := w.interrupted(c.name, "send_payment", args)
		w.passDeadline(one.EffectID)
		w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictNotTaken})
		two := w.proceed(w.open(c.name, "pod-2"), "send_payment", args)
		ops := []effects.Op{
			{Finish: &effects.Finish{Account: w.account, EffectID: one.EffectID, Fence: one.Fence, Outcome: "taken", Reference: c.first}},
			{Finish: &effects.Finish{Account: w.account, EffectID: two.EffectID, Fence: two.Fence, Outcome: "taken", Reference: c.second}},
		}
		if c.secondFirst {
			ops[0], ops[1] = ops[1], ops[0]
		}
		if c.batch {
			if _, err := w.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
		} else {
			for _, op := range ops {
				w.op(op)
			}
		}
		v := w.effect(two.EffectID)
		if v.State != "taken" || v.Reference != c.second {
			t.Errorf("%s: %s, %q", c.name, v.State, v.Reference)
		}
		w.contradicted(two.EffectID, c.contradictions, c.contradictions)
		for _, k := range v.Contradictions {
			if k.Kind != "earlier_attempt_taken" {
				t.Errorf("%s: %s", c.name, k.Kind)
			}
		}
	}
}

// The second reference may also be what a person found.
func TestAPersonFindsTheSecondObjectOfAVendorKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment: {business_key: "{vendor}/{invoice}", vendor_key: {life: 24h}}
`)
	for reference, contradictions := range map[string]int{"po_1": 0, "po_2": 1} {
		args := pay("invoice "+reference, "10.00")
		_, one := w.interrupted(reference, "send_payment", args)
		w.passDeadline(one.EffectID)
		w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictNotTaken})
		two := w.proceed(w.open(reference, "pod-2"), "send_payment", args)
		w.finish(two, "unknown")
		first := "po_1"
		if contradictions == 1 {
			first = "po_9"
		}
		w.finish(one, "taken", func(f *effects.Finish) { f.Reference = first })
		w.must(w.person, effects.Decide{EffectID: two.EffectID, Verdict: effects.VerdictTaken, Reference: reference})
		v := w.effect(two.EffectID)
		if len(v.Contradictions) != contradictions {
			t.Errorf("an earlier attempt under %s, a person under %s: %d contradictions, want %d", first, reference, len(v.Contradictions), contradictions)
		}
		if contradictions == 1 && len(v.Contradictions) == 1 && v.Contradictions[0].Kind != "earlier_attempt_taken" {
			t.Errorf("kind %s", v.Contradictions[0].Kind)
		}
	}
}

func TestFinishWithoutAnIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	f := effects.Finish{Account: w.account, RunID: "a", Tool: "send_payment", Arguments: []byte(invoice), Occurrence: 1, Outcome: "taken", Reference: "po_1"}
	a := w.op(effects.Op{Finish: &f})
	if a.Finish == nil || a.Finish.State != "kept" || a.Finish.EffectID != "" {
		t.Fatalf("%+v %v", a.Finish, a.Refusal)
	}
	// The intent that comes after it may not run: it has been performed, it seems.
	r := w.wantRefusal(w.begin(l, "send_payment", invoice), effects.CodeRunPaused)
	v := w.effect(r.EffectID)
	if v.State != "interrupted" || v.Why != "kept_finish" || len(v.Attempts) != 0 {
		t.Fatalf("%+v", v)
	}
	// Another key of the run is not touched by it.
	m := w.open("b", "pod-2")
	w.proceed(m, "send_payment", pay("INV-10", "1.00"))
	w.wantRun("b", "running")
}

func TestFinishNamesItsEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	for i, name := range []func(b *effects.BeginAnswer, args string) effects.Finish{
		func(b *effects.BeginAnswer, _ string) effects.Finish { return effects.Finish{EffectID: b.EffectID} },
		func(b *effects.BeginAnswer, _ string) effects.Finish { return effects.Finish{RunID: "a", Key: b.Key} },
		func(_ *effects.BeginAnswer, args string) effects.Finish {
			return effects.Finish{RunID: "a", Tool: "send_payment", Arguments: []byte(args)}
		},
	} {
		args := pay(string(rune('A'+i)), "1.00")
		b := w.proceed(l, "send_payment", args)
		f := name(b, args)
		f.Account, f.Fence, f.Outcome = w.account, b.Fence, "taken"
		if a := w.op(effects.Op{Finish: &f}); a.Finish == nil || a.Finish.EffectID != b.EffectID {
			t.Errorf("%d: %+v %v", i, a.Finish, a.Refusal)
		}
	}
	for _, id := range []string{"nonsense", "01a22d62-60e2-7e5c-8458-5e95eafea16f"} {
		w.wantRefusal(w.op(effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: id, Fence: 1, Outcome: "taken"}}), effects.CodeNotFound)
	}
	// Another account's effect looks absent.
	b := w.proceed(l, "send_payment", pay("Z", "1.00"))
	w.wantRefusal(w.op(effects.Op{Finish: &effects.Finish{Account: w.account + 1, EffectID: b.EffectID, Fence: 1, Outcome: "taken"}}), effects.CodeNotFound)
}

func TestMintedKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	minted := func(key string) func(*effects.Begin) { return func(b *effects.Begin) { b.Key = key } }
	l := w.open("a", "pod-1")
	b := w.proceed(l, "refund", `{"order":"O-1"}`, minted("step-7"))
	r := w.wantRefusal(w.begin(l, "refund", `{"order":"O-2"}`, minted("step-7")), effects.CodeConflict)
	if r.Reason != "request" || r.EffectID != b.EffectID {
		t.Fatalf("%+v", r)
	}
	w.wantRefusal(w.begin(l, "send_payment", `{"order":"O-1"}`, minted("step-7")), effects.CodeConflict)
	// Within its run only.
	m := w.open("b", "pod-2")
	if c := w.proceed(m, "refund", `{"order":"O-3"}`, minted("step-7")); c.EffectID == b.EffectID || c.Key == b.Key {
		t.Fatal("a minted key met that of another run")
	}
	f := effects.Finish{Account: w.account, RunID: "a", Key: "step-7", Fence: b.Fence, Outcome: "taken", Result: []byte(`1`)}
	if a := w.op(effects.Op{Finish: &f}); a.Finish == nil || a.Finish.EffectID != b.EffectID {
		t.Fatalf("%v", a.Refusal)
	}
	if a := w.begin(l, "refund", `{"order":"O-1"}`, minted("step-7"), occurrence(3)); a.Begin == nil || a.Begin.Do != "replay" {
		t.Fatalf("%v", a.Refusal)
	}
	// Keys that look like ours are still the client's.
	hex := strings.Repeat("ab", 32)
	c := w.proceed(l, "refund", `{"order":"O-4"}`, minted(hex))
	f = effects.Finish{Account: w.account, RunID: "a", Key: hex, Fence: c.Fence, Outcome: "taken"}
	if a := w.op(effects.Op{Finish: &f}); a.Finish == nil || a.Finish.EffectID != c.EffectID {
		t.Fatalf("finish by a minted key of 64 hex digits: %+v %v", a.Finish, a.Refusal)
	}
}

func TestReferenceProvesOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	one := w.proceed(l, "send_payment", pay("1", "1.00"))
	w.finish(one, "taken", reference("po_1"))
	two := w.proceed(l, "send_payment", pay("2", "1.00"))
	w.finish(two, "taken", reference("po_1"))
	if v := w.effect(two.EffectID); v.State != "interrupted" || v.Why != "reference" || len(v.Evidence) != 1 || v.Evidence[0].Reference != "po_1" {
		t.Fatalf("%+v", v)
	}
	_, r := w.decide(w.person, effects.Decide{EffectID: two.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"})
	if r == nil || r.Code != effects.CodeConflict || r.Reason != "reference" {
		t.Fatalf("a person: %+v", r)
	}
	// Of another tool it is another record. And both in one transaction.
	m := w.open("b", "pod-2")
	three, four := w.proceed(m, "refund", `{"n":3}`), w.proceed(m, "refund", `{"n":4}`)
	ops := []effects.Op{
		{Finish: &effects.Finish{Account: w.account, EffectID: three.EffectID, Fence: 1, Outcome: "taken", Reference: "po_1"}},
		{Finish: &effects.Finish{Account: w.account, EffectID: four.EffectID, Fence: 1, Outcome: "taken", Reference: "po_1"}},
	}
	if _, err := w.Apply(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	w.wantState(three.EffectID, effects.Taken)
	w.wantState(four.EffectID, effects.Interrupted)
}

// A begin that was refused leaves a claim that another begin of the same commit must
// get: it would else wait for an effect that does not exist.
func TestRefusedBeginLeavesItsClaimToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	first := w.proceed(a, "refund", `{"n":1}`)
	begin := func(l effects.Lease) effects.Op {
		return effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "x", Tool: "send_payment", Arguments: []byte(invoice)}}
	}
	got, err := w.Apply(t.Context(), []effects.Op{
		{Finish: &effects.Finish{Account: w.account, EffectID: first.EffectID, Fence: first.Fence, Outcome: "unknown"}}, begin(a), begin(b),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.wantRefusal(got[1], effects.CodeRunPaused)
	if got[2].Begin == nil || got[2].Begin.Do != "proceed" {
		t.Fatalf("the begin of the other run: %+v", got[2].Refusal)
	}
	w.wantOwner(got[2].Begin.EffectID, got[2].Begin.EffectID)
}

// A finish in the same commit as the begin it belongs to.
func TestBeginAndFinishInOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one := w.proceed(a, "send_payment", invoice)
	held := heldAnswer(w, b, "send_payment", invoice)
	w.finish(one, "failed")
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	got, err := w.Apply(t.Context(), []effects.Op{
		{Begin: &effects.Begin{Account: w.account, RunID: "b", Lease: b.Token, AttemptID: "x", Tool: "send_payment", Arguments: []byte(invoice)}},
		{Finish: &effects.Finish{Account: w.account, EffectID: held, Fence: 1, Outcome: "failed"}},
	})
	if err != nil || got[0].Begin == nil || got[1].Finish == nil {
		t.Fatalf("%v %+v", err, got)
	}
	w.wantState(held, effects.Failed)
}

// A finish after the deadline is late even when no loop has met the deadline yet, and
// the run is not paused by it.
func TestFinishAfterTheDeadlineIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.passDeadline(b.EffectID)
	got, err := w.Apply(t.Context(), []effects.Op{
		{Finish: &effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "taken", Reference: "po_1"}},
		{Begin: &effects.Begin{Account: w.account, RunID: "a", Lease: l.Token, AttemptID: "x", Tool: "refund", Arguments: []byte(`{}`)}},
	})
	if err != nil || got[0].Finish == nil || got[1].Begin == nil {
		t.Fatalf("%v: %v, %v", err, got[0].Refusal, got[1].Refusal)
	}
	if v := w.effect(b.EffectID); v.State != "taken" || v.DecidedBy != "late_agent" {
		t.Fatalf("%s by %s", v.State, v.DecidedBy)
	}
	w.wantRun("a", "running")
}
