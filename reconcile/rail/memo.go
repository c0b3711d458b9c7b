package rail

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
)

// Memo is a transfer that carries 32 bytes of ours, as far as the chain can be asked about
// it: by the memo, by the transaction's hash, or by both. Anybody may send one with our
// memo, and more than one.
type Memo struct {
	Network     string
	Asset       evm.Address
	Memo        *evm.Hash    // nil to go by the transaction alone
	Transaction *evm.Hash    // nil to go by the memo alone
	From        *evm.Address // nil where anybody may have sent it
	PayTo       evm.Address
	Value       *big.Int
	Since       time.Time // it was not sent before; unused where the memo is nil
}

// Carried is a transfer that was found.
type Carried struct {
	Transfer
	// Final: its block can no longer be reorganised away.
	Final bool
	// Match: sender where known, recipient, value, and memo and transaction where given.
	Match bool
	Why   string // a sentence
}

// Found is everything that was found. The zero value found nothing, and read nothing.
type Found struct {
	Transfers []Carried
	// Complete: everything was read, up to the newest block.
	Complete bool
	// Reverted: the transaction that was named is in a block and moved nothing, for good
	// where RevertedFinal.
	Reverted, RevertedFinal bool
	// FinalAt is the time of the last final block; what is newer may still vanish.
	FinalAt time.Time
	Trouble *Trouble
}

// WithMemo looks for the transfers of a memo. Of several nodes the first that answers
// everything is believed; nothing found is no proof of anything by itself.
func (c *Chain) WithMemo(ctx context.Context, m Memo, now time.Time) (found Found) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.check(c); err != nil {
		return Found{Trouble: troubleOf(err)}
	}
	err := c.each(ctx, now, func(v *view) (err error) {
		found, err = v.memo(ctx, m)
		return err
	})
	if err != nil {
		return Found{Trouble: troubleOf(err)}
	}
	return found
}

func (m Memo) check(c *Chain) error {
	switch {
	case m.Network != c.Network():
		return trouble(lookup.Unaskable, "it is for %s, and this is %s", m.Network, c.Network())
	case m.Memo == nil && m.Transaction == nil:
		return trouble(lookup.Unaskable, "it has neither a memo nor a transaction")
	case m.Memo != nil && *m.Memo == evm.Hash{}:
		return trouble(lookup.Unaskable, "its memo is empty, which every careless transfer carries")
	case m.Value == nil || m.Value.Sign() < 0:
		return trouble(lookup.Unaskable, "it has no value")
	}
	return nil
}

func (v *view) memo(ctx context.Context, m Memo) (Found, error) {
	found := Found{FinalAt: moment(v.final.Time)}
	if m.Transaction != nil {
		if err := v.byTransaction(ctx, m, &found); err != nil {
			return found, err
		}
	}
	if m.Memo != nil {
		if err := v.byMemo(ctx, m, &found); err != nil {
			return found, err
		}
	}
	found.Complete = true
	return found, nil
}

// byTransaction reads what the transaction moved of the asset. To others it may have moved
// much: that is shown only where nothing went to the recipient.
func (v *view) byTransaction(ctx context.Context, m Memo, found *Found) error {
	r, err := v.Receipt(ctx, *m.Transaction)
	if r == nil || err != nil {
		return err
	}
	b, err := v.stands(ctx, r.Block, r.BlockHash)
	if err != nil {
		return err
	}
	if !r.OK {
		found.Reverted, found.RevertedFinal = true, r.Block <= v.final.Number
		return nil
	}
	all := v.transfers(r, b, m.Asset)
	ours := slices.DeleteFunc(slices.Clone(all), func(t Transfer) bool {
		return t.To != m.PayTo || m.Memo != nil && (t.Memo == nil || *t.Memo != *m.Memo)
	})
	if len(ours) == 0 {
		ours = all
	}
	for _, t := range ours {
		found.add(v, m, t)
	}
	return nil
}

func (v *view) byMemo(ctx context.Context, m Memo, found *Found) error {
	latest, err := v.Tagged(ctx, node.Latest)
	if err != nil {
		return err
	}
	from, err := v.since(ctx, m.Since)
	if err != nil {
		return err
	}
	var logs []node.Log
	err = v.search(ctx, m.Asset, [][]evm.Hash{{withMemo}, nil, nil, {*m.Memo}}, from, latest.Number, func(some []node.Log) bool {
		logs = append(logs, some...)
		return len(logs) > mostFound
	})
	switch {
	case err != nil:
		return err
	case len(logs) > mostFound:
		return trouble(lookup.MorePages, "more than %d transfers carry the memo", mostFound)
	}
	for _, l := range logs {
		r, b, err := v.receipt(ctx, l)
		if err != nil {
			return err
		}
		at := place(r, l)
		all := v.transfers(r, b, m.Asset)
		i := slices.IndexFunc(all, func(t Transfer) bool { return t.memoAt == at && t.Memo != nil })
		if i < 0 {
			return trouble(lookup.Unexpected, "a memo of transaction %s stands at no transfer", l.Transaction)
		}
		found.add(v, m, all[i])
	}
	return nil
}

// mostFound is how many transfers with one memo are read: more are no answer about one.
const mostFound = 50

// add adds a transfer once.
func (f *Found) add(v *view, m Memo, t Transfer) {
	if slices.ContainsFunc(f.Transfers, func(x Carried) bool { return x.Transaction == t.Transaction && x.Position == t.Position }) {
		return
	}
	c := Carried{Transfer: t, Final: t.Block <= v.final.Number}
	switch {
	case m.Transaction != nil && t.Transaction != *m.Transaction:
		c.Why = fmt.Sprintf("It carries the memo and is another transaction than %s.", *m.Transaction)
	case m.Memo != nil && (t.Memo == nil || *t.Memo != *m.Memo):
		c.Why = "It carries another memo, or none."
	case m.From != nil && t.From != *m.From:
		c.Why = fmt.Sprintf("It came from %s, not %s.", t.From, *m.From)
	case t.To != m.PayTo || t.Value.Cmp(m.Value) != 0:
		c.Why = fmt.Sprintf("It moved %s to %s, not %s to %s.", t.Value, t.To, m.Value, m.PayTo)
	default:
		c.Match = true
		c.Why = fmt.Sprintf("It moved %s to %s in block %d.", t.Value, t.To, t.Block)
	}
	f.Transfers = append(f.Transfers, c)
}
