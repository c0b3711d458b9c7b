package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"quittance/client"
)

// agentVariable turns the test binary into an agent's command, as `quittance work` starts
// it; notesVariable is where it writes down what it did.
const (
	agentVariable = "QUITTANCE_TEST_AGENT"
	notesVariable = "QUITTANCE_TEST_NOTES"
)

// note appends a line in one write, so that agents do not mix theirs.
func note(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(os.Getenv(notesVariable), "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, format+"\n", args...)
}

// agentCommand is one command.
func agentCommand(mode string) int {
	id, o, ok := client.Handed()
	if !ok {
		fmt.Fprintln(os.Stderr, "nothing was handed over")
		return 64
	}
	note("started %s %d", id, os.Getpid())
	defer note("ended %s", id)
	switch mode {
	case "die":
		return 3
	case "hang": // without a word to the server
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		note("ignoring %s", id)
		select {}
	case "later":
		return 75
	case "checkpoint":
		raw, err := os.ReadFile(os.Getenv(client.EnvCheckpoint))
		if err != nil {
			note("no checkpoint %s", id)
			break
		}
		var saved client.Checkpoint
		if err := json.Unmarshal(raw, &saved); err != nil {
			return 65
		}
		note("checkpoint %s %d %s turn %s", id, saved.Turn, saved.State, os.Getenv(client.EnvTurn))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := client.New(os.Getenv(client.EnvURL), os.Getenv(client.EnvToken), client.WithSpool(filepath.Join(os.Getenv(notesVariable), "spool")))
	defer c.Close()
	run, err := c.Open(ctx, id, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 66
	}
	if fmt.Sprint(run.Epoch()) != os.Getenv(client.EnvEpoch) {
		note("another lease %s", id)
	}
	switch mode {
	case "sleep", "slow":
		if mode == "slow" {
			select {
			case <-ctx.Done():
			case <-time.After(3 * time.Second):
				break
			}
		} else {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			note("told to stop %s", id)
			if err := run.Release(context.Background()); err != nil {
				return 67
			}
			return 0
		}
	case "checkpoint":
		if run.Turn() == 0 {
			if err := run.Checkpoint(ctx, 1, map[string]string{"step": "two"}); err != nil {
				return 68
			}
			return 75
		}
	}
	_, err = run.Do(ctx, "pay", map[string]string{"run": id}, func(context.Context, client.Call) (any, error) {
		note("paid %s", id)
		if mode == "doubt" {
			return nil, errors.New("no answer came")
		}
		return client.Reference("po_"+id, nil), nil
	})
	if errors.Is(err, client.ErrPaused) {
		note("paused %s", id)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 69
	}
	if err := run.Close(ctx, client.RunFinished); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 70
	}
	return 0
}
