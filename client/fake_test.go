package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// fake is a small server of the part of the contract that an agent sees: one account,
// in memory, with the states that the guard has to tell apart. It is tested itself, in
// fake_own_test.go. Faults are injected by route, in the two ways a step can fail:
// it did not happen, or it happened and nobody was told.
type fake struct {
	*httptest.Server
	deadline time.Duration
	lease    time.Duration

	mu       sync.Mutex
	runs     map[string]*fakeRun
	effects  map[string]*fakeEffect // by run, digest and occurrence
	byID     map[string]*fakeEffect
	volatile map[string][]string
	reads    map[string]bool    // tools that are not guarded
	faults   map[string][]fault // by route, used up one a request
	requests []string           // routes, in order
	bodies   []string
	moved    chan struct{} // closed and renewed when a state changes
}

type fault int

const (
	dropBefore  fault = iota // the connection breaks and nothing happened
	dropAfter                // it happened and the connection breaks
	answer503                // refused for now, by a problem document
	answerHTML               // something on the way answers in its place
	tooLarge413              // a proxy's limit
	malformed                // 422
	silent                   // no answer ever comes
)

type fakeRun struct {
	id, state, token, attempt string
	epoch                     int64
	until                     time.Time
	saved                     *Checkpoint
}

type fakeEffect struct {
	id, key, state, attemptID string
	run                       *fakeRun
	attempt                   int
	fence                     int64
	deadline                  time.Time
	finish                    FinishRequest
	decidedBy                 string
	kept                      []FinishRequest
}

func newFake(t *testing.T) *fake {
	f := startFake()
	t.Cleanup(f.Close)
	return f
}

func startFake() *fake {
	f := &fake{
		deadline: time.Minute, lease: time.Minute,
		runs: map[string]*fakeRun{}, effects: map[string]*fakeEffect{}, byID: map[string]*fakeEffect{},
		faults: map[string][]fault{}, moved: make(chan struct{}),
	}
	mux := http.NewServeMux()
	for route, h := range map[string]func(*http.Request, []byte) (int, any){
		"PUT /v1/runs/{run}":                    f.open,
		"GET /v1/runs/{run}":                    f.read,
		"POST /v1/runs/{run}/heartbeat":         f.heartbeat,
		"POST /v1/runs/{run}/release":           f.release,
		"POST /v1/runs/{run}/close":             f.closeRun,
		"POST /v1/runs/claim":                   f.claim,
		"PUT /v1/runs/{run}/checkpoints/{turn}": f.save,
		"GET /v1/runs/{run}/checkpoint":         f.checkpoint,
		"POST /v1/effects":                      f.begin,
		"POST /v1/effects/{id}/finish":          f.finish,
		"POST /v1/effects/finish":               f.finishByKey,
	} {
		mux.HandleFunc(route, f.serve(route, h))
	}
	f.Server = httptest.NewServer(mux)
	return f
}

// fail lets the next requests of a route fail in the given ways.
func (f *fake) fail(route string, ways ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[route] = append(f.faults[route], ways...)
}

// count is how many requests of a route arrived.
func (f *fake) count(route string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r == route {
			n++
		}
	}
	return n
}

// decide moves every effect in one state to another, as a person would, and lets the
// paused runs go on.
func (f *fake) decide(from, to string, result string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.byID {
		if e.state == from {
			e.state, e.decidedBy = to, "person"
			e.finish = FinishRequest{Outcome: to, Result: json.RawMessage(result), Reference: "tr_9"}
			e.run.state = RunRunning
		}
	}
	f.move()
}

func (f *fake) move() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// only is the one effect there is.
func (f *fake) only(t *testing.T) fakeEffect {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byID) != 1 {
		t.Fatalf("%d effects are on record, want 1", len(f.byID))
	}
	for _, e := range f.byID {
		return *e
	}
	panic("unreachable")
}

func (f *fake) serve(route string, h func(*http.Request, []byte) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.requests = append(f.requests, route)
		f.bodies = append(f.bodies, string(body))
		way := fault(-1)
		if left := f.faults[route]; len(left) > 0 {
			way, f.faults[route] = left[0], left[1:]
		}
		f.mu.Unlock()
		switch way {
		case dropBefore:
			panic(http.ErrAbortHandler)
		case answer503:
			write(w, 503, &Problem{Code: CodeUnavailable, Status: 503, Retryable: true, RetryAction: RetrySame})
			return
		case answerHTML:
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>login</html>")
			return
		case tooLarge413:
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		case malformed:
			write(w, 422, &Problem{Code: CodeInvalid, Status: 422})
			return
		case silent:
			<-r.Context().Done()
			return
		}
		status, out := h(r, body)
		if way == dropAfter {
			panic(http.ErrAbortHandler)
		}
		write(w, status, out)
	}
}

func write(w http.ResponseWriter, status int, out any) {
	w.Header().Set(PositionHeader, "header-position")
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
}

func refuse(code string, more Problem) (int, any) {
	more.Code, more.Status = code, 409
	return 409, &more
}

func parse[T any](body []byte) (v T) {
	if err := json.Unmarshal(body, &v); err != nil {
		panic(err)
	}
	return v
}

func (f *fake) begin(_ *http.Request, body []byte) (int, any) {
	in := parse[BeginRequest](body)
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.holder(in.RunID, in.Lease)
	if run == nil {
		return refuse(CodeLeaseLost, Problem{Final: true})
	}
	if run.state == RunPaused {
		return refuse(CodeRunPaused, Problem{RetryAction: RetryHuman, WaitingFor: []WaitingFor{{EffectID: "e1", Reason: "interrupted"}}})
	}
	if f.reads[in.Tool] {
		return 200, BeginAnswer{Do: DoPass}
	}
	digest, err := CallDigest(in.Tool, in.Arguments, f.volatile[in.Tool])
	if err != nil {
		return 422, &Problem{Code: CodeInvalid, Status: 422}
	}
	key := fmt.Sprint(in.RunID, digest, max(in.Occurrence, 1))
	if in.Key != "" {
		key = fmt.Sprint(in.RunID, "minted", in.Key)
	}
	e := f.effects[key]
	if e == nil {
		e = &fakeEffect{id: fmt.Sprintf("e%d", len(f.byID)+1), key: key, run: run, state: "cleared"}
		f.effects[key], f.byID[e.id] = e, e
	}
	switch {
	case e.state == "taken" || e.state == "failed":
		return 200, BeginAnswer{Do: DoReplay, Replayed: true, EffectID: e.id, Key: e.key, Outcome: e.state, DecidedBy: e.decidedBy,
			Stored: Stored{Result: e.finish.Result, Error: e.finish.Error, Reference: e.finish.Reference, ResultOmitted: e.finish.ResultOmitted}}
	case e.state == "cancelled":
		return refuse(CodeCancelled, Problem{Final: true})
	case e.state == "in_flight" && e.attemptID != in.AttemptID:
		return refuse(CodeInFlight, Problem{Retryable: true, RetryAction: RetryPoll})
	case e.state == "cleared":
		e.state, e.attemptID, e.attempt, e.fence = "in_flight", in.AttemptID, e.attempt+1, e.fence+1
		e.deadline = time.Now().Add(f.deadline)
	}
	return 201, BeginAnswer{Do: DoProceed, EffectID: e.id, Key: e.key, Attempt: e.attempt, Fence: e.fence,
		PerformWithinMS: time.Until(e.deadline).Milliseconds(), VendorKey: "vendor-" + e.id, LogPosition: "p-begin"}
}

func (f *fake) finish(r *http.Request, body []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record(f.byID[r.PathValue("id")], parse[FinishRequest](body))
}

func (f *fake) finishByKey(_ *http.Request, body []byte) (int, any) {
	in := parse[FinishRequest](body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.effects[in.Key]; e != nil {
		return f.record(e, in)
	}
	return 200, FinishAnswer{WithoutIntent: true}
}

func (f *fake) record(e *fakeEffect, in FinishRequest) (int, any) {
	if e == nil {
		return 404, &Problem{Code: CodeNotFound, Status: 404}
	}
	e.kept = append(e.kept, in)
	if e.state != "in_flight" && e.state != "interrupted" || in.Fence != e.fence {
		return refuse(CodeStaleFence, Problem{State: e.state, Final: true})
	}
	late := e.state == "interrupted"
	e.finish = in
	switch in.Outcome {
	case "taken", "failed":
		e.state, e.decidedBy = in.Outcome, "agent"
		if late {
			e.decidedBy, e.run.state = "late_agent", RunRunning
		}
	default:
		e.state, e.run.state = "interrupted", RunPaused
	}
	f.move()
	return 200, FinishAnswer{EffectID: e.id, State: e.state, LogPosition: "p-finish"}
}
