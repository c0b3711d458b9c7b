package effects

import "context"

// fastBegin is the one prepared statement for the new and unopposed begin.
func (e *Engine) fastBegin(ctx context.Context, p *prepared) (done bool, err error) {
	return false, nil
}
