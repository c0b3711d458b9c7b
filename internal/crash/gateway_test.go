package crash

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/client"
	"quittance/internal/chain"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/evm"
)

// A gateway's order of work, by the calls it makes: each is a place where it can die,
// before the call arrives and when the answer is on its way back.
var gatewaySteps = []struct {
	name, path, body string
	chain            bool // a call to the chain; otherwise to the server
	// What the payer must be told afterwards, when the payment is old: true that it is
	// settled, false that nobody knows.
	before, after bool
}{
	{name: "claim", path: "/v1/payments", before: true},
	{name: "order", path: "/order"},
	{name: "work", path: "/work"},
	{name: "what the work did", path: "/finish", body: `"outcome":"taken"`, after: true},
	{name: "broadcast", path: "/broadcast", before: true},
	{name: "send", body: "eth_sendTransaction", chain: true, after: true},
	{name: "finish", path: "/finish", body: `"outcome":"settled"`, before: true, after: true},
}

// shop is a server, a chain, and the programs of a gateway and of a payer.
type shop struct {
	*world
	chain          *chain.Chain
	token          evm.Address
	db             *ledger.DB
	gateway, payer string // programs
}

const pagePrice = 1_000_000

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{chain: chain.Start(t)}
	s.chain.AtOnce()
	s.token = s.chain.Deploy(chain.Dollar)
	s.chain.Mint(s.token, s.chain.Account(1), 1000*pagePrice)
	w := &world{t: t, dir: t.TempDir(), data: ledgertest.DataDir(t), gate: newGate(t), agentToken: access.NewToken(access.AgentPrefix), dsn: ledgertest.URL(t)}
	w.env = append(os.Environ(), "QUITTANCE_BOOTSTRAP_AGENT_TOKEN="+w.agentToken, "DATABASE_URL="+w.dsn, "QUITTANCE_ENVIRONMENT=test")
	policy := fmt.Sprintf(`
release: {hold: 0s, not_taken_hold: 0s}
tools:
  make_page: {deadline: 60s}
gateways:
  shop: {seller: "Paid Pages Ltd", support: help@shop.example}
rails:
  eip155:%d:
    allow_private: true
    rpc: ["%s"]
    assets: {"%s": {code: USDC, decimals: 6, eip3009: {name: USD Coin, version: "2"}}}
`, s.chain.ID, s.chain.URL, strings.ToLower(s.token.String()))
	must(t, os.WriteFile(w.path("quittance.yaml"), []byte(policy), 0o600))
	s.world = w
	w.serve()
	w.agent = w.as(w.agentToken)
	var err error
	s.db, err = ledger.Open(t.Context(), w.dsn)
	must(t, err)
	t.Cleanup(func() { _ = s.db.Close() })
	for name, program := range map[string]*string{"gateway": &s.gateway, "payer": &s.payer} {
		*program = w.path(name)
		if out, err := exec.Command("go", "build", "-o", *program, "quittance/examples/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return s
}

// old lets a payment be older than what may still be under way; its rail is asked now.
func (s *shop) old(id string) {
	s.t.Helper()
	must(s.t, s.db.InTx(s.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := tx.Exec(ctx, `ALTER TABLE payments DISABLE TRIGGER payments_fence`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE payments SET claimed_at = clock_timestamp() - interval '181 seconds', check_at = CASE WHEN check_at IS NOT NULL THEN clock_timestamp() END
			WHERE payment_id = $1`, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `ALTER TABLE payments ENABLE TRIGGER payments_fence`)
		return err
	}))
}

// A gateway is killed at each step of its order of work, and started again. Its payer sends
// the same again: the money moved at most once, the page was made at most once, and the
// payment id is answered, by its frozen answer or with the advice to wait.
func TestAGatewayIsKilledAtEachStep(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var aging sync.Mutex
	// Each gateway submits from an account of its own: the node numbers what one account
	// sends, and two at once would get the same number.
	sender := 9
	for _, step := range gatewaySteps {
		for _, answered := range []bool{false, true} {
			name, settled := step.name+", the call", step.before
			if answered {
				name, settled = step.name+", the answer", step.after
			}
			sender++
			from := s.chain.Account(sender)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				x := &sale{shop: s, t: t, sender: from, front: newGate(t), server: newGate(t), node: newGate(t), dir: t.TempDir(), payTo: chain.NewWallet("payee of " + name).Address}
				x.server.lead(s.gate.URL)
				x.node.lead(s.chain.URL)
				x.open()
				at := x.server
				if step.chain {
					at = x.node
				}
				tr := at.hold(trap{method: "POST", path: step.path, body: step.body, answered: answered})
				buying := x.pay("1s")
				select {
				case <-tr.reached:
				case <-time.After(patience):
					t.Fatalf("the gateway did not come so far:\n%s\n%s", buying.tail(10), x.gateway.tail(10))
				}
				x.gateway.kill()
				close(tr.drop)
				<-buying.ended
				if code := buying.cmd.ProcessState.ExitCode(); code != 3 {
					t.Fatalf("the payer ended with %d, want 3, open:\n%s", code, buying.tail(10))
				}

				s.chain.Mine(3)
				aging.Lock()
				s.old(x.paymentID())
				aging.Unlock()
				x.open()
				again := x.pay("1s")
				<-again.ended
				for over := time.Now().Add(patience); settled && again.cmd.ProcessState.ExitCode() == 3 && time.Now().Before(over); <-again.ended {
					again = x.pay("1s") // as its supervisor would, while the server asks the chain
				}
				paid, made := x.paid(), x.made()
				if paid > 1 || made > 1 {
					t.Errorf("paid %d times, made %d times", paid, made)
				}
				code := again.cmd.ProcessState.ExitCode()
				switch {
				case settled && (code != 0 || paid != 1 || made != 1 || !strings.Contains(again.tail(3), "All about ships")):
					t.Errorf("the payer ended with %d, paid %d times, made %d times:\n%s", code, paid, made, again.tail(10))
				case !settled && (code != 3 || paid != 0):
					t.Errorf("the payer ended with %d, paid %d times:\n%s", code, paid, again.tail(10))
				}
				p, err := s.agent.Payment(t.Context(), "shop", x.paymentID())
				if err != nil || settled != (p.State == client.OutcomeSettled) {
					t.Errorf("the payment is %+v, %v", p, err)
				}
			})
		}
	}
}

// sale is one payer at one gateway, which may be killed.
type sale struct {
	*shop
	t       *testing.T
	front   *gate // where the payer finds the gateway
	server  *gate // where the gateway finds the server
	node    *gate // and the chain
	gateway *process
	dir     string
	payTo   evm.Address
	sender  evm.Address
}

func (x *sale) open() {
	x.t.Helper()
	x.gateway = start(x.t, "gateway", append(os.Environ(), "QUITTANCE_TOKEN="+x.agentToken, "XDG_CACHE_HOME="+x.dir), x.shop.gateway,
		"-listen", "127.0.0.1:0", "-quittance", x.server.URL, "-rpc", x.node.URL, "-sender", x.sender.String(), "-asset", x.token.String(),
		"-pay-to", x.payTo.String(), "-amount", fmt.Sprint(pagePrice), "-pages", filepath.Join(x.dir, "pages"))
	url := urlAfter(x.gateway, "selling pages at ")
	x.front.lead(strings.TrimSuffix(url, "/page"))
}

func (x *sale) pay(patience string) *process {
	x.t.Helper()
	return start(x.t, "payer", os.Environ(), x.payer, "-key", "order-8", "-intents", filepath.Join(x.dir, "intents"), "-rpc", x.chain.URL,
		"-account", x.chain.Account(1).String(), "-patience", patience, x.front.URL+"/page", `{"title":"ships"}`)
}

// paymentID is the one in the payer's intent.
func (x *sale) paymentID() string {
	x.t.Helper()
	names, err := filepath.Glob(filepath.Join(x.dir, "intents", "*", "intent.json"))
	if err != nil || len(names) != 1 {
		x.t.Fatalf("%q, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	must(x.t, err)
	_, rest, _ := strings.Cut(string(text), `"payment_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// paid is how often the money moved, by the chain.
func (x *sale) paid() int {
	x.t.Helper()
	return int(new(big.Int).Div(x.chain.Balance(x.token, x.payTo), big.NewInt(pagePrice)).Int64())
}

func (x *sale) made() int {
	x.t.Helper()
	text, err := os.ReadFile(filepath.Join(x.dir, "pages"))
	if err != nil && !os.IsNotExist(err) {
		x.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}
