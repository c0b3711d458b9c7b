package payments

import (
	"context"
	"errors"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/ledger/system"
)

const (
	every = time.Second // the pace of the loop
	batch = 200
	// stretch is how many open payments one round of healing looks at.
	stretch = 400
	// patience bounds a question to a rail; whoever asks longer counts as dead.
	patience = 20 * time.Second
	askedFor = 2 * patience
	// later is how often the periodic reconcile asks about what the checks left unknown.
	later = 10 * time.Minute
	// pruning is how often old answers are taken out.
	pruning = time.Hour
)

// Run drives what time does to payments until ctx ends: it expires orders, heals what is
// paid, asks the rails, and prunes. Any number of servers may. What needs no rail waits for
// none, and no rail for another.
func (e *Engine) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { e.prunes(ctx) })
	beside.Go(func() { e.askRails(ctx) })
	e.paced(ctx, "the loop of payments", e.clock)
}

// askRails asks each rail once a second, unless it is still being asked. The policy may
// change which there are.
func (e *Engine) askRails(ctx context.Context) {
	var asked sync.WaitGroup
	defer asked.Wait()
	var busy sync.Map
	e.paced(ctx, "asking the rails about payments", func(ctx context.Context) error {
		for _, network := range e.networks() {
			if _, still := busy.LoadOrStore(network, true); still {
				continue
			}
			asked.Go(func() {
				defer busy.Delete(network)
				if err := e.ask(ctx, network); err != nil && ctx.Err() == nil {
					e.log.Error("asking a rail about payments failed; it goes on in a second", "network", network, "error", err)
				}
			})
		}
		return nil
	})
}

// paced runs f once a second until ctx ends.
func (e *Engine) paced(ctx context.Context, what string, f func(context.Context) error) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			e.log.Error(what+" failed; it goes on in a second", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// prunes takes out what is old, now and then.
func (e *Engine) prunes(ctx context.Context) {
	t := time.NewTicker(pruning)
	defer t.Stop()
	for {
		if err := e.Prune(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("pruning payments failed", "error", err)
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

// Tick is one round of all that [Engine.Run] does but for pruning.
func (e *Engine) Tick(ctx context.Context) error {
	err := e.clock(ctx)
	for _, network := range e.networks() {
		err = errors.Join(err, e.ask(ctx, network))
	}
	return err
}

// clock is a round of what needs no rail. In a log gap that nobody has acknowledged it does
// nothing.
func (e *Engine) clock(ctx context.Context) error {
	m, err := system.Read(ctx, e.db)
	if err == nil && !m.Behind() {
		err = errors.Join(e.expire(ctx), e.heal(ctx))
	}
	if err == nil {
		e.lastLoop.Store(time.Now().UnixMilli())
	}
	return err
}

// ask is a round of questions to one rail: none in a log gap that nobody has acknowledged,
// nor in a copy that nothing may leave.
func (e *Engine) ask(ctx context.Context, network string) error {
	m, err := system.Read(ctx, e.db)
	if err != nil || m.Behind() || !m.Outward {
		return err
	}
	rail := e.rails(network)
	if rail == nil { // the policy changed just now
		return nil
	}
	return errors.Join(e.check(ctx, network, rail), e.reconcile(ctx, network, rail))
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
// payer: what is paid and done is settled, what can never be paid is refused, and what may
// have been sent is unknown, so that its rail is asked. It goes through them a stretch at a
// time: those that nothing can be done for do not stand before the others.
func (e *Engine) heal(ctx context.Context) error {
	e.healing.Lock()
	defer e.healing.Unlock()
	list, err := payments.Lapsed(ctx, e.db, HealAfter, e.healed, stretch)
	if err != nil {
		return err
	}
	e.healed = payments.Place{}
	if len(list) == stretch {
		e.healed = list[stretch-1]
	}
	decide := func(p *Payment) Decision {
		d := Decide(p.facts(e.policy().Gateway(p.Gateway), nil), Caller{SamePayer: true, SameRequest: true})
		if d.Heal || d.Refuse || d.Unknown {
			return d
		}
		return Decision{}
	}
	var due []int64
	for _, place := range list {
		if !place.Due {
			continue
		}
		row, err := payments.ByID(ctx, e.db, place.ID)
		if err != nil || row == nil {
			return err
		}
		p, err := load(ctx, e.db, row)
		if err != nil {
			return err
		}
		if decide(p).changes() {
			due = append(due, p.ID)
		}
	}
	return e.each(ctx, due, func(ctx context.Context, tx *ledger.Tx, p *Payment) error {
		if d := decide(p); d.changes() {
			return e.settle(ctx, tx, p, d)
		}
		return nil
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
