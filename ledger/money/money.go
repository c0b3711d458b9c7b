// Package money holds exact amounts: a whole number of an asset's smallest unit and
// the asset. There is no float here, nothing is ever rounded, and two assets are never
// added. What does not fit exactly is refused.
package money

import (
	"errors"
	"fmt"
	"math/big"
)

var (
	// ErrMixedAssets is returned where two amounts of different assets meet.
	ErrMixedAssets = errors.New("amounts of different assets cannot be added or compared")
	// ErrTooLarge is returned for an amount of more digits than the record holds.
	ErrTooLarge = fmt.Errorf("an amount has at most %d digits in its smallest unit", MaxDigits)
)

// MaxDigits is what numeric(38,0) holds: 10^38-1 of the smallest unit, either sign.
const MaxDigits = 38

var limit = new(big.Int).Exp(big.NewInt(10), big.NewInt(MaxDigits), nil)

// Amount is immutable; the zero value is zero of no asset. Compare with [Amount.Cmp],
// not with ==.
type Amount struct {
	atomic Atomic
	asset  Asset
}

// Of joins a number of smallest units and an asset, as read from a row.
func Of(atomic Atomic, asset Asset) Amount { return Amount{atomic, asset} }

// FromMinor is n of the asset's smallest unit; [ErrTooLarge] past [MaxDigits].
// n is copied.
func FromMinor(n *big.Int, asset Asset) (Amount, error) {
	if n.CmpAbs(limit) >= 0 {
		return Amount{}, ErrTooLarge
	}
	return Amount{Atomic{new(big.Int).Set(n)}, asset}, nil
}

// Atomic is the number of smallest units.
func (a Amount) Atomic() Atomic { return a.atomic }

// Asset is what the amount is of.
func (a Amount) Asset() Asset { return a.asset }

// Sign is -1, 0 or 1.
func (a Amount) Sign() int { return a.atomic.big().Sign() }

// Add returns a+b; [ErrMixedAssets] or [ErrTooLarge].
func (a Amount) Add(b Amount) (Amount, error) {
	if a.asset != b.asset {
		return Amount{}, ErrMixedAssets
	}
	return FromMinor(new(big.Int).Add(a.atomic.big(), b.atomic.big()), a.asset)
}

// Sub returns a-b, which may be negative; [ErrMixedAssets] or [ErrTooLarge].
func (a Amount) Sub(b Amount) (Amount, error) {
	if a.asset != b.asset {
		return Amount{}, ErrMixedAssets
	}
	return FromMinor(new(big.Int).Sub(a.atomic.big(), b.atomic.big()), a.asset)
}

// Cmp is -1, 0 or 1 as a is below, equal to or above b; [ErrMixedAssets].
func (a Amount) Cmp(b Amount) (int, error) {
	if a.asset != b.asset {
		return 0, ErrMixedAssets
	}
	return a.atomic.big().Cmp(b.atomic.big()), nil
}
