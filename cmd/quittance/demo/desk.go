package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
	"quittance/reconcile/access"
	"quittance/reconcile/lookup"
)

// DeskPolicy is what the hands-on demo's server is told about its tools.
//
//go:embed desk.yaml
var DeskPolicy []byte

// Desk plays the case no program can decide with a hand at the desk: whoever reads out
// decides it in the browser, and the agent goes on. It stays up until a signal, which
// is how it ends well; its processes have ended when it returns. Its files are removed,
// unless it failed, or dir names a new or empty folder to have them in.
func Desk(ctx context.Context, out io.Writer, dir string) error {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer release()

	fmt.Fprintln(out, "A server with a database of its own, a bank and an agent are started. Ctrl-C ends all of it.")
	s, err := Open(ctx, Options{Out: out, Policy: DeskPolicy, Dir: dir})
	if err != nil {
		return err
	}
	sc := &scene{Stage: s, play: s.nextPlay(), fault: bank.NoFault, tell: s.narrator()}
	err = sc.desk(ctx)
	interrupted := ctx.Err() != nil
	failed := err != nil && !interrupted
	fmt.Fprintln(out, "\nEnding the agents, the bank, the server and its database.")
	closeErr := s.Close(failed || dir != "")
	switch {
	case failed:
		return fmt.Errorf("%w (the processes' output and the bank's ledger are in %s)", errors.Join(err, closeErr), s.dir)
	case closeErr != nil:
		return closeErr
	case dir != "":
		fmt.Fprintf(out, "Its files are in %s. To look again, in the same browser, with a bank that can be asked:\n", s.dir)
		sc.tell.command("quittance", "serve", "--data", filepath.Join(s.dir, dataFolder), "--policy", filepath.Join(s.dir, policyFile))
		if sc.books != "" {
			sc.tell.command("quittance", "demo-bank", "--ledger", filepath.Join(s.dir, sc.books), "--listen", sc.at)
		}
	default:
		fmt.Fprintln(out, "Nothing of it is left.")
	}
	return nil
}

// desk returns when ctx ends, or when the demo cannot go on.
func (sc *scene) desk(ctx context.Context) error {
	if err := sc.withServer(ctx); err != nil {
		return err
	}
	link, colleague, err := sc.staff(ctx)
	if err != nil {
		return err
	}
	if err := sc.takeCounter(ctx); err != nil {
		return err
	}
	// Every order of the desk's own bank loses its answer: two of the seed and the agent's.
	if err := sc.openBank(ctx, bank.Behaviour{LoseAnswers: lostBySeed + 1, Settles: time.Hour, Large: agent.Invoice.Amount}); err != nil {
		return err
	}
	stop, err := sc.seed(ctx, colleague)
	if err != nil {
		return err
	}
	defer stop()
	sc.tell.say("The desk is set: other agents have left calls of every state on it. Robin, a colleague of yours, has decided some;")
	sc.tell.say("the bank's answer has proven one, that of %s, without anybody's help.", provenRun)
	if err := sc.crash(ctx); err != nil {
		return err
	}
	if err := sc.handOver(ctx, link); err != nil {
		return err
	}
	if err := sc.resume(ctx); err != nil {
		return err
	}
	sc.tell.say("The desk stays open, with what is left on it. Ctrl-C ends the demo.")
	<-ctx.Done()
	return nil
}

// staff adds the two people: You, with a link that signs you in, and a colleague with a
// token.
func (sc *scene) staff(ctx context.Context) (link, colleague string, err error) {
	colleague = access.NewToken(access.PersonPrefix)
	err = sc.withAccess(ctx, func(a *access.Service) error {
		robin, err := a.AddPerson(ctx, "Robin", "", []string{"operator", "approver"})
		if err != nil {
			return err
		}
		if err := a.AddPersonToken(ctx, robin, "demo", colleague, 0); err != nil {
			return err
		}
		you, err := a.AddPerson(ctx, "You", "", []string{"operator", "approver", "admin"})
		if err != nil {
			return err
		}
		secret, err := a.Link(ctx, access.MadeBy{}, you, access.LinkSignIn)
		link = sc.server + "/enter/" + secret
		return err
	})
	return link, colleague, err
}

// crash is the agent's payment, its death, and its refused second start.
func (sc *scene) crash(ctx context.Context) error {
	payment, err := sc.payAndDie(ctx)
	if err != nil {
		return err
	}
	sc.tell.say("The agent has paid %s to %s for %s: the bank has booked %s. Before its answer came, the agent was killed.",
		dollars(agent.Invoice.Amount), agent.Invoice.Payee, agent.Invoice.Reference, payment)
	return sc.refusedStart(ctx)
}

// handOver says what is to be done, and opens the desk where there is a display.
func (sc *scene) handOver(ctx context.Context, link string) error {
	x, err := sc.lookedUp(ctx, sc.token, sc.run())
	if err != nil {
		return err
	}
	if x == nil || x.LookUps[0].Reason != string(lookup.NotFinal) {
		return errors.New("the agent's payment is not left to a person")
	}
	fmt.Fprintf(sc.out, "\nYour turn. This link signs you in, once and within %d minutes:\n\n    %s\n\n", int(access.SignInLinkLife.Minutes()), link)
	fmt.Fprintf(sc.out, "1. Look at the queue: what is at stake, how long it has waited, what is known. Open \"%s\".\n", x.Summary)
	fmt.Fprintln(sc.out, "   The server has asked the bank, as the page shows: it has the payment as processing. (It takes an hour over large")
	fmt.Fprintln(sc.out, "   ones.) That can still change, so it proves nothing, and it is left to you.")
	fmt.Fprintln(sc.out, "2. Look into the bank's ledger, as its clerk would for you, and find the payment's \"id\":")
	sc.tell.command("grep", agent.Invoice.Reference, filepath.Join(sc.dir, sc.books))
	fmt.Fprintln(sc.out, "3. Choose \"Yes, it took effect\", say what you saw, enter the id as the reference and in \"The result the agent will be")
	fmt.Fprint(sc.out, "   given\", and confirm. Then watch this terminal.\n\n")
	if err := openInBrowser(link); err != nil {
		sc.tell.say("No browser was opened (%v): open the link yourself.", err)
	}
	return nil
}

// openInBrowser shows a link on this machine's display. Opening the link does not use
// it up: a button on its page does.
func openInBrowser(link string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return errors.New("there is no display")
	}
	cmd := exec.Command(program, link)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("couldn't run %s", program) // without its words: the link is in them
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// resume waits for decisions and starts the agent after each, until it has come to an
// end: a decision can still be taken back before the agent asks.
func (sc *scene) resume(ctx context.Context) error {
	for {
		if err := sc.mayGoOn(ctx); err != nil {
			return err
		}
		p, err := sc.startAgent("")
		if err != nil {
			return err
		}
		sc.tell.say("Decided and released. The agent is started again, and says:")
		last, err := sc.relay(ctx, p)
		if err != nil {
			return err
		}
		switch last.Kind {
		case agent.Paused:
			sc.tell.say("It is paused again: something is open that was not. Decide it at the desk.")
			continue
		case agent.Finished:
			return sc.booked(ctx)
		default:
			sc.tell.say("The agent has ended without an end to its run. Its last line says why: a call that was stopped is never made.")
			return sc.booked(ctx)
		}
	}
}

// mayGoOn waits, as long as it takes, until nothing of the run is open.
func (sc *scene) mayGoOn(ctx context.Context) error {
	caller := sc.as(sc.token)
	defer caller.Close()
	for {
		run, err := caller.Run(ctx, sc.run(), stepLimit)
		if err != nil {
			return err
		}
		if run.State != client.RunPaused {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// relay writes what an agent says until it ends, and returns its last event.
func (sc *scene) relay(ctx context.Context, p *process) (last agent.Event, err error) {
	for {
		line, err := p.await(ctx, "said more", func(string) bool { return true })
		if err != nil {
			if p.ended() && ctx.Err() == nil {
				return last, nil
			}
			return last, err
		}
		fmt.Fprintf(sc.out, "          agent: %s\n", line)
		var e agent.Event
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil {
			last = e
		}
	}
}

// booked shows what the bank has paid in the end. Two payments are what somebody at the
// desk asked for, and no failure of the demo.
func (sc *scene) booked(ctx context.Context) error {
	found, err := sc.payments(ctx)
	if err != nil {
		return err
	}
	if len(found) == 1 {
		return sc.claimPaid(ctx, 1)
	}
	sc.tell.say("The bank's ledger: %s for %s. The desk was told that the first had not been made.", count(len(found), "payment"), agent.Invoice.Reference)
	return nil
}
