package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quittance/client/x402"
)

// send sends what was signed until it is known what became of it.
func (p *Payer) send(ctx context.Context, r *purchase, a *authorized) (paid *Paid, err error) {
	err = p.until(ctx, func(ctx context.Context) (time.Duration, bool, error) {
		resp, err := p.once(ctx, r, a)
		switch {
		case err != nil:
			return 0, false, fmt.Errorf("%w: %w", ErrPaymentOpen, err)
		case resp.final(a):
			paid, err = p.store.finish(r.dir, resp.paid(r.id))
			if err != nil {
				p.log.Error("the answer to a payment is not kept; the same request gets it again", "payment_id", r.id, "error", err)
				paid = resp.paid(r.id)
			}
			return 0, true, nil
		case resp.status == http.StatusPaymentRequired && resp.doc.Code == CodeSignAgain:
			if left := time.Until(a.usableUntil()); left > 0 {
				// Whoever asks, and for whatever reason: while the old one lives, both could be taken.
				return left, false, fmt.Errorf("%w: what was signed can be used until %s", ErrPaymentOpen, a.usableUntil())
			}
			next, err := p.authorize(ctx, r, resp, a)
			if err != nil {
				return 0, true, err
			}
			a = next
			return 0, false, nil
		case resp.status == http.StatusPaymentRequired:
			return 0, true, fmt.Errorf("%w: %w", ErrAskedAgain, resp.problem())
		case resp.doc.Code == CodePaymentInFlight && resp.doc.PaymentID != "" && resp.doc.PaymentID != r.id:
			return 0, true, resp.problem() // the quote is being paid under another id
		case resp.doc.Code == CodePaymentInFlight || resp.later() || resp.ok():
			return resp.after(), false, fmt.Errorf("%w: %w", ErrPaymentOpen, resp.problem())
		}
		return 0, true, resp.problem()
	})
	return paid, err
}

// until calls f again and again, with the pauses that it asks for, until it is done, the
// patience is over or ctx ends. The last error is returned as it was.
func (p *Payer) until(ctx context.Context, f func(context.Context) (wait time.Duration, done bool, err error)) error {
	start := time.Now()
	for try := 0; ; try++ {
		wait, done, err := f(ctx)
		if done || ctx.Err() != nil {
			return err
		}
		pause := backoff(try, wait)
		if wait > 0 { // the gateway said when
			pause = backoff(0, wait)
		}
		if time.Since(start)+pause > p.patience {
			return err
		}
		sleep(ctx, pause)
	}
}

// tryPayment bounds one request: a gateway does its work and settles within its payment
// time-out, which is shorter than 180 s.
const tryPayment = 180 * time.Second

// reply is one answer of a gateway.
type reply struct {
	status int
	header http.Header
	body   []byte
	doc    Problem // of a refusal; empty otherwise
}

// once sends the request a single time; a nil authorization sends it unpaid.
func (p *Payer) once(ctx context.Context, r *purchase, a *authorized) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, tryPayment)
	defer cancel()
	req := r.req.Clone(ctx)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body))
	req.GetBody = nil
	req.Header.Set(x402.PaymentIDHeader, r.id)
	if a != nil {
		req.Header.Set(x402.SignatureHeader, a.Sent)
		if a.Quote != "" {
			req.Header.Set(x402.QuoteHeader, a.Quote)
		}
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := &reply{status: resp.StatusCode, header: resp.Header}
	if out.body, err = io.ReadAll(io.LimitReader(resp.Body, answerLimit+1)); err != nil {
		return nil, err
	}
	if len(out.body) > answerLimit {
		return nil, fmt.Errorf("the answer has more than %d bytes", answerLimit)
	}
	if out.status >= 300 && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if json.Unmarshal(out.body, &out.doc) != nil {
			out.doc = Problem{}
		}
	}
	return out, nil
}

// final tells that the answer will not be another. A gateway that gave a quote says so
// itself: what comes without its word is from something between us.
func (r *reply) final(a *authorized) bool {
	switch r.header.Get(x402.OutcomeHeader) {
	case x402.Settled, x402.Refused:
		return true
	}
	if r.header.Get(x402.ChargedHeader) == "false" {
		return true
	}
	return a.Quote == "" && r.ok()
}

// later tells that the same request may be answered otherwise.
func (r *reply) later() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	}
	return r.status >= 500
}

func (r *reply) ok() bool { return r.status >= 200 && r.status <= 299 }

// after is when the gateway asked to be asked again; 0 where it did not say.
func (r *reply) after() time.Duration {
	seconds := r.doc.RetryAfter
	if seconds == 0 {
		seconds, _ = strconv.Atoi(r.header.Get("Retry-After"))
	}
	return time.Duration(max(0, min(seconds, 300))) * time.Second
}

func (r *reply) problem() *Problem {
	p := r.doc
	if p.Code == "" {
		p = Problem{Code: "http_" + strconv.Itoa(r.status), Title: "not an answer that was expected"}
	}
	p.Status = r.status
	return &p
}

// offer is what a 402 asks for.
func (r *reply) offer() (x402.Required, error) {
	offer, err := x402.Decode[x402.Required](r.header.Get(x402.RequiredHeader))
	switch {
	case err != nil:
		return offer, fmt.Errorf("the header %s of a 402 %w", x402.RequiredHeader, err)
	case offer.X402Version != x402.Version:
		return offer, fmt.Errorf("the 402 speaks version %d of x402, and this payer %d", offer.X402Version, x402.Version)
	case len(offer.Accepts) == 0:
		return offer, errors.New("the 402 offers no way to pay")
	}
	return offer, nil
}

func (r *reply) paid(id string) *Paid {
	h := r.header.Clone()
	h.Del("Set-Cookie")
	return &Paid{
		Status: r.status, Header: h, Body: r.body, PaymentID: id, OrderID: h.Get(x402.OrderHeader), Receipt: h.Get(x402.ReceiptHeader),
		Outcome: h.Get(x402.OutcomeHeader), Charged: h.Get(x402.ChargedHeader) != "false" && h.Get(x402.OutcomeHeader) != x402.Refused,
		Replayed: h.Get(x402.ReplayedHeader) == "true",
	}
}
