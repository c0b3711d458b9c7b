package effects

import "context"

// Tick runs every loop once, so that tests need not wait for the clock.
func (e *Engine) Tick(ctx context.Context) error {
	for _, loop := range []func(context.Context) error{e.leaseLoop, e.deadlineLoop, e.releaseLoop, e.expiryLoop} {
		if err := loop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Waiting is how many claims wait for a run of the account to become ready.
func (e *Engine) Waiting(account int64) int { return e.hub.Waiting(readyTopic(account)) }

// Look asks whatever is due once, and waits for the answers.
func (e *Engine) Look(ctx context.Context) error {
	a := e.newAsker()
	for {
		if _, err := a.round(ctx); err != nil {
			return err
		}
		a.busy.Wait()
		select {
		case <-a.freed:
		default:
			return nil
		}
	}
}

// Fast tries calls the fast way alone and tells which of them it left: nothing was
// written of those.
func (e *Engine) Fast(ctx context.Context, ops ...Op) (answers []Answer, left []int, err error) {
	answers = make([]Answer, len(ops))
	batch, place := make([]*pending, len(ops)), map[*pending]int{}
	for i, op := range ops {
		p := e.prepare(op)
		p.answer = &answers[i]
		batch[i] = &pending{ops: []*prepared{p}, done: make(chan struct{})}
		place[batch[i]] = i
	}
	for _, p := range e.fastFinishes(ctx, e.fastBegins(ctx, batch)) {
		left = append(left, place[p])
	}
	for _, p := range batch {
		if p.err != nil {
			err = p.err
		}
	}
	return answers, left, err
}
