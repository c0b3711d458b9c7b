//go:build !torture

package client

import "context"

// actFirst is where the torture has an agent act before it has asked, to see that it
// notices. In a program that is meant for use it does nothing.
func actFirst(_ context.Context, _ BeginRequest, perform Perform) Perform { return perform }
