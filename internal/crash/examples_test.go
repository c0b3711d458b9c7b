package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
	"quittance/internal/typescript"
	"quittance/ledger"
)

// examples are agents as their users write them. Each pays the invoices of a file and
// says that its run is open before it pays.
var examples = map[string]example{
	"python": {
		command: []string{"python3", "../../examples/invoices-python/agent.py"},
		env:     []string{"PYTHONPATH=../../client/python"},
	},
	"typescript": {
		command: []string{"node", "../../examples/invoices-typescript/dist/agent.js"},
	},
}

type example struct {
	command, env []string
}

// killsVariable asks for more kills of each example at each bank than the suite has time for.
const killsVariable = "QUITTANCE_TEST_KILLS"

const (
	someKills = 8 // of each example at each bank
	killsARun = 3 // at most; then the run is seen to its end
	lanes     = 4 // runs of an example at a bank side by side: they mostly wait for leases and deadlines

	// The first payment of a process may take that long, and every other so much less: a
	// moment is anywhere in the run.
	firstMoments = 500 * time.Millisecond
	moments      = 60 * time.Millisecond
)

// TestExampleAgentsAreKilledAtRandom kills agents at moments that nobody chose, over and
// over, and lets a person who sees only queue and bank decide. Every run comes to its end.
// At a bank that honours the key each invoice is paid once; at one that does not, each
// payment too many is a contradiction on record.
func TestExampleAgentsAreKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := someKills
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		kills = n
	}
	_, err := typescript.Example()
	must(t, err)
	w := newWorld(t, setting{})
	for language, x := range examples {
		for _, k := range keys {
			for lane := range lanes {
				t.Run(fmt.Sprintf("%s %s %d", language, k, lane), func(t *testing.T) {
					t.Parallel()
					x.killedTimes(t, w, k, fmt.Sprintf("%s-%s-%d", language, k, lane), (kills+lanes-1-lane)/lanes)
				})
			}
		}
	}
}

// killedTimes starts as many runs as it takes to kill agents so often.
func (x example) killedTimes(t *testing.T, w *world, k bank.Keys, name string, kills int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for killed, runs := 0, 0; killed < kills; runs++ {
		if runs > 10*kills {
			t.Fatalf("only %d kills in %d runs", killed, runs)
		}
		run := fmt.Sprintf("%s-%d", name, runs)
		e := &exampleWork{work: w.work(run, k, run+"-a", run+"-b", run+"-c"), example: x}
		e.t = t
		killed += e.killed(random, min(killsARun, kills-killed))
		e.finish()
		e.accounted()
	}
}

// exampleWork is a run of an example.
type exampleWork struct {
	*work
	example
}

// start starts one more process of the run.
func (e *exampleWork) start() *process {
	e.t.Helper()
	var invoices []map[string]any
	for _, invoice := range e.job.Invoices {
		invoices = append(invoices, map[string]any{"vendor": payee, "invoice": invoice, "amount": 420000, "currency": "USD"})
	}
	text, err := json.Marshal(invoices)
	must(e.t, err)
	file := filepath.Join(e.dir, e.job.Run+".json")
	must(e.t, os.WriteFile(file, text, 0o600))
	args := append(e.command[1:], "--run", e.job.Run, "--bank", e.job.Bank, "--tool", e.job.Tool,
		"--spool", e.job.Spool, "--lease", fmt.Sprint(e.job.Lease), file)
	env := append(os.Environ(), "QUITTANCE_URL="+e.job.Server, "QUITTANCE_TOKEN="+e.job.Token)
	e.n++
	return start(e.t, fmt.Sprintf("agent %d of %s", e.n, e.job.Run), append(env, e.env...), e.command[0], args...)
}

// killed starts agents and kills each at a random moment; one that pauses before it has a
// decision made. It returns how many died by it.
func (e *exampleWork) killed(random *rand.Rand, most int) (kills int) {
	e.t.Helper()
	for range most {
		p := e.start()
		if _, open := p.says(func(line string) bool { return line == "the run is open" }); open {
			within := firstMoments
			for range random.IntN(len(e.job.Invoices)) { // it says a line for each payment
				if _, said := p.says(func(string) bool { return true }); said {
					within = moments
				}
			}
			time.Sleep(time.Duration(random.Int64N(int64(within))))
			p.end(syscall.SIGKILL)
			if p.cmd.ProcessState.ExitCode() == -1 {
				kills++
				continue
			}
		}
		if p.wait() == exitPaused {
			e.decide()
		}
	}
	return kills
}

// finish sees the run to its end, as a supervisor would.
func (e *exampleWork) finish() {
	e.t.Helper()
	var p *process
	e.job.Lease = longLease // nobody waits for its end, and a busy machine must not lose it
	for range 8 {
		p = e.start()
		switch p.wait() {
		case exitFinished:
			return
		case exitPaused:
			e.decide()
		}
	}
	e.t.Fatalf("%s does not come to its end:\n%s", e.job.Run, p.tail(3))
}

// accounted checks the bank's ledger against the record.
func (e *exampleWork) accounted() {
	e.t.Helper()
	v, err := e.agent.Run(e.t.Context(), e.job.Run, 0)
	if err != nil || v.State != client.RunFinished {
		e.t.Errorf("%s is %s, %v", e.job.Run, v.State, err)
	}
	for _, invoice := range e.job.Invoices {
		ids := e.payments(invoice)
		if len(ids) == 1 {
			continue
		}
		if len(ids) == 0 || e.keys == bank.Honour || !e.contradicted(invoice) {
			e.t.Errorf("the bank paid %s %d times: %v", invoice, len(ids), ids)
		}
	}
}

// contradicted tells whether the record knows that an invoice was paid too often.
func (e *exampleWork) contradicted(invoice string) bool {
	e.t.Helper()
	db, err := ledger.Open(e.t.Context(), e.dsn)
	must(e.t, err)
	defer db.Close()
	var id string
	must(e.t, db.Get(e.t.Context(), &id, `SELECT id FROM effects WHERE business_key = $1`, payee+"/"+invoice))
	x, err := e.operator.Effect(e.t.Context(), id)
	must(e.t, err)
	return len(x.Contradictions) > 0
}
