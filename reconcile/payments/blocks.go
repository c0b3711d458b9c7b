package payments

import (
	"time"

	"quittance/ledger/payments"
)

// Blocks says what a payment waits for, in words for people; "" where nothing is in its way.
func (e *Engine) Blocks(x *payments.Item) string {
	asked := e.rails(x.Network) != nil
	switch {
	case x.Verdict != "":
		return "Decided by one person: another one lets it go"
	case x.State == string(Settled) && x.OrderState != "paid" && x.OrderState != "":
		return "Settled by its gateway, and its order is not paid"
	case x.State == string(InFlight) && x.Now.Sub(x.ClaimedAt) <= HealAfter:
		return "Its gateway is at work"
	case (x.WorkState == "in_flight" || x.WorkState == "interrupted" || x.WorkState == "held") && (x.State == string(InFlight) || x.State == string(Unknown)):
		return "What it pays for is open: the queue decides"
	case x.OrderState == "paid" && (x.State == string(InFlight) || x.State == string(Unknown)):
		return "Its order is paid: it goes on by itself, or when its payer asks"
	case x.State == string(InFlight):
		return "Its gateway left it: it goes on when its payer asks"
	case x.State != string(Unknown):
		return ""
	case !asked:
		return "Nobody can ask its rail: two people decide"
	case x.CheckAt.IsZero() || x.Now.Sub(x.CheckAt.Time) > unaskedAfter:
		return "Its rail was not asked when it was due"
	case x.CheckSaid != "":
		return "Its rail says: " + x.CheckSaid
	}
	return "Its rail is asked"
}

// unaskedAfter is how long after it was due a question counts as not asked.
const unaskedAfter = 5 * time.Minute
