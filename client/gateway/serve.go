package gateway

import (
	"context"
	"errors"
	"net/http"

	"quittance/client"
	"quittance/client/x402"
)

// serve does a gateway's order of work for one request.
func (g *Gateway) serve(r *http.Request, route Route, h http.Handler) reply {
	body, err := g.read(r)
	switch {
	case errors.Is(err, errTooLarge):
		return problem(client.Problem{Status: http.StatusRequestEntityTooLarge, Title: "Too large", Code: client.CodeTooLarge, Limit: g.BodyLimit})
	case err != nil:
		return malformed("The body could not be read.")
	}
	ways := route.Accepts
	if route.Price != nil {
		if ways, err = route.Price(r, body); err != nil {
			return malformed(err.Error())
		}
	}
	header := r.Header.Get(x402.SignatureHeader)
	if header == "" {
		return g.ask(r, &route, ways, "This call is paid.")
	}
	t := &try{g: g, route: &route, h: h, r: r, body: body, ways: ways}
	if err := t.understand(header); err != nil {
		return malformed(err.Error())
	}
	if !g.enter(t.id) {
		return t.inFlight(1)
	}
	defer g.leave(t.id)
	// What was begun is ended, whether or not the payer is still there.
	return t.run(context.WithoutCancel(r.Context()))
}

// run claims the payment id and goes on from where it stands.
func (t *try) run(ctx context.Context) reply {
	if !t.offered() || t.route.Cacheable {
		_, err := t.g.Quittance.Payment(ctx, t.g.Name, t.id)
		unknown := errors.Is(err, client.ErrNotFound)
		switch {
		case err != nil && !unknown:
			return t.refused(err)
		case unknown && !t.offered(): // nothing was ever begun for it
			return t.g.ask(t.r, t.route, t.ways, "The payment is for none of the ways to pay that are offered now. It was not taken.")
		case unknown && t.memo == "": // who pays is signed
			if a := t.readAgain(ctx); a != nil {
				return *a
			}
		}
	}
	a, err := t.g.Quittance.ClaimPayment(ctx, t.claim)
	if err != nil {
		return t.refused(err)
	}
	t.orderID, t.receipt = a.OrderID, a.Receipt
	if a.Do == client.DoReplay {
		return t.replay(a)
	}
	if t.memo != "" {
		var over *reply
		if a, over = t.await(ctx, a); over != nil {
			return *over
		}
	}
	step := client.PaymentStep{Gateway: t.g.Name, Fence: a.Fence}
	if !a.Paid {
		if over := t.verify(ctx, step); over != nil {
			return *over
		}
	}
	if a.Order == nil {
		order, err := t.g.Quittance.OrderPayment(ctx, t.id, client.PaymentOrder{PaymentStep: step, Description: t.route.Description})
		if err != nil {
			return t.refused(err)
		}
		t.receipt = order.Receipt
	}
	var tx *x402.Settlement
	if a.Settles == client.SettlesBeforeWork && !a.Paid {
		var over *reply
		if tx, over = t.settle(ctx, step); over != nil {
			return *over
		}
	}
	resp, over := t.work(ctx, step, a)
	if over != nil {
		return *over
	}
	if a.Settles != client.SettlesBeforeWork && !a.Paid {
		if tx, over = t.settle(ctx, step); over != nil {
			return *over
		}
	}
	return t.settled(ctx, step, resp, tx)
}

// verify has the payment checked; a reply where it does not go on. What it says of an
// authorization that is used or pending is unknown.
func (t *try) verify(ctx context.Context, step client.PaymentStep) *reply {
	if t.verified {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, t.g.FacilitatorTimeout)
	defer cancel()
	v, err := t.g.Facilitator.Verify(asking, t.payment, t.payment.Accepted)
	switch {
	case err != nil:
		t.g.Log.Warn("the facilitator did not verify a payment", "payment_id", t.id, "error", err)
		a := t.named(down("The payment could not be verified now. It was not taken."))
		return &a
	case v.IsValid:
		t.verified = true
		return nil
	case definite[v.InvalidReason]:
		a := t.refuse(ctx, step, t.unpaid(v.InvalidReason), "verification: "+v.InvalidReason)
		return &a
	}
	a := t.unknown(ctx, step, "", "verification: "+v.InvalidReason)
	return &a
}

// unpaid is the frozen answer to a payment that was verified as worthless. Another purchase
// needs another payment id.
func (t *try) unpaid(reason string) *client.Response {
	a := t.g.ask(t.r, t.route, t.ways, "The payment was refused: "+reason+". It was not taken.")
	return &client.Response{Status: a.status, Body: a.body, Headers: map[string]string{
		"Content-Type": a.header.Get("Content-Type"), "Cache-Control": "no-store", x402.RequiredHeader: a.header.Get(x402.RequiredHeader),
	}}
}

// settle records that the payment is sent, and sends it. Whatever is not a plain success
// is unknown: it may have been sent.
func (t *try) settle(ctx context.Context, step client.PaymentStep) (*x402.Settlement, *reply) {
	if _, err := t.g.Quittance.BroadcastPayment(ctx, t.id, client.PaymentBroadcast{PaymentStep: step, Nonce: t.exact.Authorization.Nonce}); err != nil {
		a := t.refused(err)
		return nil, &a
	}
	sending, cancel := context.WithTimeout(ctx, t.g.FacilitatorTimeout)
	defer cancel()
	s, err := t.g.Facilitator.Settle(sending, t.payment, t.payment.Accepted)
	if err == nil && s.Success && s.Transaction != "" {
		return &s, nil
	}
	why := "the settlement gave no answer"
	if err == nil {
		why = "settlement: " + s.ErrorReason
	}
	t.g.Log.Warn("it is not known whether a payment was settled", "payment_id", t.id, "why", why, "error", err)
	a := t.unknown(ctx, step, s.Transaction, why)
	return nil, &a
}

// unknown leaves the payment to Quittance, which asks the rail.
func (t *try) unknown(ctx context.Context, step client.PaymentStep, tx, why string) reply {
	finish := client.PaymentFinish{PaymentStep: step, Outcome: client.OutcomeUnknown, Tx: tx, Why: why}
	if _, err := t.g.Quittance.FinishPayment(ctx, t.id, finish); unreachable(err) {
		t.g.later("what is not known of a payment", t.id, func(ctx context.Context) error {
			_, err := t.g.Quittance.FinishPayment(ctx, t.id, finish)
			return err
		})
	}
	return t.inFlight(5)
}

// refuse freezes a refusal. Where money may still land for the payment, Quittance keeps it
// open, and so the payer is told.
func (t *try) refuse(ctx context.Context, step client.PaymentStep, resp *client.Response, why string) reply {
	p, err := t.g.Quittance.FinishPayment(ctx, t.id, client.PaymentFinish{PaymentStep: step, Outcome: client.OutcomeRefused, Why: why, Response: kept(resp)})
	switch {
	case err != nil:
		return t.refused(err)
	case p.State != client.OutcomeRefused:
		return t.inFlight(5)
	}
	return t.final(resp, x402.Refused, false)
}

// settled freezes the answer of what is paid and done. The payer gets it also where that
// cannot be recorded now: it is delivered later, and until then the work's own record
// tells the same.
func (t *try) settled(ctx context.Context, step client.PaymentStep, resp *client.Response, s *x402.Settlement) reply {
	finish := client.PaymentFinish{PaymentStep: step, Outcome: client.OutcomeSettled, Response: kept(resp)}
	if s != nil {
		finish.Tx = s.Transaction
		header, err := x402.Encode(s)
		if err == nil {
			resp.Headers[x402.ResponseHeader] = header
		}
	}
	deliver := func(ctx context.Context) error {
		_, err := t.g.Quittance.FinishPayment(ctx, t.id, finish)
		return err
	}
	if err := deliver(ctx); unreachable(err) {
		t.g.later("a settled payment", t.id, deliver)
	} else if err != nil {
		t.g.Log.Error("a settled payment was refused, and is kept as evidence", "payment_id", t.id, "error", err)
	}
	if t.readID != "" {
		id, read := t.readID, client.FinishRead{Outcome: client.OutcomeTaken, PaymentID: t.id, Response: resp}
		if err := t.g.Quittance.FinishRead(ctx, id, read); err != nil {
			t.g.Log.Warn("a read will be charged again", "payment_id", t.id, "error", err)
		}
	}
	if s != nil && t.g.Transfers != nil {
		t.g.later("the transfers of a payment", t.id, func(ctx context.Context) error { return t.transfers(ctx, s.Transaction) })
	}
	return t.final(resp, x402.Settled, false)
}

// transfers posts what a transaction moved.
func (t *try) transfers(ctx context.Context, tx string) error {
	list, err := t.g.Transfers(ctx, t.payment.Accepted.Network, tx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if _, err := t.g.Quittance.PostTransfer(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
