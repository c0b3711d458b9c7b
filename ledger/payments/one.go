package payments

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
)

// row reads one row; nil where there is none.
func row[T any](ctx context.Context, r ledger.Reader, what, query string, args ...any) (*T, error) {
	var x T
	err := r.Get(ctx, &x, query, args...)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read %s: %w", what, err)
	}
	return &x, nil
}
