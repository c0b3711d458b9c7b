package limit_test

import (
	"testing"
	"time"

	"quittance/reconcile/lookup/limit"
)

var zero = time.Unix(1_800_000_000, 0)

func TestBC080_SoManyASecond(t *testing.T) {
	t.Parallel()
	l := limit.New()
	begun := map[int64]int{}
	now := zero
	for asked := 0; asked < 180; {
		done, again := l.Start("bank", 5, 100, now)
		if done == nil {
			if !again.After(now) {
				t.Fatalf("refused at %s, to try again at %s", now, again)
			}
			now = again
			continue
		}
		begun[now.Unix()]++
		asked++
		done(0, now)
	}
	for second, n := range begun {
		if n > 5 {
			t.Errorf("%d in second %d", n, second-zero.Unix())
		}
	}
	if took := now.Sub(zero); took < 35*time.Second || took > 37*time.Second {
		t.Errorf("180 at 5 a second took %s", took)
	}
}

func TestSoManyAtOnce(t *testing.T) {
	t.Parallel()
	l := limit.New()
	first, _ := l.Start("bank", 0, 2, zero)
	second, _ := l.Start("bank", 0, 2, zero)
	if third, again := l.Start("bank", 0, 2, zero); first == nil || second == nil || third != nil || !again.After(zero) {
		t.Fatal("three of two")
	}
	if other, _ := l.Start("another bank", 0, 2, zero); other == nil {
		t.Error("another host waits for this one")
	}
	first(0, zero)
	first(0, zero) // twice is once
	if third, _ := l.Start("bank", 0, 2, zero); third == nil {
		t.Error("a place was free")
	}
	if fourth, _ := l.Start("bank", 0, 2, zero); fourth != nil {
		t.Error("a place was given back twice")
	}
	for range 100 {
		if done, _ := l.Start("", 1, 1, zero); done == nil {
			t.Fatal("who asks nobody is not limited")
		}
	}
}

func TestBC080_AHostThatWantsToBeLeftAlone(t *testing.T) {
	t.Parallel()
	l := limit.New()
	slow, _ := l.Start("bank", 0, 10, zero)
	quick, _ := l.Start("bank", 0, 10, zero)
	quick(30*time.Second, zero)
	slow(0, zero.Add(time.Second)) // an answer that was under way changes nothing
	for _, after := range []time.Duration{0, time.Second, 30*time.Second - 1} {
		if done, again := l.Start("bank", 0, 10, zero.Add(after)); done != nil || !again.Equal(zero.Add(30*time.Second)) {
			t.Errorf("after %s: asked, or to try again at %s", after, again)
		}
	}
	if done, _ := l.Start("bank", 0, 10, zero.Add(30*time.Second)); done == nil {
		t.Error("the time is over")
	}
}
