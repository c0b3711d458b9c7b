// Package work runs an agent's command for each run that is ready: it claims the run,
// keeps its lease while the command lives, and leaves the run to the usual rules when the
// command dies.
package work

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"quittance/client"
)

const (
	// readyWait is how long the server is asked to hold a claim while no run is ready.
	readyWait = 30 * time.Second
	// idle is how long a worker rests before it claims again after a failure.
	idle = time.Second
	// mostRest bounds the rest while the server cannot be reached.
	mostRest = 30 * time.Second
	// claimLimit is how long one claim may take, also while the worker stops: a lease
	// whose answer nobody heard runs out by itself.
	claimLimit = 20 * time.Second
	// releaseLimit is how long giving a lease back may take.
	releaseLimit = 10 * time.Second
)

// TempFail is the exit code by which a command says "not now": EX_TEMPFAIL of sysexits.h.
const TempFail = 75

// Worker claims runs and runs the command for each.
type Worker struct {
	Client         *client.Client
	Agents         []string
	Command        []string
	Concurrency    int           // commands at a time
	LeaseSeconds   int           // 0: 60
	Grace          time.Duration // between SIGTERM and SIGKILL
	Log            *slog.Logger
	Stdout, Stderr io.Writer
	Env            []string // of the commands, besides what the run adds

	killed atomic.Int64
}

// ErrKilled is returned where commands did not end within the grace.
var ErrKilled = errors.New("commands did not end within the grace and were killed")

// Run works until ctx ends, and then ends the commands: SIGTERM first, SIGKILL after the
// grace. Any other error is one that no repetition mends, such as a token that opens
// nothing.
func (w *Worker) Run(ctx context.Context) error {
	free := make(chan struct{}, w.Concurrency)
	var commands sync.WaitGroup
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	var failure error
	rest := time.Duration(0)
	for failure == nil && wait(stopping, rest) {
		select {
		case <-stopping.Done():
			continue
		case free <- struct{}{}:
		}
		run, err := w.claim(stopping)
		switch {
		case err == nil:
			rest = 0
			commands.Go(func() {
				defer func() { <-free }()
				w.handle(stopping, run)
			})
			continue
		case errors.Is(err, client.ErrNothingReady):
			rest = rand.N(idle / 10) // apart from other workers
		case hopeless(err):
			failure = err
		default:
			rest = min(mostRest, max(idle, 2*rest))
			w.Log.Warn("couldn't claim a run; it is tried again", "after", rest.Round(time.Millisecond), "error", err)
		}
		<-free
	}
	stop()
	commands.Wait()
	if n := w.killed.Load(); n > 0 && failure == nil {
		failure = fmt.Errorf("%d %w", n, ErrKilled)
	}
	return failure
}

// claim waits for a run to be ready and takes its lease. When the worker stops it waits no
// longer, and asks once more under the same name: a run that was given meanwhile is given
// back at once.
func (w *Worker) claim(ctx context.Context) (*client.Run, error) {
	o := client.RunOptions{LeaseSeconds: w.LeaseSeconds, WaitReady: readyWait, AttemptID: cryptorand.Text()}
	limited, cancel := context.WithTimeout(ctx, readyWait+claimLimit)
	defer cancel()
	run, err := w.Client.Claim(limited, o, w.Agents...)
	if ctx.Err() == nil {
		return run, err
	}
	if err != nil {
		o.WaitReady = 0
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		run, err = w.Client.Claim(limited, o, w.Agents...)
	}
	if err == nil {
		w.release(run)
	}
	return nil, ctx.Err()
}

// hopeless tells whether repeating a claim cannot mend it.
func hopeless(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && (p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusUnprocessableEntity)
}

func (w *Worker) release(run *client.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if err := run.Release(ctx); err != nil {
		w.Log.Warn("a lease could not be given back; it runs out by itself", "run", run.ID(), "error", err)
	}
}

// wait rests; false when ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
