// Command quittance is the server and the tools around it. This package reads the
// configuration and wires the parts together; it decides nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// cli is every command. Each has a Run method in the file of its name.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Migrate migrateCmd `cmd:"" help:"Bring the database's schema up to this program's version."`
	Token   tokenCmd   `cmd:"" help:"Work on tokens."`
	People  peopleCmd  `cmd:"" help:"Work on people and their roles."`
	Log     logCmd     `cmd:"" help:"Work with log files that agents keep."`
	Policy  policyCmd  `cmd:"" help:"Work on policy files."`
	Work    workCmd    `cmd:"" help:"Start an agent's command for each run that is ready."`
	Observe observeCmd `cmd:"" help:"See what enforcing would have done with calls that were only observed."`
	Lookup  lookupCmd  `cmd:"" help:"Work on look-ups."`
	Backup  backupCmd  `cmd:"" help:"Copy the database while servers work on it."`
	Restore restoreCmd `cmd:"" help:"Put a backup into an empty database, in which nothing is released until a person has acknowledged the gap."`
	Verify  verifyCmd  `cmd:"" help:"Recompute the sealed log, fold it, and compare it with what is stored."`
	Version versionCmd `cmd:"" help:"Say which version this is."`
	demoCommands
}

const description = `Quittance makes an agent's retry safe: it records each side effect before it is performed, ` +
	`and asks the downstream or a person when it cannot be known whether it took effect.

The database is the one DATABASE_URL names, or a PostgreSQL that Quittance runs itself in --data. ` +
	`docs/configuration.md lists every flag and variable.`

// Exit codes. A wrong command line is told from a failure, for scripts.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitUnclean is work that was done on what is not whole: a log file that holds what
	// could not be used, a record that is damaged.
	exitUnclean = 3
)

// oneWish is how long further signals say the same as the first: whoever ends a
// process and then its group, as timeout(1) and supervisors do, sends two, and a server
// killed by the second would leave its PostgreSQL running.
const oneWish = time.Second

func main() {
	// The first signal asks for a graceful stop; a later one, with the default handling
	// back in place, kills.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(oneWish, stop) })
	// The heap is small, and collecting it often costs more than it saves.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// output is where commands write their results; the log goes elsewhere.
type output struct{ io.Writer }

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var c cli
	exited := -1 // set when kong ends the program, as --help does
	parser, err := kong.New(&c, kong.Name("quittance"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(stderr, "quittance:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "quittance: %v\n(quittance --help lists the commands)\n", err)
		return exitUsage
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(log, environmentOf(getenv), output{stdout})
	var usage *usageError
	var unclean *uncleanError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "quittance:", err)
		return exitUsage
	case errors.As(err, &unclean):
		fmt.Fprintln(stderr, "quittance:", err)
		return exitUnclean
	default:
		fmt.Fprintln(stderr, "quittance:", err)
		return exitFailed
	}
}

// usageError is a configuration that cannot work, whatever the world is like.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// uncleanError is work that was done on what is not whole.
type uncleanError struct{ text string }

func (e *uncleanError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
