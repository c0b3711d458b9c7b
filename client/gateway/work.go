package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

// work does what is paid for, once: it is recorded before, and so is what came of it. A
// reply where it does not go on.
func (t *try) work(ctx context.Context, step client.PaymentStep, a client.PaymentAnswer) (*client.Response, *reply) {
	if a.Work == client.WorkTaken {
		if resp := workResponse(a.WorkResult); resp != nil {
			return resp, nil
		}
		// It was done, and what it returned is not kept.
		return &client.Response{Status: http.StatusOK, Headers: map[string]string{}, Body: []byte("{}")}, nil
	}
	if t.route.Cacheable { // a read: nothing to record
		resp, outcome := t.perform(ctx)
		return resp, t.undone(ctx, step, resp, outcome)
	}
	asked := time.Now()
	begun, err := t.g.Quittance.WorkPayment(ctx, t.id, client.PaymentWork{PaymentStep: step})
	if err != nil {
		over := t.refused(err)
		return nil, &over
	}
	switch begun.Do {
	case client.DoReplay:
		resp, outcome := workResponse(begun.Result), begun.Outcome
		if outcome == client.OutcomeFailed {
			resp = workResponse(begun.Error)
		}
		if resp == nil {
			resp = &client.Response{Status: http.StatusOK, Headers: map[string]string{}, Body: []byte("{}")}
		}
		return resp, t.undone(ctx, step, resp, outcome)
	case client.DoPass:
		resp, outcome := t.perform(ctx)
		return resp, t.undone(ctx, step, resp, outcome)
	}
	doing, cancel := context.WithDeadline(ctx, asked.Add(time.Duration(begun.PerformWithinMS)*time.Millisecond))
	resp, outcome := t.perform(doing)
	cancel()
	finish := client.FinishRequest{Fence: begun.Fence, Outcome: outcome}
	if r := kept(resp); r != nil {
		if raw, err := json.Marshal(r); err != nil {
			t.g.Log.Error("the answer of the work is not recorded", "payment_id", t.id, "error", err)
		} else if outcome == client.OutcomeTaken {
			finish.Result = raw
		} else {
			finish.Error = raw
		}
	}
	if _, err := t.g.Quittance.Finish(ctx, begun.EffectID, finish); unreachable(err) {
		t.g.later("what was done for a payment", t.id, func(ctx context.Context) error {
			_, err := t.g.Quittance.Finish(ctx, begun.EffectID, finish)
			return err
		})
	}
	return resp, t.undone(ctx, step, resp, outcome)
}

// undone ends a payment whose work was refused, or of which nobody knows; nil where it was
// done.
func (t *try) undone(ctx context.Context, step client.PaymentStep, resp *client.Response, outcome string) *reply {
	var over reply
	switch outcome {
	case client.OutcomeTaken:
		return nil
	case client.OutcomeFailed:
		over = t.refuse(ctx, step, resp, fmt.Sprintf("the work answered %d", resp.Status))
	default:
		over = t.unknown(ctx, step, "", fmt.Sprintf("the work answered %d", resp.Status))
	}
	return &over
}

// perform calls the handler and keeps what it answers. Nothing of it reaches the payer yet.
func (t *try) perform(ctx context.Context) (resp *client.Response, outcome string) {
	w := &recorder{header: http.Header{}}
	r := t.r.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(t.body)), int64(len(t.body))
	func() {
		defer func() {
			if p := recover(); p != nil {
				t.g.Log.Error("the work of a payment panicked", "payment_id", t.id, "panic", fmt.Sprint(p))
				w = &recorder{header: http.Header{}, status: http.StatusInternalServerError}
			}
		}()
		t.h.ServeHTTP(w, r)
	}()
	resp = w.response()
	switch {
	case resp.Status < 400: // its word that it was done, however late
		return resp, client.OutcomeTaken
	case resp.Status >= 500 || ctx.Err() != nil:
		return resp, client.OutcomeUnknown
	}
	return resp, client.OutcomeFailed
}

// readAgain answers a cacheable read that the same payer paid for moments ago; nil where it
// has to be paid. Who pays is verified before anything is shown.
func (t *try) readAgain(ctx context.Context) *reply {
	asking, cancel := context.WithTimeout(ctx, t.g.FacilitatorTimeout)
	defer cancel()
	v, err := t.g.Facilitator.Verify(asking, t.payment, t.payment.Accepted)
	if err != nil {
		a := t.named(down("The payment could not be verified now. It was not taken."))
		return &a
	}
	if !v.IsValid {
		return nil // the claim says what becomes of it
	}
	t.verified = true
	read, err := t.g.Quittance.AskRead(ctx, client.ReadRequest{Gateway: t.g.Name, Payer: t.claim.Payer, Request: t.claim.Request})
	if err != nil {
		a := t.refused(err)
		return &a
	}
	if read.Charged || read.Response == nil {
		t.readID = read.ReadID
		return nil
	}
	t.receipt = read.Receipt
	a := t.named(reply{status: read.Response.Status, header: http.Header{}, body: read.Response.Body})
	for name, value := range read.Response.Headers {
		if name != x402.ResponseHeader { // it tells of the first payment
			a.header.Set(name, value)
		}
	}
	a.header.Set(x402.ChargedHeader, "false")
	a.header.Set("Cache-Control", "private, no-store")
	return &a
}

// mostSent is the longest body that is sent to Quittance, which keeps 256 KiB of one. Of
// a longer one the payer gets its first answer only.
const mostSent = 4 << 20

func kept(r *client.Response) *client.Response {
	if len(r.Body) > mostSent {
		return nil
	}
	return r
}

// workResponse reads an answer out of the record of the work; nil where there is none.
func workResponse(raw json.RawMessage) *client.Response {
	var r client.Response
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil || r.Status == 0 {
		return nil
	}
	if r.Headers == nil {
		r.Headers = map[string]string{}
	}
	return &r
}

// recorder takes what a handler writes.
type recorder struct {
	header http.Header
	status int
	sent   http.Header // as it was when the status was written
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *recorder) response() *client.Response {
	w.WriteHeader(http.StatusOK)
	out := &client.Response{Status: w.status, Headers: map[string]string{}, Body: w.body.Bytes()}
	for name, values := range w.sent {
		switch name {
		case "Set-Cookie", "Content-Length", "Date", "Connection", "Transfer-Encoding": // not an answer to anybody else's question
		default:
			out.Headers[name] = strings.Join(values, ", ")
		}
	}
	if out.Headers["Content-Type"] == "" && w.body.Len() > 0 {
		out.Headers["Content-Type"] = http.DetectContentType(out.Body)
	}
	return out
}
