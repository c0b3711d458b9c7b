package chain

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/big"

	"quittance/reconcile/evm"
)

//go:generate sh -c "node compile.js > contracts.json"

//go:embed contracts.json
var artefacts []byte

// Contract is a name of one in contracts.
type Contract string

// Contracts.
const (
	Dollar Contract = "Dollar" // EIP-3009, as USDC
	Memo   Contract = "Memo"   // transferWithMemo
	Fake   Contract = "Fake"   // calls itself USDC
	Batch  Contract = "Batch"  // several calls in one transaction
)

// Deploy puts a contract on the chain.
func (c *Chain) Deploy(name Contract) evm.Address {
	c.t.Helper()
	var all map[Contract]struct{ Bytecode string }
	if err := json.Unmarshal(artefacts, &all); err != nil {
		c.t.Fatal(err)
	}
	r := c.transact(map[string]any{"from": c.accounts[0], "data": all[name].Bytecode})
	if r.Contract == nil {
		c.t.Fatalf("%s was not deployed", name)
	}
	return *r.Contract
}

// Receipt is what became of a transaction.
type Receipt struct {
	Hash     evm.Hash
	OK       bool
	Block    uint64
	Contract *evm.Address
	Logs     int
}

// Send sends a call from an account of the node's and returns its receipt. One that
// reverts fails the test.
func (c *Chain) Send(from evm.Address, to evm.Address, data []byte) Receipt {
	c.t.Helper()
	r := c.transact(map[string]any{"from": from, "to": to, "data": bytesHex(data)})
	if !r.OK {
		c.t.Fatalf("transaction %s was reverted", r.Hash)
	}
	return r
}

// SendFailing sends a call that is mined and reverts.
func (c *Chain) SendFailing(from, to evm.Address, data []byte) Receipt {
	c.t.Helper()
	r := c.transact(map[string]any{"from": from, "to": to, "data": bytesHex(data), "gas": hex(500_000)})
	if r.OK {
		c.t.Fatalf("transaction %s was not reverted", r.Hash)
	}
	return r
}

// Submit sends a call and returns its hash. It is mined with the next block.
func (c *Chain) Submit(from, to evm.Address, data []byte) evm.Hash {
	c.t.Helper()
	return c.hash(c.text("eth_sendTransaction", map[string]any{"from": from, "to": to, "data": bytesHex(data), "gas": hex(500_000)}))
}

// Raw is a transaction as it was sent, for [Chain.SubmitRaw] and [Chain.Reorg].
func (c *Chain) Raw(hash evm.Hash) string {
	c.t.Helper()
	return c.text("eth_getRawTransactionByHash", hash)
}

// SubmitRaw sends a transaction again, with the hash that it had.
func (c *Chain) SubmitRaw(raw string) {
	c.t.Helper()
	c.Call("eth_sendRawTransaction", raw)
}

// Refuses says why the chain would revert a call; "" where it would not.
func (c *Chain) Refuses(from, to evm.Address, data []byte) string {
	c.t.Helper()
	if _, err := c.Try("eth_call", map[string]any{"from": from, "to": to, "data": bytesHex(data)}, "latest"); err != nil {
		return err.Error()
	}
	return ""
}

// Read calls a function that changes nothing.
func (c *Chain) Read(to evm.Address, data []byte) string {
	c.t.Helper()
	return c.text("eth_call", map[string]any{"to": to, "data": bytesHex(data)}, "latest")
}

// Balance is what an account has of a token.
func (c *Chain) Balance(token, account evm.Address) *big.Int {
	c.t.Helper()
	return c.hash(c.Read(token, evm.CallData("balanceOf(address)", account))).Number()
}

// Mint gives an account some of a token.
func (c *Chain) Mint(token, to evm.Address, value int64) {
	c.t.Helper()
	c.Send(c.accounts[0], token, evm.CallData("mint(address,uint256)", to, big.NewInt(value)))
}

// Receipt waits for nothing: a transaction in no block has none.
func (c *Chain) Receipt(hash evm.Hash) *Receipt {
	c.t.Helper()
	raw := c.Call("eth_getTransactionReceipt", hash)
	var r *struct {
		Status, BlockNumber string
		ContractAddress     *string
		Logs                []json.RawMessage
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		c.t.Fatalf("a receipt is %s", raw)
	}
	if r == nil {
		return nil
	}
	out := &Receipt{Hash: hash, OK: r.Status == "0x1", Block: c.parse(r.BlockNumber), Logs: len(r.Logs)}
	if r.ContractAddress != nil {
		a, err := evm.ParseAddress(*r.ContractAddress)
		if err != nil {
			c.t.Fatal(err)
		}
		out.Contract = &a
	}
	return out
}

func (c *Chain) transact(transaction map[string]any) Receipt {
	c.t.Helper()
	hash := c.hash(c.text("eth_sendTransaction", transaction))
	c.Mine(1)
	r := c.Receipt(hash)
	if r == nil {
		c.t.Fatalf("transaction %s is not mined", hash)
	}
	return *r
}

func (c *Chain) hash(text string) evm.Hash {
	c.t.Helper()
	h, err := evm.ParseHash(text)
	if err != nil {
		c.t.Fatalf("the chain says %q, which is no hash", text)
	}
	return h
}

func bytesHex(data []byte) string { return fmt.Sprintf("0x%x", data) }
