package simulator_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/reconcile/lookup/simulator"
)

// clock is one that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }
func started() *clock                 { c := &clock{}; c.at.Store(1_800_000_000_000_000_000); return c }

func start(t *testing.T, c *clock) *simulator.Server {
	t.Helper()
	s, err := simulator.Start(c.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func ask(t *testing.T, s *simulator.Server, token, query string) (int, simulator.List) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/v1/payments?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := client.Do(r)
	if err != nil {
		return 0, simulator.List{}
	}
	defer got.Body.Close()
	var list simulator.List
	_ = json.NewDecoder(io.LimitReader(got.Body, 1<<20)).Decode(&list)
	return got.StatusCode, list
}

func order() simulator.Payment {
	return simulator.Payment{Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Key: "qt_1"}
}

func TestWhatBecomesOfAnOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		b     simulator.Behaviour
		lost  bool
		then  time.Duration
		shown []int64 // amounts that a question shows then
	}{
		{name: "lands", shown: []int64{420000}},
		{name: "lands, the answer is lost", b: simulator.Behaviour{LoseAnswer: true}, lost: true, shown: []int64{420000}},
		{name: "answered first", b: simulator.Behaviour{LandsAfter: time.Minute}},
		{name: "landed later", b: simulator.Behaviour{LandsAfter: time.Minute}, then: time.Minute, shown: []int64{420000}},
		{name: "lands twice", b: simulator.Behaviour{Twice: true}, shown: []int64{420000, 420000}},
		{name: "lands short", b: simulator.Behaviour{Short: 1}, shown: []int64{419999}},
		{name: "lands unseen", b: simulator.Behaviour{Lag: 45 * time.Second}, then: 44 * time.Second},
		{name: "lands and shows", b: simulator.Behaviour{Lag: 45 * time.Second}, then: 45 * time.Second, shown: []int64{420000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := started()
			s := start(t, clock)
			s.Tell(c.b)
			if err := s.Order(t.Context(), order()); errors.Is(err, simulator.ErrLost) != c.lost || !c.lost && err != nil {
				t.Fatalf("the order: %v", err)
			}
			clock.pass(c.then)
			status, list := ask(t, s, simulator.LiveToken, "reference=INV-9")
			if status != 200 || len(list.Data) != len(c.shown) {
				t.Fatalf("%d, %d shown, want %d", status, len(list.Data), len(c.shown))
			}
			for i, amount := range c.shown {
				if list.Data[i].Amount != amount || list.Data[i].Key != "qt_1" {
					t.Errorf("shown: %+v", list.Data[i])
				}
			}
			if _, sandbox := ask(t, s, simulator.SandboxToken, "reference=INV-9"); len(sandbox.Data) != 0 || sandbox.World != "sandbox" {
				t.Errorf("the sandbox shows %+v", sandbox)
			}
		})
	}
}

func TestPagesCanFailHalfWay(t *testing.T) {
	t.Parallel()
	s := start(t, started())
	for range 240 {
		s.Put(simulator.Payment{Reference: "other"})
	}
	s.Tell(simulator.Behaviour{FailPage: 3})
	query, seen := "reference=*", 0
	var failed bool
	for page := 1; ; page++ {
		status, list := ask(t, s, simulator.LiveToken, query)
		if status == 500 {
			if failed || page != 3 {
				t.Fatalf("page %d failed", page)
			}
			failed = true
			page--
			continue
		}
		seen += len(list.Data)
		if list.NextURL == nil {
			break
		}
		_, query, _ = strings.Cut(*list.NextURL, "?")
	}
	if !failed || seen != 241 {
		t.Errorf("failed %v, %d seen, want 241 with the canary", failed, seen)
	}
}

func TestEachFaultIsWhatItSays(t *testing.T) {
	t.Parallel()
	s := start(t, started())
	want := map[simulator.Fault]int{simulator.Unauthorized: 401, simulator.Forbidden: 403, simulator.NotFoundHTML: 404,
		simulator.NotFoundJSON: 404, simulator.Gone: 410, simulator.TooMany: 429, simulator.BadGateway: 502, simulator.Redirect: 302,
		simulator.Truncated: 200, simulator.NotJSON: 200, simulator.WrongShape: 200, simulator.Hangup: 0, simulator.Huge: 200}
	for _, fault := range simulator.Faults {
		if fault == simulator.SlowLoris {
			continue // never ends: what asks it is tested with it
		}
		s.Tell(simulator.Behaviour{Fault: fault})
		if status, list := ask(t, s, simulator.LiveToken, "reference=INV-9"); status != want[fault] || len(list.Data) != 0 {
			t.Errorf("%s: %d, want %d", fault, status, want[fault])
		}
		if _, list := ask(t, s, simulator.LiveToken, "reference="+simulator.Canary); len(list.Data) != 1 {
			t.Errorf("%s: the canary is not seen", fault)
		}
	}
}

func TestItCountsThoseWhoAsk(t *testing.T) {
	t.Parallel()
	s := start(t, started())
	s.Tell(simulator.Behaviour{PerSecond: 1})
	refused := 0
	for range 10 {
		if status, _ := ask(t, s, simulator.LiveToken, "reference=INV-9"); status == 429 {
			refused++
		}
	}
	if got := s.Stats(); refused == 0 || got.Throttled != refused || got.Asked["INV-9"] != 10-refused || got.Doubled {
		t.Errorf("%d refused, %+v", refused, got)
	}
}
