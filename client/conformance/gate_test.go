package conformance

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate is what the processes of a scenario find instead of the server: it can fail in
// the ways that a network does.
type gate struct {
	*httptest.Server
	behind http.Handler

	mu     sync.Mutex
	faults []*fault
}

// fault meets the next calls of a route.
type fault struct {
	kind  string
	route string // METHOD /path, * for a segment
	times int
	hold  time.Duration
}

// The kinds of faults.
var faultKinds = map[string]func(w http.ResponseWriter, r *http.Request, behind http.Handler, hold time.Duration){
	"drop_request": func(http.ResponseWriter, *http.Request, http.Handler, time.Duration) {
		panic(http.ErrAbortHandler)
	},
	"drop_answer": func(_ http.ResponseWriter, r *http.Request, behind http.Handler, _ time.Duration) {
		behind.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
	"unavailable": func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ time.Duration) {
		http.Error(w, "no server is ready", http.StatusServiceUnavailable)
	},
	"page": func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ time.Duration) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Please sign in to the network</html>"))
	},
	"too_large": func(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ time.Duration) {
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
	},
	"hold": func(w http.ResponseWriter, r *http.Request, behind http.Handler, hold time.Duration) {
		kept := httptest.NewRecorder()
		behind.ServeHTTP(kept, r)
		time.Sleep(hold)
		for name, values := range kept.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(kept.Code)
		_, _ = w.Write(kept.Body.Bytes())
	},
}

func newGate(t testing.TB, behind http.Handler) *gate {
	g := &gate{behind: behind}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func (g *gate) fail(f fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, &f)
}

func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
}

// met is the fault that a call meets, used up by it.
func (g *gate) met(r *http.Request) *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.faults {
		method, route, _ := strings.Cut(f.route, " ")
		if hit, err := path.Match(route, r.URL.Path); err == nil && hit && method == r.Method && f.times > 0 {
			f.times--
			return f
		}
	}
	return nil
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := g.met(r); f != nil {
		faultKinds[f.kind](w, r, g.behind, f.hold)
		return
	}
	g.behind.ServeHTTP(w, r)
}
