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
