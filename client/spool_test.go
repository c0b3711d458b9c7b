package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const finishRoute = "POST /v1/effects/{id}/finish"

// eventually waits for something that happens in the background.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func times(n int, way fault) []fault {
	ways := make([]fault, n)
	for i := range ways {
		ways[i] = way
	}
	return ways
}

func spooledIn(t *testing.T, c *Client) []string {
	t.Helper()
	names, err := c.spool.names()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestBC037_AnOutcomeTheServerCannotTakeIsDeliveredLater(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	c.finishWait = 0
	r := openRun(t, c, "r")
	f.fail(finishRoute, times(3, answer503)...)
	out, err := r.Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || out.Recorded || out.Outcome != OutcomeTaken || out.Reference != "tr_1" {
		t.Fatalf("%+v %v", out, err)
	}
	eventually(t, "the outcome arrives", func() bool { return f.only(t).state == "taken" })
	eventually(t, "the spool is empty", func() bool { return len(spooledIn(t, c)) == 0 })
	if e := f.only(t); e.finish.Reference != "tr_1" || string(e.finish.Result) != `{"payment":1}` || e.finish.LogPosition != "" {
		t.Errorf("%+v", e.finish)
	}
}

func TestALateOutcomeReachesAnInterruptedEffect(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	c.finishWait = 0
	r := openRun(t, c, "r")
	f.fail(finishRoute, times(100, dropBefore)...)
	if _, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil {
		t.Fatal(err)
	}
	c.Close() // the process dies; its spool stays
	f.mu.Lock()
	f.runs["r"].until = time.Time{}
	f.expire(f.runs["r"])
	f.faults[finishRoute] = nil
	f.mu.Unlock()

	next := New(f.URL, "secret-token", WithSpool(c.spool.dir))
	t.Cleanup(next.Close)
	again, err := next.Open(t.Context(), "r", RunOptions{Agent: "a"})
	if err != nil {
		t.Fatalf("the outcome was not delivered before the run was opened: %v", err)
	}
	out, err := again.Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || !out.Replayed || out.DecidedBy != "late_agent" || b.paid.Load() != 1 {
		t.Errorf("%+v %v, paid %d times", out, err, b.paid.Load())
	}
}

func TestAStaleFenceCountsAsDelivered(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := testClient(t, f)
	r := openRun(t, c, "r")
	out, err := r.Do(t.Context(), "pay", invoice, func(context.Context, Call) (any, error) {
		f.decide("in_flight", "taken", `"by hand"`) // decided while the call was under way
		return "tr_1", nil
	})
	if err != nil || !out.Recorded || string(out.Result) != `"tr_1"` {
		t.Errorf("%+v %v", out, err)
	}
	if kept := f.only(t).kept; len(kept) != 1 || len(spooledIn(t, c)) != 0 {
		t.Errorf("sent %d times, %d in the spool", len(kept), len(spooledIn(t, c)))
	}
}

func TestBC132_AResultThatIsTooLargeIsSentAsSizeAndDigest(t *testing.T) {
	t.Parallel()
	receipt := strings.Repeat("scanned receipt ", 6<<20/16)
	scan := func(context.Context, Call) (any, error) { return Reference("po_7", receipt), nil }
	for name, tc := range map[string]struct {
		limit int
		fault []fault
		sent  int
	}{
		"refused by a proxy": {8 << 20, []fault{tooLarge413}, 2},
		"above our own":      {1 << 20, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c := testClient(t, f)
			c.maxResult = tc.limit
			f.fail(finishRoute, tc.fault...)
			out, err := openRun(t, c, "r").Do(t.Context(), "pay", invoice, scan)
			if err != nil || !out.Recorded || len(out.Result) != len(receipt)+2 {
				t.Errorf("%v, recorded %v, %d bytes", err, out.Recorded, len(out.Result))
			}
			e := f.only(t)
			if e.state != "taken" || !e.finish.ResultOmitted || e.finish.ResultSize != int64(len(receipt)+2) ||
				len(e.finish.ResultDigest) != 64 || e.finish.Result != nil || e.finish.Reference != "po_7" {
				t.Errorf("now %s, %+v", e.state, e.finish)
			}
			if n := f.count(finishRoute); n != tc.sent {
				t.Errorf("sent %d times, want %d", n, tc.sent)
			}
		})
	}
}

func TestARefusedOutcomeIsSetAsideAndNotDropped(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	f.fail(finishRoute, times(8, malformed)...)
	out, err := openRun(t, c, "r").Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || out.Recorded || out.Outcome != OutcomeTaken {
		t.Fatalf("%+v %v", out, err)
	}
	aside := filepath.Join(c.spool.dir, rejectedDir)
	eventually(t, "it is set aside", func() bool { e, _ := os.ReadDir(aside); return len(e) == 1 })
	eventually(t, "the spool is empty", func() bool { return len(spooledIn(t, c)) == 0 })
	e, _ := os.ReadDir(aside)
	raw, _ := os.ReadFile(filepath.Join(aside, e[0].Name()))
	var o spooled
	if err := json.Unmarshal(raw, &o); err != nil || o.Finish.Reference != "tr_1" || string(o.Finish.Result) != `{"payment":1}` {
		t.Errorf("%s %v: the server has none of it, so all of it must be here", raw, err)
	}
}

// An outcome that is spooled while the background is busy with the last one it knew of
// has nobody else to send it.
func TestAnOutcomeThatComesDuringADeliveryIsDeliveredToo(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan string, 2), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		<-answer
		write(w, 200, FinishAnswer{State: "taken"})
	}))
	t.Cleanup(s.Close)
	c := New(s.URL, "t", WithSpool(t.TempDir()))
	t.Cleanup(c.Close)
	for _, id := range []string{"e1", "e2"} {
		if _, err := c.spool.save(spooled{RunID: "r", EffectID: id, Finish: FinishRequest{Fence: 1, Outcome: OutcomeTaken}}); err != nil {
			t.Fatal(err)
		}
		c.deliverer.kick()
		if id == "e1" {
			<-arrived // its folder was listed before e2 is there
		}
	}
	close(answer)
	eventually(t, "the spool is empty", func() bool { return len(spooledIn(t, c)) == 0 })
}

func TestAnEffectTheServerForgotIsReportedByItsKey(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	out, err := r.Do(t.Context(), "pay", invoice, func(ctx context.Context, c Call) (any, error) {
		f.mu.Lock()
		f.byID, f.effects = map[string]*fakeEffect{}, map[string]*fakeEffect{} // restored from a backup
		f.mu.Unlock()
		return b.pay(ctx, c)
	})
	if err != nil || !out.Recorded || f.count("POST /v1/effects/finish") != 1 {
		t.Errorf("%+v %v", out, err)
	}
}

func TestAnOutcomeThatCannotBeKeptAtAllIsAnError(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	c.spool.dir = filepath.Join(os.DevNull, "spool")
	f.fail(finishRoute, times(100, dropBefore)...)
	out, err := openRun(t, c, "r").Do(t.Context(), "pay", invoice, b.pay)
	if !errors.Is(err, ErrUnrecorded) || out.Outcome != OutcomeTaken || string(out.Result) != `{"payment":1}` {
		t.Errorf("%+v %v: the caller must learn both", out, err)
	}
}

// What is in the folder besides whole outcomes must neither be sent nor stop the rest.
func TestSpoolSurvivesWhatACrashLeaves(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	c.finishWait = 0
	r := openRun(t, c, "r")
	for name, content := range map[string]string{
		".20260101T000000.000000-ABCDEFGH.json-123": `{"run_id":"half`,
		"20260101T000000.000001-ABCDEFGH.json":      `{"run_id":"torn`,
		"README":                                    "what is this",
	} {
		if err := os.WriteFile(filepath.Join(c.spool.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.fail(finishRoute, dropBefore, dropBefore)
	if _, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the good one arrives", func() bool { return f.only(t).state == "taken" })
	eventually(t, "the torn one is set aside", func() bool {
		_, err := os.Stat(filepath.Join(c.spool.dir, rejectedDir, "20260101T000000.000001-ABCDEFGH.json"))
		return err == nil
	})
	if _, err := os.Stat(filepath.Join(c.spool.dir, "README")); errors.Is(err, fs.ErrNotExist) {
		t.Error("a stranger's file was removed")
	}
}

func TestSpooledFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	s := &spool{dir: filepath.Join(t.TempDir(), "deep", "spool")}
	name, err := s.save(spooled{RunID: "r", EffectID: "e", Finish: FinishRequest{Outcome: "taken"}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{s.dir: 0o700, filepath.Join(s.dir, name): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if o, err := s.load(name); err != nil || o.EffectID != "e" {
		t.Errorf("%+v %v", o, err)
	}
	if err := errors.Join(s.remove(name), s.remove(name)); err != nil {
		t.Error(err)
	}
}

func TestDefaultSpoolsOfTwoAccountsAreApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, who := range [][2]string{{"http://a", "t1"}, {"http://a", "t2"}, {"http://b", "t1"}} {
		dir := defaultSpool(who[0], who[1])
		if seen[dir] || strings.Contains(dir, who[1]+"/") {
			t.Errorf("%v shares %s", who, dir)
		}
		seen[dir] = true
	}
}

func TestOutcomesOfManyCallsAllArrive(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	c := testClient(t, f)
	c.finishWait = 0
	r := openRun(t, c, "r")
	f.fail(finishRoute, times(30, dropAfter)...) // recorded each time, and nobody was told
	for i := range 20 {
		if _, err := r.Do(t.Context(), "pay", map[string]string{"n": fmt.Sprint(i)}, b.pay); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the spool is empty", func() bool { return len(spooledIn(t, c)) == 0 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.byID {
		if e.state != "taken" {
			t.Errorf("%s is %s", e.id, e.state)
		}
	}
}
