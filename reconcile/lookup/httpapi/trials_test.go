package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
)

func TestLandedAndTheAnswerWasLost(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{LoseAnswer: true})
	if err := w.bank.Order(t.Context(), order()); err != simulator.ErrLost {
		t.Fatal(err)
	}
	a, seen := w.ask()
	want(t, a, lookup.Taken, lookup.Matched)
	if a.Reference != "tr_1" || string(a.Result) != `{"payment_id":"tr_1"}` {
		t.Errorf("reference %q, result %s", a.Reference, a.Result)
	}
	if !strings.HasPrefix(seen.Request, "GET "+w.bank.URL+"/v1/payments?reference=INV-9\nAuthorization: [secret]") ||
		seen.Status != 200 || seen.Latency == 0 || len(seen.Digest) != 64 || !strings.Contains(seen.Excerpt, "INV-9") {
		t.Errorf("what is stored: %+v", seen)
	}
}

// Answered first, landed later: asked in between nothing is there, and nothing is proven.
func TestAnsweredFirstLandedLater(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{LandsAfter: 3 * time.Minute, Lag: time.Minute})
	if err := w.bank.Order(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		a, _ := w.ask()
		if w.clock.now().Sub(w.question().Attempts[0].Begun) < 4*time.Minute {
			want(t, a, lookup.Inconclusive, lookup.NotYet)
		} else {
			want(t, a, lookup.Taken, lookup.Matched)
		}
		w.pass(30 * time.Second)
	}
}

// Nothing was sent: it is proven after the moment, by the second read.
func TestNeverSentIsProvenAtTheEarliestTimeThatWasTold(t *testing.T) {
	t.Parallel()
	w := open(t)
	a, _ := w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
	told := a.Earliest
	for w.clock.now().Before(told.Add(-time.Second)) {
		w.pass(time.Second)
		if a, _ := w.askQuietly(); a.Verdict != lookup.Inconclusive {
			t.Fatalf("at %s, before %s: %s", w.clock.now(), told, a.Verdict)
		}
	}
	w.pass(time.Second)
	a, seen := w.ask()
	want(t, a, lookup.NotTaken, lookup.Absent)
	if !seen.Canary || !strings.Contains(seen.Request, "canary: GET") {
		t.Errorf("the canary: %+v", seen)
	}
}

// askQuietly is ask once in thirty times, so that the test stays quick; a read that nobody
// made proves nothing.
func (w *world) askQuietly() (lookup.Answer, lookup.Seen) {
	if w.clock.now().Second()%30 != 0 {
		return lookup.Answer{}, lookup.Seen{}
	}
	return w.ask()
}

func TestBC070_ASearchThatLags(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Lag: 45 * time.Second})
	if err := w.bank.Order(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	w.pass(5 * time.Second)
	a, _ := w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
	w.pass(30 * time.Second)
	a, _ = w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
	w.pass(35 * time.Second)
	a, _ = w.ask()
	want(t, a, lookup.Taken, lookup.Matched)
	if n := w.bank.Stats().Asked["INV-9"]; n != 3 {
		t.Errorf("asked %d times, want 3: an answer must not be cached", n)
	}
}

func TestBC071_OnlyTheDeclaredAnswerIsNotFound(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.pass(time.Hour) // absence could be proven
	for _, c := range []struct {
		fault   simulator.Fault
		problem lookup.Problem
		status  int
	}{
		{simulator.Unauthorized, lookup.Denied, 401}, {simulator.Forbidden, lookup.Denied, 403},
		{simulator.NotFoundHTML, lookup.Unexpected, 404}, {simulator.Gone, lookup.Unexpected, 410}, {simulator.TooMany, lookup.Throttled, 429},
		{simulator.BadGateway, lookup.Failing, 502}, {simulator.Redirect, lookup.Redirected, 302}, {simulator.Huge, lookup.TooLarge, 200},
		{simulator.Truncated, lookup.Unreadable, 200}, {simulator.NotJSON, lookup.Unreadable, 200}, {simulator.WrongShape, lookup.RuleFailed, 200},
		{simulator.Hangup, lookup.Unreachable, 0},
	} {
		w.bank.Tell(simulator.Behaviour{Fault: c.fault})
		w.pass(time.Minute)
		a, seen := w.ask()
		want(t, a, lookup.Inconclusive, lookup.CouldNot)
		if seen.Problem != c.problem && !(c.fault == simulator.Hangup && seen.Problem == lookup.Unreadable) || seen.Status != c.status {
			t.Errorf("%s: %s (%d), want %s (%d)", c.fault, seen.Problem, seen.Status, c.problem, c.status)
		}
		if c.status != 200 && c.status != 0 && !strings.Contains(a.Why, fmt.Sprint("(", c.status, ")")) {
			t.Errorf("%s: the sentence has no status: %s", c.fault, a.Why)
		}
		if (c.fault == simulator.TooMany) != (seen.RetryAfter == 30*time.Second) {
			t.Errorf("%s: leave alone for %s", c.fault, seen.RetryAfter)
		}
	}
	w.bank.Tell(simulator.Behaviour{Fault: simulator.NotFoundJSON})
	w.pass(time.Minute)
	a, _ := w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet) // the first read that counts
	w.pass(time.Minute)
	a, _ = w.ask()
	want(t, a, lookup.NotTaken, lookup.Absent)
}

func TestBC072_AnErrorPageOf3MBIsCut(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.BadGateway})
	a, seen := w.ask()
	want(t, a, lookup.Inconclusive, lookup.CouldNot)
	if !strings.Contains(a.Why, "(502)") {
		t.Errorf("why: %s", a.Why)
	}
	if len(seen.Excerpt) > 2200 || !strings.HasPrefix(seen.Excerpt, "<html><body><h1>502</h1><script>") {
		t.Errorf("an excerpt of %d bytes: %.60s", len(seen.Excerpt), seen.Excerpt)
	}
}

func TestASlowLorisIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.SlowLoris})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	seen := w.look.Ask(ctx, redactor, w.question())
	if seen.Problem != lookup.TimedOut || seen.Complete {
		t.Errorf("%+v", seen)
	}
}

func TestBC073_ABusinessKeyIsComparedWholeAndExact(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Put(simulator.Payment{ID: "tr_x", Reference: "Nordkabel (1INV-927)", Amount: 61500, Currency: "SEK", To: "SE99", Status: "booked"},
		simulator.Payment{ID: "tr_y", Reference: "INV-97", Amount: 61500, Currency: "USD", To: "DE02", Status: "booked"})
	a, _ := w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
	if a.Free != 0 {
		t.Errorf("%d hits", a.Free)
	}
	// The same amount to the same recipient under another key may be ours: shown, and proof of nothing.
	w.bank.Put(simulator.Payment{ID: "tr_z", Reference: "Re: INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "booked"})
	w.pass(time.Hour)
	for range 3 {
		w.pass(time.Minute)
		a, _ = w.ask()
		want(t, a, lookup.Inconclusive, lookup.Possible)
	}
	if len(a.Hits) != 1 || !strings.Contains(a.Hits[0].Record, "Re: INV-9") {
		t.Errorf("what is shown: %+v", a.Hits)
	}
	// By the key, but with another amount, currency or recipient.
	for _, p := range []simulator.Payment{
		{Amount: 419999, Currency: "USD", To: "DE02"}, {Amount: 420000, Currency: "EUR", To: "DE02"}, {Amount: 420000, Currency: "USD", To: "DE03"},
	} {
		w := open(t)
		p.ID, p.Reference, p.Status = "tr_9", "INV-9", "booked"
		w.bank.Put(p)
		a, _ := w.ask()
		want(t, a, lookup.Inconclusive, lookup.Mismatch)
	}
}

func TestBC076_APageThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	w := open(t, "reference={business_key}", "reference=*&for={business_key}", "?reference=CANARY-1", "?reference=*&for=CANARY-1")
	for i := range 240 {
		p := simulator.Payment{ID: fmt.Sprint("x", i), Reference: fmt.Sprint("other ", i), Status: "booked", Currency: "USD"}
		if i == 203 {
			p = simulator.Payment{ID: "tr_203", Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "booked"}
		}
		w.bank.Put(p)
	}
	w.bank.Tell(simulator.Behaviour{FailPage: 3})
	a, seen := w.ask()
	want(t, a, lookup.Inconclusive, lookup.CouldNot)
	if seen.Problem != lookup.PageFailed || !strings.Contains(a.Why, "page 3") || seen.Complete {
		t.Errorf("the first: %s (%s)", seen.Problem, a.Why)
	}
	a, _ = w.ask()
	want(t, a, lookup.Taken, lookup.Matched)
	if a.Reference != "tr_203" {
		t.Errorf("found %s", a.Reference)
	}
}

func TestBC077_LandedTwice(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Twice: true})
	if err := w.bank.Order(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	a, _ := w.ask()
	want(t, a, lookup.Inconclusive, lookup.Multiple)
	if a.Free != 2 || len(a.Hits) != 2 || a.Hits[0].Reference == a.Hits[1].Reference || !strings.Contains(a.Why, "possible double") {
		t.Errorf("%d free, %+v: %s", a.Free, a.Hits, a.Why)
	}
	// One of them turns out to be another effect's.
	w.owned[a.Hits[0].Reference] = "e2"
	second, _ := w.ask()
	want(t, second, lookup.Taken, lookup.Matched)
	if second.Reference != a.Hits[1].Reference {
		t.Errorf("taken by %s", second.Reference)
	}
}

func TestBC079_FoundNotFinal(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Processing: true})
	if err := w.bank.Order(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	for range 48 {
		w.pass(time.Hour)
		a, _ := w.ask()
		want(t, a, lookup.Inconclusive, lookup.NotFinal)
	}
	a, _ := w.ask()
	if a.Free != 1 || a.Hits[0].State != "processing" {
		t.Errorf("%d free, state %q", a.Free, a.Hits[0].State)
	}
}

func TestBC080_A429LeavesTheEffectAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{PerSecond: 1})
	throttled := false
	for range 5 {
		a, seen := w.ask()
		if a.Verdict != lookup.Inconclusive {
			t.Fatalf("%s", a.Verdict)
		}
		throttled = throttled || seen.Problem == lookup.Throttled && seen.RetryAfter == 30*time.Second ||
			seen.Problem == lookup.CanaryFailed && seen.RetryAfter == 30*time.Second
	}
	if !throttled {
		t.Error("no 429 came, or its Retry-After was lost")
	}
}

// However often and long nobody can check, nothing turns into "not taken".
func TestBC067_CouldNotCheckNeverFlips(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.BadGateway})
	for range 12 {
		w.pass(10 * time.Hour)
		a, _ := w.ask()
		want(t, a, lookup.Inconclusive, lookup.CouldNot)
	}
}

// An answer that does not come is one: it says so, when it was asked and why.
func TestBC112_ADroppedConnection(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Hangup})
	a, seen := w.ask()
	want(t, a, lookup.Inconclusive, lookup.CouldNot)
	if !strings.HasPrefix(a.Why, "Could not check: ") || a.Read.AskedAt != w.clock.now() || seen.Request == "" {
		t.Errorf("%q, asked at %s", a.Why, a.Read.AskedAt)
	}
	w.bank.Close()
	if a, seen = w.ask(); seen.Problem != lookup.Unreachable || a.Verdict != lookup.Inconclusive {
		t.Errorf("nobody listens: %s", seen.Problem)
	}
}

// Credentials of the sandbox see an empty world. Its own word for itself gives it away, and
// where it has none the canary does.
func TestSandboxCredentials(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{true, false} {
		w := open(t)
		w.env["TOKEN"] = simulator.SandboxToken
		if says {
			w.declare(tool)
		} else {
			w.declare(tool, "      world_seen: body.world\n", "")
		}
		if err := w.bank.Order(t.Context(), order()); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		for range 3 {
			w.pass(time.Minute)
			a, _ := w.ask()
			if says {
				want(t, a, lookup.Inconclusive, lookup.WrongWorld)
			} else {
				want(t, a, lookup.Inconclusive, lookup.NotYet)
			}
		}
	}
}

// A record that carries our key and is cancelled for good needs no waiting; one that does
// not carry it is only something that was seen.
func TestCancelledForGood(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Put(simulator.Payment{ID: "tr_1", Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "canceled", Key: "qt_1"})
	a, _ := w.ask()
	want(t, a, lookup.NotTaken, lookup.NeverAgain)
	w = open(t)
	w.bank.Put(simulator.Payment{ID: "tr_1", Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "canceled", Key: "qt_2"})
	a, _ = w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
}

// The same call was made before: its record is that effect's, and what is missing beside it
// is missing.
func TestARecordOfAnotherEffectIsNoHit(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Put(simulator.Payment{ID: "tr_last_month", Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "booked"})
	w.owned["tr_last_month"] = "e0"
	w.pass(time.Hour)
	a, seen := w.ask()
	want(t, a, lookup.Inconclusive, lookup.NotYet)
	if !seen.Canary || len(a.Hits) != 1 || !a.Hits[0].Foreign || a.Hits[0].Owner != "e0" {
		t.Errorf("canary %v, %+v", seen.Canary, a.Hits)
	}
	w.pass(lookup.Apart)
	a, _ = w.ask()
	want(t, a, lookup.NotTaken, lookup.Absent)
}
