package evm

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
)

// Signature is r, s and v, as wallets write it.
type Signature struct {
	R, S Hash
	V    uint8
}

// ErrSignature is returned for what no token with the rules of USDC takes: v other than 27
// or 28, s in the upper half (so that nobody makes a second signature out of a first), r or
// s zero or not below the order, no point on the curve.
var ErrSignature = errors.New("is not a signature: r, s in the lower half, and v 27 or 28")

// ParseSignature reads 0x and 130 hexadecimal digits.
func ParseSignature(text string) (Signature, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != 65 {
		return Signature{}, ErrSignature
	}
	return Signature{R: Hash(raw[:32]), S: Hash(raw[32:64]), V: raw[64]}, nil
}

func (s Signature) String() string {
	return "0x" + hex.EncodeToString(append(append(s.R[:len(s.R):len(s.R)], s.S[:]...), s.V))
}

// Recover is who signed a digest. It takes exactly the signatures that the contract takes.
func Recover(digest Hash, s Signature) (Address, error) {
	var r, half secp256k1.ModNScalar
	if overflow := r.SetByteSlice(s.R[:]); overflow || r.IsZero() {
		return Address{}, ErrSignature
	}
	if overflow := half.SetByteSlice(s.S[:]); overflow || half.IsZero() || half.IsOverHalfOrder() {
		return Address{}, ErrSignature
	}
	if s.V != 27 && s.V != 28 {
		return Address{}, ErrSignature
	}
	compact := append(append([]byte{s.V}, s.R[:]...), s.S[:]...)
	key, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return Address{}, ErrSignature
	}
	return addressOf(key), nil
}

func addressOf(key *secp256k1.PublicKey) (a Address) {
	sum := Keccak(key.SerializeUncompressed()[1:])
	copy(a[:], sum[12:])
	return a
}
