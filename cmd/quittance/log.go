package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
	"quittance/reconcile/logs"
	"quittance/reconcile/notify"
)

type logCmd struct {
	Import logImportCmd `cmd:"" help:"Read a log file that an agent keeps (effects.jsonl), once."`
	Follow logFollowCmd `cmd:"" help:"Read a log file as it grows, and append what is decided."`
	Export logExportCmd `cmd:"" help:"Write an account's effects as lines of a log file."`

	Acknowledge logAcknowledgeCmd `cmd:"" help:"Say what happened to a log file that was changed."`
	Close       logCloseCmd       `cmd:"" help:"End a run that lives in a log file."`
}

// logFlags name a log file and whose it is.
type logFlags struct {
	dataFlag
	File    string `arg:"" help:"The log file." type:"path"`
	Account string `help:"The account whose effects they are; made when it is new." required:"" placeholder:"NAME"`
	Agent   string `help:"The name under which its runs are shown; the file's name when absent." placeholder:"NAME"`
	OneRun  string `name:"run" help:"The run of lines that name none; the file's path when absent." placeholder:"ID"`
}

type logImportCmd struct {
	logFlags
	DryRun bool `help:"Say for each line what would become of it, and change nothing."`
}

// Run prints what could not be read, a line each, and then the numbers. It fails with
// its own code when the file was read and is not clean.
func (c *logImportCmd) Run(ctx context.Context, env environment, log *slog.Logger, out output) error {
	return withLogs(ctx, env, c.dataFlag, c.Account, c.DryRun, log, func(ctx context.Context, engine *effects.Engine, db *ledger.DB, account int64) error {
		if c.DryRun {
			report, err := logs.Preview(ctx, engine, account, c.File, c.File, out)
			if err != nil {
				return fmt.Errorf("%s: %w", c.File, err)
			}
			return finish(out, c.File, report, true)
		}
		r, err := logs.Open(ctx, engine, db, log, logs.Options{Account: account, Path: c.File, Agent: c.Agent, Run: c.OneRun})
		if err != nil {
			return err
		}
		defer r.Close()
		report, err := r.Import(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		printNotes(out, c.File, report)
		return finish(out, c.File, report, false)
	})
}

func printNotes(out io.Writer, file string, report effects.LogReport) {
	for _, list := range []struct {
		what  string
		notes []effects.LogNote
	}{{"damaged", report.Problems}, {"warning", report.Warnings}} {
		for _, n := range list.notes {
			lines := fmt.Sprint(n.First)
			if n.Last > n.First {
				lines = fmt.Sprintf("%d-%d", n.First, n.Last)
			}
			fmt.Fprintf(out, "%s:%s: %s, byte %d, %d bytes: %s\n", file, lines, list.what, n.Start, n.Size, n.Text)
		}
	}
}

// finish prints the numbers, and says by the exit code whether the file is clean.
func finish(out io.Writer, file string, r effects.LogReport, dry bool) error {
	how := "read"
	if dry {
		how = "looked at, nothing was changed"
	}
	fmt.Fprintf(out, "%s: %s: %d new, %d known, %d damaged", file, how, r.New, r.Repeats, r.Damaged)
	if r.Torn > 0 {
		fmt.Fprint(out, " (one of them the last line, cut off)")
	}
	for _, part := range []struct {
		n    int
		text string
	}{{r.Waiting, "outcomes without an intent"}, {r.Unguarded, "of tools that are not guarded"}, {r.Observed, "calls only observed"}, {r.Ours, "written by Quittance"}} {
		if part.n > 0 {
			fmt.Fprintf(out, ", %d %s", part.n, part.text)
		}
	}
	fmt.Fprintln(out)
	switch {
	case r.Damaged > 0:
		return &uncleanError{fmt.Sprintf("%s is not clean: %d damaged places are in quarantine, and what they may have meant is in the queue", file, r.Damaged)}
	case r.Waiting > 0:
		return &uncleanError{fmt.Sprintf("%s is not clean: %d outcomes have no intent", file, r.Waiting)}
	case r.New+r.Repeats+r.Ours+r.Unguarded == 0 && dry:
		return &uncleanError{file + " holds no records"}
	}
	return nil
}

type logFollowCmd struct{ logFlags }

// Run follows until it is told to stop.
func (c *logFollowCmd) Run(ctx context.Context, env environment, log *slog.Logger, out output) error {
	return withLogs(ctx, env, c.dataFlag, c.Account, false, log, func(ctx context.Context, engine *effects.Engine, db *ledger.DB, account int64) error {
		r, err := logs.Open(ctx, engine, db, log, logs.Options{Account: account, Path: c.File, Agent: c.Agent, Run: c.OneRun})
		if err != nil {
			return err
		}
		defer r.Close()
		log.Info("following", "file", c.File)
		err = r.Follow(ctx, func(report effects.LogReport) {
			printNotes(out, c.File, report)
			if report.New+report.Damaged+report.Ours > 0 {
				log.Info("read", "file", c.File, "new", report.New, "known", report.Repeats, "damaged", report.Damaged, "written_by_us", report.Ours)
			}
		})
		if format, ok := errors.AsType[*logfile.FormatError](err); ok {
			return fmt.Errorf("%s: %w", c.File, format)
		}
		return err
	})
}

type logExportCmd struct {
	dataFlag
	Account string `help:"The account whose effects they are." required:"" placeholder:"NAME"`
	OneRun  string `name:"run" help:"One of its runs; all when absent." placeholder:"ID"`
}

// Run writes the lines alone on standard output.
func (c *logExportCmd) Run(ctx context.Context, env environment, log *slog.Logger, out output) error {
	return withLogs(ctx, env, c.dataFlag, c.Account, true, log, func(ctx context.Context, _ *effects.Engine, db *ledger.DB, account int64) error {
		_, err := logs.Export(ctx, db, account, c.OneRun, out)
		return err
	})
}

// withLogs runs f beside the servers of a database, under the policy that is in force
// there. Hints of what changes go to the servers' open pages. An account that is new is
// made, unless the command only reads.
func withLogs(ctx context.Context, env environment, data dataFlag, account string, reads bool, log *slog.Logger, f func(context.Context, *effects.Engine, *ledger.DB, int64) error) (err error) {
	// What is read is gone again at once; the servers' way to collect would keep it long.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	db, done, err := openDatabase(ctx, env, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	hub := notify.NewHub()
	engine, err := effects.Join(ctx, db, hub, log)
	if err != nil {
		return err
	}
	id, err := access.FindAccount(ctx, db, account)
	switch {
	case errors.Is(err, ledger.ErrNotFound) && reads:
		err = fmt.Errorf("there is no account %q", account)
	case errors.Is(err, ledger.ErrNotFound):
		err = db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
			id, err = access.Account(ctx, tx, account)
			return err
		})
	}
	if err != nil {
		return err
	}
	stop := runLoops(ctx, []func(context.Context){func(ctx context.Context) {
		if err := hub.Run(ctx, db); err != nil && ctx.Err() == nil {
			log.Warn("open pages are not told of changes; they re-read by themselves", "error", err)
		}
	}})
	defer stop()
	return f(ctx, engine, db, id)
}
