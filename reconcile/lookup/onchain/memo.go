package onchain

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"slices"

	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/rail"
)

// KindMemo is this look-up's name in the policy.
const KindMemo = "memo"

type memos struct {
	*chain
	memo, transaction, from, recipient, value *read.Template
	digest                                    bool // the memo is the text's hash
	canary                                    *evm.Hash
}

// ReadMemo reads a memo look-up.
func ReadMemo(b *block.Block) lookup.Source {
	path := b.KindPath(KindMemo)
	f := b.Own(KindMemo, slices.Concat(common, []string{"memo", "digest", "transaction", "from"})...)
	s := &memos{chain: readChain(b, KindMemo, f)}
	for name, to := range map[string]**read.Template{
		"memo": &s.memo, "transaction": &s.transaction, "from": &s.from, "recipient": &s.recipient, "value": &s.value,
	} {
		*to = template(b, f[name], path+"."+name)
	}
	s.digest = b.Boolean(f["digest"], path+".digest")
	switch {
	case f == nil:
	case f["memo"] == nil && f["transaction"] == nil:
		b.Mistake(b.Kind, path, "memo or transaction is needed, or both: what the transfer is found by")
	case f["memo"] == nil && f["digest"] != nil:
		b.Mistake(f["digest"], path+".digest", "goes with memo")
	}
	n, at := b.At("canary")
	if text, ok := b.Spelling(n, at); ok {
		hash, err := evm.ParseHash(text)
		if err != nil {
			b.Mistake(n, at, "must be the hash of a transaction with a memo: it %s", err)
		}
		s.canary = &hash
	}
	if n == nil && b.AbsenceIsProof {
		absence, where := b.At("absence_is_proof")
		b.Mistake(absence, where, "needs canary: the hash of a transaction with a memo that is on the chain, without which a node that keeps no logs looks like absence")
	}
	return s
}

// Ask reads every transfer with the memo since the first attempt, or what the transaction
// moved, and the canary where nothing was found.
func (s *memos) Ask(ctx context.Context, q lookup.Question) lookup.Seen {
	m, err := s.question(q)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
	}
	var by []string
	if m.Memo != nil {
		by = append(by, "memo "+m.Memo.String())
	}
	if m.Transaction != nil {
		by = append(by, "transaction "+m.Transaction.String())
	}
	seen := lookup.Seen{Request: s.describe(KindMemo, by...)}
	got := s.rail.WithMemo(ctx, m, q.AskedAt)
	if body, err := json.Marshal(map[string]any{"transfers": len(got.Transfers), "reverted": got.Reverted, "final_at": got.FinalAt}); err == nil {
		seen.Body(body)
	}
	if got.Trouble != nil {
		troubled(&seen, got.Trouble)
		return seen
	}
	seen.Complete, seen.AsOf = got.Complete, got.FinalAt
	if err := s.show(ctx, q, m, got, &seen); err != nil {
		seen.Complete, seen.Problem, seen.Detail = false, lookup.RuleFailed, err.Error()
		return seen
	}
	if s.canary != nil && q.Absent(&seen) {
		s.askCanary(ctx, q, &seen)
	}
	return seen
}

func (s *memos) show(ctx context.Context, q lookup.Question, m rail.Memo, got rail.Found, seen *lookup.Seen) error {
	// A memo may be anybody's; our own key in it, or the transaction that the call names, is not.
	ours := s.memo != nil && slices.Equal(s.memo.Fields(), []string{"vendor_key"})
	for _, t := range got.Transfers {
		h, err := s.hit(ctx, q, t.Transfer, t.Match && !q.KeyOnly, t.Final, "transferred")
		if err != nil {
			return err
		}
		h.Ours, h.Passing = ours || m.Transaction != nil && t.Transaction == *m.Transaction, !t.Final
		seen.Hits = append(seen.Hits, h)
	}
	if got.Reverted {
		// The same payment may have been sent again in another transaction.
		seen.Hits = append(seen.Hits, lookup.Hit{Reference: m.Transaction.String(), Never: got.RevertedFinal, Possible: !got.RevertedFinal,
			Passing: !got.RevertedFinal, Final: got.RevertedFinal, State: "reverted"})
	}
	return nil
}

func (s *memos) askCanary(ctx context.Context, q lookup.Question, seen *lookup.Seen) {
	seen.Request += "\ncanary: transaction " + s.canary.String()
	there, t := s.rail.Canary(ctx, s.asset, *s.canary, q.AskedAt)
	if t != nil {
		seen.Problem, seen.Detail, seen.RetryAfter = lookup.CanaryFailed, string(t.Problem), t.RetryAfter
		return
	}
	seen.Canary = there
}

// question is what the call's arguments say.
func (s *memos) question(q lookup.Question) (m rail.Memo, err error) {
	m = rail.Memo{Network: s.rail.Network(), Asset: s.asset, Since: since(q)}
	if m.Memo, err = optional("memo", s.memo, q, s.parseMemo); err != nil {
		return m, err
	}
	if m.Transaction, err = optional("transaction", s.transaction, q, evm.ParseHash); err != nil {
		return m, err
	}
	if q.KeyOnly { // nothing to compare with
		m.Value = new(big.Int)
		return m, nil
	}
	if m.PayTo, err = fill("recipient", s.recipient, q, evm.ParseAddress); err != nil {
		return m, err
	}
	if m.From, err = optional("from", s.from, q, evm.ParseAddress); err != nil {
		return m, err
	}
	m.Value, err = fill("value", s.value, q, evm.ParseAtomic)
	return m, err
}

// optional is fill where the policy may have no such template.
func optional[T any](name string, t *read.Template, q lookup.Question, parse func(string) (T, error)) (*T, error) {
	if t == nil {
		return nil, nil
	}
	v, err := fill(name, t, q, parse)
	return &v, err
}

var errMemo = errors.New("is not a memo: 0x and 64 hexadecimal digits, or text of up to 32 bytes")

// parseMemo reads 32 bytes, or text as wallets write it into a memo: its bytes, and zeros
// behind them.
func (s *memos) parseMemo(text string) (evm.Hash, error) {
	if s.digest {
		return evm.Keccak([]byte(text)), nil
	}
	if h, err := evm.ParseHash(text); err == nil {
		return h, nil
	}
	var h evm.Hash
	if len(text) > len(h) || text[len(text)-1] == 0 {
		return h, errMemo
	}
	copy(h[:], text)
	return h, nil
}
