package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
)

// scene is one part being played: a bank with a ledger of its own, and the steps that
// the parts are made of. A hands-on demo takes the same steps.
type scene struct {
	*Stage
	play  int // the how-manieth on this stage: names of files and runs end with it
	fault bank.Fault
	tell  *narrator

	at     string // where the bank is to be, if the server asks it; "" anywhere
	bank   *process
	books  string // the bank's ledger, a file in the folder
	bankAt string // the bank's URL

	token  string // the agent's; "" without Quittance
	server string
	starts int // of the agent
}

// openBank starts the part's bank, which ignores keys and has the part's fault.
func (sc *scene) openBank(ctx context.Context, how bank.Behaviour) (err error) {
	name := fmt.Sprintf("bank-%d", sc.play)
	sc.books = name + ".jsonl"
	words := []string{"demo-bank", "--ledger", sc.books, "--keys", string(bank.Ignore)}
	if how.LoseAnswers > 0 {
		words = append(words, "--lose-answers", strconv.Itoa(how.LoseAnswers))
	}
	if how.Settles > 0 {
		words = append(words, "--settles", strings.TrimSuffix(how.Settles.String(), "0m0s"))
	}
	if how.Large > 0 {
		words = append(words, "--large", strconv.FormatInt(how.Large, 10))
	}
	hidden := []string{"--listen", cmp.Or(sc.at, anyPort)}
	if sc.fault != bank.NoFault {
		hidden = append(hidden, "--fault", string(sc.fault))
	}
	if sc.bank, err = sc.start(name, nil, append(words, hidden...)...); err != nil {
		return err
	}
	line, err := sc.bank.await(ctx, "opened", func(line string) bool { return strings.HasPrefix(line, BankOpen) })
	if err != nil {
		return err
	}
	sc.bankAt = strings.TrimPrefix(line, BankOpen)
	sc.tell.command(append([]string{"quittance"}, append(words, "--listen", strings.TrimPrefix(sc.bankAt, "http://"))...)...)
	return nil
}

// BankOpen is what a bank's process says first, before its URL.
const BankOpen = "the bank is open at "

// withServer waits for the server and takes an account of the part's own, so that
// what one part pays is not held up by what another has paid.
func (sc *scene) withServer(ctx context.Context) (err error) {
	if sc.server, err = sc.serverUp(); err != nil {
		return err
	}
	sc.token, err = sc.account(ctx, fmt.Sprintf("payer-%d", sc.play))
	return err
}

// run is the part's one run, whatever happens to its agents.
func (sc *scene) run() string { return fmt.Sprintf("ap-%d", sc.play) }

// startAgent starts a process of the part's run: the first, or one after a crash.
func (sc *scene) startAgent(hold agent.Point) (*process, error) {
	words := []string{"demo-agent", "--run", sc.run(), "--bank", sc.bankAt}
	shown := []string{"quittance"}
	var env []string
	if sc.server != "" {
		words = append(words, "--server", sc.server)
		env = append(env, TokenVariable+"="+sc.token)
		shown = []string{TokenVariable + "=$AGENT", "quittance"}
	}
	if hold != "" {
		words = append(words, "--hold-at", string(hold))
	}
	if sc.starts == 0 {
		sc.tell.command(append(shown, words...)...)
	}
	sc.starts++
	return sc.start(fmt.Sprintf("agent-%d.%d", sc.play, sc.starts), env, words...)
}

// payAndDie kills the run's first agent once the bank, which withholds its answer, has
// its payment on the disk: it cannot have gone further.
func (sc *scene) payAndDie(ctx context.Context) (payment string, err error) {
	p, err := sc.startAgent("")
	if err != nil {
		return "", err
	}
	if payment, err = sc.nextBooked(ctx); err != nil {
		return "", errors.Join(err, fmt.Errorf("the agent's last words: %s", p.last()))
	}
	return payment, p.kill(ctx)
}

// nextBooked waits for the next payment that the bank has on the disk.
func (sc *scene) nextBooked(ctx context.Context) (payment string, err error) {
	line, err := sc.bank.await(ctx, "booked a payment", func(line string) bool { return strings.HasPrefix(line, "booked ") })
	if err != nil {
		return "", err
	}
	return strings.Fields(line)[1], nil
}

// event waits for what an agent does next of this kind.
func (p *process) event(ctx context.Context, kind agent.Kind) (e agent.Event, err error) {
	_, err = p.await(ctx, "said: "+string(kind), func(line string) bool {
		e = agent.Event{}
		return json.Unmarshal([]byte(line), &e) == nil && e.Kind == kind
	})
	return e, err
}

// finish watches an agent to its end: where it started from, what it paid, and that it
// ended well.
func (sc *scene) finish(ctx context.Context, p *process) (started, paid agent.Event, err error) {
	if started, err = p.event(ctx, agent.Started); err != nil {
		return started, paid, err
	}
	if paid, err = p.event(ctx, agent.Paid); err != nil {
		return started, paid, err
	}
	if _, err = p.event(ctx, agent.Finished); err != nil {
		return started, paid, err
	}
	s, err := p.wait(ctx)
	if err == nil && s.ExitStatus() != 0 {
		err = fmt.Errorf("%s failed at its end: %s", p.name, p.last())
	}
	return started, paid, err
}

// payments are what the bank's ledger holds for the invoice, read from the disk. What
// the bank shows to whoever asks must agree, or the claim that it does is broken.
func (sc *scene) payments(ctx context.Context) ([]bank.Payment, error) {
	onDisk, err := bank.ReadLedger(filepath.Join(sc.dir, sc.books), agent.Invoice.Reference)
	if err != nil {
		return nil, err
	}
	shown, err := bank.Find(ctx, sc.bankAt, agent.Invoice.Reference)
	if err != nil {
		return nil, err
	}
	agree := func(shown, held bank.Payment) bool {
		return shown.ID == held.ID && shown.Order == agent.Invoice && held.Order == agent.Invoice
	}
	if !slices.EqualFunc(shown, onDisk, agree) {
		return nil, sc.tell.claim(false, "The bank's ledger holds what the bank shows, and what was ordered; it holds %s, and the bank shows %s.",
			listed(onDisk), listed(shown))
	}
	return onDisk, nil
}

// listed names payments with what was paid.
func listed(list []bank.Payment) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = fmt.Sprintf("%s of %s to %s", p.ID, dollars(p.Amount), p.Payee)
	}
	return cmp.Or(strings.Join(names, " and "), "nothing")
}

// claimPaid claims how often the bank has paid the invoice.
func (sc *scene) claimPaid(ctx context.Context, times int) error {
	found, err := sc.payments(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	ledger := fmt.Sprintf("%s in %s", strings.Join(ids, " and "), sc.books)
	if len(ids) == 0 {
		ledger = "nothing in " + sc.books
	}
	sc.tell.command("curl", "-s", bank.FindURL(sc.bankAt, agent.Invoice.Reference))
	return sc.tell.claim(len(found) == times, "The bank's ledger: %s for %s, %s in all (%s).",
		count(len(found), "payment"), agent.Invoice.Reference, dollars(int64(len(found))*agent.Invoice.Amount), ledger)
}

// close ends the part's bank.
func (sc *scene) close() error {
	defer sc.leaveCounter()
	if sc.bank == nil {
		return nil
	}
	return sc.bank.stop(stopPatience)
}
