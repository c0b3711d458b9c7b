//go:build torture

package client

import (
	"context"
	"os"
	"time"
)

var actsFirst = os.Getenv("QUITTANCE_TORTURE_BREAK") == "intent_first"

// actFirst performs the call at once where the intent is not to come first: the guard
// that the torture switches off to see that it notices.
func actFirst(ctx context.Context, b BeginRequest, perform Perform) Perform {
	if !actsFirst {
		return perform
	}
	result, err := perform(ctx, Call{Arguments: b.Arguments, Attempt: 1, Deadline: time.Now().Add(time.Minute)})
	return func(context.Context, Call) (any, error) { return result, err }
}
