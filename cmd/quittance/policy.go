package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"quittance/ledger/audit"
	"quittance/reconcile/policy"
)

type policyCmd struct {
	Check policyCheckCmd `cmd:"" help:"Read a policy file and list every mistake in it."`
}

type policyCheckCmd struct {
	File string `arg:"" help:"The file, usually quittance.yaml." type:"existingfile"`
}

// Run prints one line for each mistake, as FILE:LINE:COLUMN: PATH: PROBLEM, and fails
// when there is any.
func (c *policyCheckCmd) Run(out output) error {
	p, err := loadPolicy(c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: no mistakes; %d tools declared\n", c.File, len(p.Tools()))
	return err
}

// loadPolicy reads a policy file; "" is the policy that declares nothing. The error
// lists every mistake, a line each.
func loadPolicy(file string) (*policy.Policy, error) {
	if file == "" {
		return policy.Default(), nil
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the policy: %w", err)
	}
	p, mistakes := policy.Load(file, src)
	switch len(mistakes) {
	case 0:
		return p, nil
	case 1:
		return nil, fmt.Errorf("the policy has a mistake:\n%w", mistakes.Err())
	default:
		return nil, fmt.Errorf("the policy has %d mistakes:\n%w", len(mistakes), mistakes.Err())
	}
}

// watchPolicy reads the policy again on each SIGHUP and hands it to put, until ctx
// ends. A policy with a mistake changes nothing: the old one stays in force. Either way
// the audit trail gets a line, for those who do not see this server's log.
func watchPolicy(ctx context.Context, file string, put func(context.Context, *policy.Policy) error, record func(context.Context, audit.Row) error, log *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		row := audit.Row{Actor: "SIGHUP", Via: "command", Action: "policy.reload", Outcome: "done"}
		p, err := loadPolicy(file)
		if err == nil {
			err = put(ctx, p)
		}
		if err != nil {
			log.Error("the policy was not reloaded; the old one stays in force", "err", err)
			row.Outcome, row.Note = "denied", err.Error()
		} else {
			log.Info("policy reloaded", "file", file, "tools", len(p.Tools()), "digest", p.Digest)
			row.Subject = "policy:" + p.Digest
		}
		if err := record(context.WithoutCancel(ctx), row); err != nil {
			log.Error("the audit trail has no line about the policy", "err", err)
		}
	}
}
