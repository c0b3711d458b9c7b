package rail

import (
	"context"
	"slices"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
)

// Watch is what is watched for: transfers of an asset to addresses of ours.
type Watch struct {
	Asset evm.Address
	To    []evm.Address
}

// Page is one stretch of final blocks, read whole.
type Page struct {
	// Transfers in the order of the chain. One of nothing (value 0) is left out: anybody
	// sends those, in anybody's name.
	Transfers []Transfer
	// Next is the block to go on from: everything before it was read.
	Next uint64
	// Done: the last final block is among those that were read.
	Done    bool
	FinalAt time.Time // of the last final block
}

// Incoming reads what came in from a block on, final blocks only, as far as one page goes.
// Whoever stores the transfers stores Next with them, in one transaction: what is read twice
// has the same names. On an error nothing was read. A from past the last final block is a
// page that holds nothing.
func (c *Chain) Incoming(ctx context.Context, w Watch, from uint64, now time.Time) (page Page, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if len(w.To) == 0 {
		return Page{Next: from}, trouble(lookup.Unaskable, "no address is watched") // none would mean all
	}
	err = c.each(ctx, now, func(v *view) error {
		page, err = v.page(ctx, w, from)
		return err
	})
	if err != nil {
		return Page{Next: from}, troubleOf(err)
	}
	return page, nil
}

// pageful is after how many logs a page ends: each may cost a question.
const pageful = 200

func (v *view) page(ctx context.Context, w Watch, from uint64) (Page, error) {
	page := Page{Next: from, FinalAt: moment(v.final.Time)}
	if from > v.final.Number {
		page.Done = true
		return page, nil
	}
	to := min(v.final.Number, from+v.chain.chunk()-1)
	logs, to, err := v.arrivals(ctx, w, from, to)
	if err != nil {
		return Page{}, err
	}
	var read *node.Receipt
	var here []Transfer
	for i, l := range logs {
		if i >= pageful && l.Block != logs[i-1].Block {
			to = l.Block - 1
			break
		}
		if read == nil || read.Transaction != l.Transaction {
			r, b, err := v.receipt(ctx, l)
			if err != nil {
				return Page{}, err
			}
			read, here = r, v.transfers(r, b, w.Asset)
		}
		at := place(read, l)
		n := slices.IndexFunc(here, func(t Transfer) bool { return t.Position == at })
		if n < 0 {
			return Page{}, trouble(lookup.Unexpected, "the receipt of transaction %s does not hold its transfer", l.Transaction)
		}
		page.Transfers = append(page.Transfers, here[n])
	}
	page.Next, page.Done = to+1, to == v.final.Number
	return page, nil
}

// arrivals are the logs of a stretch, and the stretch's end: a shorter one where the
// answer for the whole is too large.
func (v *view) arrivals(ctx context.Context, w Watch, from, to uint64) ([]node.Log, uint64, error) {
	recipients := make([]evm.Hash, len(w.To))
	for i, a := range w.To {
		recipients[i] = a.Word()
	}
	for {
		logs, err := v.Logs(ctx, node.Filter{Contract: w.Asset, Topics: [][]evm.Hash{{transferred}, nil, recipients}, From: from, To: to})
		if t := (*Trouble)(nil); err != nil {
			if t = troubleOf(err); t.Problem == lookup.TooLarge && to > from {
				to = from + (to-from)/2
				continue
			}
			return nil, 0, t
		}
		// A log of another shape would have no place among the transfers.
		return slices.DeleteFunc(logs, func(l node.Log) bool {
			return len(l.Topics) != 3 || len(l.Data) != 32 || evm.Hash(l.Data) == evm.Hash{}
		}), to, nil
	}
}

// Presence is where a known transfer stands now.
type Presence string

// Presences. Unsure, the zero value, is that it could not be told.
const (
	Unsure Presence = ""
	There  Presence = "there"
	Gone   Presence = "gone" // in no block of the chain; it can come back
)

// Standing is what was seen of a known transfer.
type Standing struct {
	Presence Presence
	// Final: There in a final block, or Gone while the block that held it was replaced by a
	// final one. A transaction that is gone can still be mined again, later.
	Final bool
	// Transfer is where it stands now, for There: perhaps in another block than before.
	Transfer *Transfer
	Trouble  *Trouble
}

// Standing looks whether a transfer that was seen in a block is still on the chain. That a
// node does not know the transaction says nothing while the block that held it stands, or
// where nobody knows which block that was.
func (c *Chain) Standing(ctx context.Context, t Transfer, now time.Time) (s Standing) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if t.Network != c.Network() {
		return Standing{Trouble: troubleOf(trouble(lookup.Unaskable, "it is on %s, and this is %s", t.Network, c.Network()))}
	}
	err := c.each(ctx, now, func(v *view) (err error) {
		s, err = v.standing(ctx, t)
		return err
	})
	if err != nil {
		return Standing{Trouble: troubleOf(err)}
	}
	return s
}

func (v *view) standing(ctx context.Context, t Transfer) (Standing, error) {
	r, err := v.Receipt(ctx, t.Transaction)
	if err != nil {
		return Standing{}, err
	}
	if r != nil {
		b, err := v.stands(ctx, r.Block, r.BlockHash)
		if err != nil {
			return Standing{}, err
		}
		final := r.Block <= v.final.Number
		for _, now := range v.transfers(r, b, t.Asset) {
			if r.OK && now.Position == t.Position && now.From == t.From && now.To == t.To && now.Value.Cmp(t.Value) == 0 {
				return Standing{Presence: There, Final: final, Transfer: &now}, nil
			}
		}
		if r.BlockHash == t.BlockHash {
			return Standing{}, trouble(lookup.Unexpected, "the receipt does not hold a transfer that it held before")
		}
		// Mined again, with another outcome.
		return Standing{Presence: Gone, Final: final}, nil
	}
	if t.BlockHash == (evm.Hash{}) {
		// Whoever told of it may be ahead of this node, and no block says otherwise.
		return Standing{}, trouble(lookup.Unexpected, "the node has no receipt of the transaction, and it is not on record which block held it")
	}
	b, err := v.Block(ctx, t.Block)
	if err != nil {
		return Standing{}, err
	}
	switch {
	case b == nil:
		return Standing{}, trouble(lookup.Unexpected, "the node has no block %d: behind the one that showed the transfer, or pruned", t.Block)
	case b.Hash == t.BlockHash:
		return Standing{}, trouble(lookup.Unexpected, "the node has the block of the transfer and no receipt of it: pruned")
	}
	return Standing{Presence: Gone, Final: t.Block <= v.final.Number}, nil
}
