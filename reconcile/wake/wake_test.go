package wake_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger/audit"
	"quittance/reconcile/effects"
	"quittance/reconcile/wake"
)

// The example of the specification, and one signature for each secret.
func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	key := []byte{0x31, 0xf2, 0x90, 0xf6, 0xbf, 0x06, 0x29, 0x8a, 0xab, 0x4f, 0x08, 0xd4, 0x3c, 0x3f, 0x08, 0x2c, 0xf6, 0x48, 0xa3, 0x62, 0xda, 0x2d, 0xa4, 0xb0}
	h := http.Header{}
	wake.Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), [][]byte{key, key})
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := h.Get("Webhook-Signature"); got != want+" "+want || h.Get("Webhook-Timestamp") != "1614265330" {
		t.Errorf("%v", h)
	}
}

// A run is told of when nothing keeps it any more, once for each endpoint that wants it.
func TestAnEndpointIsToldWhenARunIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "    agents: [ap-bot]\n  others: {url: \"https://others.example/x\", secrets: [\"${env:WAKE}\"], accounts: [somebody]}\n")
	l := w.open("run-1")
	w.round()
	if n := len(w.end.all()); n != 0 {
		t.Fatalf("told %d times of a run that is held", n)
	}
	a, err := w.engine.Apply(t.Context(), []effects.Op{{Begin: &effects.Begin{Account: w.account, RunID: "run-1", Lease: l.Token, AttemptID: "b", Tool: "pay", Arguments: []byte(`{}`)}}})
	if err != nil || a[0].Begin == nil {
		t.Fatal(a, err)
	}
	if _, err := w.engine.Release(t.Context(), w.account, "run-1", l.Token, ""); err != nil { // interrupted: the run is paused
		t.Fatal(err)
	}
	w.round()
	if n := len(w.end.all()); n != 0 {
		t.Fatalf("told %d times of a run that is paused", n)
	}
	w.exec(`INSERT INTO people (name, roles) VALUES ('Petra', '{operator}')`)
	r, err := w.engine.Decide(t.Context(), effects.Person{ID: 1, Name: "Petra"}, []effects.Decide{{EffectID: a[0].Begin.EffectID, Version: 2, Verdict: effects.VerdictTaken, Note: "seen", DecisionID: "d"}})
	if err != nil || r[0].Refusal != nil {
		t.Fatal(r, err)
	}
	w.round()
	got := w.end.all()
	if len(got) != 1 || runOf(t, got[0].body) != "run-1" || !strings.Contains(got[0].body, `"account":"acme"`) || !strings.Contains(got[0].body, "https://quittance.example/v1/runs/run-1") {
		t.Fatalf("%+v", got)
	}
	d := w.wantState("delivered")
	if wake.WebhookID(d.ID) != got[0].id || d.Endpoint != "payers" || strings.Contains(fmt.Sprint(got[0].header), secret[6:]) {
		t.Errorf("%+v of %+v", d, got[0])
	}
	w.round()
	if n := len(w.end.all()); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// However an endpoint fails, it is told again, under the same id and with the same body.
func TestAnEndpointThatFailsIsToldAgain(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		status  int
		problem string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 500, "Internal Server Error"},
		"400": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, 400, "Bad Request"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, "it redirects, which is not followed"},
		"time-out": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, 0, "no whole answer came in time"},
		"reset": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}, 0, "the answer broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.Patience(300 * time.Millisecond)
			w.end.answers(c.answer)
			w.ready("run-1")
			w.round()
			d := w.wantState("due")
			if d.Status != c.status || d.Problem != c.problem || !d.NextAt.After(d.MadeAt.Time) {
				t.Errorf("%d %q, next at %s", d.Status, d.Problem, d.NextAt)
			}
			w.round() // the pause is not over
			if n := len(w.end.all()); n != 1 {
				t.Fatalf("sent %d times at once", n)
			}
			w.end.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
			w.due()
			w.round()
			w.wantState("delivered")
			got := w.end.all()
			if len(got) != 2 || got[0].id != got[1].id || got[0].body != got[1].body {
				t.Errorf("%+v", got)
			}
			_, log, err := w.Delivery(t.Context(), d.ID)
			if err != nil || len(log) != 2 || log[1].Status != 200 || log[1].Problem != "" {
				t.Errorf("%+v %v", log, err)
			}
		})
	}
	t.Cleanup(func() { close(hang) })
}

// An answer whose body never ends was an answer.
func TestASlowBodyIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Patience(300 * time.Millisecond)
	w.end.answers(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	w.ready("run-1")
	w.round()
	w.wantState("delivered")
}

// The pauses grow to days, an endpoint may ask for more, and in the end nobody is told.
func TestTheScheduleOfAnEndpointThatNeverAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.end.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	w.ready("run-1")
	total := time.Duration(0)
	for i, step := range wake.Steps {
		began := time.Now()
		w.round()
		d := w.wantState("due")
		pause := d.NextAt.Sub(began)
		if pause < step-time.Second || pause > step+20*time.Second {
			t.Errorf("after attempt %d it rests for %s, want %s", i+1, pause, step)
		}
		total += step
		w.due()
	}
	w.round()
	if d := w.wantState("given_up"); d.Attempts != len(wake.Steps)+1 || total < 72*time.Hour {
		t.Errorf("%d attempts in %s", d.Attempts, total)
	}

	w = newWorld(t, "")
	w.end.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(429)
	})
	w.ready("run-1")
	w.round()
	if d := w.wantState("due"); time.Until(d.NextAt.Time) < 590*time.Second {
		t.Errorf("it asked for ten minutes and is left alone until %s", d.NextAt)
	}
	w.end.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) })
	w.due()
	w.round()
	w.wantState("given_up")
}

// What nobody needs any more is not sent; a later readiness is a message of its own.
func TestARunThatWasTakenIsNotTalkedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ready("run-1")
	l := w.open("run-1") // a worker was quicker than the loop
	w.round()
	w.end.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	if _, err := w.engine.Release(t.Context(), w.account, "run-1", l.Token, ""); err != nil {
		t.Fatal(err)
	}
	w.round()
	l = w.open("run-1") // or than the second attempt
	w.due()
	w.round()
	w.wantState("overtaken")
	if n := len(w.end.all()); n != 1 {
		t.Errorf("sent %d times", n)
	}
	if _, err := w.engine.Release(t.Context(), w.account, "run-1", l.Token, ""); err != nil {
		t.Fatal(err)
	}
	w.round()
	if got := w.end.all(); len(got) != 2 || got[0].id == got[1].id {
		t.Errorf("%+v", got)
	}
}

// Microsoft agent-framework#7458: a decision is stored before it is told of, and told of
// under one id until it is answered.
func TestBC019_ADeliveryIsRepeatedUnderOneID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.Patience(300 * time.Millisecond)
	seen := map[string]int{}
	var mu sync.Mutex
	n := 0
	w.end.answers(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		turn, id := n, r.Header.Get("webhook-id")
		if turn > 1 {
			seen[id]++ // the agent got the second one, and its answer is lost
		}
		mu.Unlock()
		switch turn {
		case 1:
			rw.WriteHeader(500)
		case 2:
			<-r.Context().Done()
		default:
			fmt.Fprint(rw, "already delivered")
		}
	})
	w.ready("run-1")
	for range 3 {
		w.round()
		w.due()
	}
	d := w.wantState("delivered")
	if d.Attempts != 3 || len(seen) != 1 || seen[wake.WebhookID(d.ID)] != 2 {
		t.Errorf("%d attempts, the agent saw %v", d.Attempts, seen)
	}
	// Whoever was woken twice takes the run once.
	first := w.open("run-1")
	_, err := w.engine.Open(t.Context(), effects.Open{Account: w.account, RunID: "run-1", Agent: "ap-bot", Worker: "other", AttemptID: "x"})
	if r, ok := err.(*effects.Refusal); !ok || r.Code != effects.CodeRunHeld || first.Epoch == 0 {
		t.Errorf("a second holder: %v", err)
	}
}

// Two servers wake at the same second, and one dies in the middle: each delivery leaves
// once, and none is lost.
func TestBC119_TwoServersSendEachDeliveryOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	other := w.server()
	for i := range 12 {
		w.ready(fmt.Sprint("run-", i))
	}
	for range 8 { // a few at a time
		var both sync.WaitGroup
		for _, s := range []*wake.Service{w.Service, other} {
			both.Go(func() {
				if err := s.Round(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	var ids, runs []string
	for _, m := range w.end.all() {
		ids, runs = append(ids, m.id), append(runs, runOf(t, m.body))
	}
	slices.Sort(ids)
	slices.Sort(runs)
	if len(ids) != 12 || len(slices.Compact(ids)) != 12 || len(slices.Compact(runs)) != 12 {
		t.Errorf("%d deliveries of 12", len(ids))
	}

	// The one who sends dies: it was sent, and nothing was recorded.
	w.ready("run-x")
	w.round()
	d, _, _ := w.Log(t.Context(), wake.Query{Limit: 1})
	w.exec(`UPDATE deliveries SET state = 'due', ended_at = NULL, next_at = clock_timestamp() - interval '1 minute', asked_by = gen_random_uuid(),
		asked_until = clock_timestamp() + interval '1 hour' WHERE id = $1`, d[0].ID)
	if err := other.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.end.all()); n != 13 {
		t.Errorf("somebody is sending it, and it was sent again: %d", n)
	}
	w.exec(`UPDATE deliveries SET asked_until = clock_timestamp() - interval '1 second' WHERE id = $1`, d[0].ID)
	w.exec(`INSERT INTO delivery_attempts SELECT $1, number + 100, at, seconds, status, problem FROM delivery_attempts WHERE delivery_id = $1`, d[0].ID) // only to keep numbers apart
	if err := other.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.end.all(); len(got) != 14 || got[13].id != wake.WebhookID(d[0].ID) {
		t.Errorf("what a dead server sent is not sent again: %d", len(got))
	}
}

// A person sends one again, under its id, although its run was taken; the audit knows who.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.ready("run-1")
	w.round()
	d := w.wantState("delivered")
	w.open("run-1")
	if err := w.Replay(t.Context(), d.ID, audit.Row{Actor: "Petra", Via: "page"}); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.wantState("delivered")
	got := w.end.all()
	if len(got) != 2 || got[0].id != got[1].id {
		t.Errorf("%+v", got)
	}
	rows, err := audit.Page(t.Context(), w.db, audit.Filter{Action: "delivery.replay", Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Actor != "Petra" || rows[0].Subject != "delivery:"+d.ID {
		t.Errorf("%+v %v", rows, err)
	}
	if err := w.Replay(t.Context(), "01900000-0000-7000-8000-000000000000", audit.Row{}); err != wake.ErrNotFound {
		t.Errorf("one that is not there: %v", err)
	}
}

// In a copy that nothing may leave, and in a log gap, nothing is sent and nothing lost.
func TestNothingLeavesACopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`UPDATE installation SET outward = false`)
	w.ready("run-1")
	w.round()
	if err := w.engine.FindGap(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE installation SET outward = true`)
	w.round()
	if n := len(w.end.all()); n != 0 {
		t.Fatalf("%d left", n)
	}
	w.exec(`UPDATE log_gaps SET acknowledged_at = now(), acknowledged_by = NULL WHERE false`)
	w.exec(`INSERT INTO people (name, roles) VALUES ('Admin', '{admin}')`)
	w.exec(`UPDATE log_gaps SET acknowledged_at = now(), acknowledged_by = 1`)
	w.round()
	if n := len(w.end.all()); n != 1 {
		t.Errorf("%d came after it", n)
	}
}

// A name that turns out to be one of our own network is not asked.
func TestAPrivateAddressIsNotReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	p := load(t, `webhooks: {payers: {url: "https://127.0.0.1.nip.invalid/x", secrets: ["${env:WAKE}"]}}`)
	p.Webhooks()[0].URL = w.end.URL // as a name that resolves to it: what is dialled is checked
	if err := w.engine.SetPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.ready("run-1")
	w.round()
	if d := w.wantState("due"); d.Problem != "the address is private, loopback or link-local" || len(w.end.all()) != 0 {
		t.Errorf("%q", d.Problem)
	}
}
