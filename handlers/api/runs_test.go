package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

func TestRunIDsArriveAsTheyWereMeant(t *testing.T) {
	t.Parallel()
	s := &stub{}
	url := serve(t, s)
	for path, want := range map[string]string{
		"a%2Fb":      "a/b",
		"a%20b":      "a b",
		"100%25":     "100%",
		"100%25%2Fx": "100%/x",
		"%2525":      "%25",
		"caf%C3%A9":  "café",
		"claim%2Fx":  "claim/x",
		"claim":      "claim",
		"%2E%2E":     "..",
		"%2e%2e%2F":  "../",
	} {
		got := call(t, "agent", "PUT", url+"/v1/runs/"+path, `{"agent":"a","worker":"w","attempt_id":"1"}`)
		if got.status != 200 || s.runID != want {
			t.Errorf("%s: %d, the engine was asked for %q, want %q", path, got.status, s.runID, want)
		}
	}
}

func TestClaimFindsNothing(t *testing.T) {
	t.Parallel()
	got := call(t, "agent", "POST", serve(t, &stub{})+"/v1/runs/claim", `{"agents":["a"],"worker":"w","attempt_id":"1"}`)
	if got.status != 204 || got.body != "" {
		t.Errorf("%d %q", got.status, got.body)
	}
}

func TestCheckpointKeepsItsBytesAndGivesThePosition(t *testing.T) {
	t.Parallel()
	s := &stub{}
	state := `{ "n": 1.0, "s":"\ud83d\u0000" }`
	got := call(t, "agent", "PUT", serve(t, s)+"/v1/runs/r/checkpoints/3", `{"lease":"l","state":`+state+`,"occurrences":{"d":2}}`)
	if got.status != 204 || got.header.Get(client.PositionHeader) != "position-7" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if want := "r|" + state + `|{"d":2}`; strings.Join(s.saved, "|") != want {
		t.Errorf("saved %q, want %q", s.saved, want)
	}
	for _, turn := range []string{"-1", "1.0", "x", "99999999999999999999"} {
		if got := call(t, "agent", "PUT", serve(t, s)+"/v1/runs/r/checkpoints/"+turn, `{"lease":"l","state":1}`); got.status != 422 {
			t.Errorf("turn %s: %d", turn, got.status)
		}
	}
}

func TestWaitIsReadAndBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "30s": 30 * time.Second, "250ms": 250 * time.Millisecond, "5h": maxWait} {
		if got, err := waitOf(text, "?wait"); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"30", "-1s", "soon"} {
		if _, err := waitOf(text, "?wait"); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A server that stops must not hold its waiters for the whole long poll.
func TestWaitersAreAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	s := &stub{waits: true, run: effects.RunView{RunID: "r", State: "paused"}}
	e, err := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := Register(e, Options{Engine: s, Access: doors{}}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, slog.New(slog.DiscardHandler), l, e) }()
	got := make(chan answer, 1)
	go func() { got <- call(t, "agent", http.MethodGet, "http://"+l.Addr().String()+"/v1/runs/r?wait=60s", "") }()
	for {
		s.mu.Lock()
		asked := s.runID != ""
		s.mu.Unlock()
		if asked {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	select {
	case a := <-got:
		if a.status != 200 || !strings.Contains(a.body, `"paused"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter was not answered")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestQueueFilters(t *testing.T) {
	t.Parallel()
	s := &stub{}
	url := serve(t, s)
	got := call(t, "viewer", "GET", url+"/v1/queue?tool=send_payment&state=held&business_key=a%2Fb&limit=10&cursor=c&run_id=r&agent=x&account=acme", "")
	want := effects.QueueQuery{Account: "acme", Tool: "send_payment", Agent: "x", RunID: "r", BusinessKey: "a/b", State: "held", Cursor: "c", Limit: 10}
	if got.status != 200 || s.query != want {
		t.Errorf("%d: asked for %+v", got.status, s.query)
	}
	if strings.TrimSpace(got.body) != `{"items":[]}` {
		t.Errorf("an empty page reads %s", got.body)
	}
	for _, q := range []string{"tol=x", "limit=0", "limit=x", "tool=a&tool=b"} {
		if got := call(t, "viewer", "GET", url+"/v1/queue?"+q, ""); got.status != 422 {
			t.Errorf("%s: %d", q, got.status)
		}
	}
}
