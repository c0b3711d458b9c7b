package chain

import (
	"math/big"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"quittance/reconcile/evm"
)

// Wallet signs for an account of its own. It is as good as its name is secret: for tests.
type Wallet struct {
	key     *secp256k1.PrivateKey
	Address evm.Address
}

// NewWallet is the wallet with a name, always the same one.
func NewWallet(name string) Wallet {
	seed := evm.Keccak([]byte("quittance test wallet: " + name))
	w := Wallet{key: secp256k1.PrivKeyFromBytes(seed[:])}
	sum := evm.Keccak(w.key.PubKey().SerializeUncompressed()[1:])
	copy(w.Address[:], sum[12:])
	return w
}

// Sign signs a digest.
func (w Wallet) Sign(digest evm.Hash) evm.Signature {
	compact := ecdsa.SignCompact(w.key, digest[:], false)
	return evm.Signature{V: compact[0], R: evm.Hash(compact[1:33]), S: evm.Hash(compact[33:])}
}

// DollarDomain is what authorizations of a Dollar are signed for.
func (c *Chain) DollarDomain(token evm.Address) evm.Domain {
	return evm.Domain{Name: "USD Coin", Version: "2", ChainID: new(big.Int).SetUint64(c.ID), Contract: token}
}

// Authorize is an authorization for anybody to submit until a time, signed.
func (c *Chain) Authorize(token evm.Address, from Wallet, to evm.Address, value int64, nonce string, until time.Time) (evm.Authorization, evm.Signature) {
	a := evm.Authorization{From: from.Address, To: to, Value: big.NewInt(value), ValidAfter: new(big.Int), ValidBefore: big.NewInt(until.Unix()),
		Nonce: evm.Keccak([]byte(nonce))}
	return a, from.Sign(a.Digest(c.DollarDomain(token), evm.Transfer))
}

// TransferCall is the call that submits an authorization.
func TransferCall(a evm.Authorization, s evm.Signature) []byte {
	return submission("transferWithAuthorization", a, s)
}

// ReceiveCall is the call by which the recipient submits one.
func ReceiveCall(a evm.Authorization, s evm.Signature) []byte {
	return submission("receiveWithAuthorization", a, s)
}

func submission(function string, a evm.Authorization, s evm.Signature) []byte {
	return evm.CallData(function+"(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
		a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, s.V, s.R, s.S)
}

// CancelCall is the call that cancels an authorization of the wallet's.
func (c *Chain) CancelCall(token evm.Address, w Wallet, nonce evm.Hash) []byte {
	s := w.Sign(evm.CancelDigest(c.DollarDomain(token), w.Address, nonce))
	return evm.CallData("cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)", w.Address, nonce, s.V, s.R, s.S)
}

// BatchCall is the call of a Batch that makes several calls, each to the same contract.
func BatchCall(to evm.Address, calls ...[]byte) []byte {
	n := uint64(len(calls))
	head := evm.CallData("run(address[],bytes[])", uint64(64), 64+32*(n+1))
	head = append(head, evm.Words(n)...)
	for range calls {
		head = append(head, evm.Words(to)...)
	}
	head = append(head, evm.Words(n)...)
	var tail []byte
	for _, call := range calls {
		head = append(head, evm.Words(32*n+uint64(len(tail)))...)
		tail = append(tail, evm.Words(uint64(len(call)))...)
		tail = append(tail, call...)
		tail = append(tail, make([]byte, (32-len(call)%32)%32)...)
	}
	return append(head, tail...)
}
