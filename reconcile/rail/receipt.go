package rail

import (
	"context"
	"slices"

	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup"
)

// What contracts say.
var (
	transferred = evm.Keccak([]byte("Transfer(address,address,uint256)"))
	withMemo    = evm.Keccak([]byte("TransferWithMemo(address,address,uint256,bytes32)"))
	used        = evm.Keccak([]byte("AuthorizationUsed(address,bytes32)"))
	cancelled   = evm.Keccak([]byte("AuthorizationCanceled(address,bytes32)"))
)

// receipt is the receipt that holds a log: of a transaction that was not reverted, in the
// log's own block, which is on the chain.
func (v *view) receipt(ctx context.Context, l node.Log) (*node.Receipt, node.Block, error) {
	r, err := v.Receipt(ctx, l.Transaction)
	if err != nil {
		return nil, node.Block{}, err
	}
	if r == nil || !r.OK || r.BlockHash != l.BlockHash || r.Block != l.Block {
		return nil, node.Block{}, trouble(lookup.Unexpected, "the receipt of transaction %s does not fit its log", l.Transaction)
	}
	b, err := v.stands(ctx, r.Block, r.BlockHash)
	return r, b, err
}

// place is where a log stands in its receipt; -1 where it does not.
func place(r *node.Receipt, l node.Log) int {
	return slices.IndexFunc(r.Logs, func(x node.Log) bool {
		return x.Index == l.Index && x.Address == l.Address && slices.Equal(x.Topics, l.Topics) && slices.Equal(x.Data, l.Data)
	})
}

// transfers are all movements of an asset in a receipt, in order, each with the nonce of
// the authorization that moved it and the memo that it carries.
func (v *view) transfers(r *node.Receipt, b node.Block, asset evm.Address) (list []Transfer) {
	var nonce *node.Log // of the last authorization used, until a transfer follows
	for i, l := range r.Logs {
		if l.Address != asset || len(l.Topics) == 0 {
			continue
		}
		switch {
		case l.Topics[0] == used && len(l.Topics) == 3:
			nonce = &l
		case l.Topics[0] == withMemo && len(l.Topics) == 4:
			// It stands behind the transfer that it is about, which has no other.
			if n := len(list) - 1; n >= 0 && list[n].Memo == nil {
				about := r.Logs[list[n].Position]
				if slices.Equal(l.Topics[1:3], about.Topics[1:3]) && slices.Equal(l.Data, about.Data) {
					list[n].Memo, list[n].memoAt = &l.Topics[3], i
				}
			}
		case l.Topics[0] == transferred && len(l.Topics) == 3 && len(l.Data) == 32:
			t := Transfer{Network: v.chain.Network(), Asset: asset, Transaction: r.Transaction, Position: i,
				Value: evm.Hash(l.Data).Number(), Block: r.Block, BlockHash: r.BlockHash, At: moment(b.Time)}
			t.From, _ = l.Topics[1].Address()
			t.To, _ = l.Topics[2].Address()
			if nonce != nil && nonce.Topics[1] == l.Topics[1] {
				t.Nonce = &nonce.Topics[2]
			}
			nonce = nil
			list = append(list, t)
		}
	}
	return list
}
