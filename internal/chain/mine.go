package chain

import (
	"encoding/json"
	"fmt"
	"time"

	"quittance/reconcile/evm"
)

// Mine adds blocks; the first holds what was submitted.
func (c *Chain) Mine(n int) {
	c.t.Helper()
	c.Call("anvil_mine", hex(uint64(n)))
}

// Finalize mines until everything so far is final.
func (c *Chain) Finalize() {
	c.t.Helper()
	head := c.Head()
	for c.block("finalized").Number < head {
		c.Mine(1)
	}
}

// Head is the number of the last block.
func (c *Chain) Head() uint64 {
	c.t.Helper()
	return c.number("eth_blockNumber")
}

// Now is the time of the last block.
func (c *Chain) Now() time.Time {
	c.t.Helper()
	return c.block("latest").at
}

// At lets the next block have a time, which must be later than the last one's.
func (c *Chain) At(at time.Time) {
	c.t.Helper()
	c.Call("evm_setNextBlockTimestamp", at.Unix())
}

type block struct {
	Number uint64
	at     time.Time
}

func (c *Chain) block(tag string) block {
	c.t.Helper()
	raw := c.Call("eth_getBlockByNumber", tag, false)
	var b struct{ Number, Timestamp string }
	if err := json.Unmarshal(raw, &b); err != nil || b.Number == "" {
		c.t.Fatalf("the %s block is %s", tag, raw)
	}
	return block{c.parse(b.Number), time.Unix(int64(c.parse(b.Timestamp)), 0).UTC()}
}

// Snapshot remembers the state of the chain, for [Chain.Revert].
func (c *Chain) Snapshot() string {
	c.t.Helper()
	return c.text("evm_snapshot")
}

// Revert takes the chain back to a snapshot, which can be used once.
func (c *Chain) Revert(snapshot string) {
	c.t.Helper()
	if ok := string(c.Call("evm_revert", snapshot)); ok != "true" {
		c.t.Fatalf("the chain did not go back to %s: %s", snapshot, ok)
	}
}

// Reorg replaces the last blocks by as many others, which hold only the raw transactions
// given, each with the place of its block among the new ones.
func (c *Chain) Reorg(depth int, transactions ...Placed) {
	c.t.Helper()
	list := []any{}
	for _, p := range transactions {
		list = append(list, []any{p.Transaction, p.Block})
	}
	c.Call("anvil_reorg", depth, list)
}

// Placed is a transaction in a reorganisation.
type Placed struct {
	Transaction any // as for eth_sendTransaction, or raw
	Block       int
}

// Account is one of the node's own, which has money for gas and sends without a signature.
func (c *Chain) Account(i int) evm.Address { return c.accounts[i] }

// AtOnce mines each transaction when it is sent, soon after, also what others send.
func (c *Chain) AtOnce() {
	c.t.Helper()
	c.Call("evm_setAutomine", true)
}

func hex(n uint64) string { return fmt.Sprintf("0x%x", n) }
