package crash

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheSpool: the server is down when the agent has paid. The outcome is on the
// agent's disk before the agent dies too, and the next agent delivers it before it asks
// for the run: nobody has to decide anything.
func TestTheSpool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{deadline: time.Minute})
	type cell struct {
		*work
		agent *process
	}
	var cells []cell
	for _, k := range keys {
		c := w.work("spool-"+string(k), k)
		cells = append(cells, cell{c, c.start(parkAt(afterAct))})
	}
	for _, c := range cells {
		c.agent.parked(afterAct)
	}
	w.server.kill()
	for _, c := range cells {
		c.agent.goOn()
		c.spooled(1)
		c.agent.kill()
	}
	w.serve()
	for _, c := range cells {
		c.interrupted()
		last := c.start()
		if last.wait() != exitFinished {
			t.Fatalf("the next agent did not come to its end:\n%s", last.tail(3))
		}
		c.spooled(0)
		c.once(last)
		x, err := c.operator.Effect(t.Context(), c.agent.effect())
		if err != nil || x.DecidedBy != "late_agent" || len(x.Decisions) != 0 || len(x.Attempts) != 1 {
			t.Errorf("closed by %q after %d decisions and %d attempts, %v", x.DecidedBy, len(x.Decisions), len(x.Attempts), err)
		}
	}
}

// spooled waits until so many outcomes lie on the agent's disk, whole.
func (w *work) spooled(n int) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(w.job.Spool, "[0-9]*.json"))
		must(w.t, err)
		if len(files) == n {
			return
		}
		if time.Now().After(end) {
			entries, _ := os.ReadDir(w.job.Spool)
			w.t.Fatalf("%d outcomes are in the spool, want %d: %v", len(files), n, entries)
		}
	}
}
