package payments

import (
	"context"
	"errors"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
)

// checksAtOnce is how many payments one rail is asked about at the same time.
const checksAtOnce = 8

// check asks a rail about payments whose check is due. Nothing is in a transaction while the
// rail is waited for.
func (e *Engine) check(ctx context.Context, network string, rail Rail) error {
	list, err := payments.TakeChecks(ctx, e.db, network, checksAtOnce, askedFor)
	if err != nil {
		return err
	}
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, id := range list {
		all.Go(func() { _, errs[i] = e.checkOne(ctx, id, rail) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// checkOne asks a rail about each authorization of a payment that is not proven dead, by its
// row's number, and records what that proves.
func (e *Engine) checkOne(ctx context.Context, id int64, rail Rail) (map[int64]Sight, error) {
	row, err := payments.ByID(ctx, e.db, id)
	if err != nil || row == nil {
		return nil, err
	}
	p, err := load(ctx, e.db, row)
	if err != nil {
		return nil, err
	}
	// One patience for all of them: whoever takes longer counts as dead.
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sights, until := map[int64]Sight{}, map[int64]int64{}
	said := ""
	for i := range p.Authorizations {
		a := &p.Authorizations[i]
		if a.DeadWhy != "" {
			continue
		}
		if asking.Err() != nil {
			break // what was not asked stays open
		}
		s := rail.Authorization(asking, Question{
			Asset: a.Asset, Payer: a.Payer, Nonce: a.Nonce, PayTo: p.PayTo, ValidBefore: a.ValidBefore, Amount: p.Amount, Since: p.FirstAt,
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sights[a.ID], until[a.ID], said = s, a.ValidBefore, cut(s.Said, 1000)
		if s.Landed != nil {
			s.Landed.KnownBy = "reconcile"
			if err := e.postSeen(ctx, *s.Landed, p.Account); err != nil {
				return nil, err
			}
		}
	}
	return sights, e.each(ctx, []int64{id}, func(ctx context.Context, tx *ledger.Tx, p *Payment) error {
		open := false
		for i := range p.Authorizations {
			a := &p.Authorizations[i]
			switch s, asked := sights[a.ID]; {
			case asked && s.Dead == "expired" && a.ValidBefore != until[a.ID]:
				open = true // it was signed again meanwhile, with a later end
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
			case asked && !p.landed(a):
				open = true // what it moved is not on record yet, or for a person to place
			case !asked && !p.closed(a):
				open = true
			}
		}
		if !open {
			if err := e.neverPaid(ctx, tx, p.ID); err != nil {
				return err
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

// neverPaid alerts, once, where a gateway settled a payment whose order nothing can pay any
// more: it gave away what was not paid for, or the money came another way.
func (e *Engine) neverPaid(ctx context.Context, tx *ledger.Tx, id int64) error {
	row, err := payments.ByID(ctx, tx, id)
	if err != nil {
		return err
	}
	p, err := load(ctx, tx, row)
	if err != nil || p.State != string(Settled) || p.Order == nil || standing(p.Order.State) == Paid || len(p.Authorizations) == 0 {
		return err
	}
	for i := range p.Authorizations {
		if !p.closed(&p.Authorizations[i]) {
			return nil
		}
	}
	return payments.RecordOnce(ctx, tx, payments.Event{Payment: p.ID, Kind: "settled_unpaid", Alert: true}, map[string]any{"order": p.Order.State}, 1)
}
