package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"quittance/cmd/quittance/demo"
	"quittance/cmd/quittance/demo/agent"
	"quittance/cmd/quittance/demo/bank"
)

// demoCommands are the demo and the programs it starts.
type demoCommands struct {
	Demo      demoCmd      `cmd:"" help:"See it work: an agent dies after paying, you decide at the desk, and it does not pay twice."`
	DemoMonth demoMonthCmd `cmd:"" help:"Fill an empty database with a made-up month of payments and refunds, for a look at finance's pages."`
	DemoBank  demoBankCmd  `cmd:"" hidden:"" help:"Run the demo's bank."`
	DemoAgent demoAgentCmd `cmd:"" hidden:"" help:"Run the demo's agent."`
	DemoGuard demoGuardCmd `cmd:"" hidden:"" help:"End the demo's processes when the demo itself is killed."`
}

type demoCmd struct {
	Scripted bool       `help:"Play all of it without a hand, and check every claim."`
	Data     string     `help:"Keep the files of the hands-on demo in this folder, which is new or empty." type:"path" placeholder:"DIR"`
	Fault    bank.Fault `help:"Play it at a bank that lies about its books: the demo must fail." enum:"none,double,forget,merge,invent,deny,misstate,hasten" default:"none" hidden:""`
}

// Run plays the demo on a database of its own, whatever DATABASE_URL says.
func (c *demoCmd) Run(ctx context.Context, out output) error {
	switch {
	case !c.Scripted:
		return demo.Desk(ctx, out, c.Data)
	case c.Data != "":
		return usagef("--data is for the hands-on demo: --scripted leaves nothing to keep")
	}
	return demo.Run(ctx, out, c.Fault)
}

type demoBankCmd struct {
	Listen         string `help:"Address to listen on (${default})." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	Ledger         string `help:"The bank's book; made when it does not exist." required:"" placeholder:"FILE"`
	bank.Behaviour `embed:""`
}

// Run serves until ctx ends.
func (c *demoBankCmd) Run(ctx context.Context, out output) (err error) {
	ledger, err := bank.OpenLedger(c.Ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("couldn't listen on %s: %w", c.Listen, err)
	}
	b := bank.New(ledger, c.Behaviour, out)
	fmt.Fprintf(out, "%shttp://%s\n", demo.BankOpen, l.Addr())
	return b.Serve(ctx, l)
}

type demoAgentCmd struct {
	agent.Config `embed:""`
}

// Run is one process of the agent's run.
func (c *demoAgentCmd) Run(ctx context.Context, out output) error {
	c.Token = os.Getenv(demo.TokenVariable)
	return agent.Main(ctx, c.Config, out)
}

type demoGuardCmd struct{}

// Run returns when the demo is gone.
func (demoGuardCmd) Run() error {
	demo.Guard(os.Stdin)
	return nil
}
