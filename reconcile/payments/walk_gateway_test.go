package payments_test

import (
	"quittance/reconcile/payments"
)

// act lets a gateway's try take its next step. doubt: what it is told by others is not
// clear, or goes wrong.
func (k *walk) act(p *process, doubt bool) {
	ctx := k.t.Context()
	var sig *signature
	if p.auth >= 0 {
		sig = k.sigs[p.auth]
	}
	next := func(to string, err error) {
		if _, refused := asRefusal(err); err != nil && !refused && k.asEffect(err) == "" {
			k.wrong("gateway (%s): %v", p.at, err)
		}
		k.tell("gateway of %s, fence %d, %s: %s", p.id[len(p.id)-1:], p.fence, p.at, word(err))
		if err != nil || to == "" {
			k.gone(p)
			return
		}
		p.at = to
	}
	moneyFirst := k.gateway == "bank"
	switch p.at {
	case "claimed":
		switch {
		case p.paid:
			next("verified", nil)
		case sig == nil: // nothing to settle with: it can only give up
			next("", nil)
		case sig.dead:
			_, err := k.finished(p, "refused", 402)
			next("", err)
			if x := k.known(p.id); err == nil && x.State == "refused" {
				k.told402(p.id, k.owner[p.id], "verify failed")
			}
		case sig.sent || sig.mined:
			_, err := k.finished(p, "unknown", 0)
			next("", err)
		default:
			next("verified", nil)
		}
	case "verified":
		_, err := k.Order(ctx, payments.NewOrder{Step: k.stepOf(p)})
		switch {
		case moneyFirst && p.paid:
			next("told", err)
		case moneyFirst, p.done:
			next("worked", err) // which comes before the money at the other one
		default:
			next("told", err)
		}
	case "told": // the work comes next
		if p.done {
			_, err := k.finished(p, "settled", 200)
			next("", err)
			return
		}
		begun, err := k.Work(ctx, payments.NewWork{Step: k.stepOf(p)})
		switch {
		case err != nil:
			next("", err)
		case begun.Do == "replay" && begun.Outcome == "failed":
			_, err := k.finished(p, "refused", 500)
			next("", err)
		case begun.Do == "replay":
			p.done = true
			k.afterWork(p, moneyFirst, next)
		default:
			p.begun = begun
			next("working", nil)
		}
	case "working":
		var open bool
		k.get(&open, `SELECT state = 'in_flight' AND fence = $2 FROM effects WHERE id = $1::uuid`, p.begun.EffectID, p.begun.Fence)
		switch {
		case !open: // its time is over: it does nothing any more
			next("", nil)
		case doubt:
			_, err := k.finished(p, "refused", 500)
			next("", err)
		default:
			k.performed[p.id]++
			p.done = true
			k.afterWork(p, moneyFirst, next)
		}
	case "worked": // the money comes next
		_, err := k.Broadcast(ctx, payments.Sending{Step: k.stepOf(p), Nonce: nonce(sig.n)})
		next("broadcast", err)
	case "broadcast":
		sig.sent = sig.sent || !sig.dead
		next("sent", nil)
	case "sent":
		if sig.mined && !doubt {
			next("paid", nil)
			return
		}
		// Some take success:false for a refusal, and would tell their payer to sign again.
		outcome := []string{"unknown", "refused"}[k.r.IntN(2)]
		_, err := k.finished(p, outcome, map[string]int{"refused": 402}[outcome])
		if x := k.known(p.id); err == nil && x.State == "refused" {
			k.told402(p.id, k.owner[p.id], "success:false")
		}
		next("", err)
	case "paid":
		if sig.mined && !doubt {
			k.reconcile(p.auth)
		}
		if moneyFirst {
			next("told", nil)
			return
		}
		next("answer", nil)
	case "answer":
		_, err := k.finished(p, "settled", 200)
		next("", err)
	}
}

// afterWork is where a try goes on once the work is done.
func (k *walk) afterWork(p *process, moneyFirst bool, next func(string, error)) {
	if moneyFirst || p.paid {
		next("answer", nil)
		return
	}
	next("worked", nil)
}

func (k *walk) finished(p *process, outcome string, status int) (*payments.Payment, error) {
	f := payments.Finish{Step: k.stepOf(p), Outcome: outcome}
	if status != 0 {
		f.Response = &payments.Response{Status: status, Headers: map[string]string{"X-Of": p.id}, Body: []byte(outcome)}
	}
	return k.Finish(k.t.Context(), f)
}

func word(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}
