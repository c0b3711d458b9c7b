package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

// facilitator checks authorizations on a chain and submits them itself.
type facilitator struct {
	node
	sender, asset string
}

// Selectors of the token's functions, and topics of its events.
const (
	balanceOf                 = "70a08231"
	authorizationState        = "e94a0102"
	transferWithAuthorization = "e3ee160e"
	transferTopic             = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
	authorizationUsedTopic    = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5"
)

// Verify tells whether an authorization would be taken. Quittance checks who signed it.
func (f *facilitator) Verify(ctx context.Context, p x402.Payload, _ x402.Requirements) (x402.Verification, error) {
	a, data, err := f.submission(p)
	if err != nil {
		return x402.Verification{InvalidReason: "invalid_payload"}, nil
	}
	used, err := f.number(ctx, authorizationState+word(a.From)+word(a.Nonce))
	if err != nil {
		return x402.Verification{}, err
	}
	if used.Sign() != 0 {
		return x402.Verification{InvalidReason: "invalid_exact_evm_nonce_already_used"}, nil
	}
	has, err := f.number(ctx, balanceOf+word(a.From))
	if err != nil {
		return x402.Verification{}, err
	}
	if value, ok := new(big.Int).SetString(a.Value, 10); !ok || has.Cmp(value) < 0 {
		return x402.Verification{InvalidReason: "invalid_exact_evm_insufficient_balance"}, nil
	}
	if _, err := f.call(ctx, data); err != nil {
		return x402.Verification{InvalidReason: "invalid_exact_evm_transaction_simulation_failed"}, nil
	}
	return x402.Verification{IsValid: true, Payer: a.From}, nil
}

// Settle submits an authorization and waits for its block. What it cannot tell is left to
// Quittance, which asks the chain.
func (f *facilitator) Settle(ctx context.Context, p x402.Payload, r x402.Requirements) (x402.Settlement, error) {
	s := x402.Settlement{Network: r.Network}
	_, data, err := f.submission(p)
	if err != nil {
		return s, err
	}
	for tries := 0; ; tries++ {
		err := f.ask(ctx, &s.Transaction, "eth_sendTransaction", map[string]string{"from": f.sender, "to": f.asset, "data": data})
		if err == nil {
			break
		}
		// Somebody else's transaction from this account took the number: this one was not sent.
		if tries == 10 || !strings.Contains(err.Error(), "nonce too low") {
			return s, err
		}
	}
	for {
		got, err := f.receipt(ctx, s.Transaction)
		switch {
		case err != nil:
			return s, err
		case got != nil && got.Status == "0x1":
			s.Success = true
			return s, nil
		case got != nil:
			s.ErrorReason = "invalid_transaction_state"
			return s, nil
		}
		select {
		case <-ctx.Done():
			s.ErrorReason = "settlement_pending"
			return s, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// transfers reads what a transaction moved, in the words of the chain.
func (f *facilitator) transfers(ctx context.Context, network, tx string) (list []client.Transfer, err error) {
	got, err := f.receipt(ctx, tx)
	if err != nil || got == nil {
		return nil, err
	}
	block, ok := new(big.Int).SetString(strings.TrimPrefix(got.BlockNumber, "0x"), 16)
	if !ok {
		return nil, fmt.Errorf("block %q is no number", got.BlockNumber)
	}
	nonce := ""
	for i, l := range got.Logs {
		switch {
		case !strings.EqualFold(l.Address, f.asset) || len(l.Topics) != 3:
		case l.Topics[0] == authorizationUsedTopic:
			nonce = l.Topics[2]
		case l.Topics[0] == transferTopic:
			value, ok := new(big.Int).SetString(strings.TrimPrefix(l.Data, "0x"), 16)
			if !ok {
				return nil, fmt.Errorf("the amount of log %d is no number", i)
			}
			list = append(list, client.Transfer{
				Network: network, Tx: tx, Position: i, Asset: f.asset, From: "0x" + l.Topics[1][26:], To: "0x" + l.Topics[2][26:], Amount: value.String(),
				Nonce: nonce, Block: block.Int64(), BlockHash: got.BlockHash,
			})
		}
	}
	return list, nil
}

// submission is the call that submits an authorization.
func (f *facilitator) submission(p x402.Payload) (a x402.Authorization, data string, err error) {
	var x x402.Exact
	if err := json.Unmarshal(p.Payload, &x); err != nil {
		return a, "", err
	}
	a = x.Authorization
	s := strings.TrimPrefix(x.Signature, "0x")
	if len(s) != 130 {
		return a, "", fmt.Errorf("a signature has 65 bytes")
	}
	data = "0x" + transferWithAuthorization + word(a.From) + word(a.To)
	for _, n := range []string{a.Value, a.ValidAfter, a.ValidBefore} {
		v, ok := new(big.Int).SetString(n, 10)
		if !ok || v.Sign() < 0 || v.BitLen() > 256 {
			return a, "", fmt.Errorf("%q is no number of a contract", n)
		}
		data += fmt.Sprintf("%064x", v)
	}
	return a, data + word(a.Nonce) + word(s[128:]) + word(s[:64]) + word(s[64:128]), nil
}

// word is a value of a contract's call, from hex.
func word(hex string) string {
	return fmt.Sprintf("%064s", strings.ToLower(strings.TrimPrefix(hex, "0x")))
}

func (f *facilitator) call(ctx context.Context, data string) (out string, err error) {
	return out, f.ask(ctx, &out, "eth_call", map[string]string{"from": f.sender, "to": f.asset, "data": "0x" + strings.TrimPrefix(data, "0x")}, "latest")
}

func (f *facilitator) number(ctx context.Context, data string) (*big.Int, error) {
	out, err := f.call(ctx, data)
	if err != nil {
		return nil, err
	}
	n, ok := new(big.Int).SetString(strings.TrimPrefix(out, "0x"), 16)
	if !ok {
		return nil, fmt.Errorf("%q is no number", out)
	}
	return n, nil
}
