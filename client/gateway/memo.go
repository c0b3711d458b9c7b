package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

// defaultMemoWait is how long an order waits for its transfer where the way to pay says
// nothing.
const defaultMemoWait = 10 * time.Minute

// understandMemo reads a payment by a transfer that the payer sends itself. Nothing in it
// is signed, so who asks is for the route to know.
func (t *try) understandMemo() error {
	way := t.payment.Accepted
	switch {
	case t.route.MemoPayer == nil:
		return errors.New("nothing is paid by memo here")
	case json.Unmarshal(t.payment.Payload, &t.carried) != nil:
		return errors.New("the payload is not an object with the transaction that paid")
	}
	if err := t.identify(); err != nil {
		return err
	}
	payer, err := t.route.MemoPayer(t.r)
	if err != nil {
		return err
	}
	asked, err := t.asked()
	if err != nil {
		return err
	}
	// Of the id, so that a 402 that was lost can be given again by every process.
	sum := sha256.Sum256([]byte("quittance memo\n" + t.g.Name + "\n" + t.id))
	t.memo = "0x" + hex.EncodeToString(sum[:])
	t.claim = client.PaymentRequest{
		PaymentID: t.id, Gateway: t.g.Name, Payer: payer, Request: asked, Amount: way.Amount, Asset: way.Asset, Network: way.Network, PayTo: way.PayTo,
		Quote: t.r.Header.Get(x402.QuoteHeader), AttemptID: t.g.instance + "-" + t.id,
	}
	return nil
}

// await goes on with a payment whose transfer has arrived, and answers where it has not.
// Only the answer that opens the order is a 402: whoever asks again may have sent the
// transfer, and a program that is asked for money sends it once more.
func (t *try) await(ctx context.Context, a client.PaymentAnswer) (client.PaymentAnswer, *reply) {
	opened := false
	if a.Order == nil {
		wait := time.Duration(t.payment.Accepted.MaxTimeoutSeconds) * time.Second
		if wait <= 0 {
			wait = defaultMemoWait
		}
		order, err := t.g.Quittance.OrderPayment(ctx, t.id, client.PaymentOrder{
			PaymentStep: client.PaymentStep{Gateway: t.g.Name, Fence: a.Fence}, Memo: t.memo, Description: t.route.Description, ExpiresIn: int(wait / time.Second),
		})
		if err != nil {
			over := t.refused(err)
			return a, &over
		}
		a.Order, t.receipt, opened = &order, order.Receipt, true
	}
	if t.carried.Transaction != "" && !t.arrived(a) {
		if err := t.look(ctx); err != nil {
			t.g.Log.Warn("a transfer could not be read; Quittance finds it", "payment_id", t.id, "error", err)
		}
		opened = false // it says that it has paid
		again, err := t.g.Quittance.ClaimPayment(ctx, t.claim)
		switch {
		case err != nil:
			over := t.refused(err)
			return a, &over
		case again.Do == client.DoReplay:
			over := t.replay(again)
			return a, &over
		}
		a = again
	}
	if t.arrived(a) {
		return a, nil
	}
	over := t.unsent(opened)
	return a, &over
}

// look reads the transaction that the payer names, so that it need not wait until
// Quittance looks at the rail. A transfer counts by its memo, whoever names it.
func (t *try) look(ctx context.Context) error {
	if t.g.Transfers == nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, t.g.FacilitatorTimeout)
	defer cancel()
	list, err := t.g.Transfers(asking, t.payment.Accepted.Network, t.carried.Transaction)
	if err != nil {
		return err
	}
	for _, m := range list {
		if !strings.EqualFold(m.Memo, t.memo) {
			continue
		}
		if _, err := t.g.Quittance.PostTransfer(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// arrived tells that the order is paid, by what cannot be reorganised away any more where
// the route asks for that.
func (t *try) arrived(a client.PaymentAnswer) bool {
	if !a.Paid || !t.route.MemoFinal {
		return a.Paid
	}
	return a.Order != nil && !slices.ContainsFunc(a.Order.Transfers, func(m client.Settled) bool { return !m.Final && !m.Reverted })
}

// unsent says with which memo to pay.
func (t *try) unsent(opened bool) reply {
	if !opened {
		a := t.inFlight(5)
		a.header.Set(x402.MemoHeader, t.memo)
		return a
	}
	way := t.payment.Accepted
	way.Extra = map[string]any{"memo": t.memo}
	header, err := t.route.offer(t.r, []x402.Requirements{way}, "Payment required")
	if err != nil {
		return t.inFlight(5)
	}
	a := t.named(problem(client.Problem{
		Status: http.StatusPaymentRequired, Title: "Payment required", Code: CodePaymentRequired, Retryable: true, RetryAction: client.RetrySame,
		Detail: "Store the memo, send one transfer that carries it, and send the same request again.", PaymentID: t.id,
	}))
	a.header.Set(x402.RequiredHeader, header)
	a.header.Set(x402.MemoHeader, t.memo)
	if t.claim.Quote != "" {
		a.header.Set(x402.QuoteHeader, t.claim.Quote) // the one that is taken up
	}
	return a
}
