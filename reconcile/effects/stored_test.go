package effects_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/ledger/ledgertest"
	"quittance/reconcile/effects"
)

// growth is how much more anything that agents and people wait for may cost with much more
// stored. An index grows a level in a hundredfold, and each row has some.
const growth = 1.3

// levels is how many pages more a call may read at these sizes besides: the indexes of the
// loops are a page each in the small database, and a tree in the large one.
const levels = 12

// What agents and people wait for costs hardly more with ten times as much stored: by
// the pages of the database that are read, which no other work on the machine changes.
func TestCostsHardlyGrowWithWhatIsStored(t *testing.T) {
	t.Parallel()
	few, many := 5_000, 50_000
	w := newWorld(t, slowRelease)
	before := w.costs(1, few, 1_000)
	after := w.costs(few+1, many, 0)
	for name, c := range after {
		b := before[name]
		t.Logf("%s: %.1f pages with %d effects, %.1f with %d", name, b.pages, few, c.pages, many)
		if c.pages > b.pages*growth+levels {
			t.Errorf("%s reads %.1f pages with %d effects and %.1f with %d", name, b.pages, few, c.pages, many)
		}
	}
}

// BenchmarkStored compares 100,000 stored effects with QUITTANCE_BENCH_EFFECTS (2,000,000),
// in pages read and in time.
func BenchmarkStored(b *testing.B) {
	few, many := 100_000, 2_000_000
	if n, err := strconv.Atoi(os.Getenv("QUITTANCE_BENCH_EFFECTS")); err == nil {
		many = n
	}
	for range b.N {
		w := newWorld(b, slowRelease)
		before := w.costs(1, few, 10_000)
		after := w.costs(few+1, many, 0)
		for name, c := range after {
			metric := strings.ReplaceAll(name, " ", "-")
			b.ReportMetric(c.pages/before[name].pages, metric+"-pages-ratio")
			b.ReportMetric(float64(c.time)/float64(before[name].time), metric+"-time-ratio")
		}
	}
}

type cost struct {
	pages float64
	time  time.Duration // the median
}

// costs adds effects and measures one call of each kind.
func (w *world) costs(first, last, open int) map[string]cost {
	w.t.Helper()
	ledgertest.Fill(w.t, w.db, ledgertest.Stored{Account: w.account, First: first, Last: last, Open: open})
	run := fmt.Sprintf("measured-%d", last)
	l := w.open(run, "pod-1")
	var begun []*effects.BeginAnswer
	n := 0
	list := map[string]cost{}
	for _, k := range []struct {
		name string
		call func()
	}{
		{"begin", func() {
			n++
			begun = append(begun, w.proceed(l, "send_payment", pay(fmt.Sprintf("%s-%d", run, n), "10.00")))
		}},
		{"finish", func() {
			b := begun[0]
			begun = begun[1:]
			if a := w.finish(b, "taken", reference(b.EffectID)); a.Refusal != nil {
				w.t.Fatal(a.Refusal)
			}
		}},
		{"queue page", func() { w.page(effects.QueueQuery{}, 50) }},
		{"search", func() { w.page(effects.QueueQuery{Words: "inv-4990"}, 1) }},
		{"loops", func() { w.settle() }},
	} {
		calls := 120
		if k.name == "finish" {
			calls = len(begun) - 20
		}
		for range 10 {
			k.call()
		}
		var took []time.Duration
		before := w.pagesRead(k.call)
		for range calls - 20 {
			start := time.Now()
			k.call()
			took = append(took, time.Since(start))
		}
		pages := w.pagesRead(k.call) - before
		slices.Sort(took)
		list[k.name] = cost{pages: float64(pages) / float64(calls-19), time: took[len(took)/2]}
	}
	return list
}

// page reads a page of the queue that has at least so many items.
func (w *world) page(q effects.QueueQuery, least int) {
	p, err := w.Queue(w.t.Context(), q)
	if err != nil || len(p.Items) < least {
		w.t.Fatalf("a page of %d items: %v", len(p.Items), err)
	}
}

// pagesRead is how many pages this database has read so far. Its sessions tell of theirs
// once a second, when they do something: call is that.
func (w *world) pagesRead(call func()) (n int) {
	time.Sleep(1100 * time.Millisecond)
	call()
	return w.count(`SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()`)
}
