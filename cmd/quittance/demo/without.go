package demo

import (
	"context"

	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
)

// withoutQuittance: a crash between the act and the record, and a restart that has to
// guess.
func (sc *scene) withoutQuittance(ctx context.Context) error {
	if err := sc.openBank(ctx, bank.Behaviour{LoseAnswers: 1}); err != nil {
		return err
	}
	payment, err := sc.payAndDie(ctx)
	if err != nil {
		return err
	}
	sc.tell.say("The agent has asked the bank for %s to %s for %s.", dollars(agent.Invoice.Amount), agent.Invoice.Payee, agent.Invoice.Reference)
	sc.tell.say("The bank has booked %s. Before its answer comes, the agent is killed.", payment)

	second, err := sc.startAgent("")
	if err != nil {
		return err
	}
	started, paid, err := sc.finish(ctx, second)
	if err != nil {
		return err
	}
	sc.tell.say("Started again: it goes on after turn %d, knows of no payment, and pays. The bank books %s.", started.Turn, paid.Payment)
	return sc.claimPaid(ctx, 2)
}
