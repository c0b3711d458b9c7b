package crash

import (
	"syscall"
	"testing"
)

// TestKillAnywhere kills one of the processes while agents stand at every named point
// at once. Each payment is then at its bank exactly once, with the bank that keeps our
// key and with the one that ignores it, and every run comes to its end.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	for _, victim := range []struct {
		name string
		own  bool // PostgreSQL is the server's own
		kill func(w *world, agents []*process)
		dead bool // the agents are
	}{
		{"agent", false, killAgents, true},
		{"server", false, func(w *world, _ []*process) {
			w.server.kill()
			w.serve()
		}, false},
		{"postgres", true, func(w *world, _ []*process) {
			must(w.t, syscall.Kill(w.postgres().PID(), syscall.SIGKILL)) // its server starts it again
		}, false},
		{"everything", true, func(w *world, agents []*process) {
			in := w.postgres()
			w.server.kill()
			killAgents(w, agents)
			must(w.t, in.Kill())
			w.serve()
		}, true},
	} {
		t.Run(victim.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setting{own: victim.own})
			cells := standAtEveryPoint(w)
			var agents []*process
			for _, c := range cells {
				agents = append(agents, c.agent)
			}
			victim.kill(w, agents)
			for _, c := range cells {
				t.Run(string(c.at)+"/"+string(c.keys), func(t *testing.T) {
					t.Parallel()
					c.t = t
					if !victim.dead {
						c.agent.goOn()
						if c.agent.wait() == exitFinished {
							c.once(c.agent)
							return
						}
					}
					c.once(c.finish())
				})
			}
		})
	}
}

func killAgents(_ *world, agents []*process) {
	for _, p := range agents {
		p.kill()
	}
}

// cell is an agent that stands at a point.
type cell struct {
	*work
	at    point
	agent *process
}

// standAtEveryPoint starts an agent for each point and bank. Those that resume come
// first: they have a crash and a decision behind them, and an intent is young only for
// its deadline.
func standAtEveryPoint(w *world) (cells []cell) {
	for _, k := range keys {
		c := cell{work: w.work("resumed-"+string(k), k), at: opened}
		c.crashed(afterAct)
		cells = append(cells, c)
	}
	for _, c := range cells {
		c.interrupted()
		c.decide()
	}
	for _, at := range []point{beforeIntent, afterIntent, afterAct, afterRecord} {
		for _, k := range keys {
			cells = append(cells, cell{work: w.work(string(at)+"-"+string(k), k), at: at})
		}
	}
	for i := range cells {
		cells[i].agent = cells[i].start(parkAt(cells[i].at))
	}
	for _, c := range cells {
		c.agent.parked(c.at)
	}
	return cells
}
