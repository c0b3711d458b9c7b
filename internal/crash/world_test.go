package crash

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo"
	"quittance/cmd/quittance/demo/bank"
	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// setting is what worlds differ in.
type setting struct {
	own      bool          // the server runs a PostgreSQL of its own, to be killed
	deadline time.Duration // of every tool; 4 s when 0
	hold     time.Duration // of every decision but "not taken"
}

// The tools, by what is promised of their bank.
const (
	keeps   = "send_payment"
	ignores = "wire_payment"
	breaks  = "push_payment" // the policy says that it keeps our key, and it does not
)

// policy waits for nothing that the tests do not need.
func (s setting) policy() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "release: {hold: %v, not_taken_hold: 0s}\ntools:\n", s.hold)
	for tool, key := range map[string]string{keeps: "vendor_key: {life: 24h}", ignores: "", breaks: "vendor_key: {life: 24h}"} {
		fmt.Fprintf(&b, `
  %s:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    deadline: %v
    %s
`, tool, cmp.Or(s.deadline, 4*time.Second), key)
	}
	return []byte(b.String())
}

const (
	shortLease = 2  // seconds, the shortest there is
	longLease  = 60 // longer than any restart
)

// keys are the two kinds of banks, and toolOf is the honest policy's tool for each.
var (
	keys   = []bank.Keys{bank.Honour, bank.Ignore}
	toolOf = map[bank.Keys]string{bank.Honour: keeps, bank.Ignore: ignores}
)

// world is a server on a database of its own, and a bank of each kind.
type world struct {
	t    *testing.T
	dir  string
	gate *gate  // where everybody finds the server
	data string // folder of the server's own PostgreSQL
	dsn  string // of the database otherwise
	env  []string

	server *process
	bankAt map[bank.Keys]string
	ledger map[bank.Keys]string // file

	agentToken string
	agent      *client.Client // for reading
	operator   *client.Client
}

// newWorld starts everything. The server is on a database of the tests' PostgreSQL
// unless it is to have its own.
func newWorld(t *testing.T, s setting) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), data: ledgertest.DataDir(t), gate: newGate(t), agentToken: access.NewToken(access.AgentPrefix),
		bankAt: map[bank.Keys]string{}, ledger: map[bank.Keys]string{},
	}
	person := access.NewToken(access.PersonPrefix)
	w.env = append(os.Environ(), "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN="+person, "QUITTANCE_BOOTSTRAP_AGENT_TOKEN="+w.agentToken)
	if !s.own {
		w.dsn = ledgertest.URL(t)
	}
	w.env = append(w.env, "DATABASE_URL="+w.dsn, "QUITTANCE_ENVIRONMENT=test")
	must(t, os.WriteFile(w.path("quittance.yaml"), s.policy(), 0o600))
	w.serve()
	for _, k := range keys {
		w.openBank(k)
	}
	w.agent, w.operator = w.as(w.agentToken), w.as(person)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) as(token string) *client.Client {
	c := client.New(w.gate.URL, token, client.WithSpool(w.t.TempDir()), client.WithPatience(patience))
	w.t.Cleanup(c.Close)
	return c
}

// serve starts the server, the first time or after a crash, and leads callers to it.
func (w *world) serve() {
	w.t.Helper()
	w.server = start(w.t, "serve", w.env, program, "serve", "--listen", "127.0.0.1:0", "--data", w.data, "--policy", w.path("quittance.yaml"))
	w.gate.lead(urlAfter(w.server, "msg=serving url="))
}

// urlAfter is what a process says after a mark.
func urlAfter(p *process, mark string) string {
	p.t.Helper()
	line := p.await("said its address", func(line string) bool { return strings.Contains(line, mark) })
	_, rest, _ := strings.Cut(line, mark)
	url, _, _ := strings.Cut(rest, " ")
	return url
}

func (w *world) openBank(k bank.Keys) {
	w.t.Helper()
	w.ledger[k] = w.path(string(k) + ".jsonl")
	p := start(w.t, "bank-"+string(k), os.Environ(), program, "demo-bank", "--ledger", w.ledger[k], "--keys", string(k), "--listen", "127.0.0.1:0")
	w.bankAt[k] = urlAfter(p, demo.BankOpen)
}

// postgres is the server's own PostgreSQL.
func (w *world) postgres() *embedded.Instance {
	w.t.Helper()
	in, err := embedded.Find(w.data)
	must(w.t, err)
	return in
}

// work is one run that pays at one bank.
type work struct {
	*world
	t    *testing.T // the cell's own
	keys bank.Keys
	job  job
	n    int // agents started
}

func (w *world) work(run string, k bank.Keys, invoices ...string) *work {
	if invoices == nil {
		invoices = []string{"INV-" + run}
	}
	return &work{world: w, t: w.t, keys: k, job: job{
		Server: w.gate.URL, Token: w.agentToken, Bank: w.bankAt[k], Spool: w.path("spool-" + run),
		Run: run, Tool: toolOf[k], Invoices: invoices, Lease: shortLease, Held: 30,
	}}
}

// start starts one more process of the run.
func (w *work) start(changes ...func(*job)) *process {
	w.t.Helper()
	j := w.job
	for _, change := range changes {
		change(&j)
	}
	text, err := json.Marshal(j)
	must(w.t, err)
	w.n++
	return start(w.t, fmt.Sprintf("agent %d of %s", w.n, j.Run), append(os.Environ(), jobVariable+"="+string(text)), os.Args[0])
}

func parkAt(points ...point) func(*job) { return func(j *job) { j.Park = points } }

func lease(seconds int) func(*job) { return func(j *job) { j.Lease = seconds } }

// parked waits until an agent stands at a point.
func (p *process) parked(at point) {
	p.t.Helper()
	p.event(string(at), func(e event) bool { return e.At == at })
}

func (p *process) event(what string, match func(event) bool) (e event) {
	p.t.Helper()
	p.await("said: "+what, func(line string) bool {
		e = event{}
		return json.Unmarshal([]byte(line), &e) == nil && match(e)
	})
	return e
}

func (p *process) goOn() { _, _ = p.stdin.Write([]byte("go\n")) }

// events are all that an agent has said so far.
func (p *process) events() (list []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// effect is the first that the process said something about.
func (p *process) effect() string {
	for _, e := range p.events() {
		if e.Effect != "" {
			return e.Effect
		}
	}
	return ""
}

// crashed kills an agent that stands at a point.
func (w *work) crashed(at point) {
	w.t.Helper()
	p := w.start(parkAt(at))
	p.parked(at)
	p.kill()
}

// finish sees the run to its end: it starts agents as a scheduler would, again where
// one lost its lease to a busy machine, and lets the operator decide whenever one is
// refused. It returns the last agent.
func (w *work) finish() (p *process) {
	w.t.Helper()
	for range 8 {
		p = w.start()
		switch p.wait() {
		case exitFinished:
			return p
		case exitPaused:
			w.decide()
		}
	}
	w.t.Fatalf("%s does not come to its end:\n%s", w.job.Run, p.tail(3))
	return p
}

// payments are what the bank's file holds for an invoice.
func (w *work) payments(invoice string) []string {
	w.t.Helper()
	found, err := bank.ReadLedger(w.ledger[w.keys], invoice)
	must(w.t, err)
	var ids []string
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	return ids
}

// once checks that each invoice was paid exactly once and that the record says so: the
// run is finished, and each effect is taken with the bank's own id, unopposed.
func (w *work) once(last *process) {
	w.t.Helper()
	v, err := w.agent.Run(w.t.Context(), w.job.Run, 0)
	if err != nil || v.State != client.RunFinished {
		w.t.Errorf("%s is %s, %v", w.job.Run, v.State, err)
	}
	for _, invoice := range w.job.Invoices {
		ids := w.payments(invoice)
		if len(ids) != 1 {
			w.t.Errorf("the bank paid %s %d times: %v", invoice, len(ids), ids)
			continue
		}
		var told event
		for _, e := range last.events() {
			if e.Kind == paid && e.Invoice == invoice {
				told = e
			}
		}
		if told.Effect == "" {
			continue // the agent went on after it: an earlier one was told
		}
		x, err := w.operator.Effect(w.t.Context(), told.Effect)
		if err != nil || x.State != "taken" || x.Reference != ids[0] || told.Payment != ids[0] || len(x.Contradictions) != 0 {
			w.t.Errorf("%s: the bank has %s; on record is %s %q, the agent was told %q; %d contradictions, %v",
				invoice, ids[0], x.State, x.Reference, told.Payment, len(x.Contradictions), err)
		}
	}
}

// interrupted waits until the run stands in the queue, and returns its row.
func (w *work) interrupted() client.QueueItem {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		page, err := w.operator.Queue(w.t.Context(), client.QueueFilter{RunID: w.job.Run})
		must(w.t, err)
		if len(page.Items) > 0 {
			return page.Items[0]
		}
	}
	w.t.Fatalf("%s is not in the queue", w.job.Run)
	return client.QueueItem{}
}
