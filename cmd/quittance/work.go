package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/work"
)

// defaultURL is where a server listens that was told nothing else.
const defaultURL = "http://127.0.0.1:8080"

type workCmd struct {
	Agent       []string      `help:"Claim runs of these kinds of agent; several, separated by commas." required:"" placeholder:"NAME"`
	Concurrency int           `help:"How many commands run at a time (${default})." default:"1" placeholder:"N"`
	Lease       time.Duration `help:"How long a run stays taken when this worker, or its machine, dies (${default})." default:"60s" placeholder:"60s"`
	Grace       time.Duration `help:"How long a command has between SIGTERM and SIGKILL (${default})." default:"20s" placeholder:"20s"`
	Command     []string      `arg:"" passthrough:"" help:"What to start for each run, behind --."`
}

// Run claims runs that are ready and starts the command for each.
func (c *workCmd) Run(ctx context.Context, log *slog.Logger) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	url, token := os.Getenv(client.EnvURL), os.Getenv(client.EnvToken)
	switch {
	case token == "":
		return usagef("QUITTANCE_TOKEN is not set: an agent's token, from quittance token new --account NAME")
	case c.Concurrency < 1 || c.Concurrency > 1000:
		return usagef("--concurrency is a whole number from 1 to 1000")
	case c.Lease < 2*time.Second || c.Lease > 10*time.Minute || c.Lease%time.Second != 0:
		return usagef("--lease is 2 to 600 whole seconds")
	case c.Grace < 0:
		return usagef("--grace must not be negative")
	}
	if url == "" {
		url = defaultURL
	}
	w := work.Worker{
		Client: client.New(url, token, client.WithLog(log)), Agents: c.Agent, Command: command, Concurrency: c.Concurrency,
		LeaseSeconds: int(c.Lease / time.Second), Grace: c.Grace, Log: log, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ(),
	}
	if err := w.Check(); err != nil {
		return usagef("the command cannot be started: %v", err)
	}
	defer w.Client.Close()
	log.Info("working", "url", url, "agents", c.Agent, "concurrency", c.Concurrency, "command", command[0])
	return w.Run(ctx)
}
