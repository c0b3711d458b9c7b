package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger/audit"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/web"
)

// stub is an engine that notes what it was asked and answers what the test set. It
// decides nothing: these tests are about what the handlers pass on and how they
// answer. Every method that a test did not set fails the request.
type stub struct {
	Engine // nil: a call that is not set below panics, which the server answers by 500

	mu    sync.Mutex
	ops   []effects.Op
	list  []effects.Decide
	query effects.QueueQuery
	runID string
	saved []string

	answers   []effects.Answer
	decisions []effects.DecideResult
	refusal   error
	run       effects.RunView
	waits     bool
	effect    effects.EffectView
	page      effects.QueuePage
	lease     *effects.Lease
	looks     effects.LooksView
	underWay  bool
}

func (s *stub) Looks(context.Context, string) (effects.LooksView, error) { return s.looks, s.refusal }

func (s *stub) LookNow(context.Context, string) (bool, error) { return !s.underWay, s.refusal }

func (s *stub) Apply(_ context.Context, ops []effects.Op) ([]effects.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = append(s.ops, ops...)
	if s.answers == nil {
		out := make([]effects.Answer, len(ops))
		for i, op := range ops {
			if op.Begin != nil {
				out[i].Begin = &effects.BeginAnswer{Do: "proceed", EffectID: "e1", Fence: 1, Attempt: 1}
			} else {
				out[i].Finish = &effects.FinishAnswer{EffectID: "e1", State: "taken", Version: 2}
			}
		}
		return out, s.refusal
	}
	return s.answers, s.refusal
}

func (s *stub) Open(_ context.Context, o effects.Open) (effects.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runID = o.RunID
	return effects.Lease{RunID: o.RunID, State: "running", Token: "t", Epoch: 1}, s.refusal
}

func (s *stub) Claim(context.Context, effects.Claim) (*effects.Lease, error) {
	return s.lease, s.refusal
}

func (s *stub) Run(ctx context.Context, _ int64, runID string, wait time.Duration) (effects.RunView, error) {
	s.mu.Lock()
	s.runID = runID
	waits := s.waits
	s.mu.Unlock()
	if wait > 0 && waits {
		<-ctx.Done()
		return effects.RunView{}, ctx.Err()
	}
	return s.run, s.refusal
}

func (s *stub) SaveCheckpoint(_ context.Context, _ int64, runID, _ string, _ int64, state, occurrences []byte, _ string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = []string{runID, string(state), string(occurrences)}
	return "position-7", s.refusal
}

func (s *stub) Effect(context.Context, int64, string) (effects.EffectView, error) {
	return s.effect, s.refusal
}

func (s *stub) Queue(_ context.Context, q effects.QueueQuery) (effects.QueuePage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.query = q
	return s.page, s.refusal
}

func (s *stub) Decide(_ context.Context, _ effects.Person, list []effects.Decide) ([]effects.DecideResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, list...)
	return s.decisions, s.refusal
}

// doors knows one token for each kind of caller.
type doors struct{}

func (doors) Authenticate(_ context.Context, bearer string) (access.Identity, error) {
	switch bearer {
	case "agent":
		return access.Identity{Account: &access.Account{ID: 7, Name: "acme"}}, nil
	case "viewer":
		return access.Identity{Person: &access.Person{ID: 1, Name: "Vera", Roles: []string{"viewer"}}}, nil
	case "operator":
		return access.Identity{Person: &access.Person{ID: 2, Name: "Olga", Roles: []string{"operator"}}}, nil
	case "admin":
		return access.Identity{Person: &access.Person{ID: 3, Name: "Ada", Roles: []string{"admin"}}}, nil
	case "broken":
		return access.Identity{}, context.DeadlineExceeded
	}
	return access.Identity{}, access.ErrUnknown
}

func (doors) Record(context.Context, audit.Row) error { return nil }

// trail keeps what is recorded.
type trail struct {
	doors
	rows []audit.Row
}

func (t *trail) Record(_ context.Context, r audit.Row) error {
	t.rows = append(t.rows, r)
	return nil
}

func serve(t *testing.T, s *stub) string { return serveBehind(t, s, doors{}) }

func serveBehind(t *testing.T, s *stub, doors Access) string {
	t.Helper()
	e, err := web.New(web.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	err = Register(e, Options{Engine: s, Access: doors, PublicURL: "https://desk.example/", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
}

func call(t *testing.T, token, method, url, body string) answer {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}
