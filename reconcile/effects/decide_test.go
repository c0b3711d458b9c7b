package effects_test

import (
	"testing"
	"time"

	"quittance/reconcile/effects"
)

func TestOddTextFromPeopleIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	const odd = "looked\x00 at \xff it"
	if _, err := w.AddEvidence(t.Context(), w.person, effects.AddEvidence{EffectID: b.EffectID, Seen: odd}); err != nil {
		t.Fatal(err)
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Note: odd, Evidence: odd})
	if _, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: b.EffectID, Note: odd}); err != nil {
		t.Fatal(err)
	}
	v := w.effect(b.EffectID)
	const want = `looked\u0000 at ` + "\uFFFD it"
	if v.Decisions[0].Note != want || v.Evidence[0].Seen != want || v.Decisions[1].Note != want {
		t.Fatalf("%+v %+v", v.Decisions, v.Evidence)
	}
}

const lagging = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    deadline: 60s
    lands_within: 10m
`

// A not_taken before the moment is released by nothing but a confirmation after it,
// by the same person or another.
func TestEarlyDecisionWaitsForAConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lagging)
	for _, verdict := range []effects.Verdict{effects.VerdictNotTaken, effects.VerdictStop} {
		for _, p := range []effects.Person{w.person, w.other} {
			run := string(verdict) + p.Name
			_, b := w.interrupted(run, "send_payment", pay(run, "1.00"))
			a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: verdict})
			if !a.Early || a.Moment.Before(time.Now().Add(9*time.Minute)) {
				t.Fatalf("decided: %+v", a)
			}
			// Once more before the moment confirms nothing.
			if a = w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: verdict}); !a.Early || a.Confirmed {
				t.Fatalf("again: %+v", a)
			}
			if a = w.must(w.other, effects.Decide{EffectID: b.EffectID, Verdict: verdict}); !a.Concurring {
				t.Fatalf("somebody else: %+v", a)
			}
			if page, err := w.Queue(t.Context(), effects.QueueQuery{RunID: run}); err != nil || len(page.Items) != 0 {
				t.Fatalf("in the queue before the moment: %+v %v", page, err)
			}
			w.exec(`UPDATE effects SET moment = clock_timestamp(), release_at = clock_timestamp(), waiting_since = clock_timestamp() WHERE id = $1::uuid`, b.EffectID)
			w.settle()
			w.wantRun(run, "paused") // silence is not enough
			page, err := w.Queue(t.Context(), effects.QueueQuery{RunID: run, State: "confirm"})
			if err != nil || len(page.Items) != 1 || !page.Items[0].Confirm {
				t.Fatalf("queue: %+v %v", page, err)
			}
			if a = w.must(p, effects.Decide{EffectID: b.EffectID, Verdict: verdict}); !a.Confirmed || a.Early {
				t.Fatalf("confirmed: %+v", a)
			}
			w.wantRun(run, "ready")
			v := w.effect(b.EffectID)
			if !v.Released || v.Decisions[len(v.Decisions)-1].Act != "confirm" || !v.WaitingSince.IsZero() {
				t.Fatalf("%+v", v)
			}
		}
	}
}

// A taken is never early: it lets nothing run again.
func TestTakenIsNeverEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lagging)
	_, b := w.interrupted("a", "send_payment", invoice)
	if a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken}); a.Early {
		t.Fatalf("%+v", a)
	}
	w.wantRun("a", "ready")
	// Nor is a verdict on what never began.
	w2 := w.open("b", "pod-2")
	held := heldAnswer(w, w2, "send_payment", invoice)
	if a := w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictStop}); a.Early {
		t.Fatalf("%+v", a)
	}
	w.wantRun("b", "running")
	r := w.wantRefusal(w.begin(w2, "send_payment", invoice), effects.CodeCancelled)
	if r.Decided == nil || r.Decided.Person != w.person.Name || r.Decided.Note == "" {
		t.Fatalf("%+v", r.Decided)
	}
}

func TestHoldsAndReleaseTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
release: {hold: 10s, not_taken_hold: 120s}
tools:
  pay: {amount: {value: amount, currency: currency, unit: major}, deadline: 60s}
  note: {deadline: 60s}
`)
	for _, c := range []struct {
		tool    string
		args    string
		verdict effects.Verdict
		hold    time.Duration
	}{
		{"pay", `{"amount":"1.00","currency":"USD","n":1}`, effects.VerdictTaken, 10 * time.Second},
		{"pay", `{"amount":"1.00","currency":"USD","n":2}`, effects.VerdictNotTaken, 120 * time.Second},
		{"pay", `{"amount":"lots","currency":"USD","n":3}`, effects.VerdictNotTaken, 120 * time.Second}, // unreadable money is money
		{"pay", `{"amount":"1.00","currency":"USD","n":4}`, effects.VerdictStop, 10 * time.Second},
		{"note", `{}`, effects.VerdictNotTaken, 10 * time.Second},
	} {
		run := c.tool + string(c.verdict) + c.args
		_, b := w.interrupted(run, c.tool, c.args)
		w.passDeadline(b.EffectID)
		a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: c.verdict})
		if d := time.Until(a.ReleaseAt); d > c.hold || d < c.hold-5*time.Second {
			t.Errorf("%s %s: released in %v, want %v", c.tool, c.verdict, d, c.hold)
		}
		r := wantErr(t, w.openErr(run, "pod-2", "x"), effects.CodeRunPaused)
		if len(r.WaitingFor) != 1 || r.WaitingFor[0].Reason != "releasing" || !r.WaitingFor[0].ReleaseAt.Equal(a.ReleaseAt) {
			t.Errorf("waiting for %+v", r.WaitingFor)
		}
		w.passHold(b.EffectID)
		if err := w.openErr(run, "pod-2", "x"); err != nil { // met by PUT, without a loop
			t.Errorf("after the hold: %v", err)
		}
	}
}

// Before the moment nothing is released, whatever the hold.
func TestReleaseWaitsForTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	deadline := w.effect(b.EffectID).Attempts[0].Deadline
	if !a.ReleaseAt.Equal(deadline) || !a.Early {
		t.Fatalf("released at %v, early %v; the request may be sent until %v", a.ReleaseAt, a.Early, deadline)
	}
}

func TestPermissionExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	for _, met := range []string{"loop", "begin"} {
		_, b := w.interrupted(met, "send_payment", pay(met, "1.00"))
		w.passDeadline(b.EffectID)
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
		w.wantRun(met, "ready")
		w.agePermission(b.EffectID, 23*time.Hour)
		w.settle()
		w.wantState(b.EffectID, effects.Cleared)
		w.agePermission(b.EffectID, 25*time.Hour)
		if met == "loop" {
			w.settle()
			w.wantRun(met, "paused")
			wantErr(t, w.openErr(met, "pod-2", "x"), effects.CodeRunPaused)
		} else {
			w.wantRefusal(w.begin(w.open(met, "pod-2"), "send_payment", pay(met, "1.00")), effects.CodeRunPaused)
		}
		if v := w.effect(b.EffectID); v.State != "interrupted" || v.Why != "expired" || len(v.Decisions) != 1 {
			t.Fatalf("%s: %+v", met, v)
		}
	}
	// An allow that expires is held again.
	l := w.open("c", "pod-1")
	one := w.proceed(l, "send_payment", invoice)
	m := w.open("d", "pod-1")
	held := heldAnswer(w, m, "send_payment", invoice)
	w.finish(one, "taken")
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.agePermission(held, 25*time.Hour)
	w.wantRefusal(w.begin(m, "send_payment", invoice), effects.CodeRunPaused)
	if v := w.effect(held); v.State != "held" || v.Why != "expired" {
		t.Fatalf("%+v", v)
	}
}

const twoPeople = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    amount: {value: amount, currency: currency, unit: major}
    second_person_above: {USD: "1000.00"}
    deadline: 60s
`

func TestSecondPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPeople)
	_, small := w.interrupted("small", "send_payment", pay("1", "1000.00"))
	if a := w.must(w.person, effects.Decide{EffectID: small.EffectID, Verdict: effects.VerdictTaken}); a.Waits {
		t.Fatalf("at the limit: %+v", a)
	}
	_, b := w.interrupted("a", "send_payment", pay("2", "1000.01"))
	taken := effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1", Result: []byte(`{"id":"po_1"}`)}
	a := w.must(w.person, taken)
	if !a.Waits || a.State != "interrupted" {
		t.Fatalf("proposed: %+v", a)
	}
	if a = w.must(w.person, taken); !a.Waits { // the same person is one person
		t.Fatalf("the same person again: %+v", a)
	}
	w.wantRun("a", "paused")
	r := w.refused(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken}, effects.CodeSecondWaits)
	if r.Decided == nil || r.Decided.Person != w.person.Name || r.Decided.Verdict != "taken" {
		t.Fatalf("%+v", r.Decided)
	}
	w.refused(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_2"}, effects.CodeSecondWaits)
	// Sent back, nothing waits any more; what was proposed stays in the history.
	w.must(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictSendBack, Note: "which account?"})
	w.refused(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictSendBack}, effects.CodeNotAllowed)
	if v := w.effect(b.EffectID); v.Proposal != nil || v.State != "interrupted" {
		t.Fatalf("%+v", v.Proposal)
	}
	w.must(w.person, taken)
	// The second says the same without repeating the details.
	a = w.must(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
	if a.Waits || a.State != "taken" {
		t.Fatalf("confirmed: %+v", a)
	}
	v := w.effect(b.EffectID)
	if v.Reference != "po_1" || string(v.Result) != `{"id":"po_1"}` || v.Proposal != nil {
		t.Fatalf("%+v", v)
	}
	w.wantRun("a", "ready")
	// An amount in a currency without a limit, or none that can be read, counts as above.
	for i, args := range []string{`{"amount":"1.00","currency":"EUR"}`, `{"amount":"some","currency":"USD"}`, `{}`} {
		run := string(rune('p' + i))
		_, b := w.interrupted(run, "send_payment", args)
		if a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictStop}); !a.Waits {
			t.Errorf("%s: %+v", args, a)
		}
	}
}

// A proposal goes with the state it was made in: a worker that finishes meanwhile has
// the last word.
func TestProposalGoesWithALateFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoPeople)
	_, b := w.interrupted("a", "send_payment", pay("2", "9000.00"))
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	w.finish(b, "taken", reference("po_1"))
	w.refused(w.other, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken}, effects.CodeDecided)
	if v := w.effect(b.EffectID); v.Proposal != nil || v.DecidedBy != "late_agent" {
		t.Fatalf("%+v", v)
	}
}

func TestDecisionIsReplayedByItsID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	d := effects.Decide{EffectID: b.EffectID, DecisionID: "click-1", Version: w.effect(b.EffectID).Version, Verdict: effects.VerdictTaken, Note: "seen", Reference: "po_1"}
	one := w.must(w.person, d)
	two := w.must(w.person, d)
	if *one != *two {
		t.Fatalf("first %+v, then %+v", one, two)
	}
	if n := w.count(`SELECT count(*) FROM decisions`); n != 1 {
		t.Fatalf("%d decisions", n)
	}
	other := d
	other.Verdict, other.Reference = effects.VerdictNotTaken, ""
	if r := w.refused(w.person, other, effects.CodeConflict); r.Reason != "decision_id" {
		t.Fatalf("%+v", r)
	}
	w.refused(w.other, d, effects.CodeConflict)
	// Also after everything moved on.
	w.begin(w.open("a", "pod-2"), "send_payment", invoice)
	if again := w.must(w.person, d); *again != *one {
		t.Fatalf("later %+v", again)
	}
}

func TestStaleDecidedAndConcurring(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	was := w.effect(b.EffectID).Version
	r := w.refused(w.person, effects.Decide{EffectID: b.EffectID, Version: was + 1, Verdict: effects.VerdictTaken}, effects.CodeStale)
	if r.Version != was {
		t.Fatalf("stale says %d, want %d", r.Version, was)
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Version: was, Verdict: effects.VerdictTaken, Reference: "po_1", Note: "in the portal"})
	if a := w.must(w.other, effects.Decide{EffectID: b.EffectID, Version: was, Verdict: effects.VerdictTaken}); !a.Concurring {
		t.Fatalf("%+v", a)
	}
	for _, d := range []effects.Decide{
		{Verdict: effects.VerdictNotTaken}, {Verdict: effects.VerdictStop}, {Verdict: effects.VerdictTaken, Reference: "po_2"},
	} {
		d.EffectID, d.Version = b.EffectID, was
		r := w.refused(w.other, d, effects.CodeDecided)
		if r.Decided == nil || r.Decided.Person != w.person.Name || r.Decided.Verdict != "taken" || r.Decided.Note != "in the portal" || r.Decided.At.IsZero() {
			t.Fatalf("%+v", r.Decided)
		}
	}
	if v := w.effect(b.EffectID); v.Reference != "po_1" || v.State != "taken" {
		t.Fatalf("%+v", v)
	}
}

func TestDecisionNeedsANote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Note: " \n"}, effects.CodeNoteMissing)
	_, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: b.EffectID, Note: " "})
	wantErr(t, err, effects.CodeNoteMissing)
	_, err = w.AddEvidence(t.Context(), w.person, effects.AddEvidence{EffectID: b.EffectID})
	wantErr(t, err, effects.CodeNoteMissing)
}

// "Looked, cannot tell yet" is kept and moves nothing.
func TestEvidenceOfAPersonMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	was := w.effect(b.EffectID)
	next := time.Now().Add(time.Hour).Truncate(time.Second)
	if _, err := w.AddEvidence(t.Context(), w.person, effects.AddEvidence{EffectID: b.EffectID, Seen: "portal is down", NextLook: next}); err != nil {
		t.Fatal(err)
	}
	v := w.effect(b.EffectID)
	if v.State != was.State || v.Version != was.Version || len(v.Evidence) != 1 || !v.Evidence[0].NextLook.Equal(next) || v.Evidence[0].Person != w.person.Name {
		t.Fatalf("%+v", v)
	}
}

func TestUndoRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	undo := func(id string) error {
		_, err := w.Undo(t.Context(), w.other, effects.Undo{EffectID: id, Note: "wrong row"})
		return err
	}
	for _, verdict := range []effects.Verdict{effects.VerdictTaken, effects.VerdictNotTaken, effects.VerdictStop} {
		run := string(verdict)
		args := pay(run, "1.00")
		_, b := w.interrupted(run, "send_payment", args)
		wantErr(t, undo(b.EffectID), effects.CodeNotAllowed) // nothing decided yet
		w.passDeadline(b.EffectID)
		d := effects.Decide{EffectID: b.EffectID, Verdict: verdict}
		if verdict == effects.VerdictTaken {
			d.Reference = "po_" + run
		}
		w.must(w.person, d)
		w.wantRun(run, "ready") // released, and nobody has used it
		if err := undo(b.EffectID); err != nil {
			t.Fatalf("%s: %v", verdict, err)
		}
		v := w.effect(b.EffectID)
		if v.State != "interrupted" || v.Why != "undone" || v.Reference != "" || v.DecidedBy != "" || len(v.Decisions) != 2 || v.Decisions[1].Act != "undo" {
			t.Fatalf("%s: %+v", verdict, v)
		}
		w.wantRun(run, "paused")
		wantErr(t, undo(b.EffectID), effects.CodeNotAllowed)
		// Decided again, with the same reference, and used: now it stands.
		w.must(w.person, d)
		w.begin(w.open(run, "pod-2"), "send_payment", args)
		wantErr(t, undo(b.EffectID), effects.CodeNotAllowed)
	}
	// What the agent said is not a person's to take back.
	l := w.open("z", "pod-1")
	b := w.proceed(l, "refund", `{}`)
	w.finish(b, "taken")
	wantErr(t, undo(b.EffectID), effects.CodeNotAllowed)
	if _, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: b.EffectID, Version: 99, Note: "x"}); refusalOf(err) == nil || refusalOf(err).Code != effects.CodeStale {
		t.Fatalf("stale undo: %v", err)
	}
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.refused(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictAcknowledge}, effects.CodeNotAllowed)
	w.finish(b, "failed")
	w.wantRefusal(w.finish(b, "taken", reference("po_1")), effects.CodeStaleFence)
	w.contradicted(b.EffectID, 1, 1)
	r := w.wantRefusal(w.begin(l, "refund", `{}`), effects.CodeRunPaused)
	if len(r.WaitingFor) != 1 || r.WaitingFor[0].Reason != "contradicted" {
		t.Fatalf("%+v", r.WaitingFor)
	}
	page, err := w.Queue(t.Context(), effects.QueueQuery{State: "contradicted"})
	if err != nil || len(page.Items) != 1 || !page.Items[0].Contradicted {
		t.Fatalf("%+v %v", page, err)
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictAcknowledge, Recovery: true})
	w.wantState(b.EffectID, effects.Failed)
	if c := w.effect(b.EffectID).Contradictions[0]; c.Recovery != "yes" || c.AcknowledgedBy != w.person.Name {
		t.Fatalf("%+v", c)
	}
	w.wantRun("a", "running")
	w.proceed(l, "refund", `{}`)
}

// What a person said can be corrected as long as nobody used it.
func TestUnusedPermissionCanStillBeStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	for _, next := range []effects.Verdict{effects.VerdictTaken, effects.VerdictStop} {
		run := string(next)
		_, b := w.interrupted(run, "send_payment", pay(run, "1.00"))
		w.passDeadline(b.EffectID)
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
		a := w.must(w.other, effects.Decide{EffectID: b.EffectID, Verdict: next})
		if a.State == "cleared" {
			t.Fatalf("%+v", a)
		}
		got := w.begin(w.open(run, "pod-2"), "send_payment", pay(run, "1.00"))
		if got.Begin != nil && got.Begin.Do == "proceed" {
			t.Fatalf("after %s the call may run", next)
		}
	}
}

func TestListsOfDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, one := w.interrupted("a", "refund", `{"order":"O-1"}`)
	_, two := w.interrupted("b", "refund", `{"order":"O-2"}`)
	v := w.effect(one.EffectID).Version
	d := func(id string, verdict effects.Verdict) effects.Decide {
		return effects.Decide{EffectID: id, Version: v, Verdict: verdict, Note: "seen"}
	}
	for _, list := range [][]effects.Decide{
		{}, {d(one.EffectID, effects.VerdictTaken), d("", effects.VerdictTaken)},
		{d(one.EffectID, effects.VerdictTaken), d(two.EffectID, effects.VerdictTaken), d(one.EffectID, effects.VerdictTaken)},
	} {
		_, err := w.Engine.Decide(t.Context(), w.person, list)
		wantErr(t, err, effects.CodeInvalid)
	}
	w.wantState(one.EffectID, effects.Interrupted)
	// One that does not fit leaves the rest alone.
	got, err := w.Engine.Decide(t.Context(), w.person, []effects.Decide{d("01a22d62-60e2-7e5c-8458-5e95eafea16f", effects.VerdictTaken), d(two.EffectID, effects.VerdictTaken)})
	if err != nil || got[0].Refusal == nil || got[0].Refusal.Code != effects.CodeNotFound || got[1].Answer == nil {
		t.Fatalf("%+v %v", got, err)
	}
}
