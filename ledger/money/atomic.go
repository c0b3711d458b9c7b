package money

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
)

// Atomic is a whole number of smallest units as a numeric(38,0) column holds it. The
// zero value is 0. For a column that may be NULL use sql.Null[Atomic].
type Atomic struct{ n *big.Int } // never changed once set

func (a Atomic) big() *big.Int {
	if a.n == nil {
		return new(big.Int)
	}
	return a.n
}

// String is the plain integer.
func (a Atomic) String() string { return a.big().String() }

// Value passes the integer as text: lib/pq would otherwise need an int64, which is too
// small.
func (a Atomic) Value() (driver.Value, error) { return a.String(), nil }

// Scan reads a numeric(38,0) or an integer column.
func (a *Atomic) Scan(src any) error {
	var text string
	switch src := src.(type) {
	case []byte:
		text = string(src)
	case string:
		text = src
	case int64:
		a.n = big.NewInt(src)
		return nil
	default:
		return fmt.Errorf("couldn't read an amount from a column of type %T", src)
	}
	read, err := ParseMinor(text, Asset{})
	if err != nil {
		return fmt.Errorf("couldn't read an amount from a column: %w", err)
	}
	*a = read.atomic
	return nil
}

// AtomicOf reads a plain whole number: ASCII digits, no sign, no point, no exponent, no
// leading zero. The error says what is wrong with it, without it.
func AtomicOf(text string) (Atomic, error) {
	if text == "" {
		return Atomic{}, errors.New("is empty")
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return Atomic{}, errors.New("must be a whole number of the asset's smallest unit, in ASCII digits alone")
		}
	}
	if len(text) > 1 && text[0] == '0' {
		return Atomic{}, errors.New("must not begin with 0")
	}
	if len(text) > MaxDigits {
		return Atomic{}, ErrTooLarge
	}
	n, _ := new(big.Int).SetString(text, 10) // digits are a number
	return Atomic{n}, nil
}

// Sign is -1, 0 or 1.
func (a Atomic) Sign() int { return a.big().Sign() }

// Cmp is -1, 0 or 1.
func (a Atomic) Cmp(b Atomic) int { return a.big().Cmp(b.big()) }

// Plus is a+b. What does not fit a column is refused there.
func (a Atomic) Plus(b Atomic) Atomic { return Atomic{new(big.Int).Add(a.big(), b.big())} }

// Minus is a-b.
func (a Atomic) Minus(b Atomic) Atomic { return Atomic{new(big.Int).Sub(a.big(), b.big())} }

// MultipleOf tells that a is a whole number of steps; every step above 0.
func (a Atomic) MultipleOf(step Atomic) bool {
	return new(big.Int).Rem(a.big(), step.big()).Sign() == 0
}
