// Package evmrail lets payments ask an EVM chain: it puts what package rail shows into the
// words of payments.
package evmrail

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"time"

	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/reconcile/evm"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/reconcile/rail"
)

// Rails are the chains of the policy in force. now is compared with the chain's own time, to
// tell a node that fell behind.
func Rails(p func() *policy.Policy, now func() time.Time) func(network string) payments.Rail {
	return func(network string) payments.Rail {
		declared := p().Rail(network)
		if declared == nil || declared.Chain == nil {
			return nil
		}
		return chain{declared.Chain, declared, now}
	}
}

type chain struct {
	*rail.Chain
	declared *policy.Rail
	now      func() time.Time
}

// Signer recovers who signed an authorization, where the policy gives the token's domain.
func (c chain) Signer(claimed rows.Claimed, o payments.Offered) (string, bool, error) {
	var domain evm.Domain
	for _, a := range c.declared.Assets {
		if a.ID == claimed.Asset {
			domain.Name, domain.Version = a.Domain.Name, a.Domain.Version
		}
	}
	if domain.Name == "" {
		return "", false, nil
	}
	contract, err := evm.ParseAddress(claimed.Asset)
	if err != nil {
		return "", true, err
	}
	domain.Contract, domain.ChainID = contract, new(big.Int).SetUint64(c.ID)
	s, err := evm.ParseSignature(o.Signature)
	if err != nil {
		return "", true, err
	}
	a := evm.Authorization{ValidAfter: new(big.Int)}
	for _, n := range []struct {
		into **big.Int
		text string
	}{{&a.Value, claimed.Amount.String()}, {&a.ValidAfter, o.ValidAfter}, {&a.ValidBefore, o.ValidBefore}} {
		if n.text == "" {
			continue
		}
		if *n.into, err = evm.ParseAtomic(n.text); err != nil {
			return "", true, err
		}
	}
	if a.From, err = evm.ParseAddress(claimed.Payer); err != nil {
		return "", true, err
	}
	if a.To, err = evm.ParseAddress(claimed.PayTo); err != nil {
		return "", true, err
	}
	if a.Nonce, err = evm.ParseHash(strings.ToLower(o.Nonce)); err != nil {
		return "", true, err
	}
	who, err := evm.Recover(a.Digest(domain, evm.Transfer), s)
	if err == nil && who != a.From { // some tokens are paid by the recipient's own call
		if receiver, err := evm.Recover(a.Digest(domain, evm.Receive), s); err == nil && receiver == a.From {
			who = receiver
		}
	}
	return who.String(), true, err
}

// Authorization says what the chain shows of one.
func (c chain) Authorization(ctx context.Context, q payments.Question) payments.Sight {
	a := rail.Authorization{Network: c.Network(), ValidBefore: big.NewInt(q.ValidBefore), Since: q.Since}
	var err, more error
	a.Asset, err = evm.ParseAddress(q.Asset)
	a.Authorizer, more = evm.ParseAddress(q.Payer)
	err = errors.Join(err, more)
	a.PayTo, more = evm.ParseAddress(q.PayTo)
	err = errors.Join(err, more)
	a.Nonce, more = evm.ParseHash(q.Nonce)
	err = errors.Join(err, more)
	a.Value, more = evm.ParseAtomic(q.Amount.String())
	if err = errors.Join(err, more); err != nil {
		return payments.Sight{Said: "It cannot be asked about: " + err.Error()}
	}
	s := c.Chain.Authorization(ctx, a, c.now())
	out := payments.Sight{Said: s.Why}
	switch {
	case s.Dead():
		out.Dead, out.DeadBlock = string(s.State), int64(s.FinalBlock)
	case s.Landed() && s.Transfer != nil:
		seen := seen(s.Transfer, true)
		out.Landed = &seen
	}
	return out
}

// start is how many blocks before the last final one reading begins the first time.
const start = rail.MaxChunk

// Incoming reads what came in.
func (c chain) Incoming(ctx context.Context, asset string, recipients []string, from int64) (payments.Page, error) {
	w := rail.Watch{}
	var err error
	if w.Asset, err = evm.ParseAddress(asset); err != nil {
		return payments.Page{}, err
	}
	for _, r := range recipients {
		to, err := evm.ParseAddress(r)
		if err != nil {
			return payments.Page{}, err
		}
		w.To = append(w.To, to)
	}
	first := uint64(max(from, 0))
	if from < 0 {
		final, err := c.Final(ctx, c.now())
		if err != nil {
			return payments.Page{}, err
		}
		first = final - min(final, start)
	}
	page, err := c.Chain.Incoming(ctx, w, first, c.now())
	if err != nil {
		return payments.Page{}, err
	}
	out := payments.Page{Next: int64(page.Next), Done: page.Done}
	for i := range page.Transfers {
		out.List = append(out.List, seen(&page.Transfers[i], true))
	}
	return out, nil
}

// Within reads what a transaction moved of an asset to a recipient.
func (c chain) Within(ctx context.Context, asset, recipient, tx string) (list []payments.Seen, err error) {
	token, err := evm.ParseAddress(asset)
	to, more := evm.ParseAddress(recipient)
	err = errors.Join(err, more)
	hash, more := evm.ParseHash(tx)
	if err = errors.Join(err, more); err != nil {
		return nil, err
	}
	m := c.Moved(ctx, token, hash, c.now())
	if m.Trouble != nil {
		return nil, m.Trouble
	}
	for i := range m.Transfers {
		if m.Transfers[i].To == to {
			list = append(list, seen(&m.Transfers[i], m.Final))
		}
	}
	return list, nil
}

// Still asks where a transfer stands.
func (c chain) Still(ctx context.Context, t rows.Transfer) (payments.Standing, error) {
	known := rail.Transfer{Network: c.Network(), Position: t.Position, Block: uint64(t.Block)}
	var err, more error
	known.Asset, err = evm.ParseAddress(t.Asset)
	known.Transaction, more = evm.ParseHash(t.Tx)
	err = errors.Join(err, more)
	known.From, more = evm.ParseAddress(t.Sender)
	err = errors.Join(err, more)
	known.To, more = evm.ParseAddress(t.Recipient)
	err = errors.Join(err, more)
	known.Value, more = evm.ParseAtomic(t.Amount.String())
	err = errors.Join(err, more)
	if t.BlockHash != "" {
		known.BlockHash, more = evm.ParseHash(t.BlockHash)
		err = errors.Join(err, more)
	}
	if err != nil {
		return payments.Standing{}, err
	}
	s := c.Standing(ctx, known, c.now())
	switch {
	case s.Trouble != nil:
		return payments.Standing{}, s.Trouble
	case s.Presence == rail.There:
		at := seen(s.Transfer, s.Final)
		return payments.Standing{There: &at}, nil
	}
	// While another block may still win, a node on the losing side would take it back.
	return payments.Standing{Gone: s.Presence == rail.Gone && s.Final}, nil
}

// seen is a transfer in the words of payments. Names are in small letters, as they are
// compared.
func seen(t *rail.Transfer, final bool) payments.Seen {
	amount, _ := money.AtomicOf(t.Value.String()) // the database refuses one that does not fit
	s := payments.Seen{Block: int64(t.Block), BlockHash: t.BlockHash.String(), Final: final}
	s.Network, s.Tx, s.Position, s.Amount = t.Network, t.Transaction.String(), t.Position, amount
	s.Asset, s.Sender, s.Recipient = strings.ToLower(t.Asset.String()), strings.ToLower(t.From.String()), strings.ToLower(t.To.String())
	if t.Nonce != nil {
		s.Nonce = t.Nonce.String()
	}
	if t.Memo != nil {
		s.Memo = t.Memo.String()
	}
	return s
}
