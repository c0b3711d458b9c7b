package demo

import (
	"context"
	"strings"

	"quittance/client"
	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
)

// withQuittance: a crash between the record and the agent's own memory of it. The
// record answers.
func (sc *scene) withQuittance(ctx context.Context) error {
	if err := sc.withServer(ctx); err != nil {
		return err
	}
	sc.tell.command("QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=$PERSON", "QUITTANCE_BOOTSTRAP_AGENT_TOKEN=$AGENT",
		"quittance", "serve", "--data", dataFolder, "--policy", policyFile, "--listen", strings.TrimPrefix(sc.server, "http://"))
	sc.tell.say("The server is up, with a new database.")
	if err := sc.openBank(ctx, bank.Behaviour{}); err != nil {
		return err
	}
	first, err := sc.startAgent(agent.PointPaid)
	if err != nil {
		return err
	}
	before, err := first.event(ctx, agent.Paid)
	if err != nil {
		return err
	}
	if err := first.kill(ctx); err != nil {
		return err
	}
	sc.tell.say("The agent has paid, %s, and the payment is recorded. Before it saves its turn, it is killed.", before.Payment)

	second, err := sc.startAgent("")
	if err != nil {
		return err
	}
	started, paid, err := sc.finish(ctx, second)
	if err != nil {
		return err
	}
	sc.tell.say("Started again: it waits for the dead process's lease to end, goes on after turn %d, and calls the same tool.", started.Turn)
	if err := sc.tell.claim(!before.Replayed && paid.Replayed && paid.DecidedBy == "agent" && paid.Payment == before.Payment,
		"The call was answered from the record: %s. Nothing was sent to the bank.", paid.Payment); err != nil {
		return err
	}
	if err := sc.claimRun(ctx, client.RunFinished); err != nil {
		return err
	}
	return sc.claimPaid(ctx, 1)
}

// claimRun claims the state of the part's run.
func (sc *scene) claimRun(ctx context.Context, state string) error {
	caller := sc.as(sc.token)
	defer caller.Close()
	run, err := caller.Run(ctx, sc.run(), 0)
	if err != nil {
		return err
	}
	return sc.tell.claim(run.State == state, "The run is %s.", run.State)
}
