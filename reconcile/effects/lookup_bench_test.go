package effects_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkAThousandLookUps: a downstream of 20 ms without a limit, a thousand effects
// interrupted at once. Seconds until every one is closed by proof, and transactions for
// each, those of the loops beside them counted in.
func BenchmarkAThousandLookUps(b *testing.B) {
	const n = 1000
	for range b.N {
		b.StopTimer()
		bank := newDownstream(b)
		w := newWorld(b, bank.policy())
		w.lostMany("run", n)
		for i := range n {
			bank.pay(paid(fmt.Sprintf("run-%d", i), "10.00"))
		}
		bank.before = func() { time.Sleep(20 * time.Millisecond) }
		commits := func() int {
			time.Sleep(1500 * time.Millisecond) // PostgreSQL's counters lag by a second
			return w.count(`SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`)
		}
		before := commits()
		b.StartTimer()
		begun := time.Now()
		stop := w.loops(w.Engine)
		eventually(b, func() bool {
			time.Sleep(100 * time.Millisecond)
			return w.count(`SELECT count(*) FROM effects WHERE state = 'taken'`) == n
		})
		took := time.Since(begun)
		b.StopTimer()
		stop()
		b.ReportMetric(took.Seconds(), "s/thousand")
		b.ReportMetric(float64(commits()-before)/n, "transactions/look-up")
	}
}
