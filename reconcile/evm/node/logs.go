package node

import (
	"context"
	"slices"

	"quittance/reconcile/canon"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
)

// Log is what a contract said in a transaction.
type Log struct {
	Address     evm.Address
	Topics      []evm.Hash
	Data        []byte
	Block       uint64
	BlockHash   evm.Hash
	Transaction evm.Hash
	Index       uint64 // within the block: it changes when a reorganised transaction is mined again
}

// Filter is which logs are asked for.
type Filter struct {
	Contract evm.Address
	// Topics are those that a log must have, by place; each place lists the ones that will
	// do, and an empty place takes any.
	Topics   [][]evm.Hash
	From, To uint64 // block numbers, both included
}

// Logs are the logs that fit, in the order of the chain. An answer with one that does not fit
// is refused whole: a node that ignores a part of the filter may have left out others.
func (c *Client) Logs(ctx context.Context, f Filter) ([]Log, error) {
	const method = "eth_getLogs"
	topics := make([]any, len(f.Topics))
	for i, place := range f.Topics {
		if len(place) > 0 {
			topics[i] = place
		}
	}
	got, err := c.call(ctx, method, map[string]any{"address": f.Contract.String(), "topics": topics, "fromBlock": hexed(f.From), "toBlock": hexed(f.To)})
	if err != nil {
		return nil, err
	}
	if got.Kind() != canon.Array {
		return nil, failed(method, lookup.Unreadable, "not a list")
	}
	var list []Log
	for _, item := range got.Items() {
		l, ok := readLog(item)
		if !ok {
			return nil, failed(method, lookup.Unreadable, "not a log")
		}
		if !f.fits(l) {
			return nil, failed(method, lookup.Unreadable, "a log that was not asked for")
		}
		if n := len(list); n > 0 && (l.Block < list[n-1].Block || l.Block == list[n-1].Block && l.Index <= list[n-1].Index) {
			return nil, failed(method, lookup.Unreadable, "logs out of order")
		}
		list = append(list, l)
	}
	return list, nil
}

func (f Filter) fits(l Log) bool {
	if l.Address != f.Contract || l.Block < f.From || l.Block > f.To || len(l.Topics) < len(f.Topics) {
		return false
	}
	for i, place := range f.Topics {
		if len(place) > 0 && !slices.Contains(place, l.Topics[i]) {
			return false
		}
	}
	return true
}

// readLog refuses one that is marked as removed: it is of no block any more.
func readLog(v *canon.Value) (l Log, ok bool) {
	if removed, _ := v.Lookup("removed").Bool(); removed {
		return l, false
	}
	all := true
	check := func(ok bool) { all = all && ok }
	l.Address, ok = address(v.Lookup("address"))
	check(ok)
	l.Data, ok = bytes(v.Lookup("data"))
	check(ok)
	l.Block, ok = quantity(v.Lookup("blockNumber"))
	check(ok)
	l.BlockHash, ok = hash(v.Lookup("blockHash"))
	check(ok)
	l.Transaction, ok = hash(v.Lookup("transactionHash"))
	check(ok)
	l.Index, ok = quantity(v.Lookup("logIndex"))
	check(ok)
	topics := v.Lookup("topics")
	check(topics.Kind() == canon.Array && topics.Len() <= 4)
	for _, topic := range topics.Items() {
		h, ok := hash(topic)
		check(ok)
		l.Topics = append(l.Topics, h)
	}
	return l, all
}

// Receipt is what became of a transaction in the block that holds it.
type Receipt struct {
	Transaction evm.Hash
	Block       uint64
	BlockHash   evm.Hash
	OK          bool // status 1: it was not reverted
	// Logs are all of the transaction's. The place in this list is a log's position within
	// its receipt, which stays the same when the transaction is mined again in another block.
	Logs []Log
}

// Receipt is a transaction's receipt; nil where the node has none: the transaction is in
// no block, or the node forgot it.
func (c *Client) Receipt(ctx context.Context, transaction evm.Hash) (*Receipt, error) {
	const method = "eth_getTransactionReceipt"
	got, err := c.call(ctx, method, transaction)
	if got == nil || err != nil {
		return nil, err
	}
	var r Receipt
	var is, numbered, hashed, told bool
	r.Transaction, is = hash(got.Lookup("transactionHash"))
	r.Block, numbered = quantity(got.Lookup("blockNumber"))
	r.BlockHash, hashed = hash(got.Lookup("blockHash"))
	status, told := quantity(got.Lookup("status"))
	r.OK = status == 1
	logs := got.Lookup("logs")
	if !is || !numbered || !hashed || !told || status > 1 || logs.Kind() != canon.Array || r.Transaction != transaction {
		return nil, failed(method, lookup.Unreadable, "not the receipt")
	}
	for i, item := range logs.Items() {
		l, ok := readLog(item)
		if !ok || l.Transaction != transaction || l.BlockHash != r.BlockHash || l.Block != r.Block {
			return nil, failed(method, lookup.Unreadable, "not a log of the receipt")
		}
		// One that is missing would move the positions of those behind it.
		if i > 0 && l.Index != r.Logs[i-1].Index+1 {
			return nil, failed(method, lookup.Unreadable, "a log of the receipt is missing")
		}
		r.Logs = append(r.Logs, l)
	}
	return &r, nil
}
