package effects

import "context"

// RekeyStep does one batch of what a changed business_key asks for.
func (e *Engine) RekeyStep(ctx context.Context, batch int) (more bool, err error) {
	return e.rekeyStep(ctx, batch)
}
