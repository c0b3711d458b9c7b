package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The plain callers below send one request each, repeated only where an answer was
// lost or the server asked for it. Agents use [Run.Do]; these are for gateways,
// tools for people, and tests. Refusals are [*Problem].

func ask[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	r.out = &out
	err := c.do(ctx, &r)
	return out, err
}

// Begin records an intent. The caller chooses AttemptID and keeps it for a repeat.
func (c *Client) Begin(ctx context.Context, in BeginRequest) (BeginAnswer, error) {
	return ask[BeginAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/effects", in: in})
}

// Finish records what became of an attempt.
func (c *Client) Finish(ctx context.Context, effectID string, in FinishRequest) (FinishAnswer, error) {
	return ask[FinishAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/effects/" + escape(effectID) + "/finish", in: in})
}

// FinishByKey is Finish for an effect named by the members of in.
func (c *Client) FinishByKey(ctx context.Context, in FinishRequest) (FinishAnswer, error) {
	return ask[FinishAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/effects/finish", in: in})
}

// Batch sends up to [MaxBatch] operations and returns an answer each.
func (c *Client) Batch(ctx context.Context, ops ...BatchOp) ([]BatchAnswer, error) {
	out, err := ask[BatchAnswers](ctx, c, request{method: http.MethodPost, path: "/v1/effects/batch", in: Batch{Ops: ops}})
	return out.Answers, err
}

// Effect reads everything that is known about one effect.
func (c *Client) Effect(ctx context.Context, effectID string) (EffectView, error) {
	return ask[EffectView](ctx, c, request{method: http.MethodGet, path: "/v1/effects/" + escape(effectID)})
}

// Run reads a run and its open effects. With a wait and a paused run it answers when
// the run may go on, or after the wait.
func (c *Client) Run(ctx context.Context, runID string, wait time.Duration) (RunView, error) {
	path := "/v1/runs/" + escape(runID)
	if wait > 0 {
		path += "?wait=" + url.QueryEscape(wait.String())
	}
	return ask[RunView](ctx, c, request{method: http.MethodGet, path: path, wait: wait})
}

// QueueFilter narrows the queue; empty fields do not.
type QueueFilter struct {
	Account, Agent, Tool, RunID, BusinessKey, State string

	Cursor string // NextCursor of the page before
	Limit  int    // 1 to 200; 50 when 0
}

// Queue reads one page of what waits for a decision.
func (c *Client) Queue(ctx context.Context, f QueueFilter) (QueuePage, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"account": f.Account, "agent": f.Agent, "tool": f.Tool, "run_id": f.RunID,
		"business_key": f.BusinessKey, "state": f.State, "cursor": f.Cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return ask[QueuePage](ctx, c, request{method: http.MethodGet, path: "/v1/queue?" + q.Encode()})
}

// Observed reports what enforcing would have done with the calls of observed tools, of
// one tool or ("") of all, since a time or (zero) ever.
func (c *Client) Observed(ctx context.Context, tool string, since time.Time) (ObserveReport, error) {
	q := url.Values{}
	if tool != "" {
		q.Set("tool", tool)
	}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	return ask[ObserveReport](ctx, c, request{method: http.MethodGet, path: "/v1/observe?" + q.Encode()})
}

// Decide records a verdict. A DecisionID is made when there is none; give one to be
// able to repeat the decision.
func (c *Client) Decide(ctx context.Context, effectID string, in DecisionRequest) (DecisionAnswer, error) {
	if in.DecisionID == "" {
		in.DecisionID = newID()
	}
	in.EffectID = ""
	return ask[DecisionAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/effects/" + escape(effectID) + "/decision", in: in})
}

// DecideAll records several verdicts, each on the effect it names.
func (c *Client) DecideAll(ctx context.Context, list ...DecisionRequest) ([]DecisionResult, error) {
	out, err := ask[DecisionAnswers](ctx, c, request{method: http.MethodPost, path: "/v1/decisions", in: Decisions{Decisions: list}})
	return out.Answers, err
}

// AddEvidence records what a person saw. It decides nothing.
func (c *Client) AddEvidence(ctx context.Context, effectID string, in EvidenceRequest) (EffectChanged, error) {
	return ask[EffectChanged](ctx, c, request{method: http.MethodPost, path: "/v1/effects/" + escape(effectID) + "/evidence", in: in})
}

// LookUp asks the downstream now.
func (c *Client) LookUp(ctx context.Context, effectID string) (EffectChanged, error) {
	return ask[EffectChanged](ctx, c, request{method: http.MethodPost, path: "/v1/effects/" + escape(effectID) + "/lookup", in: struct{}{}})
}

// Undo takes back a decision that is not used yet.
func (c *Client) Undo(ctx context.Context, effectID string, in UndoRequest) (EffectChanged, error) {
	return ask[EffectChanged](ctx, c, request{method: http.MethodPost, path: "/v1/effects/" + escape(effectID) + "/undo", in: in})
}

// ClaimLookups takes questions of a pool; none where nothing is due within the wait.
func (c *Client) ClaimLookups(ctx context.Context, in ClaimLookups) ([]LookupQuestion, error) {
	wait, _ := time.ParseDuration(in.Wait) // the server says what is wrong with it
	out, err := ask[LookupQuestions](ctx, c, request{method: http.MethodPost, path: "/v1/lookups/claim", in: in, wait: wait})
	return out.Questions, err
}

// AnswerLookup says what was seen for a question.
func (c *Client) AnswerLookup(ctx context.Context, lookupID string, in LookupAnswer) (LookupVerdict, error) {
	return ask[LookupVerdict](ctx, c, request{method: http.MethodPost, path: "/v1/lookups/" + escape(lookupID) + "/answer", in: in})
}

// ClaimPayment takes a payment id, or says what became of it.
func (c *Client) ClaimPayment(ctx context.Context, in PaymentRequest) (PaymentAnswer, error) {
	return ask[PaymentAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/payments", in: in})
}

// OrderPayment creates the order of a payment.
func (c *Client) OrderPayment(ctx context.Context, paymentID string, in PaymentOrder) (Order, error) {
	return ask[Order](ctx, c, request{method: http.MethodPost, path: "/v1/payments/" + escape(paymentID) + "/order", in: in})
}

// WorkPayment records what is paid for before it is done.
func (c *Client) WorkPayment(ctx context.Context, paymentID string, in PaymentWork) (BeginAnswer, error) {
	return ask[BeginAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/payments/" + escape(paymentID) + "/work", in: in})
}

// BroadcastPayment records a payment before it is sent to its rail.
func (c *Client) BroadcastPayment(ctx context.Context, paymentID string, in PaymentBroadcast) (Payment, error) {
	return ask[Payment](ctx, c, request{method: http.MethodPost, path: "/v1/payments/" + escape(paymentID) + "/broadcast", in: in})
}

// FinishPayment records what became of a payment, and freezes its answer.
func (c *Client) FinishPayment(ctx context.Context, paymentID string, in PaymentFinish) (Payment, error) {
	return ask[Payment](ctx, c, request{method: http.MethodPost, path: "/v1/payments/" + escape(paymentID) + "/finish", in: in})
}

// CancelPayment ends the order of a payment, while nothing that was sent for it may land.
func (c *Client) CancelPayment(ctx context.Context, paymentID string, in PaymentCancel) (Order, error) {
	return ask[Order](ctx, c, request{method: http.MethodPost, path: "/v1/payments/" + escape(paymentID) + "/cancel", in: in})
}

// Payment reads a payment of a gateway.
func (c *Client) Payment(ctx context.Context, gateway, paymentID string) (Payment, error) {
	return ask[Payment](ctx, c, request{method: http.MethodGet, path: "/v1/payments/" + escape(paymentID) + "?gateway=" + url.QueryEscape(gateway)})
}

// Order reads an order, its transfers and what is owed back.
func (c *Client) Order(ctx context.Context, orderID string) (Order, error) {
	return ask[Order](ctx, c, request{method: http.MethodGet, path: "/v1/orders/" + escape(orderID)})
}

// PostTransfer tells of one movement on a rail.
func (c *Client) PostTransfer(ctx context.Context, in Transfer) (TransferAnswer, error) {
	return ask[TransferAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/transfers", in: in})
}

// AskRead asks whether a read was paid for already.
func (c *Client) AskRead(ctx context.Context, in ReadRequest) (ReadAnswer, error) {
	return ask[ReadAnswer](ctx, c, request{method: http.MethodPost, path: "/v1/reads", in: in})
}

// FinishRead stores the answer of a paid read.
func (c *Client) FinishRead(ctx context.Context, readID string, in FinishRead) error {
	_, err := ask[struct{}](ctx, c, request{method: http.MethodPost, path: "/v1/reads/" + escape(readID) + "/finish", in: in})
	return err
}
