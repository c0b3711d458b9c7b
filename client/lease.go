package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"
)

// lastTry is how long a renewal may take when the lease has ended by then: a process
// that was stopped for a while may still hold it by the server's clock.
const lastTry = time.Second

// beat renews the lease each third of its length. It stops when the server says the
// lease is lost, when no renewal got through for a whole lease and lastTry, by this
// process's own clock, or when the run lets go. Calls that are being performed go on:
// their outcome is worth more than their fence.
func (r *Run) beat(ctx context.Context, l Lease, sent time.Time) {
	length := time.Duration(r.opts.LeaseSeconds) * time.Second
	until := sent.Add(length)
	pause := length / 3
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, time.Until(until))):
		}
		started := time.Now()
		var out LeaseAnswer
		trying, cancel := context.WithTimeout(ctx, max(time.Until(until), lastTry))
		err := r.c.once(trying, &request{method: http.MethodPost, path: r.path("/heartbeat"), out: &out,
			in: LeaseRequest{Lease: l.Token, LogPosition: r.Position()}})
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			until, pause = started.Add(length), length/3
			r.moved(out.LogPosition)
		case errors.Is(err, ErrLeaseLost), errors.Is(err, ErrRunClosed), !time.Now().Before(until):
			r.c.log.Warn("a lease was lost", "run", r.id, "error", err)
			r.lost(l.Token)
			return
		default:
			// Renewals that fail are repeated quickly: what is left of the lease is
			// all the time there is.
			r.c.log.Info("a heartbeat failed", "run", r.id, "error", err)
			pause = min(pause, max(length/10, 100*time.Millisecond))
		}
	}
}

// lost forgets the lease with this token, unless a newer one was taken meanwhile.
func (r *Run) lost(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease.Token == token {
		r.end()
	}
}

// end says that the run is not held any more. The caller holds the lock.
func (r *Run) end() {
	if r.held {
		close(r.over)
	}
	r.held = false
}

// token is the lease's; ErrLeaseLost when it is not held any more.
func (r *Run) token() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		return "", fmt.Errorf("run %q: %w", r.id, ErrLeaseLost)
	}
	return r.lease.Token, nil
}

// enter is token for a call that is about to begin; exit says that it is over.
func (r *Run) enter() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held || r.leaving {
		return "", fmt.Errorf("run %q: %w", r.id, ErrLeaseLost)
	}
	r.performing++
	return r.lease.Token, nil
}

func (r *Run) exit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.performing--; r.performing == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// leave lets no new call begin and waits, as long as ctx lets it, for those under way.
func (r *Run) leave(ctx context.Context) (token string, err error) {
	if token, err = r.token(); err != nil {
		return "", err
	}
	r.mu.Lock()
	r.leaving = true
	if r.performing > 0 && r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	if idle == nil {
		return token, nil
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
	return token, nil
}

// stay takes leave back.
func (r *Run) stay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = false
}

// refused notes what a refusal says about the lease and passes the error on.
func (r *Run) refused(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		r.moved(p.LogPosition)
		if p.Code == CodeLeaseLost || p.Code == CodeRunClosed {
			r.letGo()
		}
	}
	return err
}

func (r *Run) letGo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
	if r.stopBeat != nil {
		r.stopBeat()
	}
}

// Release gives the lease back, so that another process need not wait for its end.
// It first waits, as long as ctx lets it, for calls that are being performed: giving
// the lease back under them would leave their outcome in doubt. From its start no new
// call is begun. A run that is not held is released already.
func (r *Run) Release(ctx context.Context) error {
	token, err := r.leave(ctx)
	if err != nil {
		return nil
	}
	r.letGo()
	send, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.c.tryTimeout)
	defer cancel()
	err = r.c.do(send, &request{method: http.MethodPost, path: r.path("/release"),
		in: LeaseRequest{Lease: token, LogPosition: r.Position()}})
	if err == nil || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrRunClosed) {
		return nil
	}
	return fmt.Errorf("couldn't release run %q: %w", r.id, err)
}

// ReleaseOnSignal releases the run when one of the signals arrives (SIGTERM, say),
// giving calls under way the grace to end, and then lets the signal do what it does
// without a handler. Call stop when the run is over.
func (r *Run) ReleaseOnSignal(grace time.Duration, signals ...os.Signal) (stop func()) {
	got := make(chan os.Signal, 1)
	over := make(chan struct{})
	signal.Notify(got, signals...)
	go func() {
		select {
		case <-over:
		case s := <-got:
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			if err := r.Release(ctx); err != nil {
				r.c.log.Warn("couldn't release at a signal", "run", r.id, "error", err)
			}
			signal.Stop(got)
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(s)
			}
		}
	}()
	return func() {
		signal.Stop(got)
		close(over)
	}
}
