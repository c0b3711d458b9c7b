package payments

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/reconcile/effects"
)

// Step names a payment and the fence that its claim gave.
type Step struct {
	payments.Name
	Fence int64
}

// mine lets only the holder of the fence act, while the payment is open and its order is
// not over without being paid. What a late writer brought is kept as evidence.
func (p *Payment) mine(ctx context.Context, tx *ledger.Tx, s Step, what string, brought any) (refusal, err error) {
	r := p.refusal(CodeStaleFence, "Another try holds the payment now, or it is over. What was sent is kept as evidence.")
	r.Fence = p.Fence
	open := p.State == string(InFlight) || p.State == string(Unknown)
	switch {
	case s.Fence != p.Fence || !open:
	case p.Order != nil && standing(p.Order.State) == Unpaid:
		r.Code, r.Detail = CodeOrderFinal, "The order is over and was not paid: nothing may be done for it. What was sent is kept as evidence."
	default:
		return nil, nil
	}
	err = payments.RecordOnce(ctx, tx, payments.Event{Payment: p.ID, Kind: "late_" + what}, map[string]any{"fence": s.Fence, "held": p.Fence, "state": p.State, "brought": brought}, lateLimit)
	return r, err
}

// lateLimit is how many different things one payment is told of a kind: a gateway that never
// stops fills no table.
const lateLimit = 1000

// refusal is an answer about the payment as it stands.
func (p *Payment) refusal(code Code, detail string) *Refusal {
	return &Refusal{Code: code, Detail: detail, PaymentID: p.PaymentID, OrderID: p.OrderID, State: p.State}
}

// NewOrder is what a gateway says of an order.
type NewOrder struct {
	Step
	Memo        string
	Description string
	ExpiresIn   time.Duration // 0: the gateway's payment time-out
}

// mostExpiry keeps an order that nobody pays from standing for ever.
const mostExpiry = 90 * 24 * time.Hour

// Order creates the order of a payment, once; again it is the same.
func (e *Engine) Order(ctx context.Context, in NewOrder) (p *Payment, err error) {
	var f faults
	if in.Memo != "" {
		f.text("/memo", in.Memo, 128)
	}
	if len(in.Description) > 4096 {
		f.add("/description", "has more than 4096 bytes")
	}
	if in.ExpiresIn < 0 || in.ExpiresIn > mostExpiry {
		f.add("/expires_in", "must be 1 second to 90 days")
	}
	if err := f.refuse(); err != nil {
		return nil, err
	}
	err = e.locked(ctx, in.Name, func(ctx context.Context, tx *ledger.Tx, stored *Payment) (refusal, err error) {
		p = stored
		if refusal, err := p.mine(ctx, tx, in.Step, "order", nil); refusal != nil || err != nil {
			return refusal, err
		}
		memo := same(p.Network, in.Memo)
		if p.Order != nil {
			if p.Order.Memo != memo || p.Order.Description != in.Description {
				return p.refusal(CodeConflict, "The order exists with another memo or description."), nil
			}
			return nil, nil
		}
		if memo != "" {
			taken, err := payments.OrderByMemo(ctx, tx, p.Network, p.PayTo, memo)
			if err != nil {
				return nil, err
			}
			if taken != nil {
				return invalid("/memo", "names another order already"), nil
			}
		}
		wait := in.ExpiresIn
		if wait == 0 {
			wait = e.policy().Gateway(p.Gateway).PaymentTimeout
		}
		return nil, e.open(ctx, tx, p, "created", memo, in.Description, wait)
	})
	return p, err
}

// open creates the order of a payment in a state. wait 0 never expires.
func (e *Engine) open(ctx context.Context, tx *ledger.Tx, p *Payment, state, memo, description string, wait time.Duration) error {
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(e.receiptToken(p.OrderID, 1)))
	o := payments.Order{
		ID: p.OrderID, Payment: p.ID, Account: p.Account, Gateway: p.Gateway, Payer: p.Payer, Network: p.Network, Asset: p.Asset, Amount: p.Amount,
		PayTo: p.PayTo, Memo: memo, Description: description, State: state, CreatedAt: now, ReceiptHash: hash[:], Receipt: 1,
	}
	if wait > 0 {
		o.ExpiresAt = ledger.At(now.Add(wait))
	}
	if err := payments.AddOrder(ctx, tx, o); err != nil {
		return err
	}
	p.Order = &o
	return payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "order_" + state}, map[string]any{"order_id": o.ID, "expires_at": o.ExpiresAt})
}

// Sending is a payment about to be sent to its rail.
type Sending struct {
	Step
	Nonce, Hash string
}

// Broadcast records a payment before it is sent. Where that follows the work, it means
// that the work was done.
func (e *Engine) Broadcast(ctx context.Context, in Sending) (p *Payment, err error) {
	if len(in.Hash) > 256 || len(in.Nonce) > 128 {
		return nil, invalid("/hash", "a hash has at most 256 bytes, a nonce 128")
	}
	if before, err := e.find(ctx, in.Name); err == nil && before.Fence == in.Fence && !e.policy().Gateway(in.Gateway).MoneyFirst {
		if err := e.finishWork(ctx, before, "taken"); err != nil {
			return nil, err
		}
	}
	err = e.locked(ctx, in.Name, func(ctx context.Context, tx *ledger.Tx, stored *Payment) (refusal, err error) {
		p = stored
		if refusal, err := p.mine(ctx, tx, in.Step, "broadcast", map[string]string{"hash": in.Hash}); refusal != nil || err != nil {
			return refusal, err
		}
		if p.PaidFirst {
			return p.refusal(CodeOrderFinal, "The order is paid: nothing more is sent for it."), nil
		}
		nonce := same(p.Network, in.Nonce)
		if last := p.takenUp(); nonce != "" && (last == nil || last.Nonce != nonce) {
			return invalid("/nonce", "is not the authorization that the claim was told to go on with"), nil
		}
		if err := payments.Broadcast(ctx, tx, p.ID, in.Fence, same(p.Network, in.Hash)); err != nil {
			return nil, err
		}
		if err := payments.RecordOnce(ctx, tx, payments.Event{Payment: p.ID, Kind: "broadcast"}, map[string]any{"fence": in.Fence, "nonce": nonce, "hash": in.Hash}, lateLimit); err != nil {
			return nil, err
		}
		if p.Order != nil && p.Order.State == "created" {
			if err := payments.MoveOrder(ctx, tx, p.Order.ID, "created", "paying"); err != nil {
				return nil, err
			}
		}
		// If nobody comes back from the sending, the rail is asked.
		if err := payments.CheckAfter(ctx, tx, p.ID, HealAfter, true); err != nil {
			return nil, err
		}
		return nil, p.reload(ctx, tx)
	})
	return p, err
}

// NewWork is what a payment pays for, before it is done. Without a tool it is the request
// of the claim.
type NewWork struct {
	Step
	Tool      string
	Arguments []byte
}

// Work records the work before it is done, as an effect of the payment's run. It answers as
// a begin does; an answer that is a refusal of [effects.Engine] is one of those.
func (e *Engine) Work(ctx context.Context, in NewWork) (*effects.BeginAnswer, error) {
	var p *Payment
	err := e.locked(ctx, in.Name, func(ctx context.Context, tx *ledger.Tx, stored *Payment) (refusal, err error) {
		p = stored
		if refusal, err := p.mine(ctx, tx, in.Step, "work", nil); refusal != nil || err != nil {
			return refusal, err
		}
		if p.State != string(InFlight) {
			return p.refusal(CodeInFlight, "Nobody knows what became of the payment: no work is begun for it."), nil
		}
		if p.Work == nil && (p.WorkDone || p.sentAfterWork(e.policy().Gateway(p.Gateway))) {
			r := p.refusal(CodeConflict, "The payment was sent, which here follows the work: it was done, and is not done again.")
			r.Reason = ReasonRequest
			return r, nil
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	tool, args := in.Tool, in.Arguments
	if tool == "" {
		tool, args = p.Tool, []byte(p.Arguments)
	}
	switch {
	case tool == "":
		return nil, invalid("/tool", "is required: the claim had only a digest of the request")
	case len(args) == 0:
		args = []byte("{}")
	}
	if e.policy().Tool(tool).BusinessKeyTemplate() == "" {
		args = ofPayment(args, p.PaymentID)
	}
	lease, err := e.run(ctx, p)
	if err != nil {
		return nil, err
	}
	answers, err := e.effects.Apply(ctx, []effects.Op{{Begin: &effects.Begin{
		Account: p.Account, RunID: lease.RunID, Lease: lease.Token, AttemptID: attempt(p), Tool: tool, Arguments: args, Key: "work",
	}}})
	if err != nil {
		return nil, err
	}
	if r := answers[0].Refusal; r != nil {
		return nil, r
	}
	return answers[0].Begin, nil
}

// ofPayment names the payment in the arguments of its work. Two purchases of the same thing
// are two: without it the second would be taken for a repeat of the first, and held while
// that is open. A tool with a business key says itself what a repeat is.
func ofPayment(args []byte, paymentID string) []byte {
	name := "payment_id"
	for bytes.Contains(args, []byte(`"`+name+`"`)) {
		name = "_" + name
	}
	rest := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(args, " \t\r\n"), []byte("{")), " \t\r\n")
	out := []byte(`{"` + name + `":"` + paymentID + `"`) // an id's characters need no escape
	if len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// attempt names the try of the gateway that holds the payment.
func attempt(p *Payment) string {
	n, _ := json.Marshal(p.Fence)
	return "fence-" + string(n)
}

// run takes the lease of the payment's run. It holds as long as nobody can take the
// payment over.
func (e *Engine) run(ctx context.Context, p *Payment) (effects.Lease, error) {
	left := HealAfter - p.Now.Sub(p.ClaimedAt)
	return e.effects.Open(ctx, effects.Open{
		Account: p.Account, RunID: RunName(p.Gateway, p.PaymentID), Agent: RunPrefix + p.Gateway, Worker: "gateway " + p.Gateway,
		AttemptID: attempt(p), Lease: max(2*time.Second, left).Truncate(time.Second),
	})
}

// finishWork records what became of the work, where its outcome is still open: also of one
// that was not heard of in time, so that nobody is asked about it.
func (e *Engine) finishWork(ctx context.Context, p *Payment, outcome string) error {
	if p.Work == nil || p.Work.State != "in_flight" && p.Work.State != "interrupted" {
		return nil
	}
	answers, err := e.effects.Apply(ctx, []effects.Op{{Finish: &effects.Finish{
		Account: p.Account, EffectID: p.Work.EffectID, Fence: p.Work.Fence, Outcome: outcome,
	}}})
	if err != nil {
		return err
	}
	if r := answers[0].Refusal; r != nil && r.Code != effects.CodeStaleFence {
		return r
	}
	return nil
}

// closeRun ends the payment's run, where it has one: nothing more happens in it. A run in
// which something is still open stays.
func (e *Engine) closeRun(ctx context.Context, p *Payment) {
	if p.Work == nil {
		return
	}
	lease, err := e.run(ctx, p)
	if err == nil {
		_, err = e.effects.Close(ctx, p.Account, lease.RunID, lease.Token, "finished", "")
	}
	if err != nil {
		e.log.Debug("the run of a payment stays open", "run", RunName(p.Gateway, p.PaymentID), "error", err)
	}
}

// find reads a payment and what hangs on it.
func (e *Engine) find(ctx context.Context, n payments.Name) (*Payment, error) {
	row, err := payments.ByName(ctx, e.db, n)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, errNotFound
	}
	return load(ctx, e.db, row)
}

func digest(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}
