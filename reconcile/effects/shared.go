package effects

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"quittance/ledger"
	store "quittance/ledger/effects"
)

const (
	// committers is how many transactions carry shared calls at a time: while one
	// waits for its disk write the next gathers. More only split the batches.
	committers = 2
	// batchLimit bounds a batch, so that one slow commit cannot grow the next without
	// end.
	batchLimit = 256
)

var errBrokeDown = errors.New("a shared transaction broke down; it is not known what was recorded")

// pending is one call of Apply on its way into a shared transaction.
type pending struct {
	ops  []*prepared
	err  error
	over bool
	done chan struct{}
}

// end answers the call, unless it was answered.
func (p *pending) end(err error) {
	if !p.over {
		p.err, p.over = err, true
		close(p.done)
	}
}

// submit puts the call into the queue and waits for its commit. When a committer is
// free it starts at once; what comes while all are at work is carried by whoever is
// free next.
func (e *Engine) submit(ctx context.Context, p *pending) error {
	select {
	case e.queue <- p:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// A caller that goes away must not stop what others wait for.
	e.start(context.WithoutCancel(ctx))
	<-p.done
	return p.err
}

// start sets one more committer to work, unless all are.
func (e *Engine) start(ctx context.Context) {
	select {
	case e.committers <- struct{}{}:
		go e.serve(ctx)
	default:
	}
}

// serve commits what is queued, a batch at a time, until nothing is.
func (e *Engine) serve(ctx context.Context) {
	for {
		batch := e.gather()
		if len(batch) == 0 {
			break
		}
		e.commit(ctx, batch)
	}
	<-e.committers
	// Who came between the last look and now found all committers at work.
	if len(e.queue) > 0 {
		e.start(ctx)
	}
}

// gather takes what is queued, at most a batch.
func (e *Engine) gather() (batch []*pending) {
	for n := 0; n < batchLimit; {
		select {
		case p := <-e.queue:
			batch = append(batch, p)
			n += len(p.ops)
		default:
			return batch
		}
	}
	return batch
}

// commit decides a batch. What nothing stands against is written by the fast way; the
// rest shares one transaction. When that cannot be committed as a whole, each call is
// tried on its own, so that one bad call fails alone.
func (e *Engine) commit(ctx context.Context, batch []*pending) {
	// Here no caller's goroutine would catch it, and one call must not end the server.
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("a shared transaction broke down", "panic", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			for _, p := range batch {
				p.end(errBrokeDown)
			}
		}
	}()
	batch = e.fastFinishes(ctx, e.fastBegins(ctx, batch))
	if len(batch) == 0 {
		return
	}
	var ops []*prepared
	for _, p := range batch {
		ops = append(ops, p.ops...)
	}
	err := e.together(ctx, ops)
	if err != nil && len(batch) > 1 {
		e.log.Warn("a shared transaction failed; its calls are tried one by one", "calls", len(batch), "error", err)
		for _, p := range batch {
			p.end(e.together(ctx, p.ops))
		}
		return
	}
	for _, p := range batch {
		p.end(err)
	}
}

// together decides ops in one transaction, in their order.
func (e *Engine) together(ctx context.Context, ops []*prepared) error {
	err := e.attempt(ctx, ops, false)
	if ledger.Constraint(err) == "effects_reference" || errors.Is(err, store.ErrChanged) {
		// A reference that already proves another effect: look before, this time.
		err = e.attempt(ctx, ops, true)
	}
	return err
}

func (e *Engine) attempt(ctx context.Context, ops []*prepared, careful bool) error {
	var w *work
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		for _, p := range ops {
			if p.refusal == nil {
				*p.answer = Answer{}
			}
		}
		w = e.work(ctx, tx)
		return w.apply(ctx, ops, careful)
	})
	if err == nil {
		w.tell()
	}
	return err
}
