package effects_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
)

const observing = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    mode: observe
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
    refusal: error.code == "blocked"
  refund: {mode: observe, deadline: 60s}
  send_mail: {deadline: 60s}
`

var enforcing = strings.ReplaceAll(observing, "mode: observe", "mode: enforce")

// would is what enforcing would have answered the call, and why.
func (w *world) would(b *effects.BeginAnswer) string {
	w.t.Helper()
	if b == nil || !b.Observed {
		w.t.Fatalf("%+v is no observed call", b)
	}
	var row struct {
		Would string `db:"would"`
		Why   string `db:"why"`
	}
	if err := w.db.Get(w.t.Context(), &row, `SELECT would, COALESCE(why, '') AS why FROM observed_calls WHERE id = $1::uuid`, b.EffectID); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(row.Would + " " + row.Why)
}

func (w *world) wantWould(b *effects.BeginAnswer, want string) {
	w.t.Helper()
	if got := w.would(b); got != want {
		w.t.Errorf("enforcing would have answered %q, want %q", got, want)
	}
}

// untouched fails if anything observed left a trace that somebody else could meet.
func (w *world) untouched() {
	w.t.Helper()
	if n := w.count(`SELECT (SELECT count(*) FROM effects) + (SELECT count(*) FROM business_claims) + (SELECT count(*) FROM attempts)
		+ (SELECT count(*) FROM kept_finishes) + (SELECT count(*) FROM runs WHERE state = 'paused' OR kept > 0 OR refused > 0)`); n != 0 {
		w.t.Errorf("%d rows were left by calls that were only observed", n)
	}
}

// Whatever is known of a call, it proceeds; what enforcing would have said is stored.
func TestObservedCallsAlwaysProceed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	first := w.proceed(l, "send_payment", pay("INV-1", "100.00"))
	w.wantWould(first, "proceed")
	if first.Attempt != 1 || first.VendorKey == "" || first.LogPosition == "" || first.PerformWithin <= 0 {
		t.Errorf("%+v", first)
	}
	w.wantWould(w.proceed(l, "send_payment", pay("INV-1", "100.00")), "refuse effect_in_flight")

	if a := w.finish(first, "taken", reference("po_1")); a.Finish == nil || a.Finish.State != "taken" {
		t.Fatalf("%+v %v", a.Finish, a.Refusal)
	}
	second := w.proceed(l, "send_payment", pay("INV-2", "50.00"))
	if a := w.finish(second, "timeout"); a.Finish == nil || a.Finish.State != "unknown" {
		t.Fatalf("%+v %v", a.Finish, a.Refusal)
	}
	again := w.proceed(l, "send_payment", pay("INV-2", "50.00"))
	w.wantWould(again, "pause unknown")
	if again.Attempt != 2 || again.VendorKey != second.VendorKey {
		t.Errorf("%+v after %+v", again, second)
	}
	w.wantWould(w.proceed(l, "send_payment", pay("INV-3", "7.00")), "wait run_paused")
	w.finish(again, "taken")
	w.wantWould(w.proceed(l, "send_payment", pay("INV-2", "50.00")), "replay")
	w.wantWould(w.proceed(l, "send_payment", `{"vendor":"ACME Tools","amount":"1.00","currency":"USD"}`), "hold no_business_key")

	other := w.open("run-2", "pod-2")
	w.wantWould(w.proceed(other, "send_payment", pay("INV-1", "100.00")), "hold overlap")
	w.wantWould(w.proceed(other, "send_payment", pay("INV-2", "51.00")), "hold overlap")
	refused := w.proceed(other, "send_payment", pay("INV-4", "9.00"))
	if a := w.finish(refused, "error", func(f *effects.Finish) { f.Error = []byte(`{"code":"blocked"}`) }); a.Finish == nil || a.Finish.State != "failed" {
		t.Fatalf("%+v %v", a.Finish, a.Refusal)
	}
	w.wantWould(w.proceed(w.open("run-3", "pod-3"), "send_payment", pay("INV-4", "9.00")), "proceed")

	w.settle()
	w.untouched()
	if got := w.run("run-1").State; got != "running" {
		t.Errorf("run-1 is %s", got)
	}
	if _, err := w.Close(t.Context(), w.account, l.RunID, l.Token, "finished", ""); err != nil {
		t.Errorf("the run does not close: %v", err)
	}
}

// A begin whose answer was lost is answered again, and is one call.
func TestAnObservedBeginIsAnsweredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	same := func(b *effects.Begin) { b.AttemptID = "once" }
	a, b := w.proceed(l, "refund", `{"n":1}`, same), w.proceed(l, "refund", `{"n":1}`, same)
	if a.EffectID != b.EffectID || w.count(`SELECT count(*) FROM observed_calls`) != 1 {
		t.Errorf("%+v and %+v", a, b)
	}
}

// Neither a lost lease, nor a paused or a closed run, nor a log gap stops one.
func TestObservedCallsProceedWhateverTheirRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	w.finish(w.proceed(l, "send_mail", `{"to":"a"}`), "timeout")
	w.wantRun("run-1", "paused")
	w.wantWould(w.proceed(l, "refund", `{"n":1}`), "wait run_paused")
	w.wantRefusal(w.begin(l, "send_mail", `{"to":"b"}`), effects.CodeRunPaused) // the other is enforced all the same
	w.passLease("run-1")
	w.wantWould(w.proceed(l, "refund", `{"n":2}`), "refuse lease_lost")

	c := w.open("run-2", "pod-1")
	if _, err := w.Close(t.Context(), w.account, c.RunID, c.Token, "finished", ""); err != nil {
		t.Fatal(err)
	}
	w.wantWould(w.proceed(c, "refund", `{"n":3}`), "refuse run_closed")
	if err := w.FindGap(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	w.wantWould(w.proceed(l, "refund", `{"n":4}`), "refuse log_behind")
	if a := w.begin(effects.Lease{RunID: "nowhere"}, "refund", `{"n":5}`); a.Refusal == nil || a.Refusal.Code != effects.CodeNotFound {
		t.Errorf("a run that was never opened: %+v %v", a.Begin, a.Refusal)
	}
}

// A process that dies in a call is what the trial is for: its next attempt would have
// paused.
func TestAnObservedCallWhoseProcessDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	w.proceed(l, "send_payment", pay("INV-1", "100.00"))
	w.die(l)
	w.wantRun("run-1", "ready") // and not paused
	l = w.open("run-1", "pod-2")
	w.wantWould(w.proceed(l, "send_payment", pay("INV-1", "100.00")), "pause lease")
	w.untouched()
}

// A finish finds an observed call by id, by key, and by tool and arguments.
func TestFinishesOfObservedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	for i, by := range []func(b *effects.BeginAnswer, args string) effects.Finish{
		func(b *effects.BeginAnswer, _ string) effects.Finish { return effects.Finish{EffectID: b.EffectID} },
		func(b *effects.BeginAnswer, _ string) effects.Finish {
			return effects.Finish{RunID: l.RunID, Key: b.Key}
		},
		func(_ *effects.BeginAnswer, args string) effects.Finish {
			return effects.Finish{RunID: l.RunID, Tool: "refund", Arguments: []byte(args)}
		},
	} {
		args := `{"n":` + string(rune('1'+i)) + `}`
		b := w.proceed(l, "refund", args)
		f := by(b, args)
		f.Account, f.Outcome = w.account, "taken"
		if a := w.op(effects.Op{Finish: &f}); a.Finish == nil || a.Finish.EffectID != b.EffectID || a.Finish.State != "taken" {
			t.Errorf("way %d: %+v %v", i, a.Finish, a.Refusal)
		}
	}
	stranger := effects.Finish{Account: w.account + 1, EffectID: w.proceed(l, "refund", `{"n":9}`).EffectID, Outcome: "taken"}
	if a := w.op(effects.Op{Finish: &stranger}); a.Refusal == nil || a.Refusal.Code != effects.CodeNotFound {
		t.Errorf("another account's: %+v %v", a.Finish, a.Refusal)
	}
	w.untouched()
}

func (w *world) policy(source string) {
	w.t.Helper()
	p, mistakes := policy.Load("quittance.yaml", []byte(source))
	if p == nil {
		w.t.Fatal(mistakes)
	}
	if err := w.SetPolicy(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// What was observed is no proof: the same call, once enforced, is a question. So is one
// of another run with the same business key. A person answers it once.
func TestEnforcingDoesNotRepeatWhatWasObserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	l := w.open("run-1", "pod-1")
	w.finish(w.proceed(l, "send_payment", pay("INV-1", "100.00")), "taken", reference("po_1"))
	w.finish(w.proceed(l, "send_payment", pay("INV-2", "100.00")), "failed")
	w.proceed(l, "send_payment", pay("INV-3", "100.00")) // and dies
	w.policy(enforcing)

	w.die(l)
	l = w.open("run-1", "pod-2")
	r := w.wantRefusal(w.begin(l, "send_payment", pay("INV-1", "100.00")), effects.CodeRunPaused)
	v := w.wantState(r.EffectID, effects.Interrupted)
	if v.Why != "observed" || len(v.Attempts) != 0 || len(v.Evidence) != 1 || !strings.Contains(v.Evidence[0].Seen, `"taken", reference po_1`) {
		t.Errorf("%+v", v)
	}
	w.must(w.person, effects.Decide{EffectID: r.EffectID, Verdict: effects.VerdictTaken, Result: []byte(`{}`)})
	if a := w.begin(l, "send_payment", pay("INV-1", "100.00")); a.Begin == nil || a.Begin.Do != "replay" {
		t.Errorf("%+v %v", a.Begin, a.Refusal)
	}

	for _, n := range []string{"INV-2", "INV-3"} { // of another run, by their business key
		l := w.open("run-of-"+n, "pod-3")
		id := w.wantRefusal(w.begin(l, "send_payment", pay(n, "100.00")), effects.CodeRunPaused).EffectID
		if v := w.wantState(id, effects.Interrupted); v.Why != "observed" {
			t.Errorf("%s: %s", n, v.Why)
		}
		// An effect holds the claim now, and has met what was observed.
		held := w.wantRefusal(w.begin(w.open("again-"+n, "pod-4"), "send_payment", pay(n, "100.00")), effects.CodeRunPaused).EffectID
		w.wantState(held, effects.Held)
		w.passDeadline(id)
		w.must(w.person, effects.Decide{EffectID: id, Verdict: effects.VerdictNotTaken})
		if a := w.begin(l, "send_payment", pay(n, "100.00")); a.Begin == nil || a.Begin.Do != "proceed" || a.Begin.Observed {
			t.Errorf("%s cleared: %+v %v", n, a.Begin, a.Refusal)
		}
	}
	if a := w.begin(w.open("run-9", "pod-9"), "send_payment", pay("INV-9", "100.00")); a.Begin == nil || a.Begin.Do != "proceed" || a.Begin.Observed {
		t.Errorf("what nobody observed: %+v %v", a.Begin, a.Refusal)
	}
}

// A business_key that is added, or changed, as the tool comes to be enforced.
func TestEnforcingUnderAnotherBusinessKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(observing, `business_key: "{vendor}/{invoice}"`, `business_key: "{amount}"`, 1))
	w.finish(w.proceed(w.open("run-1", "pod-1"), "send_payment", pay("INV-1", "100.00")), "taken")
	w.policy(enforcing)
	for range 2 * 5 { // whatever the re-keying of effects has come to
		w.settle()
	}
	id := w.wantRefusal(w.begin(w.open("run-2", "pod-2"), "send_payment", pay("INV-1", "99.00")), effects.CodeRunPaused).EffectID
	if v := w.wantState(id, effects.Interrupted); v.Why != "observed" {
		t.Errorf("it is %s", v.Why)
	}
	if a := w.begin(w.open("run-3", "pod-3"), "send_payment", pay("INV-2", "100.00")); a.Begin == nil {
		t.Errorf("the earlier business key still counts: %v", a.Refusal)
	}
}

// A permission given before a trial is not used after it, where the call was made
// meanwhile.
func TestAPermissionIsNotUsedAfterTheCallWasObserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, enforcing)
	_, b := w.interrupted("run-1", "send_payment", pay("INV-1", "100.00"))
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	w.policy(observing)
	l := w.open("run-1", "pod-2")
	if a := w.proceed(l, "send_payment", pay("INV-1", "100.00")); !a.Observed {
		t.Fatal("it is enforced")
	}
	w.policy(enforcing)
	w.wantRefusal(w.begin(l, "send_payment", pay("INV-1", "100.00")), effects.CodeRunPaused)
	if v := w.wantState(b.EffectID, effects.Interrupted); v.Why != "observed" {
		t.Errorf("it is %s", v.Why)
	}
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	if a := w.begin(l, "send_payment", pay("INV-1", "100.00")); a.Begin == nil || a.Begin.Do != "proceed" {
		t.Errorf("decided knowing of it: %+v %v", a.Begin, a.Refusal)
	}
}

// Another server may still hold the policy of before, and learn of the first observed
// call only by the database.
func TestAServerThatEnforcesHearsWhatAnotherObserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, enforcing)
	l := w.open("run-1", "pod-1")
	w.finish(w.proceed(l, "send_payment", pay("INV-0", "1.00")), "taken") // its keying is read
	other := w.engine(observing)
	a, err := other.Apply(t.Context(), []effects.Op{{Begin: &effects.Begin{
		Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "x", Tool: "send_payment", Arguments: []byte(pay("INV-1", "100.00"))}}})
	if err != nil || a[0].Begin == nil || !a[0].Begin.Observed {
		t.Fatalf("%+v %v", a, err)
	}
	w.wantRefusal(w.begin(l, "send_payment", pay("INV-1", "100.00")), effects.CodeRunPaused)
}

// An observed call never blocks, and is never changed or lost by anything but its finish.
func TestWhatWasObservedStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, observing)
	b := w.proceed(w.open("run-1", "pod-1"), "refund", `{"n":1}`)
	w.finish(b, "taken")
	if a := w.finish(b, "failed"); a.Finish == nil || a.Finish.State != "taken" {
		t.Errorf("a second word: %+v %v", a.Finish, a.Refusal)
	}
	for _, q := range []string{`UPDATE observed_calls SET would = 'hold'`, `DELETE FROM observed_calls`, `TRUNCATE observed_calls`} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := w.db.Pool().ExecContext(ctx, q); err == nil {
			t.Errorf("%s is possible", q)
		}
		cancel()
	}
}
