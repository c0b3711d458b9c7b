package refunds

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
)

// Start reserves an amount for a person who is about to send it: nobody else may from then
// on. "" is all that is approved.
func (e *Engine) Start(ctx context.Context, a Act, amount string) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error { return e.reserve(ctx, h, amount) })
}

// reserve is the one guarded change that lets an amount leave.
func (e *Engine) reserve(ctx context.Context, h *held, amount string) error {
	rest := h.f.Approved.Minus(h.f.Paid).Minus(h.f.Reserved)
	x, err := e.Amount(&h.f, amount, rest)
	if err != nil {
		return err
	}
	if Live(h.f.State) || h.f.State == Approved && x.Cmp(rest) > 0 {
		r := refusal(CodeTooMuch, "")
		left := money.Of(rest, e.asset(&h.f).Asset)
		r.Rest = &left
		r.Detail = "Something of it is being paid already; " + left.Display() + " remain beside that. One payment at a time."
		if !Live(h.f.State) {
			r.Detail = "That is more than is owed: " + left.Display() + " remain."
		}
		return r
	}
	if err := e.payable(&h.f, x); err != nil {
		return err
	}
	if h.f.State == Approved && h.f.ApprovedBy == h.person() {
		return refusal(CodeOwn, ownText)
	}
	if h.f.WriteOff.Sign() > 0 {
		return refusal(CodeNotNow, "Somebody asked to write it off. That has to be settled first.")
	}
	approver := h.f.ApprovedBy
	p := store.Payout{
		ID: uuid.Must(uuid.NewV7()).String(), Refund: h.f.ID, Network: h.f.Network, Asset: h.f.Asset, Recipient: h.f.To(), Amount: x,
		MadeBy: h.person(), ApprovedBy: approver,
	}
	if err := h.step(ctx, Reserve, x, "refund_sending", map[string]any{"payout": p.ID, "payout_amount": x.String(), "to": p.Recipient}, nil); err != nil {
		return err
	}
	return told(store.Start(ctx, h.tx, p))
}

// Reference is how a payment that a person sent is known on its network.
type Reference struct {
	Tx     string
	Amount string // where nothing was started before: what was sent; "" is all that is approved
}

// Send records that a person sent it, by its reference on the network. Where the network
// can be asked it is, before anything is recorded: a reference of another payment is
// refused at once. It counts as paid when it is seen to have arrived.
func (e *Engine) Send(ctx context.Context, a Act, ref Reference) error {
	before, err := payments.RefundByID(ctx, e.db, orNone(a.Refund))
	if err != nil {
		return err
	}
	if before == nil {
		return errNotFound
	}
	tx := same(before.Network, strings.TrimSpace(ref.Tx))
	switch {
	case tx == "":
		return refusal(CodeInvalid, "The reference is needed by which the network knows the payment.")
	case len(tx) > 256:
		return refusal(CodeInvalid, "A reference has at most 256 bytes.")
	case evm(before.Network) && !hash32.MatchString(tx):
		return refusal(CodeInvalid, "That is no transaction's hash: 0x and 64 hex digits.")
	}
	if err := e.fits(ctx, before, tx, ref.Amount); err != nil {
		return err
	}
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		p, err := live(ctx, h)
		if err != nil {
			return err
		}
		// What somebody is sending, they record; of a doubt anybody may bring the reference.
		if p == nil || p.State != "unknown" && (p.State != "sending" || p.MadeBy != h.person()) {
			if err := e.reserve(ctx, h, ref.Amount); err != nil {
				return err
			}
			if p, err = live(ctx, h); err != nil {
				return err
			}
		} else if x, err := e.Amount(&h.f, ref.Amount, p.Amount); err != nil || x.Cmp(p.Amount) != 0 {
			return refusal(CodeInvalid, "Another amount is reserved for what is being sent: "+money.Of(p.Amount, e.asset(&h.f).Asset).Display()+".")
		}
		if h.f.ApprovedBy == h.person() {
			return refusal(CodeOwn, ownText)
		}
		now, err := h.tx.Now(ctx)
		if err != nil {
			return err
		}
		was := p.State
		p.State, p.Tx, p.SentAt, p.CheckAt, p.CheckStep = "sent", tx, ledger.At(now), ledger.At(now), 0
		if err := told(store.Move(ctx, h.tx, was, *p)); err != nil {
			return err
		}
		return h.step(ctx, Send, nothing, "refund_sent", map[string]any{"payout": p.ID, "tx": tx}, nil)
	})
}

// fits asks the network whether a reference may be the payment that is to be recorded.
func (e *Engine) fits(ctx context.Context, f *payments.Refund, tx, amount string) error {
	network := e.networks(f.Network)
	if network == nil {
		return nil
	}
	x, err := e.Amount(f, amount, f.Approved.Minus(f.Paid).Minus(f.Reserved))
	if err != nil {
		return err
	}
	if f.Reserved.Sign() > 0 {
		x = f.Reserved
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s := network.Outgoing(asking, Question{Asset: f.Asset, Recipient: f.To(), Tx: tx, Amount: x, Since: f.OpenedAt})
	switch s.Seen {
	case Elsewhere:
		return refusal(CodeInvalid, "That transaction is another payment: "+s.Said)
	case Failed:
		return refusal(CodeInvalid, "That transaction failed and moved nothing: "+s.Said)
	}
	return nil
}

// Doubt records that nobody knows whether what was being sent went out. What is reserved
// stays reserved.
func (e *Engine) Doubt(ctx context.Context, a Act) error {
	return e.onAttempt(ctx, a, func(ctx context.Context, h *held, p *store.Payout) error {
		if p == nil || p.State != "sending" {
			return refusal(CodeNotNow, "Nothing is being sent.")
		}
		p.State, p.Said = "unknown", a.Note
		if err := store.Move(ctx, h.tx, "sending", *p); err != nil {
			return err
		}
		return h.step(ctx, Doubt, nothing, "refund_unknown", map[string]any{"payout": p.ID}, nil)
	})
}

// GiveUp records that an attempt did not go out: whoever started it may say so while no
// reference is known and nobody doubts it. Everything else takes another person, who looked.
func (e *Engine) GiveUp(ctx context.Context, a Act) error {
	return e.onAttempt(ctx, a, func(ctx context.Context, h *held, p *store.Payout) error {
		switch {
		case p == nil:
			return refusal(CodeNotNow, "Nothing is being paid.")
		case p.State == "sending" && p.MadeBy != h.person():
			return refusal(CodeOwn, "Only "+p.Maker+", who is sending it, knows that. If they cannot be asked, record that nobody knows.")
		case p.State != "sending" && p.MadeBy == h.person():
			return refusal(CodeOwn, "Another person has to look, and to say that it did not arrive.")
		}
		return e.fail(ctx, h, p, a.Note, 0)
	})
}

// fail ends an attempt that did not arrive. Its reference is looked for for a while.
func (e *Engine) fail(ctx context.Context, h *held, p *store.Payout, said string, block int64) error {
	now, err := h.tx.Now(ctx)
	if err != nil {
		return err
	}
	was := p.State
	p.State, p.EndedAt, p.EndedBy, p.Said, p.Block = "failed", ledger.At(now), h.person(), said, block
	p.CheckAt = ledger.Time{}
	if p.Tx != "" && block == 0 { // a person's word, not the network's
		p.CheckAt = ledger.At(now.Add(lookGivenUp))
	}
	if err := store.Move(ctx, h.tx, was, *p); err != nil {
		return err
	}
	return h.step(ctx, Fail, nothing, "refund_not_sent", map[string]any{"payout": p.ID, "said": said, "block": block}, nil)
}

// Saw records what a person saw of a payment on a network that cannot be asked from here.
func (e *Engine) Saw(ctx context.Context, a Act) error {
	return e.onAttempt(ctx, a, func(ctx context.Context, h *held, p *store.Payout) error {
		switch {
		case !e.Blind(h.f.Network):
			return refusal(CodeNotNow, "The network is asked itself: it counts as paid when it shows the payment in a final block.")
		case p == nil || p.State != "sent":
			return refusal(CodeNotNow, "Nothing was sent.")
		case p.MadeBy == h.person():
			return refusal(CodeOwn, "Another person than the one who sent it has to see it arrive.")
		}
		return e.arrived(ctx, h, p, a.Note, 0)
	})
}

// arrived ends an attempt that was seen to arrive.
func (e *Engine) arrived(ctx context.Context, h *held, p *store.Payout, said string, block int64) error {
	now, err := h.tx.Now(ctx)
	if err != nil {
		return err
	}
	was := p.State
	p.State, p.EndedAt, p.EndedBy, p.Said, p.Block, p.CheckAt = "confirmed", ledger.At(now), h.person(), said, block, ledger.Time{}
	if err := store.Move(ctx, h.tx, was, *p); err != nil {
		return told(err)
	}
	return h.step(ctx, Arrive, nothing, "refund_confirmed", map[string]any{"payout": p.ID, "said": said, "block": block}, nil)
}

// Back is a payment that came back.
type Back struct {
	Payout string
	Amount string // "" is all of it
	Tx     string // how the network knows the return
}

// CameBack records that money that had arrived came back: it is owed again. Money that came
// in on its rail is on record already, and is given back from there.
func (e *Engine) CameBack(ctx context.Context, a Act, back Back) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		p, err := store.PayoutByID(ctx, h.tx, orNone(back.Payout))
		if err != nil {
			return err
		}
		tx := same(h.f.Network, strings.TrimSpace(back.Tx))
		switch {
		case p == nil || p.Refund != h.f.ID:
			return errNotFound
		case p.State == "returned" && tx == p.ReturnedTx:
			return nil // told again
		case p.State != "confirmed":
			return refusal(CodeNotNow, "Only what had arrived can come back.")
		case p.MadeBy == h.person():
			return refusal(CodeOwn, "Another person than the one who sent it has to see it come back.")
		case tx == "":
			return refusal(CodeInvalid, "The reference of the return is needed.")
		case len(tx) > 256 || tx == p.Tx:
			return refusal(CodeInvalid, "That is not the reference of a return.")
		}
		x, err := e.Amount(&h.f, back.Amount, p.Amount)
		if err != nil {
			return err
		}
		if x.Sign() <= 0 || x.Cmp(p.Amount) > 0 {
			return refusal(CodeTooMuch, "No more can come back than was paid.")
		}
		now, err := h.tx.Now(ctx)
		if err != nil {
			return err
		}
		p.State, p.Returned, p.ReturnedTx, p.ReturnedAt, p.EndedBy = "returned", x, tx, ledger.At(now), h.person()
		if err := told(store.Move(ctx, h.tx, "confirmed", *p)); err != nil {
			return err
		}
		return h.step(ctx, ComeBack, x, "refund_returned", map[string]any{"payout": p.ID, "returned": x.String(), "tx": tx}, nil)
	})
}

// onAttempt runs f with the attempt that is not over, nil where there is none; a note is
// needed.
func (e *Engine) onAttempt(ctx context.Context, a Act, f func(ctx context.Context, h *held, p *store.Payout) error) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		p, err := live(ctx, h)
		if err != nil {
			return err
		}
		return f(ctx, h, p)
	})
}

// live is the attempt of a refund that is not over; nil where there is none.
func live(ctx context.Context, h *held) (*store.Payout, error) {
	list, err := store.Payouts(ctx, h.tx, h.f.ID)
	if err != nil {
		return nil, err
	}
	for i := range list {
		switch list[i].State {
		case "sending", "sent", "unknown":
			return &list[i], nil
		}
	}
	return nil, nil
}

func orNone(id string) string {
	if _, err := uuid.Parse(id); err != nil {
		return uuid.Nil.String()
	}
	return id
}
