// Package evm is what Quittance needs of an Ethereum-like chain: addresses, signatures of
// EIP-3009 authorizations, and a small exact client of a node's JSON-RPC. It reads; nothing
// here signs for a chain or sends to one.
package evm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"golang.org/x/crypto/sha3"
)

// Address is an account or a contract.
type Address [20]byte

// Hash is 32 bytes: a digest, a nonce, a memo.
type Hash [32]byte

// Errors of what somebody wrote.
var (
	ErrAddress  = errors.New("is not an address: 0x and 40 hexadecimal digits")
	ErrChecksum = errors.New("is an address whose letters do not fit its checksum (EIP-55): a digit may be wrong")
	ErrHash     = errors.New("is not 32 bytes: 0x and 64 hexadecimal digits")
	ErrNumber   = errors.New("is not a whole number of atomic units in plain digits")
)

// Keccak is the hash of Ethereum, which is not SHA3-256.
func Keccak(parts ...[]byte) (h Hash) {
	k := sha3.NewLegacyKeccak256()
	for _, p := range parts {
		k.Write(p)
	}
	k.Sum(h[:0])
	return h
}

// ParseAddress reads an address. One in mixed case must have the right checksum; one in a
// single case has none.
func ParseAddress(text string) (Address, error) {
	var a Address
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 2*len(a) {
		return Address{}, ErrAddress
	}
	if _, err := hex.Decode(a[:], []byte(digits)); err != nil {
		return Address{}, ErrAddress
	}
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && a.String() != text {
		return Address{}, ErrChecksum
	}
	return a, nil
}

// String is the address with its checksum (EIP-55).
func (a Address) String() string {
	digits := []byte(hex.EncodeToString(a[:]))
	sum := Keccak(digits)
	for i, c := range digits {
		nibble := sum[i/2] >> 4
		if i%2 == 1 {
			nibble = sum[i/2] & 15
		}
		if c >= 'a' && nibble >= 8 {
			digits[i] = c - 'a' + 'A'
		}
	}
	return "0x" + string(digits)
}

// Word is the address as a topic or an argument: padded on the left.
func (a Address) Word() (w Hash) {
	copy(w[12:], a[:])
	return w
}

// Address is the address in a word; false where the padding is not zero.
func (h Hash) Address() (a Address, ok bool) {
	copy(a[:], h[12:])
	return a, [12]byte(h[:12]) == [12]byte{}
}

// ParseHash reads 32 bytes.
func ParseHash(text string) (Hash, error) {
	var h Hash
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 2*len(h) {
		return Hash{}, ErrHash
	}
	if _, err := hex.Decode(h[:], []byte(digits)); err != nil {
		return Hash{}, ErrHash
	}
	return h, nil
}

func (h Hash) String() string { return "0x" + hex.EncodeToString(h[:]) }

// MarshalText and UnmarshalText are for JSON.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// MarshalText writes the address with its checksum.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads an address as ParseAddress does.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// ParseAtomic reads a whole number of up to 256 bits in plain decimal digits: no sign, no
// point, no exponent, no leading zero, nothing but ASCII.
func ParseAtomic(text string) (*big.Int, error) {
	if text == "" || len(text) > 78 || len(text) > 1 && text[0] == '0' {
		return nil, ErrNumber
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return nil, ErrNumber
		}
	}
	n, _ := new(big.Int).SetString(text, 10)
	if n.BitLen() > 256 {
		return nil, ErrNumber
	}
	return n, nil
}

// word is an unsigned number as an argument.
func word(n *big.Int) (w Hash) {
	n.FillBytes(w[:])
	return w
}

// Number is the word as an unsigned number.
func (h Hash) Number() *big.Int { return new(big.Int).SetBytes(h[:]) }

// CallData encodes a call of a function whose arguments are all of fixed size: Address,
// Hash, *big.Int, uint64, uint8.
func CallData(signature string, args ...any) []byte {
	selector := Keccak([]byte(signature))
	return append(selector[:4:4], Words(args...)...)
}

// Words encodes values of fixed size one after the other. Any other is a mistake of the
// program.
func Words(args ...any) []byte {
	out := make([]byte, 0, 32*len(args))
	for _, arg := range args {
		var w Hash
		switch v := arg.(type) {
		case Address:
			w = v.Word()
		case Hash:
			w = v
		case *big.Int:
			w = word(v)
		case uint64:
			w = word(new(big.Int).SetUint64(v))
		case uint8:
			w[31] = v
		default:
			panic(fmt.Sprintf("evm: %T is not of fixed size", arg))
		}
		out = append(out, w[:]...)
	}
	return out
}
