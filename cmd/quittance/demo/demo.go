// Package demo shows, with processes that are really killed and a bank that really
// books, what Quittance is for. Every claim it prints was checked against the bank's
// own ledger.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"quittance/cmd/quittance/demo/bank"
)

// parts are the demo, in order.
var parts = []struct {
	title string
	play  func(*scene, context.Context) error
}{
	{"Without Quittance", (*scene).withoutQuittance},
	{"With Quittance", (*scene).withQuittance},
	{"The case that the bank settles", (*scene).settled},
	{"The case no program can decide", (*scene).undecidable},
}

const opening = `An agent pays an invoice, and its process is killed. It is started again.

Nothing below is simulated: the agent is a process that gets SIGKILL, the bank is a process with a ledger on disk,
and Quittance is a server with a database of its own. The bank ignores idempotency keys, as many do,
and can be asked for what it has booked.
`

const closing = `
All of it held. It took %.1f s, and nothing of it is left.

To repeat a part by hand, run its commands in an empty folder (parts 3 and 4 begin with the "serve" of part 2) and
kill -9 the agent where the text says so. The policy there is cmd/quittance/demo/quittance.yaml, with the address of
the bank of parts 3 and 4 in it. PERSON and AGENT are tokens: any 16 characters or more. The id and the version of what
is decided are in /v1/queue.
`

// Run plays every part at banks with the given fault, and writes what happens to out.
// It returns nil only if every claim held. Whatever becomes of it, also at Ctrl-C, its
// processes have ended when it returns, and its files are removed unless it failed:
// then the error names them.
func Run(ctx context.Context, out io.Writer, fault bank.Fault) error {
	// A second signal must not end the demo before it has ended its children.
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer release()

	began := time.Now()
	_, _ = io.WriteString(out, opening)
	s, err := Open(ctx, Options{Out: out})
	if err != nil {
		return err
	}
	for n := 1; n <= len(parts) && err == nil; n++ {
		err = s.Play(ctx, n, fault)
	}
	interrupted := ctx.Err() != nil
	failed := err != nil && !interrupted
	if closeErr := s.Close(failed); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	switch {
	case interrupted:
		return errors.New("interrupted; every process has been ended, every file removed")
	case failed:
		return fmt.Errorf("%w (the processes' output and the ledgers are in %s)", err, s.dir)
	}
	_, err = fmt.Fprintf(out, closing, time.Since(began).Seconds())
	return err
}

// Play plays one part, from 1, at a bank with the given fault. The error of a claim
// that did not hold is a [*Broken]. Parts share nothing but the server, and may be
// played at the same time.
func (s *Stage) Play(ctx context.Context, number int, fault bank.Fault) (err error) {
	part := parts[number-1]
	sc := &scene{Stage: s, play: s.nextPlay(), fault: fault, tell: s.narrator()}
	sc.tell.title(number, part.title)
	defer func() { err = errors.Join(err, sc.close()) }()
	if err := part.play(sc, ctx); err != nil {
		return fmt.Errorf("part %d, %s: %w", number, part.title, err)
	}
	return nil
}
