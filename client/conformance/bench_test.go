package conformance

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// clocked measures how long the server takes for the calls of agents.
type clocked struct {
	http.Handler

	mu   sync.Mutex
	took map[bool][]time.Duration // begins, and finishes
}

func (c *clocked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c.Handler.ServeHTTP(w, r)
	if strings.HasPrefix(r.URL.Path, "/v1/effects") {
		c.mu.Lock()
		defer c.mu.Unlock()
		finish := strings.HasSuffix(r.URL.Path, "/finish")
		c.took[finish] = append(c.took[finish], time.Since(start))
	}
}

// median is of a begin and of a finish, added.
func (c *clocked) median() (sum time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.took {
		slices.Sort(list)
		sum += list[len(list)/2]
	}
	return sum
}

// BenchmarkGuard says what a guarded call costs beyond the server's own time, for each
// language. One iteration makes 2,000 calls; -benchtime 1x is meant.
func BenchmarkGuard(b *testing.B) {
	const calls = 2000
	for language, args := range languages(b) {
		b.Run(language, func(b *testing.B) {
			w := newWorld(b)
			token := w.account(b, language)
			for range b.N {
				c := &clocked{Handler: w.handler, took: map[bool][]time.Duration{}}
				env := append(os.Environ(), runnerVariable+"=1", "QUITTANCE_URL="+newGate(b, c).URL, "QUITTANCE_TOKEN="+token, "QUITTANCE_SPOOL="+b.TempDir())
				p := start(b, language, env, args)
				for _, command := range []map[string]any{{"op": "open", "run": language}, {"op": "bench", "run": language, "tool": "send", "calls": calls}} {
					got, err := p.ask(command)
					if err != nil || got["error"] != nil {
						b.Fatalf("%v, %v", got, err)
					}
					if n, ok := got["median_us"].(json.Number); ok {
						whole, err := n.Float64()
						if err != nil {
							b.Fatal(err)
						}
						server := float64(c.median().Microseconds())
						b.ReportMetric(whole, "call-us")
						b.ReportMetric(server, "server-us")
						b.ReportMetric(whole-server, "added-us")
					}
				}
			}
		})
	}
}
