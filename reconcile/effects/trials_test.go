package effects_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/reconcile/canon"
	"quittance/reconcile/effects"
)

// The trial's package has no business key, so a repeat is allowed and marked.
func TestBC008_ADecisionIsNotBorrowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	const args = `{"name":"toolchain-21"}`
	_, b := w.interrupted("run", "install_package", args)
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	l := w.open("run", "pod-2")
	one := w.proceed(l, "install_package", args)
	two := w.proceed(l, "install_package", args, occurrence(2))
	if one.EffectID != b.EffectID || one.Attempt != 2 {
		t.Fatalf("occurrence 1: %+v", one)
	}
	v := w.effect(two.EffectID)
	if two.EffectID == b.EffectID || two.Attempt != 1 || len(v.Decisions) != 0 || v.RepeatOf != b.EffectID {
		t.Fatalf("occurrence 2: %+v", v)
	}
	if gap := v.OpenedAt.Sub(w.effect(b.EffectID).OpenedAt); gap <= 0 {
		t.Fatalf("the gap to the earlier call is %v", gap)
	}
}

func TestBC016_ADecisionIsForItsAmountOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	args := func(amount string) string {
		return `{"vendor":"Birch Supply","invoice":"B-1","amount":"` + amount + `","currency":"USD"}`
	}
	_, b := w.interrupted("run", "send_payment", args("90.00"))
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	l := w.open("run", "pod-2")
	held := heldAnswer(w, l, "send_payment", args("900.00"))
	v := w.effect(held)
	if held == b.EffectID || len(v.Overlaps) != 1 || v.Overlaps[0].Amount.String() == v.Amount.String() ||
		!bytes.Contains(v.Overlaps[0].Arguments, []byte(`"90.00"`)) || !bytes.Contains(v.Arguments, []byte(`"900.00"`)) {
		t.Fatalf("the difference is not there to be shown: %+v", v)
	}
	w.wantState(b.EffectID, effects.Cleared) // and unused
	w.refused(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow}, effects.CodeNotAllowed)
}

func TestBC026_ALaterEqualRefundIsASecondEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	const args = `{"payment":"pay_5","amount":"10.00","currency":"EUR"}`
	l := w.open("run", "pod-1")
	one := w.proceed(l, "refund", args)
	w.finish(one, "taken", reference("re_1"))
	two := w.proceed(l, "refund", args, occurrence(2))
	w.finish(two, "taken", reference("re_2"))
	if n := w.count(`SELECT count(*) FROM effects WHERE state = 'taken'`); n != 2 {
		t.Fatalf("%d effects", n)
	}
	if v := w.effect(two.EffectID); v.RepeatOf != one.EffectID {
		t.Fatalf("%+v", v)
	}
}

func TestBC027_OrderAndStepDoNotMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	for _, id := range []string{"A", "B"} {
		w.finish(w.proceed(l, "send_payment", pay(id, "1.00")), "taken", result(`"`+id+`"`))
	}
	w.passLease("run")
	l = w.open("run", "pod-2")
	w.proceed(l, "read_inbox", `{"page":2}`)
	for _, id := range []string{"B", "A"} {
		a := w.begin(l, "send_payment", pay(id, "1.00"))
		if a.Begin == nil || a.Begin.Do != "replay" || string(a.Begin.Result) != `"`+id+`"` {
			t.Fatalf("%s: %+v %v", id, a.Begin, a.Refusal)
		}
	}
	w.proceed(l, "send_payment", pay("C", "1.00"))
}

// The agents' side of the trial: what is equal in two accounts never meets.
func TestBC042_AccountsNeverMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	one := w.proceed(l, "send_payment", invoice, func(b *effects.Begin) { b.Key = "1" })
	w.finish(one, "taken", reference("po_1"), result(`"private"`))

	mine := w.account
	err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		w.account, err = access.Account(ctx, tx, "globex")
		return err
	})
	if err != nil || w.account == mine {
		t.Fatal(err)
	}
	m := w.open("run", "pod-1")
	two := w.proceed(m, "send_payment", invoice, func(b *effects.Begin) { b.Key = "1" })
	if two.EffectID == one.EffectID || two.VendorKey == one.VendorKey {
		t.Fatalf("%+v and %+v", one, two)
	}
	if a := w.finish(two, "taken", reference("po_1")); a.Finish == nil || a.Finish.State != "taken" {
		t.Fatalf("a reference is the account's own: %v", a.Refusal)
	}
	if _, err := w.Effect(t.Context(), w.account, one.EffectID); refusalOf(err) == nil || refusalOf(err).Code != effects.CodeNotFound {
		t.Fatalf("another account's effect: %v", err)
	}
	w.wantRefusal(w.op(effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: one.EffectID, Fence: one.Fence, Outcome: "failed"}}), effects.CodeNotFound)
	// A lease of one account opens nothing in the other.
	m.Token = l.Token
	w.wantRefusal(w.begin(m, "refund", `{}`), effects.CodeLeaseLost)
}

func TestBC049_TheKeyIsComputedAfreshFromTheRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	b := w.proceed(l, "sort", `{"zeta":1,"a":{"bb":2,"b":[3,1,2]}}`)
	v, err := canon.ParseObject(w.effect(b.EffectID).Arguments)
	if err != nil {
		t.Fatal(err)
	}
	if key := canon.EffectKey("run", "sort", v, 1).String(); key != b.Key {
		t.Fatalf("computed %s, stored %s", key, b.Key)
	}
	if c := w.proceed(l, "sort", `{"zeta":1,"a":{"bb":2,"b":[1,2,3]}}`); c.Key == b.Key {
		t.Fatal("the order of an array does not count")
	}
}

func TestBC060_ResultsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	const text = `{"transfer":820311904417712129,"count":7264515}`
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "taken", result(text))
	if got := w.effect(b.EffectID).Result; string(got) != text {
		t.Fatalf("read back: %s", got)
	}
	if a := w.begin(l, "send_payment", invoice); a.Begin == nil || string(a.Begin.Result) != text {
		t.Fatalf("replay: %+v", a.Begin)
	}
}

func TestBC066_ALateCompletionClosesTheCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.passDeadline(b.EffectID)
	w.settle()
	w.wantRun("run", "paused")
	if page, err := w.Queue(t.Context(), effects.QueueQuery{}); err != nil || len(page.Items) != 1 {
		t.Fatalf("queue: %+v %v", page, err)
	}
	hints, cancel := w.hub.Subscribe("")
	defer cancel()
	if a := w.finish(b, "completed", result(`{"payment":"pay_31"}`)); a.Finish == nil {
		t.Fatal(a.Refusal)
	}
	select {
	case <-hints: // open screens re-read
	default:
		t.Error("open screens are not told")
	}
	v := w.effect(b.EffectID)
	if v.State != "taken" || v.DecidedBy != "late_agent" || len(v.Decisions) != 0 {
		t.Fatalf("%+v", v)
	}
	if page, err := w.Queue(t.Context(), effects.QueueQuery{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("queue: %+v %v", page, err)
	}
	w.wantRun("run", "running")
}

func TestBC084_RepeatsOfALostAnswerAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	const args = `{"payment":"pay_3","amount":"12.00"}`
	_, b := w.interrupted("run", "create_refund", args)
	for i := range 2 {
		wantErr(t, w.openErr("run", fmt.Sprintf("pod-%d", i+2), "1"), effects.CodeRunPaused)
	}
	v := w.effect(b.EffectID)
	if !v.Blind || len(v.Attempts) != 1 || len(v.Refused) != 2 {
		t.Fatalf("%+v", v)
	}
	if n := w.count(`SELECT count(*) FROM effects`); n != 1 {
		t.Fatalf("%d effects", n)
	}
}

// Three of the four ways; a look-up comes with its own part.
func TestBC108_HowItWasClosedIsToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	agent := w.proceed(l, "refund", `{"n":1}`)
	w.finish(agent, "taken")
	_, late := w.interrupted("b", "refund", `{"n":2}`)
	w.finish(late, "taken")
	_, person := w.interrupted("c", "refund", `{"n":3}`)
	w.must(w.person, effects.Decide{EffectID: person.EffectID, Verdict: effects.VerdictTaken, Evidence: "seen in the portal"})
	for id, by := range map[string]string{agent.EffectID: "agent", late.EffectID: "late_agent", person.EffectID: "person"} {
		if v := w.effect(id); v.DecidedBy != by {
			t.Errorf("closed by %q, want %q", v.DecidedBy, by)
		}
	}
	v := w.effect(person.EffectID)
	if d := v.Decisions[0]; d.Person != w.person.Name || d.At.IsZero() || v.Evidence[0].Seen != "seen in the portal" {
		t.Errorf("%+v %+v", d, v.Evidence)
	}
	// The replay tells it too.
	if a := w.begin(w.open("c", "pod-2"), "refund", `{"n":3}`); a.Begin == nil || a.Begin.DecidedBy != "person" {
		t.Errorf("%+v", a)
	}
}

// The sweeper's list is old when it writes: the state has moved, or it is another
// attempt's turn. Many rounds, so that both orders happen.
func TestBC113_TheSweeperWritesNothingOverACompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	for i := range 20 {
		b := w.proceed(l, "send_payment", pay(fmt.Sprint(i), "1.00"))
		w.passDeadline(b.EffectID)
		done := make(chan error, 1)
		go func() { done <- w.Tick(context.WithoutCancel(t.Context())) }()
		a := w.finish(b, "taken")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if a.Finish == nil || a.Finish.State != "taken" {
			t.Fatalf("the completion: %v", a.Refusal)
		}
		w.settle()
		v := w.effect(b.EffectID)
		if v.State != "taken" || !v.WaitingSince.IsZero() || len(v.Contradictions) != 0 {
			t.Fatalf("%+v", v)
		}
		w.wantRun("run", "running")
	}
	// Claimed anew in between: an interrupted effect that may run again has a new
	// deadline, and the old list does not count.
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "unknown")
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	w.proceed(l, "send_payment", invoice)
	w.settle()
	w.wantState(b.EffectID, effects.InFlight)
}

// The engine has no clock of its own: what a server or a client believes cannot move
// anything. Here the client is an hour ahead; the ages are the database's.
func TestBC115_OnlyTheDatabaseClockCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("run", "pod-1")
	claim := time.Now().Add(time.Hour).Format(time.RFC3339)
	b := w.proceed(l, "send_payment", invoice, func(b *effects.Begin) { b.ClientTime = claim })
	w.settle()
	v := w.effect(b.EffectID)
	if v.State != "in_flight" || v.ClientTime != claim {
		t.Fatalf("%+v", v)
	}
	var drift float64
	if err := w.db.Get(t.Context(), &drift, `SELECT extract(epoch FROM clock_timestamp() - opened_at) FROM effects`); err != nil || drift < 0 || drift > 60 {
		t.Fatalf("age %v s, %v", drift, err)
	}
	if d := b.Deadline.Sub(v.OpenedAt); d != 60*time.Second {
		t.Fatalf("deadline after %v", d)
	}
	w.finish(b, "unknown")
	if page, err := w.Queue(t.Context(), effects.QueueQuery{}); err != nil || len(page.Items) != 1 || page.Items[0].Waiting < 0 {
		t.Fatalf("%+v %v", page, err)
	}
	// Two servers write in the order of the database.
	if n := w.count(`SELECT count(*) FROM effect_events a JOIN effect_events b ON a.effect_id = b.effect_id AND a.version < b.version WHERE b.at < a.at`); n != 0 {
		t.Fatalf("%d events go backwards", n)
	}
}
