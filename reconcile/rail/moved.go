package rail

import (
	"context"
	"time"

	"quittance/reconcile/evm"
)

// Movement is what a transaction did with an asset.
type Movement struct {
	// Mined: it is in a block of the chain. Otherwise nothing is known of it, which proves
	// nothing.
	Mined bool
	// Final: that block can no longer be reorganised away.
	Final bool
	// Failed: it moved nothing, of anything.
	Failed    bool
	Block     uint64
	Transfers []Transfer
	Trouble   *Trouble
}

// Moved reads what a transaction moved of an asset.
func (c *Chain) Moved(ctx context.Context, asset evm.Address, transaction evm.Hash, now time.Time) (m Movement) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.each(ctx, now, func(v *view) error {
		m = Movement{}
		r, err := v.Receipt(ctx, transaction)
		if err != nil || r == nil {
			return err
		}
		b, err := v.stands(ctx, r.Block, r.BlockHash)
		if err != nil {
			return err
		}
		m = Movement{Mined: true, Final: r.Block <= v.final.Number, Failed: !r.OK, Block: r.Block}
		if r.OK {
			m.Transfers = v.transfers(r, b, asset)
		}
		return nil
	})
	if err != nil {
		return Movement{Trouble: troubleOf(err)}
	}
	return m
}
