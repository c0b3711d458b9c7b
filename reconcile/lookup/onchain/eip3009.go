package onchain

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/rail"
)

// KindEIP3009 is this look-up's name in the policy.
const KindEIP3009 = "eip3009"

type authorizations struct {
	*chain
	authorizer, nonce, validBefore, recipient, value *read.Template
	// Where the call holds the signature: what the arguments say is then what was signed.
	signature, validAfter *read.Template
	name, version         string
}

// ReadEIP3009 reads an eip3009 look-up.
func ReadEIP3009(b *block.Block) lookup.Source {
	path := b.KindPath(KindEIP3009)
	f := b.Own(KindEIP3009, slices.Concat(common, []string{"authorizer", "nonce", "valid_before", "signature", "domain", "valid_after"})...)
	s := &authorizations{chain: readChain(b, KindEIP3009, f)}
	for name, why := range map[string]string{"authorizer": "who signed", "nonce": "the authorization's 32 bytes", "valid_before": "when it ends, in seconds of the Unix epoch"} {
		if f != nil && f[name] == nil {
			b.Mistake(b.Kind, path, "%s is missing: %s", name, why)
		}
	}
	for name, to := range map[string]**read.Template{
		"authorizer": &s.authorizer, "nonce": &s.nonce, "valid_before": &s.validBefore, "recipient": &s.recipient, "value": &s.value,
		"signature": &s.signature, "valid_after": &s.validAfter,
	} {
		*to = template(b, f[name], path+"."+name)
	}
	d := b.Reader.Fields(f["domain"], path+".domain", "name", "version")
	s.name, _ = b.Text(d["name"], path+".domain.name")
	s.version, _ = b.Text(d["version"], path+".domain.version")
	for _, name := range []string{"domain", "valid_after"} {
		if (f[name] == nil) != (f["signature"] == nil) {
			b.Mistake(b.Kind, path, "signature, domain {name, version} and valid_after go together: the signature is checked against them")
			break
		}
	}
	// What is not there proves nothing here; what can never be there any more does.
	b.Refuse(KindEIP3009, "absence_is_proof", "canary", "kept_for", "visible_after")
	return s
}

// Ask reads the authorization's state, and where it was used.
func (s *authorizations) Ask(ctx context.Context, q lookup.Question) lookup.Seen {
	a, err := s.authorization(q)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}
	}
	seen := lookup.Seen{Request: s.describe(KindEIP3009, "authorizer "+a.Authorizer.String(), "nonce "+a.Nonce.String(), "valid before "+a.ValidBefore.String())}
	got := s.rail.Authorization(ctx, a, q.AskedAt)
	body, err := json.Marshal(map[string]any{"state": got.State, "final": got.Final, "why": got.Why,
		"final_block": got.FinalBlock, "final_at": got.FinalAt, "ask_again": got.Earliest})
	if err == nil {
		seen.Body(body)
	}
	if got.State == rail.Unseen {
		troubled(&seen, got.Trouble)
		return seen
	}
	if got.Trouble != nil {
		seen.RetryAfter = got.Trouble.RetryAfter
	}
	seen.Complete, seen.AsOf = true, got.FinalAt
	if err := s.show(ctx, q, a, got, &seen); err != nil {
		seen.Complete, seen.Problem, seen.Detail = false, lookup.RuleFailed, err.Error()
	}
	return seen
}

// show puts a sighting into the words that all look-ups share.
func (s *authorizations) show(ctx context.Context, q lookup.Question, a rail.Authorization, got rail.Sighting, seen *lookup.Seen) error {
	own := fmt.Sprintf(`{"authorizer":%q,"nonce":%q}`, a.Authorizer, a.Nonce)
	state := string(got.State)
	switch got.State {
	case rail.Used:
		h := lookup.Hit{Final: got.Final, State: state, Record: own}
		if got.Transfer != nil {
			var err error
			if h, err = s.hit(ctx, q, *got.Transfer, got.Match, got.Final, state); err != nil {
				return err
			}
		}
		h.Ours = true // the nonce is in the call, and is used once
		h.Passing = !got.Final
		seen.Hits = append(seen.Hits, h)
	case rail.Unlogged:
		// It may well have been ours: that stops a person's "not taken", too.
		seen.Hits = append(seen.Hits, lookup.Hit{Possible: true, State: "used or cancelled", Record: own})
	case rail.Cancelled:
		seen.Hits = append(seen.Hits, lookup.Hit{Reference: got.Transaction.String(), Never: got.Final, Possible: !got.Final, Ours: got.Final, Final: got.Final, Passing: !got.Final, State: state, Record: own})
		if got.Final {
			seen.Never = fmt.Sprintf("its authorization was cancelled in the final block %d", got.Block)
		}
	case rail.Expired:
		seen.Never = fmt.Sprintf("its authorization was unused at the final block %d, which is not before its end", got.FinalBlock)
	}
	return nil
}

// authorization is what the call's arguments say.
func (s *authorizations) authorization(q lookup.Question) (a rail.Authorization, err error) {
	a = rail.Authorization{Network: s.rail.Network(), Asset: s.asset, Since: since(q)}
	if a.Authorizer, err = fill("authorizer", s.authorizer, q, evm.ParseAddress); err != nil {
		return a, err
	}
	if a.Nonce, err = fill("nonce", s.nonce, q, evm.ParseHash); err != nil {
		return a, err
	}
	if a.ValidBefore, err = fill("valid_before", s.validBefore, q, evm.ParseAtomic); err != nil {
		return a, err
	}
	if a.PayTo, err = fill("recipient", s.recipient, q, evm.ParseAddress); err != nil {
		return a, err
	}
	if a.Value, err = fill("value", s.value, q, evm.ParseAtomic); err != nil {
		return a, err
	}
	if s.signature != nil {
		err = s.signed(q, a)
	}
	return a, err
}

// signed checks that the arguments are what was signed. With a wrong authorizer, nonce or
// end among them the chain would truly say of another authorization that it is unused.
func (s *authorizations) signed(q lookup.Question, a rail.Authorization) error {
	signature, err := fill("signature", s.signature, q, evm.ParseSignature)
	if err != nil {
		return err
	}
	after, err := fill("valid_after", s.validAfter, q, evm.ParseAtomic)
	if err != nil {
		return err
	}
	d := evm.Domain{Name: s.name, Version: s.version, ChainID: new(big.Int).SetUint64(s.rail.ID), Contract: s.asset}
	whole := evm.Authorization{From: a.Authorizer, To: a.PayTo, Value: a.Value, ValidAfter: after, ValidBefore: a.ValidBefore, Nonce: a.Nonce}
	if err = whole.Signed(d, evm.Transfer, signature); err != nil {
		if whole.Signed(d, evm.Receive, signature) == nil {
			return nil
		}
	}
	return err
}
