package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// lookupServer hands out its questions one at a time, each after as many failures as are
// left, and keeps what is brought.
type lookupServer struct {
	*httptest.Server
	mu        sync.Mutex
	failures  int
	refusal   string // the code of every further claim; "" for none
	questions []LookupQuestion
	brought   map[string][]string
	answered  chan string
}

func newLookupServer(t *testing.T) *lookupServer {
	s := &lookupServer{brought: map[string][]string{}, answered: make(chan string, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/lookups/claim", func(w http.ResponseWriter, r *http.Request) {
		var in ClaimLookups
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Pool != "tax" || in.Max < 1 || in.Wait != "30s" {
			t.Errorf("claimed with %+v, %v", in, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		out := LookupQuestions{Questions: []LookupQuestion{}}
		switch {
		case s.failures > 0:
			s.failures--
			w.WriteHeader(http.StatusBadGateway)
			return
		case len(s.questions) > 0:
			out.Questions, s.questions = s.questions[:1], s.questions[1:]
		case s.refusal != "":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"code":%q,"status":403}`, s.refusal)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("POST /v1/lookups/{id}/answer", func(w http.ResponseWriter, r *http.Request) {
		var in LookupAnswer
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		raw, _ := json.Marshal(in)
		s.mu.Lock()
		defer s.mu.Unlock()
		id := r.PathValue("id")
		s.brought[id] = append(s.brought[id], string(raw))
		if len(s.brought[id]) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // lost on its way; it comes again
			return
		}
		s.answered <- id
		_ = json.NewEncoder(w).Encode(LookupVerdict{LookupID: id, Verdict: "inconclusive"})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// The loop lives through outages, sends an answer until it is taken, says that it found
// nothing in a way that is not silence, and ends with a refusal that stays one.
func TestTheLookUpLoopOutlivesOutages(t *testing.T) {
	t.Parallel()
	s := newLookupServer(t)
	s.failures, s.refusal = 2, CodeForbidden
	for _, id := range []string{"q/1", "q2"} {
		s.questions = append(s.questions, LookupQuestion{LookupID: id, BusinessKey: id, AnswerWithin: 60_000})
	}
	c := New(s.URL, "token", WithSpool(t.TempDir()))
	t.Cleanup(c.Close)
	err := c.AnswerLookups(t.Context(), "tax", 3, func(_ context.Context, q LookupQuestion) (LookupFound, error) {
		if q.LookupID == "q2" {
			panic("broken")
		}
		return LookupFound{Complete: true}, nil
	})
	if err == nil || !strings.Contains(err.Error(), CodeForbidden) {
		t.Errorf("ended with %v", err)
	}
	for id, want := range map[string]string{
		"q/1": `{"hits":[],"complete":true}`,
		"q2":  `{"error":"the worker's code panicked"}`,
	} {
		if got := s.brought[id]; len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("%s: %q, want %s twice", id, got, want)
		}
	}
}

func TestTheLookUpLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newLookupServer(t)
	s.questions = []LookupQuestion{{LookupID: "q1", AnswerWithin: 60_000}, {LookupID: "q2", AnswerWithin: 60_000}}
	c := New(s.URL, "token", WithSpool(t.TempDir()))
	t.Cleanup(c.Close)
	ctx, cancel := context.WithCancel(t.Context())
	err := c.AnswerLookups(ctx, "tax", 1, func(look context.Context, _ LookupQuestion) (LookupFound, error) {
		cancel()
		return LookupFound{}, look.Err()
	})
	if err != nil || len(s.brought) != 1 || s.brought["q1"][0] != `{"hits":[]}` {
		t.Errorf("%v, brought %q", err, s.brought)
	}
	if err := c.AnswerLookups(t.Context(), "tax", 0, nil); err == nil {
		t.Error("no place for a look at all")
	}
}
