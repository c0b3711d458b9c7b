package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"quittance/reconcile/canon"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
)

// Tags of blocks.
const (
	Finalized = "finalized" // can no longer be reorganised away
	Latest    = "latest"
)

// Block is a block's head.
type Block struct {
	Number uint64
	Hash   evm.Hash
	Time   uint64 // seconds of the Unix epoch, by the block's own clock
}

// ChainID is the chain that the node is on.
func (c *Client) ChainID(ctx context.Context) (uint64, error) {
	const method = "eth_chainId"
	got, err := c.call(ctx, method)
	if err != nil {
		return 0, err
	}
	id, ok := quantity(got)
	if !ok {
		return 0, failed(method, lookup.Unreadable, "not a number")
	}
	return id, nil
}

// Tagged is the block that a tag stands for now. A node that knows no such block is an
// error.
func (c *Client) Tagged(ctx context.Context, tag string) (Block, error) {
	b, err := c.block(ctx, tag)
	if err != nil {
		return Block{}, err
	}
	if b == nil {
		return Block{}, failed(blockMethod, lookup.Unexpected, "the node has no %s block", tag)
	}
	return *b, nil
}

// Block is the block with a number on the chain as the node sees it; nil where it has none.
func (c *Client) Block(ctx context.Context, number uint64) (*Block, error) {
	b, err := c.block(ctx, hexed(number))
	if err == nil && b != nil && b.Number != number {
		return nil, failed(blockMethod, lookup.Unreadable, "another block than was asked for")
	}
	return b, err
}

const blockMethod = "eth_getBlockByNumber"

func (c *Client) block(ctx context.Context, which string) (*Block, error) {
	got, err := c.call(ctx, blockMethod, which, false)
	if got == nil || err != nil {
		return nil, err
	}
	var b Block
	var a, n, at bool
	b.Number, n = quantity(got.Lookup("number"))
	b.Time, at = quantity(got.Lookup("timestamp"))
	b.Hash, a = hash(got.Lookup("hash"))
	if !n || !at || !a {
		return nil, failed(blockMethod, lookup.Unreadable, "not a block")
	}
	return &b, nil
}

// Call runs a function of a contract that changes nothing, as the chain was after a block.
// A contract that is not there answers nothing at all, which is no error of the node's.
func (c *Client) Call(ctx context.Context, to evm.Address, data []byte, block uint64) ([]byte, error) {
	const method = "eth_call"
	got, err := c.call(ctx, method, map[string]string{"to": to.String(), "data": "0x" + hex.EncodeToString(data)}, hexed(block))
	if err != nil {
		return nil, err
	}
	raw, ok := bytes(got)
	if !ok {
		return nil, failed(method, lookup.Unreadable, "not bytes")
	}
	return raw, nil
}

// quantity reads a number as nodes write it: 0x, no leading zeros.
func quantity(v *canon.Value) (uint64, bool) {
	text, _ := v.Text()
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || digits == "" || len(digits) > 1 && digits[0] == '0' || strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil
}

func hash(v *canon.Value) (evm.Hash, bool) {
	text, _ := v.Text()
	h, err := evm.ParseHash(text)
	return h, err == nil
}

// address reads one of a node's, whose spelling needs no checksum.
func address(v *canon.Value) (evm.Address, bool) {
	text, _ := v.Text()
	a, err := evm.ParseAddress(strings.ToLower(text))
	return a, err == nil
}

func bytes(v *canon.Value) ([]byte, bool) {
	text, _ := v.Text()
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok {
		return nil, false
	}
	raw, err := hex.DecodeString(digits)
	return raw, err == nil
}

func hexed(n uint64) string { return fmt.Sprintf("0x%x", n) }
