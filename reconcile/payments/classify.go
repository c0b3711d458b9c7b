package payments

import (
	"slices"

	"quittance/ledger/money"
	"quittance/ledger/payments"
)

// Classes of a transfer, each movement exactly once.
const (
	Applied    = "applied"     // it pays its order
	Late       = "late"        // the order was over and not paid
	Duplicate  = "duplicate"   // the order was paid already
	Under      = "under"       // less than is asked: held until it is topped up or given back
	Unmatched  = "unmatched"   // no order: for a person
	FailedCall = "failed_call" // what it paid for was not done
	GivenBack  = "given_back"  // a person decided so
)

// classes is what becomes of the transfers of an order when one arrives, and of the order.
type classes struct {
	class string
	over  money.Atomic
	topUp []string // transfers held as under that now pay the order with it
	order string   // the order's state after
}

// classify says what a movement is for an order that stands in a state, with the other
// transfers that arrived for it. A later row of the same one never counts itself.
func classify(order *payments.Order, others []payments.Transfer, amount money.Atomic) classes {
	switch standing(order.State) {
	case Paid:
		return classes{class: Duplicate, order: order.State}
	case Unpaid:
		return classes{class: Late, order: order.State}
	}
	got := amount
	var held []string
	for i := range others {
		if t := &others[i]; t.Class == Under && !t.Reverted() {
			got = got.Plus(t.Amount)
			held = append(held, t.ID)
		}
	}
	if got.Cmp(order.Amount) < 0 {
		return classes{class: Under, order: "paying"}
	}
	// What is held is less than what is asked, so what is over is less than what arrived.
	return classes{class: Applied, over: got.Minus(order.Amount), topUp: held, order: "paid"}
}

// fits tells that a movement can be for an order: to its recipient, of its asset.
func fits(order *payments.Order, m *payments.Moved) bool {
	return order.Network == m.Network && order.Asset == m.Asset && order.PayTo == m.Recipient
}

// stands is where the money of a transfer stands, by account. Credits are negative; the
// incoming account says that it arrived.
func stands(t *payments.Transfer) map[string]money.Atomic {
	var zero money.Atomic
	if t.Reverted() {
		return nil
	}
	m := map[string]money.Atomic{"incoming": t.Amount}
	switch {
	case t.Class == Applied:
		m["revenue"] = zero.Minus(t.Amount.Minus(t.Over))
		m["refund_owed"] = zero.Minus(t.Over)
	case t.Class == Under:
		m["held"] = zero.Minus(t.Amount)
	case t.Class == Unmatched:
		m["unmatched"] = zero.Minus(t.Amount)
	case owes(t.Class):
		m["refund_owed"] = zero.Minus(t.Amount)
	}
	return m
}

// owed is how much of a transfer must be given back.
func owed(t *payments.Transfer) money.Atomic {
	switch {
	case t.Reverted():
		return money.Atomic{}
	case owes(t.Class):
		return t.Amount
	}
	return t.Over
}

// accounts in the order in which entries are written.
var accounts = []string{"incoming", "revenue", "held", "unmatched", "refund_owed"}

// difference is the entry that takes the books from where a transfer stood to where it
// stands. before nil: it is new.
func difference(before, after *payments.Transfer) (sides []payments.Posting) {
	var was map[string]money.Atomic
	if before != nil {
		was = stands(before)
	}
	now := stands(after)
	for _, account := range accounts {
		if d := now[account].Minus(was[account]); d.Sign() != 0 {
			sides = append(sides, payments.Posting{Account: account, Amount: d})
		}
	}
	return sides
}

// without leaves a transfer out of a list.
func without(list []payments.Transfer, id string) []payments.Transfer {
	return slices.DeleteFunc(slices.Clone(list), func(t payments.Transfer) bool { return t.ID == id })
}
