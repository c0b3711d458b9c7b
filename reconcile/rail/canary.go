package rail

import (
	"context"
	"slices"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
)

// Canary says whether a transfer with a memo that is known to be in a final block is shown
// the way in which others are searched: by its log. A node that keeps no logs, or lost
// the old ones, shows nothing at all and looks like absence.
func (c *Chain) Canary(ctx context.Context, asset evm.Address, transaction evm.Hash, now time.Time) (seen bool, t *Trouble) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.each(ctx, now, func(v *view) (err error) {
		seen, err = v.canary(ctx, asset, transaction)
		return err
	})
	if err != nil {
		return false, troubleOf(err)
	}
	return seen, nil
}

func (v *view) canary(ctx context.Context, asset evm.Address, transaction evm.Hash) (bool, error) {
	r, err := v.Receipt(ctx, transaction)
	if r == nil || err != nil || !r.OK || r.Block > v.final.Number {
		return false, err
	}
	i := slices.IndexFunc(r.Logs, func(l node.Log) bool { return l.Address == asset && len(l.Topics) == 4 && l.Topics[0] == withMemo })
	if i < 0 {
		return false, nil
	}
	logs, err := v.Logs(ctx, node.Filter{Contract: asset, Topics: [][]evm.Hash{{withMemo}, nil, nil, {r.Logs[i].Topics[3]}}, From: r.Block, To: r.Block})
	return slices.ContainsFunc(logs, func(l node.Log) bool { return l.Transaction == transaction && l.BlockHash == r.BlockHash }), err
}
