package desk_test

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkDesk measures the server's time for pages over a million effects, a hundred
// thousand of them open (QUITTANCE_BENCH_EFFECTS sets another number): `make
// bench-desk`. It fails where a page is slower than the design allows.
func BenchmarkDesk(b *testing.B) {
	total := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("QUITTANCE_BENCH_EFFECTS")); err == nil {
		total = n
	}
	w := newWorld(b)
	began := time.Now()
	w.seed(total, total/10)
	b.Logf("%d effects made in %v", total, time.Since(began).Round(time.Second))
	v := w.signedIn("ada")
	later := "/"
	for range 20 {
		a := v.get(later)
		i := strings.Index(a.body, `rel="next"`)
		j := strings.LastIndex(a.body[:i], `href="`) + len(`href="`)
		later = strings.ReplaceAll(a.body[j:j+strings.IndexByte(a.body[j:], '"')], "&amp;", "&")
	}
	for _, page := range []struct {
		name, path string
		limit      time.Duration
	}{
		{"first page", "/", 20 * time.Millisecond},
		{"21st page", later, 20 * time.Millisecond},
		{"tool", "/?tool=tool-7", 20 * time.Millisecond},
		{"agent", "/?agent=agent-3", 20 * time.Millisecond},
		{"run", "/?run=run-77", 20 * time.Millisecond},
		{"business key", "/?key=" + "Vendor+" + strconv.Itoa((total-5)%5000) + "%2FINV-" + strconv.Itoa(total-5), 20 * time.Millisecond},
		{"search", "/?q=inv-" + strconv.Itoa(total-9), 20 * time.Millisecond},
		{"state", "/?state=held", 20 * time.Millisecond},
		{"age", "/?age=1h", 20 * time.Millisecond},
		{"amount", "/?currency=USD&least=1000.00", 20 * time.Millisecond},
		{"closed by late agents", "/?closed=late_agent", 20 * time.Millisecond},
		{"decided", "/decided", 20 * time.Millisecond},
		{"runs", "/runs", 20 * time.Millisecond},
		{"audit", "/audit", 20 * time.Millisecond},
		{"tool, with its totals", "/?tool=tool-7&count=yes", 300 * time.Millisecond},
		{"currency, with its totals", "/?currency=EUR&count=yes", 300 * time.Millisecond},
	} {
		b.Run(page.name, func(b *testing.B) { v.pace(b, page.path, page.limit) })
	}
}

// pace measures the 95th percentile of a page, and fails where it is above a limit.
func (v *visitor) pace(b *testing.B, path string, limit time.Duration) {
	b.Helper()
	for range 10 { // plans and pages come into memory
		v.get(path)
	}
	var took []time.Duration
	once := func() {
		began := time.Now()
		a := v.get(path)
		took = append(took, time.Since(began))
		if a.status != http.StatusOK {
			b.Fatalf("%s: %d", path, a.status)
		}
	}
	for b.Loop() {
		once()
	}
	for len(took) < 100 {
		once()
	}
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	b.ReportMetric(float64(p95.Microseconds())/1000, "p95-ms")
	if p95 > limit {
		b.Errorf("p95 is %v, the limit %v", p95, limit)
	}
}
