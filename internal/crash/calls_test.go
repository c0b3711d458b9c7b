package crash

import (
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lib/pq"

	"quittance/cmd/quittance/demo/bank"
	"quittance/ledger"
)

// TestKillServerInsideACall kills the server between a call and its answer, for every
// call that an agent or a person makes, all at once: where the server never saw the
// call, where its transaction was open, and where the answer was written and nobody
// heard it. Whoever asked sends the same again, as its ids allow, and learns what
// became of the first.
func TestKillServerInsideACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{deadline: time.Minute})
	var cells, locked []*inside
	for _, k := range keys {
		cells = append(cells,
			decisionsCall(w, k, "decision unseen", trap{method: http.MethodPost, path: "/decision"}),
			decisionsCall(w, k, "decision answered", trap{method: http.MethodPost, path: "/decision", answered: true}),
		)
		locked = append(locked, decisionsCall(w, k, "decision in its transaction", trap{}))
	}
	for _, k := range keys {
		cells = append(cells,
			agentsCall(w, k, "open answered", "", trap{method: http.MethodPut, answered: true}),
			agentsCall(w, k, "begin unseen", beforeIntent, trap{method: http.MethodPost, path: "/v1/effects"}),
			agentsCall(w, k, "begin answered", beforeIntent, trap{method: http.MethodPost, path: "/v1/effects", answered: true}),
			agentsCall(w, k, "finish unseen", afterAct, trap{method: http.MethodPost, path: "/finish"}),
			agentsCall(w, k, "finish answered", afterAct, trap{method: http.MethodPost, path: "/finish", answered: true}),
			agentsCall(w, k, "checkpoint answered", beforeIntent, trap{method: http.MethodPut, path: "/checkpoints/1", answered: true}),
			agentsCall(w, k, "close answered", beforeIntent, trap{method: http.MethodPost, path: "/close", answered: true}),
		)
	}
	// One each: two transactions that wait are as many as the server has open for agents.
	locked = append(locked,
		agentsCall(w, bank.Honour, "begin in its transaction", beforeIntent, trap{}),
		agentsCall(w, bank.Ignore, "finish in its transaction", afterAct, trap{}),
	)
	for _, c := range cells {
		c.call()
		<-c.trap.reached
	}
	unlock := lockRuns(w, locked)
	cells = append(cells, locked...)

	w.server.kill()
	unlock()
	w.serve()
	for _, c := range cells {
		if c.trap != nil {
			close(c.trap.drop)
		}
	}
	for _, c := range cells {
		t.Run(c.job.Run, func(t *testing.T) {
			t.Parallel()
			c.t = t
			c.settle()
		})
	}
}

// inside is a call that the server dies in.
type inside struct {
	*work
	trap    *trap    // nil when a lock holds the call
	agent   *process // makes the call; nil when a person does
	effect  string
	decided chan error
}

// agentsCall has an agent stand before the call.
func agentsCall(w *world, k bank.Keys, name string, before point, tr trap) *inside {
	w.t.Helper()
	c := &inside{work: w.work(fmt.Sprintf("%s, %s", name, k), k)}
	c.job.Lease = longLease // the agent goes on by itself
	tr.body = c.job.Run
	if before == "" {
		c.trap = w.gate.hold(tr)
		c.agent = c.start()
		return c
	}
	c.agent = c.start(parkAt(before))
	if before == afterAct {
		c.effect = c.agent.event("begun", func(e event) bool { return e.Kind == begun }).Effect
		tr.body = c.effect
	}
	c.agent.parked(before)
	if tr.method != "" {
		c.trap = w.gate.hold(tr)
	}
	return c
}

// decisionsCall has a payment wait for a person.
func decisionsCall(w *world, k bank.Keys, name string, tr trap) *inside {
	w.t.Helper()
	c := &inside{work: w.work(fmt.Sprintf("%s, %s", name, k), k), decided: make(chan error, 1)}
	p := c.start(parkAt(afterAct))
	c.effect = p.event("begun", func(e event) bool { return e.Kind == begun }).Effect
	p.parked(afterAct)
	p.kill()
	tr.body = c.effect
	if tr.method != "" {
		c.trap = w.gate.hold(tr)
	}
	return c
}

// call lets the call be made.
func (c *inside) call() {
	c.t.Helper()
	if c.agent != nil {
		c.agent.goOn()
		return
	}
	row := c.interrupted()
	go func() { c.decided <- c.judge(row) }()
}

// settle finds that the one who called came through, and that nothing happened twice.
func (c *inside) settle() {
	if c.agent == nil {
		must(c.t, <-c.decided)
		x, err := c.operator.Effect(c.t.Context(), c.effect)
		if err != nil || len(x.Decisions) != 1 || x.DecidedBy != "person" {
			c.t.Errorf("%d decisions on record, by %q, %v", len(x.Decisions), x.DecidedBy, err)
		}
		c.once(c.finish())
		return
	}
	if c.agent.wait() != exitFinished {
		c.t.Fatalf("the agent did not come through:\n%s", c.agent.tail(3))
	}
	c.once(c.agent)
	for _, e := range c.agent.events() {
		if e.Kind == paid && (e.Replayed || !e.Recorded) {
			c.t.Errorf("the call came back as %+v", e)
		}
	}
}

// lockRuns locks the runs' rows in the database, has each call be made, and returns
// once each waits for its row within its transaction.
func lockRuns(w *world, cells []*inside) (unlock func()) {
	t := w.t
	t.Helper()
	db, err := ledger.Open(t.Context(), w.dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.Pool().Begin()
	must(t, err)
	var runs []string
	for _, c := range cells {
		runs = append(runs, c.job.Run)
	}
	_, err = tx.Exec(`SELECT FROM runs WHERE run_id = ANY($1) FOR UPDATE`, pq.Array(runs))
	must(t, err)
	for i, c := range cells {
		c.call()
		for end := time.Now().Add(patience); waiting(t, db.Pool()) <= i; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not reach its transaction", c.job.Run)
			}
		}
	}
	return func() { must(t, tx.Rollback()) }
}

func waiting(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	must(t, db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n))
	return n
}
