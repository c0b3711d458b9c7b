package payments

import (
	"bytes"
	"context"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
)

// checks are when the rail is asked after a settle that failed or gave no answer. After
// that the periodic reconcile asks: it stays unknown, and never becomes failed by time.
var checks = []time.Duration{15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute}

// Finish is what a gateway says became of a payment.
type Finish struct {
	Step
	Outcome  string // "settled", "refused", "unknown"
	Tx, Why  string
	Response *Response
}

func (in *Finish) check() error {
	var f faults
	if len(in.Tx) > 256 {
		f.add("/tx", "has more than 256 bytes")
	}
	if len(in.Why) > 1024 {
		f.add("/why", "has more than 1024 bytes")
	}
	if in.Response != nil && in.Outcome == "unknown" {
		f.add("/response", "must be absent: nobody knows yet what the payer is to be answered")
	}
	in.Response.check(&f)
	return f.refuse()
}

// Finish records what became of a payment and freezes its answer. A gateway's "refused" of
// a payment that was sent, and may still land, proves nothing: it becomes unknown.
func (e *Engine) Finish(ctx context.Context, in Finish) (p *Payment, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	answer, err := frozen(in.Response)
	if err != nil {
		return nil, err
	}
	if before, err := e.find(ctx, in.Name); err == nil && before.Fence == in.Fence {
		switch done := before.sentAfterWork(e.policy().Gateway(in.Gateway)); {
		case in.Outcome == "settled", done && in.Outcome == "refused": // what was refused then is the money
			err = e.finishWork(ctx, before, "taken")
		case in.Outcome == "refused":
			err = e.finishWork(ctx, before, "failed")
		}
		if err != nil {
			return nil, err
		}
	}
	err = e.locked(ctx, in.Name, func(ctx context.Context, tx *ledger.Tx, stored *Payment) (refusal, err error) {
		p = stored
		if refusal, err = e.finish(ctx, tx, p, in, answer); refusal != nil || err != nil {
			return refusal, err
		}
		return nil, p.reload(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	if in.Outcome != "unknown" {
		e.closeRun(ctx, p)
	}
	return p, nil
}

func (e *Engine) finish(ctx context.Context, tx *ledger.Tx, p *Payment, in Finish, answer payments.Answer) (refusal, err error) {
	tx_ := same(p.Network, in.Tx)
	if in.Fence == p.Fence && p.State == in.Outcome { // again, or the answer of what was healed
		switch {
		case answer.Digest == nil, bytes.Equal(answer.Digest, p.Digest) && answer.Status == p.Status:
			return nil, nil
		case p.State == string(Settled) && p.Digest == nil:
			if err := payments.Fill(ctx, tx, p.ID, tx_, answer); err != nil {
				return nil, err
			}
			return nil, payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "answered"}, map[string]any{"status": answer.Status, "digest": answer.Digest})
		}
	}
	brought := map[string]any{"outcome": in.Outcome, "tx": in.Tx, "why": in.Why}
	if in.Response != nil {
		brought["status"], brought["digest"] = in.Response.Status, digest(in.Response.Body)
	}
	if in.Outcome == "settled" || in.Fence != p.Fence || p.State != string(InFlight) && p.State != string(Unknown) {
		if refusal, err := p.mine(ctx, tx, in.Step, "finish", brought); refusal != nil || err != nil {
			return refusal, err
		}
	}
	kind := in.Outcome
	switch in.Outcome {
	case "settled":
		if p.Order == nil {
			if err := e.open(ctx, tx, p, "created", "", "", 0); err != nil {
				return nil, err
			}
		}
		if err := payments.End(ctx, tx, p.ID, kind, tx_, in.Why, false, answer); err != nil {
			return nil, err
		}
		// Its transfer is expected: if nobody posts it, the rail is asked.
		if standing(p.Order.State) != Paid {
			err = payments.CheckAfter(ctx, tx, p.ID, checks[0], true)
		}
	case "refused":
		if p.mayLand() {
			kind = "unknown"
			brought["outcome"] = "refused, and it may still land"
			err = e.leave(ctx, tx, p, tx_, in.Why)
			break
		}
		if err := payments.End(ctx, tx, p.ID, kind, tx_, in.Why, false, answer); err != nil {
			return nil, err
		}
		err = e.fail(ctx, tx, p, "failed")
	default:
		err = e.leave(ctx, tx, p, tx_, in.Why)
	}
	if err != nil {
		return nil, err
	}
	brought["fence"] = in.Fence
	if p.State == string(Unknown) && kind == string(Unknown) { // nothing changed
		return nil, payments.RecordOnce(ctx, tx, payments.Event{Payment: p.ID, Kind: kind}, brought, lateLimit)
	}
	return nil, payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: kind}, brought)
}

// leave makes a payment unknown, and the rail be asked soon.
func (e *Engine) leave(ctx context.Context, tx *ledger.Tx, p *Payment, hash, why string) error {
	if err := payments.Unknown(ctx, tx, p.ID, hash, why); err != nil {
		return err
	}
	return payments.CheckAfter(ctx, tx, p.ID, checks[0], true)
}

// mayLand tells that money may still arrive for what was sent.
func (p *Payment) mayLand() bool {
	if p.BroadcastAt.IsZero() || p.Order != nil && standing(p.Order.State) == Paid {
		return false
	}
	for i := range p.Authorizations {
		if a := &p.Authorizations[i]; !a.TakenUpAt.IsZero() && !p.closed(a) {
			return true
		}
	}
	return len(p.Authorizations) == 0
}
