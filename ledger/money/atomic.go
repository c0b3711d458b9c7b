package money

import (
	"database/sql/driver"
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
