package effects

import "context"

// Told looks once after questions whose workers died, and events that came.
func (e *Engine) Told(ctx context.Context) error { return e.told(ctx) }
