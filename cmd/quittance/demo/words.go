package demo

import (
	"fmt"
	"math/big"

	"quittance/ledger/money"
)

// dollars shows cents as people read them: 420000 is "4,200.00 USD".
func dollars(cents int64) string {
	usd, err := money.Currency("USD")
	if err == nil {
		var a money.Amount
		if a, err = money.FromMinor(big.NewInt(cents), usd); err == nil {
			return a.Display()
		}
	}
	return fmt.Sprintf("%d cents", cents)
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
