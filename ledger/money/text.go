package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// ParseDecimal reads what a person or an agent writes: "1000.00", "12.3", "-5".
//
// Fewer decimals than the asset has are padded (12.3 USD is 12.30); more are refused,
// never rounded. Refused too: exponents, hexadecimal, a plus sign, spaces, grouping,
// digits other than 0-9, needless leading zeros, and a point without digits on both
// sides. The error says which rule and does not repeat the text.
func ParseDecimal(text string, asset Asset) (Amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, frac, point := strings.Cut(digits, ".")
	switch {
	case !isDigits(whole) || !isDigits(frac):
		return Amount{}, errors.New("an amount is written with the digits 0-9 and at most one decimal point")
	case whole == "", point && frac == "":
		return Amount{}, errors.New("an amount needs digits, also on both sides of a decimal point")
	case len(whole) > 1 && whole[0] == '0':
		return Amount{}, errors.New("an amount has no needless leading zeros")
	case len(frac) > asset.Decimals:
		return Amount{}, fmt.Errorf("%s has %d decimals; this amount has more", asset.Code, asset.Decimals)
	case len(whole) > MaxDigits:
		return Amount{}, ErrTooLarge
	}
	n, _ := new(big.Int).SetString(whole+frac+strings.Repeat("0", asset.Decimals-len(frac)), 10)
	if negative {
		n.Neg(n)
	}
	return FromMinor(n, asset)
}

// ParseMinor reads a whole number of the asset's smallest unit by the same rules.
func ParseMinor(text string, asset Asset) (Amount, error) {
	if strings.Contains(text, ".") {
		return Amount{}, errors.New("an amount in the smallest unit is a whole number")
	}
	a, err := ParseDecimal(text, Asset{Code: asset.Code})
	return Amount{a.atomic, asset}, err
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// String is the plain decimal with all of the asset's decimals, "4200.00".
func (a Amount) String() string {
	sign, whole, frac := a.parts()
	if frac == "" {
		return sign + whole
	}
	return sign + whole + "." + frac
}

// Display is for people: grouped, and never without the code, "4,200.00 USD".
func (a Amount) Display() string {
	sign, whole, frac := a.parts()
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if frac != "" {
		b.WriteString("." + frac)
	}
	return b.String() + " " + a.asset.Code
}

func (a Amount) parts() (sign, whole, frac string) {
	n := a.atomic.big()
	if n.Sign() < 0 {
		sign = "-"
	}
	digits := new(big.Int).Abs(n).String()
	if missing := a.asset.Decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - a.asset.Decimals
	return sign, digits[:point], digits[point:]
}

// wire needs no decimals: the value always shows all of them.
type wire struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

// MarshalJSON writes {"value":"4200.00","currency":"USD"}: strings, because a reader's
// numbers may be floats.
func (a Amount) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{a.String(), a.asset.Code})
}

// UnmarshalJSON reads what MarshalJSON writes. A currency has its ISO decimals, any
// other asset as many as the value shows.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return errors.New("an amount is an object with the strings value and currency")
	}
	asset, err := Currency(w.Currency)
	if err != nil {
		_, frac, _ := strings.Cut(w.Value, ".")
		if asset, err = NewAsset(w.Currency, len(frac)); err != nil {
			return err
		}
	}
	read, err := ParseDecimal(w.Value, asset)
	if err != nil {
		return err
	}
	*a = read
	return nil
}
