package payments

import (
	"context"
	"errors"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/ledger/system"
)

const (
	every = time.Second // the pace of the loop
	batch = 200
	// patience bounds a question to a rail; whoever asks longer counts as dead.
	patience = 20 * time.Second
	askedFor = 2 * patience
	// later is how often the periodic reconcile asks about what the checks left unknown.
	later = 10 * time.Minute
	// pruning is how often old answers are taken out.
	pruning = time.Hour
)

// Run drives what time does to payments until ctx ends: it expires orders, heals what is
// paid, asks the rails, and prunes. Any number of servers may.
func (e *Engine) Run(ctx context.Context) {
	t := time.NewTicker(every)
	defer t.Stop()
	var pruned time.Time
	for {
		if err := e.Tick(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("the loops of payments failed; they go on in a second", "error", err)
		}
		if time.Since(pruned) > pruning {
			pruned = time.Now()
			if err := e.Prune(ctx); err != nil && ctx.Err() == nil {
				e.log.Error("pruning payments failed", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// LastLoop is when the loops last finished a round on this server.
func (e *Engine) LastLoop() time.Time { return time.UnixMilli(e.lastLoop.Load()) }

// Tick is one round. In a log gap that nobody has acknowledged it does nothing, and in a
// copy that nothing may leave it asks no rail.
func (e *Engine) Tick(ctx context.Context) error {
	m, err := system.Read(ctx, e.db)
	if err != nil || m.Behind() {
		return err
	}
	err = errors.Join(e.expire(ctx), e.heal(ctx))
	if m.Outward {
		err = errors.Join(err, e.check(ctx), e.reconcile(ctx))
	}
	if err == nil {
		e.lastLoop.Store(time.Now().UnixMilli())
	}
	return err
}

// each runs f for payments one after the other, each in a transaction that holds it; one
// that fails does not stop the others.
func (e *Engine) each(ctx context.Context, list []int64, f func(ctx context.Context, tx *ledger.Tx, p *Payment) error) (errs error) {
	for _, id := range list {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = errors.Join(errs, e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
			row, err := payments.Lock(ctx, tx, id)
			if err != nil || row == nil {
				return err
			}
			p, err := load(ctx, tx, row)
			if err != nil {
				return err
			}
			return f(ctx, tx, p)
		}))
	}
	return errs
}

// expire ends orders whose time is over, but for those that must wait.
func (e *Engine) expire(ctx context.Context) error {
	list, err := payments.Expired(ctx, e.db, batch)
	if err != nil {
		return err
	}
	return e.each(ctx, list, func(ctx context.Context, tx *ledger.Tx, p *Payment) error {
		if p.Order == nil || standing(p.Order.State) != NotFinal || p.Order.ExpiresAt.IsZero() || p.Order.ExpiresAt.After(p.Now) {
			return nil
		}
		if p.waits() {
			return payments.Postpone(ctx, tx, p.Order.ID, time.Minute)
		}
		return e.fail(ctx, tx, p, "expired")
	})
}

// heal does for payments that nobody asks about any more what the table says to their own
// payer: what is paid and done is settled, what can never be paid is refused.
func (e *Engine) heal(ctx context.Context) error {
	list, err := payments.Open(ctx, e.db, HealAfter, batch)
	if err != nil {
		return err
	}
	return e.each(ctx, list, func(ctx context.Context, tx *ledger.Tx, p *Payment) error {
		d := Decide(p.facts(e.policy().Gateway(p.Gateway), nil), Caller{SamePayer: true, SameRequest: true})
		if d.Heal || d.Refuse {
			return e.settle(ctx, tx, p, d)
		}
		return nil
	})
}

// check asks the rails about payments whose check is due. Nothing is in a transaction while
// a rail is waited for.
func (e *Engine) check(ctx context.Context) error {
	networks := e.networks()
	if len(networks) == 0 {
		return nil
	}
	list, err := payments.TakeChecks(ctx, e.db, networks, 8, askedFor)
	if err != nil {
		return err
	}
	for _, id := range list {
		err = errors.Join(err, e.checkOne(ctx, id))
	}
	return err
}

func (e *Engine) checkOne(ctx context.Context, id int64) error {
	row, err := payments.ByID(ctx, e.db, id)
	if err != nil || row == nil {
		return err
	}
	p, err := load(ctx, e.db, row)
	if err != nil {
		return err
	}
	rail := e.rails(p.Network)
	sights := map[int64]Sight{}
	said := ""
	for i := range p.Authorizations {
		a := &p.Authorizations[i]
		if a.DeadWhy != "" {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, patience)
		s := rail.Authorization(asking, Question{
			Asset: a.Asset, Payer: a.Payer, Nonce: a.Nonce, PayTo: p.PayTo, ValidBefore: a.ValidBefore, Amount: p.Amount, Since: p.FirstAt,
		})
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		sights[a.ID], said = s, cut(s.Said, 1000)
		if s.Landed != nil {
			s.Landed.KnownBy = "reconcile"
			if err := e.postSeen(ctx, *s.Landed, p.Account); err != nil {
				return err
			}
		}
	}
	return e.each(ctx, []int64{id}, func(ctx context.Context, tx *ledger.Tx, p *Payment) error {
		open := false
		for i := range p.Authorizations {
			a := &p.Authorizations[i]
			switch s, asked := sights[a.ID]; {
			case asked && s.Dead == "expired" && !a.Signed:
				open = true
				if err := payments.Saw(ctx, tx, a.ID, cut("Its end is the gateway's word and not signed, so that it passed proves nothing. "+s.Said, 1000)); err != nil {
					return err
				}
			case asked && s.Dead != "":
				if err := payments.Dead(ctx, tx, a.ID, s.Dead, s.DeadBlock, cut(s.Said, 1000)); err != nil {
					return err
				}
				if err := payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: "authorization_dead"}, map[string]any{"nonce": a.Nonce, "why": s.Dead, "block": s.DeadBlock}); err != nil {
					return err
				}
			case asked && s.Landed == nil:
				open = true
				if err := payments.Saw(ctx, tx, a.ID, cut(s.Said, 1000)); err != nil {
					return err
				}
			case !asked && !p.closed(a):
				open = true
			}
		}
		next := time.Duration(0)
		if step := p.CheckStep + 1; open || p.Order == nil && len(p.Authorizations) == 0 {
			if next = later; step < len(checks) {
				next = checks[step] - checks[step-1]
			}
		}
		return payments.Checked(ctx, tx, p.ID, next, p.CheckStep+1, said)
	})
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}

// Prune takes out what is kept for a while only.
func (e *Engine) Prune(ctx context.Context) error {
	now, err := e.db.Now(ctx)
	if err != nil {
		return err
	}
	for more := true; more; {
		err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
			n, err := payments.Prune(ctx, tx, now.Add(-e.policy().PaymentsKept()), batch)
			more = n == batch
			return err
		})
		if err != nil {
			return err
		}
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return payments.PruneReads(ctx, tx, time.Hour) })
}
