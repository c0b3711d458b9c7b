package payments

import "context"

// Shown records a movement as its rail shows it.
func (e *Engine) Shown(ctx context.Context, in Incoming) (*Moved, error) {
	p, err := readIncoming(in)
	if err != nil {
		return nil, err
	}
	return e.post(ctx, p)
}
