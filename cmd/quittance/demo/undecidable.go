package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
	"quittance/reconcile/lookup"
)

// undecidable: the same crash at a bank whose answer can still change. Nobody can know
// what happened without looking further, so nothing is sent again until somebody has.
func (sc *scene) undecidable(ctx context.Context) error {
	payment, err := sc.payAndVanish(ctx, bank.Behaviour{LoseAnswers: 1, Settles: time.Hour})
	if err != nil {
		return err
	}
	if err := sc.refusedStart(ctx); err != nil {
		return err
	}
	if err := sc.claimPaid(ctx, 1); err != nil {
		return err
	}
	open, err := sc.leftToAPerson(ctx)
	if err != nil {
		return err
	}
	decided, err := sc.decide(ctx, open)
	if err != nil {
		return err
	}
	if err := sc.released(ctx, decided); err != nil {
		return err
	}
	last, err := sc.startAgent("")
	if err != nil {
		return err
	}
	started, paid, err := sc.finish(ctx, last)
	if err != nil {
		return err
	}
	sc.tell.say("Started again: it goes on after turn %d, and the call is answered as decided: %s.", started.Turn, paid.Payment)
	if err := sc.tell.claim(started.Turn == 1 && paid.Replayed && paid.DecidedBy == "person" && paid.Payment == payment,
		"The agent resumed from its checkpoint with the person's answer."); err != nil {
		return err
	}
	if err := sc.claimRun(ctx, client.RunFinished); err != nil {
		return err
	}
	return sc.claimPaid(ctx, 1)
}

// refusedStart starts the agent again and finds it refused, with the reason.
func (sc *scene) refusedStart(ctx context.Context) error {
	p, err := sc.startAgent("")
	if err != nil {
		return err
	}
	end, err := p.wait(ctx)
	if err != nil {
		return err
	}
	if end.ExitStatus() == 0 {
		return sc.tell.claim(false, "A start is refused while a payment may or may not be made; this one went on to its end.")
	}
	refusal, err := p.event(ctx, agent.Paused)
	if err != nil {
		return err
	}
	if len(refusal.Waiting) != 1 {
		return fmt.Errorf("the refused start waits for %d effects, not for one", len(refusal.Waiting))
	}
	sc.tell.say("Started again: refused. The run is paused, because %s is %s.", refusal.Waiting[0].Tool, refusal.Waiting[0].Reason)
	return sc.tell.claim(refusal.Waiting[0].Reason == "interrupted",
		"The agent cannot go on: whether the payment was made is unknown.")
}

// leftToAPerson finds that the bank's answer has proven nothing, and returns the payment
// that waits for a person.
func (sc *scene) leftToAPerson(ctx context.Context) (*client.EffectView, error) {
	x, err := sc.lookedUp(ctx, sc.token, sc.run())
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, sc.tell.claim(false, "The payment waits for a person; nothing of this run does.")
	}
	last := x.LookUps[0]
	sc.tell.say("The server has asked the bank, too. A person is shown: %s. %s", x.Summary, last.Why)
	return x, sc.tell.claim(last.Reason == string(lookup.NotFinal), "The bank has it as processing, which can still change. That proves nothing, and a person has to decide.")
}

// decide is what a person does: look into the bank's ledger, and say what was found.
func (sc *scene) decide(ctx context.Context, x *client.EffectView) (client.DecisionAnswer, error) {
	person := sc.as(sc.admin)
	defer person.Close()
	verdict, err := sc.find(ctx)
	if err != nil {
		return client.DecisionAnswer{}, err
	}
	verdict.Version = x.Version
	body, err := json.Marshal(verdict)
	if err != nil {
		return client.DecisionAnswer{}, fmt.Errorf("couldn't write the verdict down: %w", err)
	}
	sc.tell.command("curl", "-s", "-H", "Authorization: Bearer $PERSON", "-H", "Content-Type: application/json",
		sc.server+"/v1/effects/"+x.EffectID+"/decision", "-d", string(body))
	answer, err := person.Decide(ctx, x.EffectID, verdict)
	if err != nil {
		return answer, err
	}
	sc.tell.say("The person has had the bank look into its ledger, and decides: %s, reference %s.", verdict.Verdict, verdict.Reference)
	return answer, nil
}

// find makes a verdict of what stands in the bank's ledger.
func (sc *scene) find(ctx context.Context) (v client.DecisionRequest, err error) {
	found, err := sc.payments(ctx)
	if err != nil {
		return v, err
	}
	if len(found) != 1 {
		return v, errors.New("the bank's ledger decides nothing")
	}
	p := found[0]
	result, err := json.Marshal(agent.Receipt{PaymentID: p.ID})
	if err != nil {
		return v, fmt.Errorf("couldn't write the receipt down: %w", err)
	}
	return client.DecisionRequest{
		DecisionID: "decision-" + sc.run(), Verdict: client.VerdictTaken, Reference: p.ID, Result: result,
		Note: fmt.Sprintf("The bank's clerk finds %s of %s to %s in the ledger, %s.", p.ID, dollars(p.Amount), p.Payee, p.Status),
	}, nil
}

// released finds that agents see nothing of a decision before its release, and waits
// for that as an idle agent would.
func (sc *scene) released(ctx context.Context, d client.DecisionAnswer) error {
	if d.ReleaseAt == nil {
		return errors.New("the decision has no time of release")
	}
	caller := sc.as(sc.token)
	defer caller.Close()
	run, err := caller.Run(ctx, sc.run(), 0)
	if err != nil {
		return err
	}
	// On a machine so slow that the release has passed by now, there is nothing to see.
	hidden := run.State == client.RunPaused && len(run.WaitingFor) == 1 && run.WaitingFor[0].Reason == "releasing"
	if err := sc.tell.claim(hidden || time.Now().After(*d.ReleaseAt), "Until its release the decision can be undone, and the run stays paused."); err != nil {
		return err
	}
	if run, err = caller.Run(ctx, sc.run(), stepLimit); err != nil {
		return err
	}
	late := time.Since(*d.ReleaseAt)
	sc.tell.say("Released. An agent that waits hears of it %d ms later.", late.Milliseconds())
	return sc.tell.claim(run.State == client.RunReady && late >= 0, "The run is %s to go on.", run.State)
}

// as is a caller of the API with somebody's token.
func (sc *scene) as(token string) *client.Client {
	return client.New(sc.server, token, client.WithSpool(filepath.Join(sc.dir, "spool")))
}
