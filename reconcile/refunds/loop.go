package refunds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/recoveries"
	store "quittance/ledger/refunds"
	"quittance/ledger/system"
)

const (
	every    = time.Second // the pace of the loop
	batch    = 8
	askedFor = 2 * patience
)

// Run asks the networks about payouts until ctx ends. Any number of servers may.
func (e *Engine) Run(ctx context.Context) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if err := e.Tick(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("looking for payouts failed; it goes on in a second", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// RoundLimit is what a round takes at most while the loop is well: a network may be silent.
const RoundLimit = patience + 10*time.Second

// LastLoop is when the loop last finished a round on this server.
func (e *Engine) LastLoop() time.Time { return time.UnixMilli(e.lastLoop.Load()) }

// Tick is one round. In a log gap that nobody has acknowledged, and in a copy that nothing
// may leave, it does nothing. No network is waited for in a transaction.
func (e *Engine) Tick(ctx context.Context) error {
	m, err := system.Read(ctx, e.db)
	if err == nil && !m.Behind() && m.Outward {
		err = e.looks(ctx)
	}
	if err == nil {
		e.lastLoop.Store(time.Now().UnixMilli())
	}
	return err
}

// looks asks about the payouts that are due, all at the same time: one network that does
// not answer holds up the round for one patience, and no other payout.
func (e *Engine) looks(ctx context.Context) error {
	var networks []string
	for _, r := range e.policy().Rails() {
		if e.networks(r.Network) != nil {
			networks = append(networks, r.Network)
		}
	}
	if len(networks) == 0 {
		return nil
	}
	due, err := store.TakeDue(ctx, e.db, networks, batch, askedFor)
	if err != nil {
		return err
	}
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i, id := range due {
		all.Go(func() { errs[i] = e.look(ctx, id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// look asks about one payout and records what follows.
func (e *Engine) look(ctx context.Context, id string) error {
	p, err := store.PayoutByID(ctx, e.db, id)
	if err != nil || p == nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	s := e.networks(p.Network).Outgoing(asking, Question{Asset: p.Asset, Recipient: p.Recipient, Tx: p.Tx, Amount: p.Amount, Since: p.StartedAt})
	cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.locked(ctx, p.Refund, func(ctx context.Context, h *held) error {
		p, err := store.PayoutByID(ctx, h.tx, id) // as it is now that the lock is held
		if err != nil {
			return err
		}
		now, err := h.tx.Now(ctx)
		if err != nil {
			return err
		}
		switch {
		case p.State == "sent" && s.Final && s.Seen == Arrived:
			return e.arrived(ctx, h, p, s.Said, s.Block)
		case p.State == "sent" && s.Final && (s.Seen == Failed || s.Seen == Elsewhere):
			return e.fail(ctx, h, p, s.Said, s.Block)
		case p.State == "failed" && s.Final && s.Seen == Arrived:
			return e.landed(ctx, h, p, s)
		case p.State == "failed" && s.Final && s.Seen != NotSeen:
			return store.Checked(ctx, h.tx, p.ID, s.Said, ledger.Time{}, p.CheckStep)
		}
		next := ledger.At(now.Add(wait(p.CheckStep + 1)))
		switch {
		case p.State == "failed" && now.Sub(p.SentAt.Time) > giveUpAfter:
			next = ledger.Time{}
		case p.State == "failed":
			next = ledger.At(now.Add(lookGivenUp))
		case p.State != "sent":
			next = ledger.Time{}
		}
		return store.Checked(ctx, h.tx, p.ID, s.Said, next, p.CheckStep+1)
	})
}

// landed meets a payment that a person had given up and that arrived after all. Where it is
// still owed it pays it; otherwise it left twice, and is to be claimed back.
func (e *Engine) landed(ctx context.Context, h *held, p *store.Payout, s Sight) error {
	p.Said, p.Block, p.CheckAt, p.EndedBy = s.Said, s.Block, ledger.Time{}, 0
	if _, why := Next(h.f, Landed, p.Amount); why == "" {
		p.State = "confirmed"
		if err := store.Move(ctx, h.tx, "failed", *p); err != nil {
			return err
		}
		return h.step(ctx, Landed, p.Amount, "refund_landed", map[string]any{"payout": p.ID, "said": s.Said, "block": s.Block}, nil)
	}
	p.State = "landed"
	if err := store.Move(ctx, h.tx, "failed", *p); err != nil {
		return err
	}
	a := e.asset(&h.f)
	if a == nil {
		return fmt.Errorf("couldn't open a recovery for payout %s: its asset is not declared any more", p.ID)
	}
	return recoveries.OpenForPayout(ctx, h.tx, p.ID, p.Recipient, p.Amount, a.Asset)
}
