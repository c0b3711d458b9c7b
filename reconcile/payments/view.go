package payments

import (
	"slices"

	"quittance/ledger/money"
	"quittance/ledger/payments"
)

// WorkKnown is what is known of the work.
func (p *Payment) WorkKnown() Work { return p.work() }

// refundOrder is how far a refund is, least first: together they are as far as the least.
var refundOrder = []string{"owed", "held", "returned", "approved", "batched", "sending", "unknown", "sent", "written_off", "confirmed"}

// RefundState is what several rows that are owed are together: "" where nothing is owed or
// ever was.
func RefundState(list []payments.Refund) (state string, amount, paid money.Atomic) {
	least := len(refundOrder)
	for i := range list {
		at := slices.Index(refundOrder, list[i].State)
		if at < 0 { // void
			continue
		}
		least = min(least, at)
		amount, paid = amount.Plus(list[i].Amount), paid.Plus(list[i].Paid)
	}
	if least == len(refundOrder) {
		return "", amount, paid
	}
	return refundOrder[least], amount, paid
}
