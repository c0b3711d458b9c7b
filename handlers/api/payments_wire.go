package api

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"

	"quittance/client"
	"quittance/ledger/money"
	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
)

// paymentKinds says for each code of the payments' engine what a program can do about it.
// None of them suggests another payment id, or a new signature, for what is still open.
var paymentKinds = map[payments.Code]kind{
	payments.CodeInFlight:   {409, "The payment is under way", true, client.RetryPoll, false},
	payments.CodeConflict:   {409, "It belongs to another payment", false, client.RetryAbandon, true},
	payments.CodeSpent:      {410, "The payment id is spent", false, client.RetryAbandon, true},
	payments.CodeSignAgain:  {402, "A new signature is needed", true, client.RetryNewIntent, false},
	payments.CodeOrderFinal: {409, "The order is over", false, client.RetryAbandon, true},
	payments.CodeStaleFence: {409, "Another try holds the payment", false, client.RetryAbandon, true},
	payments.CodeLogBehind:  {409, "The log is behind", true, client.RetryHuman, false},
	payments.CodeNotFound:   {404, "Not found", false, client.RetryAbandon, false},
	payments.CodeInvalid:    {422, "Not acceptable", false, "", false},
}

// paymentRefused gives a refusal its document; other errors pass.
func (a *API) paymentRefused(err error) error {
	r, ok := errors.AsType[*payments.Refusal](err)
	if !ok {
		return a.refused(err)
	}
	k, known := paymentKinds[r.Code]
	if !known {
		k = kind{http.StatusInternalServerError, "Refused without a known reason", false, client.RetryHuman, false}
	}
	p := &client.Problem{
		Title: k.title, Status: k.status, Detail: r.Detail, Code: string(r.Code), Reason: string(r.Reason),
		Retryable: k.retryable, RetryAction: k.retryAction, Final: k.final, RetryAfter: wholeSeconds(r.RetryAfter), Poll: r.Poll,
		PaymentID: r.PaymentID, OrderID: r.OrderID, State: r.State,
	}
	for _, f := range r.Faults {
		p.Errors = append(p.Errors, client.FieldError{Pointer: f.Pointer, Detail: f.Detail})
	}
	return refusal{p}
}

func (a *API) paymentAnswerWire(answer *payments.Answer) (client.PaymentAnswer, error) {
	p := answer.Payment
	out := client.PaymentAnswer{
		Do: string(answer.Do), PaymentID: p.PaymentID, OrderID: p.OrderID, Receipt: a.payments.ReceiptURL(p.Order),
		Order: a.orderOrNil(p), Refund: refundWire(p.Refunds),
	}
	if answer.WorkResult != "" {
		out.WorkResult = json.RawMessage(answer.WorkResult)
	}
	if answer.Do == payments.Proceed {
		out.Fence, out.Paid, out.Work, out.Settles = answer.Fence, answer.Paid, string(answer.Work), client.SettlesAfterWork
		if answer.MoneyFirst {
			out.Settles = client.SettlesBeforeWork
		}
		return out, nil
	}
	out.Replayed, out.Outcome, out.Healed = true, p.State, p.Healed
	response, err := responseWire(p.Answer)
	out.Response = response
	return out, err
}

func responseWire(x rows.Answer) (*client.Response, error) {
	if x.Digest == nil {
		return nil, nil
	}
	r := &client.Response{Status: x.Status, Body: x.Body, Digest: hex.EncodeToString(x.Digest), Cut: x.Size > payments.ResponseLimit}
	return r, json.Unmarshal([]byte(x.Headers), &r.Headers)
}

func responseOf(in *client.Response) *payments.Response {
	if in == nil {
		return nil
	}
	return &payments.Response{Status: in.Status, Headers: in.Headers, Body: in.Body}
}

func (a *API) paymentWire(p *payments.Payment) client.Payment {
	state := payments.State(p.State)
	return client.Payment{
		PaymentID: p.PaymentID, Gateway: p.Gateway, State: p.State, Final: state == payments.Settled || state == payments.Refused || state == payments.Pruned,
		OrderID: p.OrderID, Receipt: a.payments.ReceiptURL(p.Order), Work: string(p.WorkKnown()), Broadcast: !p.BroadcastAt.IsZero(), Healed: p.Healed,
		ClaimedAt: moment(p.ClaimedAt), Order: a.orderOrNil(p), Refund: refundWire(p.Refunds),
	}
}

func (a *API) orderOrNil(p *payments.Payment) *client.Order {
	if p.Order == nil {
		return nil
	}
	o := a.orderWire(p)
	return &o
}

// orderWire is an order as its gateway and its payer's program see it. One that is not
// created yet is what the claim asks for.
func (a *API) orderWire(p *payments.Payment) client.Order {
	out := client.Order{
		OrderID: p.OrderID, Gateway: p.Gateway, State: "created", Network: p.Network, Asset: p.Asset, Amount: p.Amount.String(), PayTo: p.PayTo,
		CreatedAt: moment(p.FirstAt), Receipt: a.payments.ReceiptURL(p.Order), Refund: refundWire(p.Refunds),
	}
	if o := p.Order; o != nil {
		out.State, out.Memo, out.CreatedAt, out.ExpiresAt = o.State, o.Memo, moment(o.CreatedAt), momentOrNil(o.ExpiresAt.Time)
	}
	var received money.Atomic
	for i := range p.Transfers {
		t := &p.Transfers[i]
		out.Transfers = append(out.Transfers, client.Settled{
			Tx: t.Tx, Position: t.Position, Amount: t.Amount.String(), Class: t.Class, Final: t.Final, Reverted: t.Reverted(),
		})
		if !t.Reverted() {
			received = received.Plus(t.Amount)
		}
	}
	out.Received = received.String()
	return out
}

func movedWire(m *payments.Moved) client.TransferAnswer {
	t := &m.Transfer
	out := client.TransferAnswer{Class: t.Class, New: m.New, OrderID: t.OrderID}
	if t.Over.Sign() > 0 {
		out.Over = t.Over.String()
	}
	if m.Refund != nil {
		out.Refund = refundWire([]rows.Refund{*m.Refund})
	}
	return out
}

// refundWire is what is owed back for an order, all its transfers together.
func refundWire(list []rows.Refund) *client.Refund {
	state, amount, paid := payments.RefundState(list)
	if state == "" {
		return nil
	}
	return &client.Refund{State: state, Amount: amount.String(), Refunded: paid.String()}
}
