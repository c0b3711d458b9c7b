package refunds

import (
	"context"
	"strings"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
)

var nothing money.Atomic

// Approve lets all that is still owed be sent. Somebody else sends it; whoever opened it or
// said where it goes does not approve it.
func (e *Engine) Approve(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		switch {
		case h.f.OpenedBy == h.person() || h.f.DestinationBy == h.person():
			return refusal(CodeOwn, ownText)
		case !h.t.Final || h.t.Reverted():
			return refusal(CodeNotNow, "Its transfer is not final yet: a reorganisation could still take it back.")
		case e.asset(&h.f) == nil:
			return refusal(CodeInvalid, "The policy does not declare this asset: nothing can be paid in it.")
		case h.f.WriteOff.Sign() > 0:
			return refusal(CodeNotNow, "Somebody asked to write it off. That has to be settled first.")
		}
		now, err := h.tx.Now(ctx)
		if err != nil {
			return err
		}
		return h.step(ctx, Approve, nothing, "refund_approved", nil, func(f *payments.Refund) {
			f.ApprovedBy, f.ApprovedAt = h.person(), ledger.At(now)
		})
	})
}

// Withdraw takes an approval back of which nothing is being paid.
func (e *Engine) Withdraw(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		return h.step(ctx, Withdraw, nothing, "refund_withdrawn", nil, nil)
	})
}

// Hold stops it until somebody releases it.
func (e *Engine) Hold(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		return h.step(ctx, Hold, nothing, "refund_held", nil, func(f *payments.Refund) { f.HeldWhy = a.Note })
	})
}

// Release lets what is held go on: it has to be approved.
func (e *Engine) Release(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		return h.step(ctx, Release, nothing, "refund_released", nil, nil)
	})
}

// Redirect says that it goes somewhere else than to the payer; "" is back to the payer. An
// approval of before does not hold for it: somebody else approves it anew.
func (e *Engine) Redirect(ctx context.Context, a Act, to string) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		to := same(h.f.Network, strings.TrimSpace(to))
		switch {
		case len(to) > 256:
			return refusal(CodeInvalid, "A destination has at most 256 bytes.")
		case to == h.f.Destination:
			return refusal(CodeNotNow, "It goes there already.")
		case to == h.t.Recipient:
			return refusal(CodeInvalid, "That is our own address, to which it came.")
		}
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		was := h.f.To()
		return h.step(ctx, Redirect, nothing, "refund_redirected", map[string]any{"to": to, "was": was}, func(f *payments.Refund) {
			f.Destination, f.DestinationBy = to, h.person()
			if to == "" || to == f.Payer {
				f.Destination, f.DestinationBy = "", 0
			}
		})
	})
}

// AskWriteOff asks that an amount is not given back; another person decides.
func (e *Engine) AskWriteOff(ctx context.Context, a Act, amount string) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		if err := noteNeeded(a.Note); err != nil {
			return err
		}
		x := h.f.Rest()
		if amount != "" {
			var err error
			if x, err = e.Amount(&h.f, amount, x); err != nil {
				return err
			}
		}
		if h.f.WriteOff.Sign() > 0 {
			return refusal(CodeNotNow, "Somebody asked that already.")
		}
		return h.step(ctx, AskOff, x, "refund_write_off_asked", map[string]any{"write_off": x.String()}, func(f *payments.Refund) {
			f.WriteOffBy, f.WriteOffWhy = h.person(), a.Note
		})
	})
}

// DropWriteOff ends what [Engine.AskWriteOff] asked for: nothing is written off.
func (e *Engine) DropWriteOff(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		return h.step(ctx, DropOff, nothing, "refund_write_off_dropped", nil, nil)
	})
}

// WriteOff does what another person asked for.
func (e *Engine) WriteOff(ctx context.Context, a Act) error {
	return e.act(ctx, a, func(ctx context.Context, h *held) error {
		switch {
		case h.f.WriteOff.Sign() == 0:
			return refusal(CodeNotNow, "Nobody asked to write it off.")
		case h.f.WriteOffBy == h.person():
			return refusal(CodeOwn, "Whoever asked for a write-off does not approve it.")
		case !h.t.Final || h.t.Reverted():
			return refusal(CodeNotNow, "Its transfer is not final yet: a reorganisation could still take it back, and what is owed with it.")
		}
		x := h.f.WriteOff
		return h.step(ctx, WriteOff, x, "refund_written_off", map[string]any{"write_off": x.String(), "asked_by": h.f.WriteOffBy, "why": h.f.WriteOffWhy}, nil)
	})
}

func noteNeeded(note string) error {
	if strings.TrimSpace(note) == "" {
		return refusal(CodeInvalid, "Say why, in the note.")
	}
	return nil
}
