package crash

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"quittance/client"
)

// gate stands between callers and a server: it keeps one address over the server's
// restarts, notes the answers, and can hold a call at either side of the server. When
// the server is gone, a caller sees what it would see without a gate: a broken
// connection.
type gate struct {
	*httptest.Server
	transport http.RoundTripper

	mu     sync.Mutex
	target string // "" refuses all
	traps  []*trap
	seen   []answer
}

// answer is what a server said to a call.
type answer struct {
	method, path, body string // of the call
	status             int
	code               string // of a problem
}

// trap holds the first call that matches, once.
type trap struct {
	method, path string // path is a suffix
	body         string // is in the call's body or path
	answered     bool   // hold the answer; otherwise the call
	reached      chan struct{}
	drop         chan struct{} // closed: the caller's connection breaks
}

func newGate(t *testing.T) *gate {
	g := &gate{transport: &http.Transport{DisableKeepAlives: true}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func (g *gate) lead(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
}

func (g *gate) hold(tr trap) *trap {
	tr.reached, tr.drop = make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.traps = append(g.traps, &tr)
	return &tr
}

func (g *gate) caught(r *http.Request, body string, answered bool) *trap {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, tr := range g.traps {
		if tr.answered == answered && tr.method == r.Method && strings.HasSuffix(r.URL.Path, tr.path) &&
			(strings.Contains(body, tr.body) || strings.Contains(r.URL.Path, tr.body)) {
			g.traps = append(g.traps[:i:i], g.traps[i+1:]...)
			return tr
		}
	}
	return nil
}

// ServeHTTP passes a call on and its answer back, whole.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tr := g.caught(r, string(body), false); tr != nil {
		tr.spring()
	}
	g.mu.Lock()
	target := g.target
	g.mu.Unlock()
	out, err := http.NewRequestWithContext(r.Context(), r.Method, target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	out.Header = r.Header.Clone()
	resp, err := g.transport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	g.note(r, string(body), resp.StatusCode, text)
	if tr := g.caught(r, string(body), true); tr != nil {
		tr.spring()
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(text)
}

// spring never lets the call through.
func (tr *trap) spring() {
	close(tr.reached)
	<-tr.drop
	panic(http.ErrAbortHandler)
}

func (g *gate) note(r *http.Request, body string, status int, text []byte) {
	var p client.Problem
	_ = json.Unmarshal(text, &p)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, answer{r.Method, r.URL.Path, body, status, p.Code})
}

// finishes are the answers to the finishes of an effect with this reference.
func (g *gate) finishes(effectID, reference string) (found []answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.seen {
		if strings.HasSuffix(a.path, effectID+"/finish") && strings.Contains(a.body, `"reference":"`+reference+`"`) {
			found = append(found, a)
		}
	}
	return found
}
