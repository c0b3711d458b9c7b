package demo

import (
	"context"
	"fmt"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
	"quittance/reconcile/lookup"
)

// settled: a crash between the act and the record, at a bank that can be asked and has an
// answer. Nobody has to decide anything.
func (sc *scene) settled(ctx context.Context) error {
	payment, err := sc.payAndVanish(ctx, bank.Behaviour{LoseAnswers: 1})
	if err != nil {
		return err
	}
	open, err := sc.lookedUp(ctx, sc.token, sc.run())
	if err != nil {
		return err
	}
	sc.tell.say("Its lease has ended, whether it paid was unknown, and the run was paused. So the server asked the bank:")
	sc.tell.command("curl", "-s", bank.FindURL(sc.bankAt, agent.Invoice.Reference))
	became := "The run may go on, and no person was asked."
	if open != nil {
		became = open.LookUps[0].Why
	}
	if err := sc.tell.claim(open == nil, "The bank's answer is a proof. %s", became); err != nil {
		return err
	}

	second, err := sc.startAgent("")
	if err != nil {
		return err
	}
	started, paid, err := sc.finish(ctx, second)
	if err != nil {
		return err
	}
	sc.tell.say("Started again: it goes on after turn %d, and the call is answered with what the bank showed: %s.", started.Turn, paid.Payment)
	if err := sc.tell.claim(started.Turn == 1 && paid.Replayed && paid.DecidedBy == "look_up" && paid.Payment == payment,
		"The agent resumed from its checkpoint with the bank's answer. Nothing was sent to the bank again."); err != nil {
		return err
	}
	if err := sc.claimRun(ctx, client.RunFinished); err != nil {
		return err
	}
	return sc.claimPaid(ctx, 1)
}

// payAndVanish is the crash that leaves the record without an outcome, at a bank that
// the server can ask.
func (sc *scene) payAndVanish(ctx context.Context, how bank.Behaviour) (payment string, err error) {
	if err := sc.withServer(ctx); err != nil {
		return "", err
	}
	if err := sc.takeCounter(ctx); err != nil {
		return "", err
	}
	if err := sc.openBank(ctx, how); err != nil {
		return "", err
	}
	if payment, err = sc.payAndDie(ctx); err != nil {
		return "", err
	}
	sc.tell.say("The bank has booked %s. Before its answer comes, the agent is killed: the record says only that it was about to pay.", payment)
	return payment, nil
}

// lookedUp waits until the bank has been asked about the one payment of a run that was
// left alone. It returns the payment with the bank's answer if that proves nothing, and
// nil when nothing of the run is open any more.
func (sc *scene) lookedUp(ctx context.Context, token, name string) (*client.EffectView, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, errStep)
	defer cancel()
	caller, person := sc.as(token), sc.as(sc.admin)
	defer caller.Close()
	defer person.Close()
	for {
		run, err := caller.Run(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		switch {
		case run.State == client.RunPaused && len(run.WaitingFor) == 1:
			x, err := person.Effect(ctx, run.WaitingFor[0].EffectID)
			if err != nil {
				return nil, err
			}
			if len(x.LookUps) > 0 && x.LookUps[0].Verdict == "inconclusive" && x.LookUps[0].Reason != string(lookup.CouldNot) {
				x, err = person.Effect(ctx, x.EffectID) // its version may have been read before the answer came
				return &x, err
			}
		case run.State == client.RunReady:
			return nil, nil
		}
		select {
		case <-time.After(4 * lookEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("the bank's answer about %s has no effect: %w", name, context.Cause(ctx))
		}
	}
}
