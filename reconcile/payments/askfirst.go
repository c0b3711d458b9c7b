package payments

import (
	"context"

	"quittance/ledger"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
)

// askFirst asks the rail where it can be asked. done: it showed what became of the payment,
// which is on record now. A refusal says that it cannot tell, or that nobody has to decide.
func (e *Engine) askFirst(ctx context.Context, p *Payment, v Verdict, hash string) (done bool, err error) {
	rail := e.rails(p.Network)
	if rail == nil {
		return false, nil
	}
	if v == VerdictSettled {
		return e.showed(ctx, p, rail, hash)
	}
	sights, err := e.checkOne(ctx, p.ID, rail)
	if err != nil {
		return false, err
	}
	again, err := e.PaymentOfOrder(ctx, 0, p.OrderID)
	if err != nil {
		return false, err
	}
	if again.State != string(Unknown) || again.Order != nil && standing(again.Order.State) == Paid || len(again.Transfers) > len(p.Transfers) {
		return true, nil
	}
	for i := range again.Authorizations {
		a := &again.Authorizations[i]
		if s, asked := sights[a.ID]; a.DeadWhy == "" && !again.closed(a) && (!asked || s.Dead == "") {
			return false, notNow("The rail was asked just now and does not show that nothing was taken: " + orElse(s.Said, "it did not answer in time") + ". Only when it does, or cannot be asked at all, may a person say so.")
		}
	}
	if len(again.Authorizations) > 0 {
		return false, nil
	}
	read, err := payments.CursorOf(ctx, e.db, p.Network, p.Asset)
	if err != nil {
		return false, err
	}
	if until := again.LandsUntil(e.lag(p.Network)); read.IsZero() || read.Before(until) {
		return false, notNow("What came in on the rail was not read far enough yet: it would not be known if it was taken.")
	}
	return false, nil
}

// showed posts what a transaction moved to the recipient of a payment.
func (e *Engine) showed(ctx context.Context, p *Payment, rail Rail, hash string) (done bool, err error) {
	asking, cancel := context.WithTimeout(ctx, patience)
	found, err := rail.Within(asking, p.Asset, p.PayTo, hash)
	cancel()
	if err != nil {
		return false, notNow("The rail could not be asked about that reference: " + err.Error())
	}
	for _, s := range found {
		if s.Sender != p.Payer || s.Amount.Cmp(p.Amount) != 0 {
			continue
		}
		s.Account, s.KnownBy, done = p.Account, "reconcile", true
		if _, err := e.post(ctx, Posted{Seen: s, Order: p.OrderID}); err != nil {
			return false, err
		}
	}
	if !done {
		return false, notNow("The rail shows no such movement under that reference: from this payer, to this recipient, of this amount.")
	}
	return true, nil
}

// referenceIsFree refuses a reference that is known of something else.
func (e *Engine) referenceIsFree(ctx context.Context, tx *ledger.Tx, p *Payment, hash string) error {
	if hash == "" {
		return nil
	}
	known, err := payments.TransfersIn(ctx, tx, p.Network, hash)
	if err != nil {
		return err
	}
	for i := range known {
		if t := &known[i]; t.KnownBy == "person" || t.Sender == p.Payer && t.Amount.Cmp(p.Amount) == 0 {
			return notNow("That reference is on record already as money that came in. If it is this payment's, match it to its order from its own page.")
		}
	}
	counted, err := store.ReturnKnown(ctx, tx, p.Network, hash)
	if err == nil && counted {
		err = notNow("That reference is on record as a refund that came back.")
	}
	return err
}
