package effects

import (
	"context"
	"encoding/json"

	"quittance/ledger/payments"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/orders"
)

// seeOrder looks among our own payments: what is asked about is in the same database.
func (e *Engine) seeOrder(ctx context.Context, l *lookup.Lookup, in *orders.Source, q lookup.Question) (lookup.Seen, error) {
	named, err := in.Payment(q)
	if err != nil {
		return lookup.Seen{Problem: lookup.Unaskable, Detail: err.Error()}, nil
	}
	if named.Account == "" {
		named.Account = q.Account
	}
	p, err := payments.Outcome(ctx, e.db, named.Account, named.Gateway, named.PaymentID)
	if err != nil {
		return lookup.Seen{}, err
	}
	var brought [][]byte
	if p != nil {
		r := orders.Record{
			PaymentID: named.PaymentID, OrderID: p.OrderID, State: p.State, Amount: p.Amount.String(), Asset: p.Asset, Network: p.Network,
			Payer: p.Payer, PayTo: p.PayTo, Final: p.PaidFinally, Never: p.NeverPaid,
		}
		if p.Order != "" {
			r.State += ", " + p.Order
		}
		if a := e.Policy().RailAsset(p.Network, p.Asset); a != nil {
			r.Currency = a.Asset.Code
		}
		raw, err := json.Marshal(r)
		if err != nil {
			return lookup.Seen{}, err
		}
		brought = append(brought, raw)
	}
	return l.See(ctx, e.redact, q, brought), nil
}
