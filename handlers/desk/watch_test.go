package desk_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// BenchmarkWatchers: 200 open pages while 100 effects a second change. Each hears of a
// change within a second, and a begin takes less than a fifth longer than without them.
func BenchmarkWatchers(b *testing.B) {
	w := newWorld(b)
	const watchers, changes = 200, 300
	v := w.signedIn("petra")
	lease, err := w.engine.Open(b.Context(), effects.Open{Account: w.account, RunID: "run-watch", Agent: "bot", Worker: "w", AttemptID: "1", Lease: 10 * time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	// round makes changes at 100 a second, each seen by pages, and gives the median begin.
	round := func() time.Duration {
		var took []time.Duration
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range changes {
			<-tick.C
			n++
			began := time.Now()
			a, err := w.engine.Apply(b.Context(), []effects.Op{{Begin: &effects.Begin{
				Account: w.account, RunID: "run-watch", Lease: lease.Token, AttemptID: fmt.Sprint(n), Tool: "t", Arguments: fmt.Appendf(nil, `{"n":%d}`, n),
			}}})
			took = append(took, time.Since(began))
			if err != nil || a[0].Begin == nil {
				b.Fatal(err, a[0].Refusal)
			}
			w.hub.Changed("run:1")
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	round() // warm
	alone := round()
	ctx, stop := context.WithCancel(b.Context())
	var watching sync.WaitGroup
	late := make(chan time.Duration, watchers)
	open := make(chan struct{}, watchers)
	for range watchers {
		watching.Go(func() {
			resp, err := (&http.Client{Jar: v.c.Jar, Transport: http.DefaultTransport}).Do(v.request(http.MethodGet, "/events", nil).WithContext(ctx))
			if err != nil {
				b.Error(err)
				open <- struct{}{}
				return
			}
			defer resp.Body.Close()
			open <- struct{}{}
			var worst time.Duration
			last := time.Now()
			heard := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if lines.Text() == "event: changed" {
					if heard++; heard > 1 {
						worst = max(worst, time.Since(last))
					}
					last = time.Now()
				}
			}
			if heard < 2 {
				worst = time.Hour
			}
			late <- worst
		})
	}
	for range watchers {
		<-open
	}
	watched := round()
	stop()
	watching.Wait()
	close(late)
	var worst time.Duration
	for d := range late {
		worst = max(worst, d)
	}
	b.ReportMetric(float64(alone.Microseconds())/1000, "begin-alone-ms")
	b.ReportMetric(float64(watched.Microseconds())/1000, "begin-watched-ms")
	b.ReportMetric(float64(worst.Milliseconds()), "longest-silence-ms")
	if worst > time.Second {
		b.Errorf("somebody heard nothing for %v", worst)
	}
	if watched > alone*6/5 {
		b.Errorf("a begin takes %v with watchers, %v without", watched, alone)
	}
}
