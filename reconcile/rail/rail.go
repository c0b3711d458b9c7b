// Package rail says what a chain shows of a payment: whether an authorization was used, was
// cancelled or can never be used any more; whether a transfer with a memo arrived; which
// transfers came in; whether a known one is still there.
//
// It reads nodes and decides nothing about orders or effects. Time is the chain's own; the
// caller's clock only tells a node that fell behind. What a node did not show whole and
// consistent was not seen.
package rail

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/fetch"
)

// Chain is where transfers are recorded. Safe for concurrent use.
type Chain struct {
	ID uint64
	// Nodes are asked in order until one answers; see [Chain.Authorization] for when all must.
	Nodes []*node.Client
	// Lag is how far the last final block is behind the clock at most while all is well; 0
	// is [DefaultLag].
	Lag time.Duration
	// Chunk is how many blocks one question for logs spans; 0 is [MaxChunk].
	Chunk uint64
}

const (
	// DefaultLag is about twice what Ethereum and the chains that settle on it need.
	DefaultLag = 30 * time.Minute
	// MaxChunk is what every provider answers.
	MaxChunk = 1999
	// ahead is how far in the future a final block may be: clocks differ, and more is
	// another chain.
	ahead = 2 * time.Minute
	// early is how long before the time that a caller names a search begins: a block's time
	// may be a little behind the clock of whoever wrote the intent.
	early = 10 * time.Minute
	// patience is for one look over all its questions.
	patience = 60 * time.Second
)

// Network is the chain's name as payments have it (CAIP-2).
func (c *Chain) Network() string { return "eip155:" + strconv.FormatUint(c.ID, 10) }

// Transfer is one movement of an asset. Network, Transaction and Position name it, also
// after a reorganisation; the block is where it stood when it was read.
type Transfer struct {
	Network     string
	Asset       evm.Address
	Transaction evm.Hash
	Position    int // of its Transfer log within the transaction's receipt
	From, To    evm.Address
	Value       *big.Int // atomic units
	Block       uint64
	BlockHash   evm.Hash
	At          time.Time // of the block
	// Nonce is that of the authorization that moved it, Memo what it carries; nil for none.
	Nonce, Memo *evm.Hash

	memoAt int // the place of the memo's log in the receipt
}

// Reference is the transfer's name within its network.
func (t *Transfer) Reference() string { return t.Transaction.String() + ":" + strconv.Itoa(t.Position) }

// Trouble is why something could not be seen. It holds nothing of an answer.
type Trouble struct {
	Problem    lookup.Problem
	Detail     string
	RetryAfter time.Duration
}

func (t *Trouble) Error() string { return string(t.Problem) + ": " + t.Detail }

func trouble(p lookup.Problem, format string, args ...any) error {
	return &Trouble{Problem: p, Detail: fmt.Sprintf(format, args...)}
}

// troubleOf is an error as trouble.
func troubleOf(err error) *Trouble {
	if t, ok := errors.AsType[*Trouble](err); ok {
		return t
	}
	if f, ok := errors.AsType[*fetch.Failure](err); ok {
		t := &Trouble{Problem: f.Problem, RetryAfter: f.RetryAfter}
		if f.Err != nil {
			t.Detail = f.Err.Error()
		}
		return t
	}
	return &Trouble{Problem: lookup.AdapterError}
}

// view is one node's, for one look: the chain is the right one, and its final block is as
// fresh as it should be.
type view struct {
	*node.Client
	chain *Chain
	final node.Block
}

func (c *Chain) view(ctx context.Context, n *node.Client, now time.Time) (*view, error) {
	id, err := n.ChainID(ctx)
	if err != nil {
		return nil, err
	}
	if id != c.ID {
		return nil, trouble(lookup.Unexpected, "the node is on chain %d, not %d", id, c.ID)
	}
	final, err := n.Tagged(ctx, node.Finalized)
	if err != nil {
		return nil, err
	}
	lag := c.Lag
	if lag == 0 {
		lag = DefaultLag
	}
	switch at := moment(final.Time); {
	case now.IsZero():
		return nil, trouble(lookup.AdapterError, "nobody said what time it is")
	case now.Sub(at) > lag:
		return nil, trouble(lookup.Unexpected, "the node's last final block is of %s, more than %s ago: stale", at.Format(time.RFC3339), lag)
	case at.Sub(now) > ahead:
		return nil, trouble(lookup.Unexpected, "the node's last final block is of %s, in the future", at.Format(time.RFC3339))
	}
	return &view{n, c, final}, nil
}

// each lets nodes try in order until one does without an error, which is returned then.
func (c *Chain) each(ctx context.Context, now time.Time, try func(*view) error) error {
	failed := trouble(lookup.Unaskable, "no node of the chain is known")
	for i, n := range c.Nodes {
		v, err := c.view(ctx, n, now)
		if err == nil {
			err = try(v)
		}
		if err == nil {
			return nil
		}
		if i == 0 || ctx.Err() == nil {
			failed = err
		}
	}
	return failed
}

func (c *Chain) chunk() uint64 {
	if c.Chunk == 0 || c.Chunk > MaxChunk {
		return MaxChunk
	}
	return c.Chunk
}

func moment(seconds uint64) time.Time { return time.Unix(int64(min(seconds, 1<<40)), 0).UTC() }

// stands checks that a block is on the chain as the node sees it, and returns it.
func (v *view) stands(ctx context.Context, number uint64, hash evm.Hash) (node.Block, error) {
	b, err := v.Block(ctx, number)
	if err != nil {
		return node.Block{}, err
	}
	if b == nil || b.Hash != hash {
		return node.Block{}, trouble(lookup.Unexpected, "block %d of the log is not the one on the chain", number)
	}
	return *b, nil
}

// Final is the number of the last final block.
func (c *Chain) Final(ctx context.Context, now time.Time) (number uint64, err error) {
	err = c.each(ctx, now, func(v *view) error {
		number = v.final.Number
		return nil
	})
	return number, err
}
