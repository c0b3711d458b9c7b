package effects

import (
	"context"

	"quittance/ledger/logfiles"
)

// LogPreview says, without changing anything, which lines of a file the account has
// already. Lines are shown to it in their order from the file's beginning.
type LogPreview struct {
	e       *Engine
	account int64
	before  map[string]int
}

// PreviewLog begins a preview of one file.
func (e *Engine) PreviewLog(account int64) *LogPreview {
	return &LogPreview{e: e, account: account, before: map[string]int{}}
}

// Repeats tells for each of the next spans whether the account has it.
func (p *LogPreview) Repeats(ctx context.Context, spans []LogSpan) ([]bool, error) {
	digests := make([][]byte, len(spans))
	for i := range spans {
		digests[i] = p.e.lineDigest(spans[i].Raw)
	}
	most, err := logfiles.Most(ctx, p.e.db, p.account, digests)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(spans))
	for i, d := range digests {
		p.before[string(d)]++
		out[i] = p.before[string(d)] <= most[string(d)]
	}
	return out, nil
}
