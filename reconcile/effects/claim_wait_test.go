package effects_test

import (
	"context"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// A claim that waits is told when a run becomes ready, and does not find it by reading
// again: that comes after five seconds.
func TestAClaimThatWaitsIsWoken(t *testing.T) {
	t.Parallel()
	for how, ready := range map[string]func(w *world, l effects.Lease, b *effects.BeginAnswer){
		"given back": func(w *world, l effects.Lease, _ *effects.BeginAnswer) {
			if _, err := w.Release(w.t.Context(), w.account, "run", l.Token, ""); err != nil {
				w.t.Error(err)
			}
		},
		"decided": func(w *world, _ effects.Lease, b *effects.BeginAnswer) {
			w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Version: w.effect(b.EffectID).Version, Note: "asked by telephone"})
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "release: {hold: 0s, not_taken_hold: 0s}\ntools: {send_mail: {deadline: 60s}}\n")
			l := w.open("run", "pod-1")
			var b *effects.BeginAnswer
			if how == "decided" {
				b = w.proceed(l, "send_mail", `{"to":"ann"}`)
				w.die(l)
			}
			claim := effects.Claim{Account: w.account, Agents: []string{"ap-bot"}, Worker: "pool", AttemptID: "1", Wait: time.Minute}
			got := make(chan *effects.Lease, 1)
			started := time.Now()
			go func() {
				lease, err := w.Claim(context.WithoutCancel(t.Context()), claim)
				if err != nil {
					t.Error(err)
				}
				got <- lease
			}()
			for w.Waiting(w.account) == 0 {
				time.Sleep(time.Millisecond)
			}
			ready(w, l, b)
			lease := <-got
			if lease == nil || lease.RunID != "run" {
				t.Fatalf("%+v", lease)
			}
			if d := time.Since(started); d > 4*time.Second {
				t.Errorf("it came after %v", d)
			}
		})
	}
}

func TestAClaimThatWaitsInVainIsOverInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, slowRelease)
	claim := effects.Claim{Account: w.account, Agents: []string{"ap-bot"}, Worker: "pool", AttemptID: "1", Wait: 50 * time.Millisecond}
	if lease, err := w.Claim(t.Context(), claim); lease != nil || err != nil {
		t.Fatal(lease, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lease, err := w.Claim(ctx, claim); lease != nil || err == nil {
		t.Fatal(lease, err)
	}
}
