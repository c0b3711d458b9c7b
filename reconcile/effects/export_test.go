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
