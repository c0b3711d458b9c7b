package payments

import (
	"net/url"
)

// answer turns a decision about a payment into what its caller is told.
func (e *Engine) answer(d Decision, p *Payment) (*Answer, error) {
	switch d.Do {
	case Proceed:
		a := &Answer{Do: Proceed, Payment: p, Fence: p.Fence, Paid: d.Paid, Work: d.Work}
		if d.Work == Taken && p.Work != nil {
			a.WorkResult = p.Work.Result
		}
		return a, nil
	case Replay:
		a := &Answer{Do: Replay, Payment: p}
		if p.Healed && p.Digest == nil && p.Work != nil { // nobody froze an answer, and the work has one
			a.WorkResult = p.Work.Result
		}
		return a, nil
	}
	r := &Refusal{RetryAfter: d.Retry, Reason: d.Reason}
	if d.ShowOrder {
		r.PaymentID, r.OrderID, r.State, r.Poll = p.PaymentID, p.OrderID, p.State, e.Poll(p)
	}
	switch d.Do {
	case Wait:
		r.Code, r.Detail = CodeInFlight, "The payment is under way, or nobody knows yet what became of it. Ask again; do not sign again."
		if d.Elsewhere {
			r.Detail = "The quote or the authorization is under way under another payment id: ask for that one."
		}
	case Conflict:
		r.Code, r.Detail = CodeConflict, "The payment id, the quote or the authorization belongs to another request."
		if d.Reason == ReasonPayer {
			r.Detail = "The payment id, the quote or the authorization belongs to another payer."
		}
	case Spent:
		r.Code, r.Detail = CodeSpent, "The payment id was used and is over. Its answer is not kept any more; the order tells what became of it."
	case SignAgain:
		r.Code, r.Detail = CodeSignAgain, "No authorization under this payment id can move money any more, and the order is open: only a new signature pays it."
	}
	return nil, r
}

// Poll is where the payer of a payment asks for its order: by the name that the gateway's
// policy gives it, or at our own URL.
func (e *Engine) Poll(p *Payment) string {
	if name := e.policy().Gateway(p.Gateway).Poll; name != "" {
		return name
	}
	return "/v1/orders/" + url.PathEscape(p.OrderID)
}
