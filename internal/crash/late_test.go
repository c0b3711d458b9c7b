package crash

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// late is what must come of a worker that is heard of again after somebody decided.
type late struct {
	payments      int
	status        int    // of the late worker's finish
	contradiction string // its kind; "" for none
}

// TestALateWorker stops a worker (SIGSTOP) that has paid and not recorded it. Its lease
// ends, a person decides without knowing what it did, the next worker acts on that, and
// then the first one comes back. What it knows is kept, and wherever it disagrees with
// what was decided that is a contradiction and never an overwrite.
func TestALateWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{})
	for _, tc := range []struct {
		verdict string
		keys    bank.Keys
		want    late
	}{
		{client.VerdictTaken, bank.Honour, late{1, 200, ""}},
		{client.VerdictTaken, bank.Ignore, late{1, 200, ""}},
		{client.VerdictNotTaken, bank.Honour, late{1, 409, ""}}, // the key made both attempts one payment
		{client.VerdictNotTaken, bank.Ignore, late{2, 409, "earlier_attempt_taken"}},
		{client.VerdictStop, bank.Honour, late{1, 409, "stopped_but_taken"}},
		{client.VerdictStop, bank.Ignore, late{1, 409, "stopped_but_taken"}},
	} {
		name := tc.verdict + "-" + string(tc.keys)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.work(name, tc.keys, "INV-"+name, "INV-"+name+"-next")
			c.t = t
			first := c.start(parkAt(afterAct))
			effect := first.event("begun", func(e event) bool { return e.Kind == begun }).Effect
			first.parked(afterAct)
			first.freeze()
			c.interrupted()
			c.say(effect, tc.verdict)
			next := c.start(parkAt(afterRecord), lease(longLease))
			next.parked(afterRecord)

			first.thaw()
			first.goOn()
			if first.wait() != exitFailed {
				t.Error("the late worker went on although another holds its run")
			}
			c.after(effect, c.payments(c.job.Invoices[0])[0], tc.want, next)
		})
	}
}

// TestAPacketThatArrivesTooLate: the worker sent its order in time, and the network
// delivers it long after. The bank shows nothing, so "not taken" is the truth as far as
// anybody can see. No fence stops a packet; the vendor's key does, and where it does
// not, the worker tells.
func TestAPacketThatArrivesTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{})
	for k, want := range map[bank.Keys]late{
		bank.Honour: {1, 409, ""},
		bank.Ignore: {2, 409, "earlier_attempt_taken"},
	} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			c := w.work("late-packet-"+string(k), k, "INV-"+string(k), "INV-"+string(k)+"-next")
			c.t = t
			network, arrived, deliver := delayed(t, c.job.Bank)
			first := c.start(func(j *job) { j.Bank, j.Deaf = network, true })
			effect := first.event("begun", func(e event) bool { return e.Kind == begun }).Effect
			<-arrived
			first.freeze() // a living holder would keep its run
			c.interrupted()
			c.decide() // by what the bank shows, after the moment
			if x, err := c.operator.Effect(t.Context(), effect); err != nil || x.State != "cleared" {
				t.Fatalf("the bank shows nothing, and the effect is %s, %v", x.State, err)
			}
			next := c.start(parkAt(afterRecord), lease(longLease))
			next.parked(afterRecord)

			deliver()
			first.thaw()
			first.wait()
			ids := c.payments(c.job.Invoices[0])
			c.after(effect, ids[len(ids)-1], want, next)
		})
	}
}

// delayed is a network that delivers the first order only when told.
func delayed(t *testing.T, to string) (url string, arrived <-chan struct{}, deliver func()) {
	t.Helper()
	sent, delivered := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequest(r.Method, to+r.URL.RequestURI(), r.Body)
		if err != nil {
			panic(err)
		}
		out.Header = r.Header.Clone()
		close(sent)
		<-delivered
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	deliver = sync.OnceFunc(func() { close(delivered) })
	t.Cleanup(func() {
		deliver()
		s.Close()
	})
	return s.URL, sent, deliver
}

// say gives a verdict whatever the bank shows, and waits until agents see it.
func (w *work) say(effect, verdict string) {
	w.t.Helper()
	x, err := w.operator.Effect(w.t.Context(), effect)
	must(w.t, err)
	d := client.DecisionRequest{Version: x.Version, Verdict: verdict, Note: "a person's belief"}
	if verdict == client.VerdictTaken {
		if d, err = w.look(x); err != nil {
			w.t.Fatal(err)
		}
	} else {
		time.Sleep(time.Until(*x.Moment) + margin)
	}
	_, err = w.operator.Decide(w.t.Context(), effect, d)
	must(w.t, err)
	v, err := w.agent.Run(w.t.Context(), w.job.Run, patience)
	if err != nil || v.State == client.RunPaused {
		w.t.Fatalf("after %s the run is %s, %v", verdict, v.State, err)
	}
}

// after checks what is on record once the late worker was heard, and has the next one
// go on: at once, or after a person has acknowledged the contradiction.
func (w *work) after(effect, reference string, want late, next *process) {
	w.t.Helper()
	if ids := w.payments(w.job.Invoices[0]); len(ids) != want.payments {
		w.t.Errorf("the bank paid %v, want %d payments", ids, want.payments)
	}
	said := w.gate.finishes(effect, reference)
	if i := slices.IndexFunc(said, func(a answer) bool { return a.status == want.status }); i < 0 || want.status == 409 && said[i].code != client.CodeStaleFence {
		w.t.Errorf("the finishes were answered %+v, want a %d", said, want.status)
	}
	x, err := w.operator.Effect(w.t.Context(), effect)
	must(w.t, err)
	kept := slices.ContainsFunc(x.Evidence, func(e client.EvidenceView) bool {
		return e.Fence == 1 && e.Verdict == "taken" && e.Reference == reference
	})
	if kept != (want.status == 409) {
		w.t.Errorf("what the late worker said is on record: %v; %+v", kept, x.Evidence)
	}
	var kinds []string
	for _, c := range x.Contradictions {
		kinds = append(kinds, c.Kind)
	}
	if !slices.Equal(kinds, slices.DeleteFunc([]string{want.contradiction}, func(s string) bool { return s == "" })) {
		w.t.Errorf("contradictions %v, want %q", kinds, want.contradiction)
	}

	next.goOn()
	code := next.wait()
	if want.contradiction == "" {
		if code != exitFinished {
			w.t.Errorf("the next worker could not go on:\n%s", next.tail(3))
		}
	} else {
		if x.Contradictions[0].Recovery != "suspected" {
			w.t.Errorf("nobody suspects that money left: %+v", x.Contradictions)
		}
		if code != exitPaused {
			w.t.Errorf("the run went on past a contradiction:\n%s", next.tail(3))
		}
		w.decide()
		w.finish()
	}
	if ids := w.payments(w.job.Invoices[1]); len(ids) != 1 {
		w.t.Errorf("the next invoice was paid %v", ids)
	}
	if v, err := w.agent.Run(w.t.Context(), w.job.Run, 0); err != nil || v.State != client.RunFinished {
		w.t.Errorf("the run is %s, %v", v.State, err)
	}
}
