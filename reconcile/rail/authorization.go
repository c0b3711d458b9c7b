package rail

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
)

// Authorization is what a payer signed (EIP-3009), as far as the chain can be asked about
// it. It goes by authorizer and nonce, never by its amount.
type Authorization struct {
	Network     string // as [Chain.Network]
	Asset       evm.Address
	Authorizer  evm.Address
	Nonce       evm.Hash
	ValidBefore *big.Int // seconds of the Unix epoch; nil where nobody knows, and then it never expires
	PayTo       evm.Address
	Value       *big.Int  // atomic units
	Since       time.Time // it was not submitted before; without it only "unused" can be told
}

// State is what is known of an authorization.
type State string

// States. Unseen, the zero value, is that it could not be checked: see Trouble.
const (
	Unseen    State = ""
	Open      State = "open"      // unused: it can be used any moment, or may be in a block that is not known yet
	Used      State = "used"      // it moved money, see Final, Match and Transfer
	Cancelled State = "cancelled" // where Final, it can never be used
	Expired   State = "expired"   // unused at a final block past its end: it can never be used
	Unlogged  State = "unlogged"  // used or cancelled, and nobody shows which: never proof that it was not used
)

// Sighting is what was seen of an authorization. The zero value saw nothing.
type Sighting struct {
	State State
	// Final: the block that shows it can no longer be reorganised away.
	Final bool
	// Match: Used, and the transfer went from the authorizer to the recipient with the value.
	Match bool
	// Transfer is what moved, for Used; nil where no transfer follows.
	Transfer *Transfer
	// Transaction and Block are where it was used or cancelled.
	Transaction evm.Hash
	Block       uint64
	// FinalBlock is the block that the state was read at, and its time.
	FinalBlock uint64
	FinalAt    time.Time
	// Earliest is when more can be known; zero where that is not known.
	Earliest time.Time
	Why      string // a sentence
	// Trouble is why it is Unseen, or why what used it could not be read.
	Trouble *Trouble
}

// Dead says that the authorization did not move money and never can.
func (s Sighting) Dead() bool { return s.Final && (s.State == Cancelled || s.State == Expired) }

// Landed says that it moved exactly what it should, for good.
func (s Sighting) Landed() bool { return s.State == Used && s.Final && s.Match }

// Authorization looks for an authorization. Now is only compared with the time of the
// node's final block. Of several nodes the first that can be asked is believed about what
// it shows; that an authorization is dead must be shown by all of them, and where one cannot
// say where it was used the next is asked. That one says it was used is never lost on the way.
func (c *Chain) Authorization(ctx context.Context, a Authorization, now time.Time) Sighting {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := a.check(c); err != nil {
		return unseen(err)
	}
	s := unseen(trouble(lookup.Unaskable, "no node of the chain is known"))
	for i, n := range c.Nodes {
		one := c.ask(ctx, n, a, now)
		switch {
		case one.Dead() && i == 0:
			return c.all(ctx, one, a, now)
		case one.Dead() && s.State == Unlogged:
			return s
		case one.Dead():
			return unseen(trouble(lookup.Unexpected, "not every node shows that it can never be used"))
		case one.State == Unseen, one.State == Unlogged:
			if s.State != Unlogged {
				s = one
			}
		case s.State == Unlogged && one.State == Open:
			// The node that saw it used is ahead of this one.
		default:
			return one
		}
	}
	return s
}

// all asks the other nodes whether they show the same death as the first.
func (c *Chain) all(ctx context.Context, first Sighting, a Authorization, now time.Time) Sighting {
	for _, n := range c.Nodes[1:] {
		other := c.ask(ctx, n, a, now)
		if other.Dead() && other.State == first.State {
			continue
		}
		s := unseen(trouble(lookup.Unexpected, "one node shows that it can never be used, and %s does not", n.Host()))
		if other.State == Used || other.State == Unlogged {
			s.State, s.Why = Unlogged, fmt.Sprintf("One node shows that it can never be used, and %s that it was used.", n.Host())
		}
		return s
	}
	return first
}

func unseen(err error) Sighting {
	t := troubleOf(err)
	return Sighting{Trouble: t, Why: "It could not be checked: " + t.Detail}
}

func (a Authorization) check(c *Chain) error {
	switch {
	case a.Network != c.Network():
		return trouble(lookup.Unaskable, "it is for %s, and this is %s", a.Network, c.Network())
	case a.Value == nil || a.Value.Sign() < 0:
		return trouble(lookup.Unaskable, "it has no value")
	case a.ValidBefore != nil && a.ValidBefore.Sign() < 0:
		return trouble(lookup.Unaskable, "it has no valid end")
	case a.Authorizer == evm.Address{}:
		return trouble(lookup.Unaskable, "it has no authorizer")
	}
	return nil
}

func (c *Chain) ask(ctx context.Context, n *node.Client, a Authorization, now time.Time) Sighting {
	v, err := c.view(ctx, n, now)
	if err != nil {
		return unseen(err)
	}
	s, err := v.authorization(ctx, a)
	if err != nil {
		s = unseen(err)
	}
	s.FinalBlock, s.FinalAt = v.final.Number, moment(v.final.Time)
	if s.State == Open && a.ValidBefore != nil && a.ValidBefore.IsInt64() {
		if wait := time.Unix(a.ValidBefore.Int64(), 0).Sub(s.FinalAt); wait < 366*24*time.Hour {
			s.Earliest = now.Add(wait)
		}
	}
	return s
}

func (v *view) authorization(ctx context.Context, a Authorization) (Sighting, error) {
	spent, err := v.spent(ctx, a, v.final.Number)
	if err != nil {
		return Sighting{}, err
	}
	if spent {
		s := v.what(ctx, a, func() (uint64, error) { return v.since(ctx, a.Since) }, v.final.Number)
		s.Final = s.State == Used || s.State == Cancelled
		return s, nil
	}
	if a.ValidBefore != nil && new(big.Int).SetUint64(v.final.Time).Cmp(a.ValidBefore) >= 0 {
		return Sighting{State: Expired, Final: true,
			Why: fmt.Sprintf("It was unused at the final block %d, which is not before its end: it can never be used.", v.final.Number)}, nil
	}
	latest, err := v.Tagged(ctx, node.Latest)
	if err != nil {
		return Sighting{}, err
	}
	if spent, err = v.spent(ctx, a, latest.Number); err != nil {
		return Sighting{}, err
	}
	if spent {
		s := v.what(ctx, a, func() (uint64, error) { return v.final.Number + 1, nil }, latest.Number)
		if s.State == Used || s.State == Cancelled {
			s.Why += " It waits for finality."
		}
		return s, nil
	}
	return Sighting{State: Open, Why: fmt.Sprintf("It is unused, and the final block %d is before its end: it can still be used.", v.final.Number)}, nil
}

// spent reads whether the contract takes the authorization for used or cancelled, as the
// chain was after a block.
func (v *view) spent(ctx context.Context, a Authorization, block uint64) (bool, error) {
	raw, err := v.Call(ctx, a.Asset, evm.CallData("authorizationState(address,bytes32)", a.Authorizer, a.Nonce), block)
	if err != nil {
		return false, err
	}
	if len(raw) != 32 {
		return false, trouble(lookup.Unexpected, "authorizationState answered %d bytes, not 32: no contract of this kind stands at the asset's address", len(raw))
	}
	switch w := evm.Hash(raw); w {
	case evm.Hash{}:
		return false, nil
	case evm.Hash{31: 1}:
		return true, nil
	}
	return false, trouble(lookup.Unexpected, "authorizationState answered neither true nor false")
}

// what is what used or cancelled the authorization, by its log from a block on. That it was
// one of the two is known: trouble on the way leaves that.
func (v *view) what(ctx context.Context, a Authorization, first func() (uint64, error), to uint64) Sighting {
	from, err := first()
	var s Sighting
	if err == nil {
		s, err = v.where(ctx, a, from, to)
	}
	if err != nil {
		t := troubleOf(err)
		return Sighting{State: Unlogged, Trouble: t, Why: "The contract says that it was used or cancelled, and which could not be read: " + t.Detail}
	}
	return s
}

// where finds what used or cancelled the authorization.
func (v *view) where(ctx context.Context, a Authorization, from, to uint64) (Sighting, error) {
	var log *node.Log
	err := v.search(ctx, a.Asset, [][]evm.Hash{{used, cancelled}, {a.Authorizer.Word()}, {a.Nonce}}, from, to, func(logs []node.Log) bool {
		if len(logs) > 0 {
			log = &logs[0]
		}
		return log != nil
	})
	if err != nil {
		return Sighting{}, err
	}
	if log == nil {
		return Sighting{State: Unlogged, Why: fmt.Sprintf(
			"The contract says that it was used or cancelled, and the node shows no log of it from block %d: pruned, or before that.", from)}, nil
	}
	r, b, err := v.receipt(ctx, *log)
	if err != nil {
		return Sighting{}, err
	}
	at := place(r, *log)
	if at < 0 {
		return Sighting{}, trouble(lookup.Unexpected, "the receipt of transaction %s does not hold its log", log.Transaction)
	}
	s := Sighting{State: Cancelled, Transaction: log.Transaction, Block: log.Block}
	if log.Topics[0] == cancelled {
		s.Why = fmt.Sprintf("It was cancelled in block %d.", log.Block)
		return s, nil
	}
	s.State = Used
	for _, t := range v.transfers(r, b, a.Asset) {
		// The first one after the log, unless another authorization was used between.
		if t.Position > at {
			if t.Nonce != nil && *t.Nonce == a.Nonce && t.From == a.Authorizer {
				s.Transfer = &t
			}
			break
		}
	}
	switch t := s.Transfer; {
	case t == nil:
		s.Why = fmt.Sprintf("It was used in block %d, and no transfer of the authorizer's follows in that transaction.", log.Block)
	case t.To != a.PayTo || t.Value.Cmp(a.Value) != 0:
		s.Why = fmt.Sprintf("It was used in block %d and moved %s to %s, not %s to %s.", log.Block, t.Value, t.To, a.Value, a.PayTo)
	default:
		s.Match = true
		s.Why = fmt.Sprintf("It was used in block %d and moved %s to %s.", log.Block, t.Value, t.To)
	}
	return s, nil
}
