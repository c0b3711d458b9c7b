package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"quittance/client"
	"quittance/client/x402"
)

// The codes of a gateway's own refusals, beside those of Quittance that it passes on.
const (
	CodePaymentRequired = "payment_required" // 402: nothing was paid
	CodePaymentRefused  = "payment_refused"  // 409, final: it was refused, and no answer was kept
)

// reply is what the payer gets, written once.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (a reply) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func problem(p client.Problem) reply {
	raw, err := json.Marshal(p)
	if err != nil {
		return reply{status: http.StatusInternalServerError}
	}
	h := http.Header{}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	return reply{status: p.Status, header: h, body: raw}
}

func malformed(detail string) reply {
	return problem(client.Problem{Status: http.StatusBadRequest, Title: "The payment cannot be read", Detail: detail, Code: client.CodeMalformed, RetryAction: client.RetryAbandon})
}

// down: Quittance or the facilitator gave no answer. Nothing was settled, and the same
// request may succeed later; never 402, upon which a payer would sign again.
func down(detail string) reply {
	return problem(client.Problem{
		Status: http.StatusServiceUnavailable, Title: "Not now", Detail: detail, Code: client.CodeUnavailable,
		Retryable: true, RetryAction: client.RetrySame, RetryAfter: 5,
	})
}

// named adds what each answer about a payment id says of it.
func (t *try) named(a reply) reply {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(x402.PaymentIDHeader, t.id)
	if t.orderID != "" {
		a.header.Set(x402.OrderHeader, t.orderID)
	}
	if t.receipt != "" {
		a.header.Set(x402.ReceiptHeader, t.receipt)
	}
	return a
}

// inFlight: the payment is under way, or nobody knows what became of it.
func (t *try) inFlight(after int) reply {
	return t.named(problem(client.Problem{
		Status: http.StatusConflict, Title: "The payment is under way", Code: client.CodePaymentInFlight,
		Detail:    "The payment is under way, or nobody knows yet what became of it. Send the same again; do not sign again.",
		Retryable: true, RetryAction: client.RetryPoll, RetryAfter: after, PaymentID: t.id, OrderID: t.orderID,
	}))
}

// ask is the 402 that offers the ways to pay, under a fresh quote.
func (g *Gateway) ask(r *http.Request, route *Route, ways []x402.Requirements, detail string) reply {
	a := problem(client.Problem{
		Status: http.StatusPaymentRequired, Title: "Payment required", Detail: detail, Code: CodePaymentRequired,
		Retryable: true, RetryAction: client.RetryNewIntent,
	})
	header, err := route.offer(r, ways, "Payment required")
	if err != nil {
		return down("The offer could not be written.")
	}
	a.header.Set(x402.RequiredHeader, header)
	a.header.Set(x402.QuoteHeader, "q_"+rand.Text())
	return a
}

// offer is the value of x402.RequiredHeader.
func (route *Route) offer(r *http.Request, ways []x402.Requirements, why string) (string, error) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return x402.Encode(x402.Required{
		X402Version: x402.Version, Error: why, Accepts: ways,
		Resource:   &x402.Resource{URL: scheme + "://" + r.Host + r.URL.RequestURI(), Description: route.Description, MimeType: route.MimeType},
		Extensions: map[string]json.RawMessage{x402.PaymentIdentifier: x402.OfferIdentifier(route.RequireID)},
	})
}

// unreachable tells that an error is no answer of Quittance about the payment.
func unreachable(err error) bool {
	if err == nil {
		return false
	}
	p, ok := errors.AsType[*client.Problem](err)
	return !ok || p.Status >= 500 || p.Status == http.StatusTooManyRequests || p.Status == http.StatusRequestTimeout
}

// refused passes on what Quittance says of a payment id. What it says of a step means to
// the payer that another try has the payment, or a person: ask again.
func (t *try) refused(err error) reply {
	p, ok := errors.AsType[*client.Problem](err)
	if unreachable(err) || !ok {
		t.g.Log.Warn("Quittance gave no answer; nothing goes on", "payment_id", t.id, "error", err)
		return t.named(down("What is paid for cannot be recorded now, so nothing was settled."))
	}
	t.orderID = p.OrderID
	shown := *p
	shown.LogPosition, shown.RequestID = "", ""
	switch p.Code {
	case client.CodePaymentInFlight, client.CodePaymentConflict, client.CodePaymentSpent:
		return t.named(problem(shown))
	case client.CodeInvalid:
		shown.Errors = p.Errors
		return t.named(problem(shown))
	case client.CodeSignAgain:
		a := problem(shown)
		// The same recipient, asset and amount: they are the payment id's.
		header, err := t.route.offer(t.r, []x402.Requirements{t.payment.Accepted}, client.CodeSignAgain)
		if err != nil {
			return t.inFlight(30)
		}
		a.header.Set(x402.RequiredHeader, header)
		return t.named(a)
	case client.CodeStaleFence, client.CodeOrderFinal, client.CodeRunPaused, client.CodeInFlight, client.CodeRunHeld, client.CodeRunClosed, client.CodeLeaseLost:
		return t.inFlight(5)
	}
	t.g.Log.Error("Quittance refused a step", "payment_id", t.id, "error", err)
	return t.named(down("What is paid for cannot be recorded now, so nothing was settled."))
}

// final is an answer that will not be another.
func (t *try) final(resp *client.Response, outcome string, replayed bool) reply {
	a := t.named(reply{status: resp.Status, header: http.Header{}, body: resp.Body})
	for name, value := range resp.Headers {
		a.header.Set(name, value)
	}
	a.header.Set(x402.OutcomeHeader, outcome)
	a.header.Set(x402.ReplayedHeader, strconv.FormatBool(replayed))
	if a.header.Get("Cache-Control") == "" {
		a.header.Set("Cache-Control", "private, no-store")
	}
	return a
}

// replay answers what is over already. The frozen answer, or what the work returned, or,
// where neither is kept, what is known of it.
func (t *try) replay(a client.PaymentAnswer) reply {
	resp := a.Response
	if resp == nil {
		resp = workResponse(a.WorkResult)
	}
	switch {
	case resp != nil && !resp.Cut:
		return t.final(resp, a.Outcome, true)
	case a.Outcome == client.OutcomeSettled && t.route.Cacheable:
		if again, outcome := t.perform(t.r.Context()); outcome == client.OutcomeTaken { // a read: once more does nothing
			return t.final(again, a.Outcome, true)
		}
	case a.Outcome == client.OutcomeRefused:
		p := problem(client.Problem{
			Status: http.StatusConflict, Title: "The payment was refused", Code: CodePaymentRefused, Final: true, RetryAction: client.RetryAbandon,
			Detail: "The order is over and was not paid.", PaymentID: t.id, OrderID: a.OrderID,
		})
		p.header.Set(x402.OutcomeHeader, x402.Refused)
		p.header.Set(x402.ReplayedHeader, "true")
		return t.named(p)
	}
	body, err := json.Marshal(struct {
		client.PaymentAnswer
		WorkResult json.RawMessage `json:"work_result,omitempty"` // not what the payer was sold
	}{PaymentAnswer: a})
	if err != nil {
		return down("The answer could not be written.")
	}
	return t.final(&client.Response{Status: http.StatusOK, Headers: map[string]string{"Content-Type": "application/json"}, Body: body}, a.Outcome, true)
}
