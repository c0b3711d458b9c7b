package rail

import (
	"context"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
)

// since is the number of a final block that is not later than a time, and near it: where a
// search for what happened after that time begins.
func (v *view) since(ctx context.Context, at time.Time) (uint64, error) {
	if at.IsZero() {
		return 0, trouble(lookup.Unaskable, "it is not on record since when it can have been sent")
	}
	at = at.Add(-early)
	old := func(number uint64) (bool, error) {
		b, err := v.Block(ctx, number)
		if err != nil {
			return false, err
		}
		if b == nil {
			return false, trouble(lookup.Unexpected, "the node has no block %d", number)
		}
		return !moment(b.Time).After(at), nil
	}
	// Backwards in growing steps: most questions are about what is minutes old.
	low, high := uint64(0), v.final.Number
	for step := uint64(64); high > 0; step *= 4 {
		before := high - min(high, step)
		is, err := old(before)
		if err != nil {
			return 0, err
		}
		if is {
			low = before
			break
		}
		high = before
	}
	for high > low+1 {
		middle := low + (high-low)/2
		is, err := old(middle)
		if err != nil {
			return 0, err
		}
		if is {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// search reads logs in chunks, the oldest first, until found says so.
func (v *view) search(ctx context.Context, contract evm.Address, topics [][]evm.Hash, from, to uint64, found func([]node.Log) bool) error {
	for size := v.chain.chunk(); from <= to; from += size {
		logs, err := v.Logs(ctx, node.Filter{Contract: contract, Topics: topics, From: from, To: min(to, from+size-1)})
		if err != nil {
			return err
		}
		if found(logs) {
			return nil
		}
	}
	return nil
}
