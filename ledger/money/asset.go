package money

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/bojanz/currency"
)

// Asset is a currency or token and how many decimals its smallest unit has. Assets
// are equal when both are.
type Asset struct {
	Code     string
	Decimals int
}

// MaxDecimals leaves room for the eighteen of most tokens twice; an amount could not
// have more decimals than digits anyway.
const MaxDecimals = 36

// ErrUnknownCurrency is returned for a code that is not in ISO 4217: such an asset
// must bring its decimals.
var ErrUnknownCurrency = errors.New("not an ISO 4217 currency code: its decimals must be declared")

// Currency is the asset of an ISO 4217 code in either case ("usd" is USD), with the
// decimals ISO gives it; [ErrUnknownCurrency].
func Currency(code string) (Asset, error) {
	upper := strings.ToUpper(code)
	digits, ok := currency.GetDigits(upper)
	if !ok {
		return Asset{}, ErrUnknownCurrency
	}
	return Asset{upper, int(digits)}, nil
}

// A code is printed beside amounts and stored: no spaces, nothing that could be taken
// for part of the number. Long enough for a token's chain and contract (CAIP-19).
var assetCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._:/-]{0,127}$`)

// NewAsset is an asset that is not a currency, such as USDC with 6 decimals. An ISO
// currency is accepted with its own decimals only: USD in two units would be two
// assets of one name.
func NewAsset(code string, decimals int) (Asset, error) {
	if iso, err := Currency(code); err == nil {
		if iso.Decimals != decimals {
			return Asset{}, fmt.Errorf("%s has %d decimals, not %d", iso.Code, iso.Decimals, decimals)
		}
		return iso, nil
	}
	if !assetCode.MatchString(code) {
		return Asset{}, errors.New("an asset's code starts with a letter and has up to 128 of A-Z a-z 0-9 . _ : / -")
	}
	if decimals < 0 || decimals > MaxDecimals {
		return Asset{}, fmt.Errorf("an asset has 0 to %d decimals", MaxDecimals)
	}
	return Asset{code, decimals}, nil
}
