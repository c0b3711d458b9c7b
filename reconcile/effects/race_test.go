package effects_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
)

// twoServers is a world with a second engine that has a pool of its own.
func twoServers(t *testing.T, source string) (*world, [2]*effects.Engine) {
	t.Helper()
	w := newWorld(t, source)
	p, mistakes := policy.Load("quittance.yaml", []byte(source))
	if p == nil {
		t.Fatal(mistakes)
	}
	e, err := effects.New(t.Context(), openDB(t, w.dsn), p, notify.NewHub(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return w, [2]*effects.Engine{w.Engine, e}
}

// together runs f n times at once, all starting at one signal.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// apply is one call to one of the servers; any error but a refusal fails the test.
func applyTo(t *testing.T, e *effects.Engine, op effects.Op) effects.Answer {
	t.Helper()
	a, err := e.Apply(context.WithoutCancel(t.Context()), []effects.Op{op})
	if err != nil {
		t.Errorf("apply: %v", err)
		return effects.Answer{}
	}
	return a[0]
}

func code(err error) effects.Code {
	if r := refusalOf(err); r != nil {
		return r.Code
	}
	return ""
}

func TestSixteenBeginsOfTheSameCall(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for round := range 8 {
		l := w.open(fmt.Sprintf("run-%d", round), "pod-1")
		var mu sync.Mutex
		proceed, flying, ids := 0, 0, map[string]bool{}
		together(16, func(i int) {
			a := applyTo(t, servers[i%2], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token,
				AttemptID: fmt.Sprintf("try-%d", i), Tool: "send_payment", Arguments: []byte(pay(l.RunID, "1.00"))}})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.Begin != nil && a.Begin.Do == "proceed":
				proceed++
				ids[a.Begin.EffectID] = true
			case a.Refusal != nil && a.Refusal.Code == effects.CodeInFlight:
				flying++
				ids[a.Refusal.EffectID] = true
			default:
				t.Errorf("%+v %v", a.Begin, a.Refusal)
			}
		})
		if proceed != 1 || flying != 15 || len(ids) != 1 {
			t.Fatalf("round %d: %d proceed, %d in flight, %d effects", round, proceed, flying, len(ids))
		}
	}
	if n := w.count(`SELECT count(*) FROM attempts`); n != 8 {
		t.Fatalf("%d attempts", n)
	}
}

func TestSixteenRunsOneBusinessKey(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for round := range 6 {
		key := fmt.Sprintf("INV-%d", round)
		leases := make([]effects.Lease, 16)
		for i := range leases {
			leases[i] = w.open(fmt.Sprintf("run-%d-%d", round, i), "pod-1")
		}
		answers := make([]effects.Answer, 16)
		together(16, func(i int) {
			answers[i] = applyTo(t, servers[i%2], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: leases[i].RunID, Lease: leases[i].Token,
				AttemptID: "x", Tool: "send_payment", Arguments: []byte(pay(key, fmt.Sprintf("%d.00", i+1)))}})
		})
		winner := ""
		for i, a := range answers {
			switch {
			case a.Begin != nil && a.Begin.Do == "proceed":
				if winner != "" {
					t.Fatalf("two runs proceed in round %d", round)
				}
				winner = a.Begin.EffectID
			case a.Refusal != nil && a.Refusal.Code == effects.CodeRunPaused:
				w.wantState(a.Refusal.EffectID, effects.Held)
			default:
				t.Fatalf("run %d: %+v %v", i, a.Begin, a.Refusal)
			}
		}
		if winner == "" {
			t.Fatalf("nobody proceeds in round %d", round)
		}
		w.wantOwner(winner, winner)
	}
}

// Whoever lets a key go and whoever asks for it at the same time: the key is never
// free under one that waits for it, and never held by nobody while two wait.
func TestBeginAgainstWhatFreesItsKey(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	ctx := context.WithoutCancel(t.Context())
	for round := range 25 {
		key := fmt.Sprintf("INV-%d", round)
		a := w.open("a-"+key, "pod-1")
		one := w.proceed(a, "send_payment", pay(key, "1.00"))
		stop := round%2 == 0
		if stop {
			w.finish(one, "unknown")
			w.passDeadline(one.EffectID)
		}
		version := w.effect(one.EffectID).Version
		others := []effects.Lease{w.open("b-"+key, "pod-1"), w.open("c-"+key, "pod-1")}
		answers := make([]effects.Answer, 2)
		together(3, func(i int) {
			switch {
			case i < 2:
				answers[i] = applyTo(t, servers[i%2], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: others[i].RunID, Lease: others[i].Token,
					AttemptID: "x", Tool: "send_payment", Arguments: []byte(pay(key, "1.00"))}})
			case stop:
				if _, err := servers[1].Decide(ctx, w.person, []effects.Decide{{EffectID: one.EffectID, Version: version, Verdict: effects.VerdictStop, Note: "x"}}); err != nil {
					t.Error(err)
				}
			default:
				applyTo(t, servers[1], effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: one.EffectID, Fence: one.Fence, Outcome: "failed"}})
			}
		})
		proceed := 0
		for _, a := range answers {
			if a.Begin != nil {
				proceed++
			}
		}
		if proceed > 1 {
			t.Fatalf("round %d: two proceed", round)
		}
		owner := w.owner(one.EffectID)
		if owner == "" || owner == one.EffectID {
			t.Fatalf("round %d: the key is held by %q, which is no live effect", round, owner)
		}
		w.check()
	}
}

// A permission is used while a person takes it back, the clock does, or the run closes.
func TestBeginAgainstUndoExpiryAndClose(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	ctx := context.WithoutCancel(t.Context())
	for round := range 24 {
		run := fmt.Sprintf("run-%d", round)
		_, b := w.interrupted(run, "send_payment", pay(run, "1.00"))
		w.passDeadline(b.EffectID)
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
		l := w.open(run, "pod-2")
		if round%3 == 1 {
			w.exec(`UPDATE runs SET resumable_since = clock_timestamp() - interval '24 hours' + interval '3 milliseconds' WHERE run_id = $1`, run)
			w.exec(`UPDATE effects SET release_at = clock_timestamp() - interval '24 hours' + interval '3 milliseconds' WHERE id = $1::uuid`, b.EffectID)
		}
		var began effects.Answer
		var other error
		together(2, func(i int) {
			if i == 0 {
				began = applyTo(t, servers[0], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: run, Lease: l.Token,
					AttemptID: "x", Tool: "send_payment", Arguments: []byte(pay(run, "1.00"))}})
				return
			}
			switch round % 3 {
			case 0:
				_, other = servers[1].Undo(ctx, w.person, effects.Undo{EffectID: b.EffectID, Note: "x"})
			case 1:
				other = servers[1].Tick(ctx)
			case 2:
				_, other = servers[1].Close(ctx, w.account, run, l.Token, "failed", "")
			}
		})
		proceeds := began.Begin != nil && began.Begin.Do == "proceed"
		state := w.effect(b.EffectID).State
		switch {
		case proceeds && state != "in_flight":
			t.Fatalf("round %d: proceeds, and the effect is %s", round, state)
		case !proceeds && state == "in_flight":
			t.Fatalf("round %d: refused with %v, and in flight", round, began.Refusal)
		case other != nil && code(other) == "":
			t.Fatalf("round %d: %v", round, other)
		case round%3 != 1 && proceeds == (other == nil):
			t.Fatalf("round %d: proceeds %v, and the other got %v", round, proceeds, other)
		}
		w.check()
	}
}

// A finish, the deadline and the end of the lease at once: the agent's word is never
// lost, and nothing waits for a person in the end.
func TestFinishAgainstTheLoops(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	ctx := context.WithoutCancel(t.Context())
	for round := range 20 {
		run := fmt.Sprintf("run-%d", round)
		l := w.open(run, "pod-1")
		b := w.proceed(l, "send_payment", pay(run, "1.00"))
		w.passDeadline(b.EffectID)
		if round%2 == 0 {
			w.passLease(run)
		}
		together(4, func(i int) {
			if i < 2 {
				if err := servers[i].Tick(ctx); err != nil {
					t.Errorf("loops: %v", err)
				}
				return
			}
			if a := applyTo(t, servers[i%2], effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "taken", Reference: "po_" + run}}); a.Finish == nil {
				t.Errorf("round %d: %v", round, a.Refusal)
			}
		})
		v := w.effect(b.EffectID)
		if v.State != "taken" || len(v.Contradictions) != 0 || !v.WaitingSince.IsZero() {
			t.Fatalf("round %d: %+v", round, v)
		}
		want := "running"
		if round%2 == 0 {
			want = "ready"
		}
		w.wantRun(run, want)
	}
	w.check()
}

func TestBC006_ThreeStartsAtOnceLeaveOneHolder(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for round := range 10 {
		run := fmt.Sprintf("run-zd-%d", round)
		leases, errs := make([]effects.Lease, 3), make([]error, 3)
		together(3, func(i int) {
			leases[i], errs[i] = servers[i%2].Open(context.WithoutCancel(t.Context()), effects.Open{Account: w.account, RunID: run, Agent: "ap-bot", Worker: fmt.Sprintf("w%d", i), AttemptID: "1"})
		})
		holder := -1
		for i, err := range errs {
			if err == nil {
				if holder >= 0 {
					t.Fatal("two holders")
				}
				holder = i
			}
		}
		for i, err := range errs {
			if i != holder {
				if r := wantErr(t, err, effects.CodeRunHeld); r.HeldBy != fmt.Sprintf("w%d", holder) || r.RetryAfter <= 0 {
					t.Fatalf("%+v", r)
				}
			}
		}
		w.proceed(leases[holder], "create_ticket", fmt.Sprintf(`{"customer":"C-%d","title":"Card declined"}`, round))
		w.wantRun(run, "running")
		if n := w.count(`SELECT count(*) FROM effect_events v JOIN runs r ON r.id = v.run_id WHERE r.run_id = $1 AND v.kind = 'run_opened'`, run); n != 1 {
			t.Fatalf("opened %d times", n)
		}
	}
	if n := w.count(`SELECT count(*) FROM effects WHERE waiting_since IS NOT NULL`); n != 0 {
		t.Fatalf("%d cards", n)
	}
}

func TestBC103_ADoubleClickIsOneDecision(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for round := range 8 {
		run := fmt.Sprintf("run-%d", round)
		_, b := w.interrupted(run, "send_payment", pay(run, "1.00"))
		d := effects.Decide{EffectID: b.EffectID, Version: w.effect(b.EffectID).Version, Verdict: effects.VerdictTaken, Note: "seen"}
		if round%2 == 0 {
			d.DecisionID = "form-1"
		}
		together(4, func(i int) {
			got, err := servers[i%2].Decide(context.WithoutCancel(t.Context()), w.person, []effects.Decide{d})
			if err != nil || got[0].Answer == nil || got[0].Answer.State != "taken" {
				t.Errorf("%+v %v", got, err)
			}
		})
		if v := w.effect(b.EffectID); len(v.Decisions) != 1 {
			t.Fatalf("%d decisions", len(v.Decisions))
		}
	}
}

func TestBC104_OneOfTwoOperatorsWins(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for round := range 12 {
		run := fmt.Sprintf("run-%d", round)
		_, b := w.interrupted(run, "send_payment", pay(run, "1.00"))
		w.passDeadline(b.EffectID)
		version := w.effect(b.EffectID).Version
		people := [2]effects.Person{w.person, w.other}
		verdicts := [2]effects.Verdict{effects.VerdictTaken, effects.VerdictNotTaken}
		states := [2]string{"taken", "cleared"}
		var got [2]effects.DecideResult
		together(2, func(i int) {
			r, err := servers[i].Decide(context.WithoutCancel(t.Context()), people[i], []effects.Decide{{EffectID: b.EffectID, Version: version, Verdict: verdicts[i], Note: "seen"}})
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = r[0]
		})
		winner := 0
		if got[0].Answer == nil {
			winner = 1
		}
		loser := got[1-winner].Refusal
		if got[winner].Answer == nil || loser == nil || loser.Code != effects.CodeDecided {
			t.Fatalf("round %d: %+v", round, got)
		}
		if d := loser.Decided; d == nil || d.Person != people[winner].Name || d.Verdict != string(verdicts[winner]) || d.At.IsZero() {
			t.Fatalf("the loser is told %+v", d)
		}
		w.wantState(b.EffectID, effects.State(states[winner]))
	}
}

// Allows and what reopens the effects they stand on, across runs and servers: the two
// reach into each other's runs. No deadlock may come out.
func TestAllowAgainstUndo(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	ctx := context.WithoutCancel(t.Context())
	for round := range 10 {
		key := fmt.Sprintf("INV-%d", round)
		_, one := w.interrupted("a-"+key, "send_payment", pay(key, "1.00"))
		b := w.open("b-"+key, "pod-1")
		held := heldAnswer(w, b, "send_payment", pay(key, "1.00"))
		w.must(w.person, effects.Decide{EffectID: one.EffectID, Verdict: effects.VerdictTaken, Reference: "po_" + key})
		version := w.effect(held).Version
		if round%2 == 0 {
			w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
		}
		var undone error
		var began effects.Answer
		together(2, func(i int) {
			switch {
			case i == 0:
				_, undone = servers[0].Undo(ctx, w.person, effects.Undo{EffectID: one.EffectID, Note: "x"})
			case round%2 == 0:
				began = applyTo(t, servers[1], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: b.RunID, Lease: b.Token,
					AttemptID: "x", Tool: "send_payment", Arguments: []byte(pay(key, "1.00"))}})
			default:
				if _, err := servers[1].Decide(ctx, w.other, []effects.Decide{{EffectID: held, Version: version, Verdict: effects.VerdictAllow, Note: "x"}}); err != nil {
					t.Error(err)
				}
			}
		})
		if undone != nil {
			t.Fatalf("undo: %v", undone)
		}
		first, second := w.effect(one.EffectID), w.effect(held)
		if first.State != "interrupted" && first.State != "held" || first.State == "interrupted" && second.State != "held" {
			t.Fatalf("round %d: %s and %s (begin %+v)", round, first.State, second.State, began.Begin)
		}
		w.check()
	}
}

// Every loop of both servers at once, over much that is due.
func TestLoopsOfTwoServers(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, fastRelease)
	for i := range 60 {
		run := fmt.Sprintf("run-%d", i)
		l := w.open(run, "pod-1")
		b := w.proceed(l, "send_payment", pay(run, "1.00"))
		switch i % 3 {
		case 0:
			w.passLease(run)
		case 1:
			w.passDeadline(b.EffectID)
		case 2:
			w.passLease(run)
			w.passDeadline(b.EffectID)
		}
	}
	together(8, func(i int) {
		if err := servers[i%2].Tick(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("loops: %v", err)
		}
	})
	if n := w.count(`SELECT count(*) FROM effects WHERE state = 'interrupted' AND version = 2`); n != 60 {
		t.Fatalf("%d of 60 are interrupted once", n)
	}
	w.check()
}
