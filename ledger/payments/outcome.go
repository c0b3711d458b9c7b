package payments

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
	"quittance/ledger/money"
)

// Outcomes is what became of a payment, for whoever paid.
type Outcomes struct {
	OrderID     string       `db:"order_id"`
	State       string       `db:"state"`
	Order       string       `db:"order_state"` // "" while there is none
	Network     string       `db:"network"`
	Asset       string       `db:"asset"`
	Amount      money.Atomic `db:"amount"`
	Payer       string       `db:"payer"`
	PayTo       string       `db:"pay_to"`
	PaidFinally bool         `db:"paid_finally"` // paid, and all that paid it is final
	NeverPaid   bool         `db:"never_paid"`   // over without being paid, and nothing signed for it can move money
}

// Outcome reads what became of a payment of an account, by name; nil where there is none.
func Outcome(ctx context.Context, r ledger.Reader, account, gateway, paymentID string) (*Outcomes, error) {
	var o Outcomes
	err := r.Get(ctx, &o, `
		SELECT p.order_id, p.state, COALESCE(o.state, '') AS order_state, p.network, p.asset, p.amount, p.payer, p.pay_to,
			COALESCE(o.state = 'paid' AND NOT EXISTS (SELECT FROM transfers t WHERE t.order_id = o.id AND t.class = 'applied' AND t.reverted_at IS NULL AND NOT t.final), false) AS paid_finally,
			COALESCE(p.state = 'refused' AND o.state IN ('failed','expired','cancelled'), false)
				AND NOT EXISTS (SELECT FROM authorizations a WHERE a.payment = p.id AND a.dead_why IS NULL)
				AND NOT EXISTS (SELECT FROM transfers t WHERE t.order_id = o.id AND t.reverted_at IS NULL) AS never_paid
		FROM accounts c JOIN payments p ON p.account_id = c.id LEFT JOIN orders o ON o.payment = p.id
		WHERE c.name = $1 AND p.gateway = $2 AND p.payment_id = $3`, account, gateway, paymentID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read what became of a payment: %w", err)
	}
	return &o, nil
}
