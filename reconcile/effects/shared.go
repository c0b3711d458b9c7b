package effects

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

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
	turn uint64 // its place among all calls
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

// lines are the calls that wait for a commit. Begins have a line of their own: what is
// written by one statement should come in one batch, and a batch costs much more than
// one more call in it.
type lines struct {
	mu      sync.Mutex
	turn    uint64
	waiting [2][]*pending
}

// join puts a call at the end of its line.
func (l *lines) join(p *pending) {
	line := 0
	if len(p.ops) == 1 && p.ops[0].Begin != nil {
		line = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	p.turn = l.turn
	l.waiting[line] = append(l.waiting[line], p)
}

// next takes a batch from the line whose first call has waited longest.
func (l *lines) next() (batch []*pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := &l.waiting[0]
	if other := &l.waiting[1]; len(*line) == 0 || len(*other) > 0 && (*other)[0].turn < (*line)[0].turn {
		line = other
	}
	n, ops := 0, 0
	for ; n < len(*line) && ops < batchLimit; n++ {
		ops += len((*line)[n].ops)
	}
	batch, *line = (*line)[:n:n], (*line)[n:]
	return batch
}

// empty tells whether nobody waits.
func (l *lines) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[0])+len(l.waiting[1]) == 0
}

// submit puts the call into its line and waits for its commit. When a committer is
// free it starts at once; what comes while all are at work is carried by whoever is
// free next.
func (e *Engine) submit(ctx context.Context, p *pending) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	e.lines.join(p)
	e.callers.Add(1)
	defer e.callers.Add(-1)
	// A caller that goes away must not stop what others wait for.
	e.start(context.WithoutCancel(ctx), p)
	<-p.done
	return p.err
}

// start sets one more committer to work, unless all are. A caller that is alone needs
// no goroutine but its own.
func (e *Engine) start(ctx context.Context, caller *pending) {
	select {
	case e.committers <- struct{}{}:
	default:
		return
	}
	if e.callers.Load() > 1 {
		runtime.Gosched() // who is about to call joins this batch
	}
	batch := e.lines.next()
	if len(batch) == 1 && batch[0] == caller {
		e.commit(ctx, batch)
		batch = nil
		if e.lines.empty() {
			e.rest(ctx)
			return
		}
	}
	go e.serve(ctx, batch)
}

// serve commits a batch and what waits, a batch at a time, until nothing does.
func (e *Engine) serve(ctx context.Context, batch []*pending) {
	for {
		if len(batch) > 0 {
			e.commit(ctx, batch)
			runtime.Gosched() // whom it answered may call again
		}
		if batch = e.lines.next(); len(batch) == 0 {
			break
		}
	}
	e.rest(ctx)
}

// rest ends a committer.
func (e *Engine) rest(ctx context.Context) {
	<-e.committers
	// Who came between the last look and now found all committers at work.
	if !e.lines.empty() {
		e.start(ctx, nil)
	}
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
