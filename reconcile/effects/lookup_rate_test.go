package effects_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// lostMany is a run whose worker died with so many effects under way.
func (w *world) lostMany(run string, n int) {
	w.t.Helper()
	l := w.open(run, "pod-1")
	for from := 0; from < n; from += 200 {
		var ops []effects.Op
		for i := from; i < min(n, from+200); i++ {
			ops = append(ops, effects.Op{Begin: &effects.Begin{
				Account: w.account, RunID: run, Lease: l.Token, AttemptID: fmt.Sprint("a-", i), Tool: "send_payment",
				Arguments: []byte(pay(fmt.Sprintf("%s-%d", run, i), "10.00")),
			}})
		}
		answers, err := w.Apply(w.t.Context(), ops)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, a := range answers {
			if a.Begin == nil {
				w.t.Fatal(a.Refusal)
			}
		}
	}
	w.die(l)
}

// loops runs an engine's loops until the test ends, or until the returned function is called.
func (w *world) loops(e *effects.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	done.Go(func() { e.Loops(ctx) })
	stop = func() { cancel(); done.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// BC-080: a cluster dies; its bank allows so many look-ups a second and answers 429 now and
// then. Two servers ask: at that rate, nothing twice at once, and about everything.
func TestBC080_ManyAtOnceAreSpreadOut(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	const n, perSecond = 180, 40
	w := newWorld(t, bank.policy(fmt.Sprintf("limits: per_second: %d", perSecond)))
	w.lostMany("run", n)
	var mu sync.Mutex
	now, twice, seen, told, quiet := map[string]bool{}, 0, map[string]int{}, 0, time.Time{}
	early := 0
	bank.answer = func(rw http.ResponseWriter, r *http.Request) bool {
		key := r.URL.Query().Get("reference")
		if key == "CANARY" {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if now[key] {
			twice++
		}
		if time.Now().Before(quiet) {
			early++
		}
		now[key], seen[key] = true, seen[key]+1
		defer delete(now, key)
		if told++; told == 30 {
			quiet = time.Now().Add(1900 * time.Millisecond) // less than said: what is under way may arrive
			rw.Header().Set("Retry-After", "2")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	}
	begun := time.Now()
	w.loops(w.Engine)
	eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == n })
	took := time.Since(begun)
	mu.Lock()
	defer mu.Unlock()
	if twice > 0 {
		t.Errorf("%d questions were asked while the same was under way", twice)
	}
	if early > 16 { // as many as were under way when the bank asked to be left alone
		t.Errorf("%d questions while the bank wanted to be left alone", early)
	}
	if least := time.Duration(n-1)*time.Second/perSecond + time.Second; took < least {
		t.Errorf("all %d in %v: faster than %d a second and a pause of 2 s allow", n, took, perSecond)
	}
	if got := w.count(`SELECT count(*) FROM effects WHERE state = 'interrupted'`); got != n {
		t.Errorf("%d of %d are still open: nothing was proven", got, n)
	}
}

// eventually waits for what gives no signal.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it never came true")
		}
	}
}

// What was asked about in vain for days is asked after what is new, however much of it is
// due.
func TestHopelessEffectsNeverStarveNewOnes(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy("limits: per_second: 5"))
	const hopeless = 10_000
	w.lostMany("old", hopeless)
	w.exec(`UPDATE lookup_schedule SET step = 12, next_lookup_at = clock_timestamp() - interval '1 hour'`)
	w.exec(`ANALYZE`)
	w.lostMany("new", 5)
	var mu sync.Mutex
	var order []string
	bank.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if key := r.URL.Query().Get("reference"); key != "CANARY" {
			order = append(order, key)
		}
		return false
	}
	w.loops(w.Engine)
	eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(order) >= 5 })
	mu.Lock()
	defer mu.Unlock()
	first := map[string]bool{}
	for _, key := range order[:5] {
		first[key] = true
	}
	for i := range 5 {
		if key := acme(fmt.Sprintf("new-%d", i)); !first[key] {
			t.Errorf("%s is not among the first five: %v", key, order)
		}
	}
}

// Two servers, and people who press "check now": one question at a time about one effect.
func TestOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.before = func() { time.Sleep(100 * time.Millisecond) }
	w.loops(w.Engine)
	w.loops(w.engine(bank.policy()))
	soon := 0
	for range 30 {
		ok, err := w.LookNow(t.Context(), b.EffectID)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			soon++
		}
		if err := w.LookIfStale(t.Context(), b.EffectID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	eventually(t, func() bool { return bank.count() >= 2 })
	bank.mu.Lock()
	defer bank.mu.Unlock()
	if bank.most != 1 {
		t.Errorf("%d questions at one time", bank.most)
	}
	if soon == 0 || soon > 10 {
		t.Errorf("%d of 30 wishes made a look due", soon)
	}
}

// A server that stops gives its questions back; one that is killed keeps them for a minute.
func TestAServerThatStopsWhileItAsks(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	asked, release := make(chan struct{}, 10), make(chan struct{})
	bank.before = func() { asked <- struct{}{}; <-release }
	stop := w.loops(w.Engine)
	<-asked
	stop()
	close(release)
	bank.set(func() { bank.before = nil })
	if v := w.looks(b.EffectID); v.Asking || len(v.Looks) != 0 {
		t.Fatalf("%+v", v)
	}
	bank.pay(paid("INV-1", "4200.00"))
	w.look() // another server, at once
	w.wantState(b.EffectID, effects.Taken)

	// Killed: nobody gives it back.
	c := w.lost("run-2", pay("INV-2", "4200.00"))
	w.exec(`UPDATE lookup_schedule SET asked_at = clock_timestamp(), asked_by = gen_random_uuid(), asked_until = clock_timestamp() + interval '60 seconds'
		WHERE effect_id = $1::uuid`, c.EffectID)
	bank.pay(paid("INV-2", "4200.00"))
	w.look()
	w.wantState(c.EffectID, effects.Interrupted)
	w.exec(`UPDATE lookup_schedule SET asked_until = clock_timestamp() WHERE effect_id = $1::uuid`, c.EffectID)
	w.look()
	w.wantState(c.EffectID, effects.Taken)
}

// Whoever took so long that somebody else asks by now is not heard: the later question's
// answer counts.
func TestAnAnswerThatCameTooLate(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	bank.before = func() {
		w.exec(`UPDATE lookup_schedule SET asked_by = gen_random_uuid() WHERE effect_id = $1::uuid`, b.EffectID)
	}
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	if v := w.looks(b.EffectID); len(v.Looks) != 0 {
		t.Fatalf("%+v", v.Looks)
	}
}

// In a log gap that nobody has acknowledged, and in a copy of the database somewhere else,
// nothing is asked.
func TestNothingLeavesWhereNothingMay(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	w.exec(`UPDATE installation SET outward = false`)
	w.look()
	w.exec(`UPDATE installation SET outward = true`)
	if err := w.FindGap(t.Context(), "restored"); err != nil {
		t.Fatal(err)
	}
	w.look()
	if n := bank.count(); n != 0 {
		t.Fatalf("asked %d times", n)
	}
	if err := w.AcknowledgeGap(t.Context(), w.person, "restored from last night"); err != nil {
		t.Fatal(err)
	}
	w.look()
	// In the gap attempts may exist that nobody knows of; what the bank shows is proof all the same.
	w.wantState(b.EffectID, effects.Taken)
}

// A tool that gets its look-up later: what is open is asked about from then on.
func TestALookUpThatComesLater(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, fastRelease)
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.pay(paid("INV-1", "4200.00"))
	w.look()
	w.wantState(b.EffectID, effects.Interrupted)
	w.Engine = w.engine(bank.policy())
	w.look()
	w.wantState(b.EffectID, effects.Taken)
}

// BC-067: the schedule ends, and the effect stays what it is: unknown, and in the queue.
func TestBC067_TheEndOfTheScheduleFlipsNothing(t *testing.T) {
	t.Parallel()
	bank := newDownstream(t)
	w := newWorld(t, bank.policy())
	b := w.lost("run", pay("INV-1", "4200.00"))
	bank.down(true)
	for range 21 {
		w.lookAgain(b.EffectID, 24*time.Hour)
	}
	w.wantState(b.EffectID, effects.Interrupted)
	v := w.looks(b.EffectID)
	if v.EndedAt.IsZero() || !v.Next.IsZero() || len(v.Looks) != 21 {
		t.Fatalf("ended at %v, the next at %v, after %d looks", v.EndedAt, v.Next, len(v.Looks))
	}
	w.look()
	w.settle()
	if n := w.count(`SELECT count(*) FROM waiting WHERE effect_id = $1::uuid`, b.EffectID); n != 1 || len(w.looks(b.EffectID).Looks) != 21 {
		t.Fatalf("%d rows in the queue", n)
	}
	// A person may ask all the same.
	bank.down(false)
	bank.pay(paid("INV-1", "4200.00"))
	if soon, err := w.LookNow(t.Context(), b.EffectID); err != nil || !soon {
		t.Fatal(soon, err)
	}
	w.look()
	w.wantState(b.EffectID, effects.Taken)
}
