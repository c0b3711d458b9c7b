package effects_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

func TestLeaseIsHeldExpiredAndReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	r := wantErr(t, w.openErr("a", "pod-2", "x"), effects.CodeRunHeld)
	if r.HeldBy != "pod-1" || r.RetryAfter <= 50*time.Second || r.RetryAfter > 60*time.Second {
		t.Fatalf("held: by %q, retry after %v", r.HeldBy, r.RetryAfter)
	}
	// The same attempt_id is the same lease; another of the same worker is not.
	again := w.open("a", "pod-1")
	if again.Token != l.Token || again.Epoch != l.Epoch {
		t.Fatalf("the same attempt_id got %+v after %+v", again, l)
	}
	wantErr(t, w.openErr("a", "pod-1", "another"), effects.CodeRunHeld)

	if _, err := w.Release(t.Context(), w.account, "a", l.Token, ""); err != nil {
		t.Fatal(err)
	}
	w.wantRun("a", "ready")
	_, err := w.Heartbeat(t.Context(), w.account, "a", l.Token, "")
	wantErr(t, err, effects.CodeLeaseLost)
	// The same attempt_id after the lease ended is a new lease with a new secret.
	next := w.open("a", "pod-1")
	if next.Token == l.Token || next.Epoch <= l.Epoch {
		t.Fatalf("after release: %+v after %+v", next, l)
	}
	w.wantRefusal(w.begin(l, "send_payment", invoice), effects.CodeLeaseLost)

	// It runs out by the database's clock, and the next is met without any loop.
	w.passLease("a")
	third, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: "a", Agent: "ap-bot", Worker: "pod-2", AttemptID: "x"})
	if err != nil || third.Epoch <= next.Epoch {
		t.Fatalf("after expiry: %+v %v", third, err)
	}
	w.wantRefusal(w.begin(next, "send_payment", invoice), effects.CodeLeaseLost)
	w.proceed(third, "send_payment", invoice)
	if n := w.count(`SELECT count(*) FROM leases a JOIN leases b ON a.run_id = b.run_id AND a.epoch < b.epoch
		WHERE a.ended_at IS NULL OR b.taken_at < a.ended_at`); n != 0 {
		t.Fatalf("%d pairs of leases overlap", n)
	}
}

func TestLeaseLengths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	for _, c := range []struct {
		d  time.Duration
		ok bool
	}{{0, true}, {2 * time.Second, true}, {600 * time.Second, true}, {time.Second, false}, {601 * time.Second, false}, {-time.Second, false}, {2500 * time.Millisecond, false}} {
		_, err := w.Open(t.Context(), effects.Open{Account: w.account, RunID: c.d.String(), Agent: "ap-bot", Worker: "p", AttemptID: "1", Lease: c.d})
		if c.ok && err != nil {
			t.Errorf("%v: %v", c.d, err)
		}
		if !c.ok {
			wantErr(t, err, effects.CodeInvalid)
		}
	}
}

// A holder keeps its lease through a pause while it heartbeats; only its begins are
// refused, and it goes on by itself when the person has decided.
func TestHolderKeepsItsLeaseThroughAPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "unknown")
	w.wantRun("a", "paused")
	v, err := w.Heartbeat(t.Context(), w.account, "a", l.Token, "")
	if err != nil || v.State != "paused" || time.Until(v.ExpiresAt) < 50*time.Second {
		t.Fatalf("heartbeat while paused: %+v %v", v, err)
	}
	r := w.wantRefusal(w.begin(l, "refund", `{"order":"O-1"}`), effects.CodeRunPaused)
	if len(r.WaitingFor) != 1 || r.WaitingFor[0].EffectID != b.EffectID || r.WaitingFor[0].Reason != "interrupted" {
		t.Fatalf("waiting for: %+v", r.WaitingFor)
	}
	if n := w.count(`SELECT count(*) FROM effects`); n != 1 {
		t.Fatalf("%d effects: a refused begin must leave none", n)
	}
	// Others are told that it is held, the holder that it still is the holder.
	wantErr(t, w.openErr("a", "pod-2", "x"), effects.CodeRunHeld)
	if again := w.open("a", "pod-1"); again.Token != l.Token || again.State != "paused" {
		t.Fatalf("the holder asking again: %+v", again)
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1"})
	w.wantRun("a", "running")
	if a := w.begin(l, "send_payment", invoice); a.Begin == nil || a.Begin.Do != "replay" {
		t.Fatalf("after the decision: %+v %v", a.Begin, a.Refusal)
	}
}

func TestRefusalsAreCappedAndCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	before := w.count(`SELECT count(*) FROM effect_events`)
	for i := range 130 {
		r := wantErr(t, w.openErr("a", fmt.Sprintf("pod-%d", i+2), "x"), effects.CodeRunPaused)
		if len(r.WaitingFor) != 1 || r.WaitingFor[0].EffectID != b.EffectID {
			t.Fatalf("start %d waits for %+v", i, r.WaitingFor)
		}
	}
	if n := w.count(`SELECT count(*) FROM refusals`); n != 100 {
		t.Errorf("%d refusals are kept, want 100", n)
	}
	if got := w.run("a").Refused; got != 130 {
		t.Errorf("%d are counted, want 130", got)
	}
	if v := w.effect(b.EffectID); len(v.Refused) != 100 || v.Refused[0].Worker != "pod-2" || v.Refused[0].At.IsZero() {
		t.Errorf("the page shows %d", len(v.Refused))
	}
	if n := w.count(`SELECT count(*) FROM effect_events`); n != before {
		t.Errorf("refused starts changed something else: %d events after %d", n, before)
	}
}

// A batch of refused begins is one write, and the cap falls inside it.
func TestRefusalsOfABatchAreCappedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "unknown")
	for range 2 {
		ops := make([]effects.Op, 70)
		for i := range ops {
			ops[i].Begin = &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: fmt.Sprint("try ", i), Tool: "refund", Arguments: []byte(`{}`)}
		}
		answers, err := w.Apply(t.Context(), ops)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			w.wantRefusal(a, effects.CodeRunPaused)
		}
	}
	if v := w.run(l.RunID); v.Refused != 140 {
		t.Errorf("%d were counted, want 140", v.Refused)
	}
	v := w.effect(b.EffectID)
	if len(v.Refused) != 100 || v.Refused[0].AttemptID != "try 0" || v.Refused[69].AttemptID != "try 69" || v.Refused[99].AttemptID != "try 29" {
		t.Errorf("kept %d, in the wrong order or number: %+v", len(v.Refused), v.Refused)
	}
}

func TestCheckpointsGoByEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	save := func(l effects.Lease, turn int64, state string) error {
		_, err := w.SaveCheckpoint(t.Context(), w.account, l.RunID, l.Token, turn, []byte(state), []byte(`{"c":1}`), "")
		return err
	}
	l := w.open("a", "pod-1")
	if l.Checkpoint != nil {
		t.Fatalf("a new run has a checkpoint: %+v", l.Checkpoint)
	}
	for turn, state := range []string{`{"s":0}`, `{"s":1}`, `{"s":2}`} {
		if err := save(l, int64(turn), state); err != nil {
			t.Fatal(err)
		}
	}
	w.passLease("a")
	l2 := w.open("a", "pod-2")
	if l2.Checkpoint == nil || l2.Checkpoint.Turn != 2 {
		t.Fatalf("resume from %+v, want turn 2", l2.Checkpoint)
	}
	// The next holder is in turn 1 again; the old one wakes up and may not save.
	if err := save(l2, 1, `{"s":"again"}`); err != nil {
		t.Fatal(err)
	}
	wantErr(t, save(l, 7, `{"s":"stale"}`), effects.CodeLeaseLost)
	c, err := w.Checkpoint(t.Context(), w.account, "a")
	if err != nil || c.Turn != 1 || string(c.State) != `{"s":"again"}` || string(c.Occurrences) != `{"c":1}` {
		t.Fatalf("checkpoint: %+v %v", c, err)
	}
	// A turn saved twice is the later one.
	if err := save(l2, 1, `{"s":"better"}`); err != nil {
		t.Fatal(err)
	}
	if c, _ = w.Checkpoint(t.Context(), w.account, "a"); string(c.State) != `{"s":"better"}` {
		t.Fatalf("checkpoint: %s", c.State)
	}
	_, err = w.Checkpoint(t.Context(), w.account, "nobody")
	wantErr(t, err, effects.CodeNotFound)
}

func TestCloseRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	closeRun := func(lease effects.Lease, outcome string) error {
		_, err := w.Close(t.Context(), w.account, lease.RunID, lease.Token, outcome, "")
		return err
	}
	wantErr(t, closeRun(l, "done"), effects.CodeInvalid)
	r := wantErr(t, closeRun(l, "finished"), effects.CodeRunOpen)
	if r.RunID != "a" {
		t.Fatalf("%+v", r)
	}
	w.finish(b, "unknown")
	wantErr(t, closeRun(l, "cancelled"), effects.CodeRunOpen)
	w.passDeadline(b.EffectID)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	// An unused permission goes with its run: nobody may use it later.
	if err := closeRun(l, "failed"); err != nil {
		t.Fatal(err)
	}
	v := w.effect(b.EffectID)
	if v.State != "cancelled" || v.DecidedBy != "run_closed" || v.UsedAt.IsZero() {
		t.Fatalf("permission after close: %+v", v)
	}
	w.wantOwner(b.EffectID, "")
	w.wantRefusal(w.begin(l, "send_payment", invoice), effects.CodeRunClosed)
	wantErr(t, w.openErr("a", "pod-2", "x"), effects.CodeRunClosed)
	if err := closeRun(l, "failed"); err != nil {
		t.Fatalf("the same close again: %v", err)
	}
	wantErr(t, closeRun(l, "finished"), effects.CodeRunClosed)
	_, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: b.EffectID, Note: "no"})
	wantErr(t, err, effects.CodeNotAllowed)
}

func TestCloseWaitsForAnUnreleasedDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowRelease)
	l := w.open("a", "pod-1")
	b := w.proceed(l, "send_payment", invoice)
	w.finish(b, "unknown")
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
	_, err := w.Close(t.Context(), w.account, "a", l.Token, "finished", "")
	wantErr(t, err, effects.CodeRunOpen)
	w.passHold(b.EffectID)
	if _, err := w.Close(t.Context(), w.account, "a", l.Token, "finished", ""); err != nil {
		t.Fatal(err)
	}
}

func TestPoolClaimsEachRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	const n = 40
	for i := range n {
		l := w.open(fmt.Sprintf("run-%02d", i), "first")
		if _, err := w.Release(t.Context(), w.account, l.RunID, l.Token, ""); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for c := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				l, err := w.Claim(context.WithoutCancel(t.Context()), effects.Claim{Account: w.account, Agents: []string{"ap-bot"}, Worker: fmt.Sprintf("w%d", c), AttemptID: fmt.Sprint(i)})
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if l == nil {
					return
				}
				mu.Lock()
				got[l.RunID]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for run, times := range got {
		if times != 1 {
			t.Errorf("%s was claimed %d times", run, times)
		}
	}
	if len(got) != n {
		t.Errorf("%d runs were claimed, want %d", len(got), n)
	}
}

func TestClaimGivesTheSameRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	for _, run := range []string{"a", "b"} {
		l := w.open(run, "first")
		if _, err := w.Release(t.Context(), w.account, run, l.Token, ""); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(attempt string, agents ...string) *effects.Lease {
		t.Helper()
		l, err := w.Claim(t.Context(), effects.Claim{Account: w.account, Agents: agents, Worker: "pool", AttemptID: attempt})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := claim("1", "other-bot"); l != nil {
		t.Fatalf("got another agent's run: %+v", l)
	}
	one := claim("1", "ap-bot")
	if one == nil || one.RunID != "a" {
		t.Fatalf("first claim: %+v, want the run that has been ready longest", one)
	}
	if again := claim("1", "ap-bot"); again == nil || again.Token != one.Token {
		t.Fatalf("the same attempt_id: %+v", again)
	}
	if two := claim("2", "ap-bot"); two == nil || two.RunID != "b" {
		t.Fatalf("second claim: %+v", two)
	}
	if three := claim("3", "ap-bot"); three != nil {
		t.Fatalf("third claim: %+v", three)
	}
}

// A decision that becomes visible is met by a claim although no loop has run.
func TestClaimMeetsADueRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
	c := effects.Claim{Account: w.account, Agents: []string{"ap-bot"}, Worker: "pool", AttemptID: "1"}
	if l, err := w.Claim(t.Context(), c); err != nil || l != nil {
		t.Fatalf("claim before the release: %+v %v", l, err)
	}
	w.passHold(b.EffectID)
	if l, err := w.Claim(t.Context(), c); err != nil || l == nil || l.RunID != "a" {
		t.Fatalf("claim after the release: %+v %v", l, err)
	}
}

// A person's decision with a hold of a moment reaches a waiting agent within 250 ms
// of its time, with no loop running.
func TestReleaseReachesAWaiter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
release: {hold: 400ms, not_taken_hold: 400ms}
tools:
  send_payment: {business_key: "{vendor}/{invoice}", deadline: 60s}
`)
	_, b := w.interrupted("a", "send_payment", invoice)
	a := w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
	v, err := w.Run(t.Context(), w.account, "a", 20*time.Second)
	late := time.Since(a.ReleaseAt)
	if err != nil || v.State != "ready" {
		t.Fatalf("wait: %+v %v", v, err)
	}
	if late < 0 || late > 250*time.Millisecond {
		t.Fatalf("the waiter knew %v after the release", late)
	}
}

// A decision that needs no hold wakes a waiter of the same server by its hint.
func TestDecisionWakesAWaiter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	_, b := w.interrupted("a", "send_payment", invoice)
	woken := make(chan time.Time, 1)
	go func() {
		if v, err := w.Run(context.WithoutCancel(t.Context()), w.account, "a", 20*time.Second); err == nil && v.State == "ready" {
			woken <- time.Now()
		}
		close(woken)
	}()
	time.Sleep(300 * time.Millisecond) // the waiter must be asleep, which nothing shows
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken})
	at := time.Now()
	got, ok := <-woken
	if !ok {
		t.Fatal("the waiter got no ready run")
	}
	if d := got.Sub(at); d > 250*time.Millisecond {
		t.Fatalf("woken after %v", d)
	}
}
