package evm

import (
	"errors"
	"fmt"
	"math/big"
)

// Domain is what a token's signatures are for (EIP-712): a name, a version, a chain and a
// contract. One signed for another token or chain is worth nothing here.
type Domain struct {
	Name, Version string
	ChainID       *big.Int
	Contract      Address
}

var domainType = Keccak([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))

// Separator is the domain's hash, which the contract shows as DOMAIN_SEPARATOR.
func (d Domain) Separator() Hash {
	return Keccak(Words(domainType, Keccak([]byte(d.Name)), Keccak([]byte(d.Version)), d.ChainID, d.Contract))
}

// Kind is what an authorization lets somebody do.
type Kind string

// Kinds of authorization (EIP-3009).
const (
	// Transfer may be submitted by anybody.
	Transfer Kind = "TransferWithAuthorization"
	// Receive only by the recipient.
	Receive Kind = "ReceiveWithAuthorization"
)

func (k Kind) hash() Hash {
	return Keccak([]byte(string(k) + "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))
}

// Authorization is a transfer that its payer signs and somebody else submits. Times are
// seconds of the Unix epoch, as the chain counts them.
type Authorization struct {
	From, To                Address
	Value                   *big.Int
	ValidAfter, ValidBefore *big.Int
	Nonce                   Hash
}

// Digest is what is signed.
func (a Authorization) Digest(d Domain, k Kind) Hash {
	return d.digest(Keccak(Words(k.hash(), a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce)))
}

// CancelDigest is what is signed to cancel an authorization that was not used yet.
func CancelDigest(d Domain, authorizer Address, nonce Hash) Hash {
	return d.digest(Keccak(Words(Keccak([]byte("CancelAuthorization(address authorizer,bytes32 nonce)")), authorizer, nonce)))
}

func (d Domain) digest(message Hash) Hash {
	separator := d.Separator()
	return Keccak([]byte{0x19, 0x01}, separator[:], message[:])
}

// ErrSigner is returned for a signature that is sound and another's.
var ErrSigner = errors.New("the signature is not that of the authorization's payer for this token, chain and recipient")

// Signed checks offline that the payer signed the authorization for this domain. The error
// is [ErrSigner] or one of [Recover]'s.
func (a Authorization) Signed(d Domain, k Kind, s Signature) error {
	for name, n := range map[string]*big.Int{"value": a.Value, "validAfter": a.ValidAfter, "validBefore": a.ValidBefore, "chain": d.ChainID} {
		if n == nil || n.Sign() < 0 || n.BitLen() > 256 {
			return fmt.Errorf("the %s of the authorization %w", name, ErrNumber)
		}
	}
	signer, err := Recover(a.Digest(d, k), s)
	if err != nil {
		return err
	}
	if signer != a.From {
		return ErrSigner
	}
	return nil
}
