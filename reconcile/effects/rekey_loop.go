package effects

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/runs"
	"quittance/ledger/templates"
	"quittance/reconcile/canon"
)

const (
	// rekeyBatch is how many stored effects one transaction looks at. While it runs, a
	// begin of one of their runs waits.
	rekeyBatch = 500
	// beginsPatience is how long one round waits for begins of before a change.
	beginsPatience = time.Second
)

// rekeyLoop follows changed templates through everything that is stored. It rests for
// as long as it works, so that begins keep half of the machine at least.
func (e *Engine) rekeyLoop(ctx context.Context) {
	tick := time.NewTicker(loopEvery)
	defer tick.Stop()
	for {
		started := time.Now()
		more, err := e.rekeyStep(ctx, rekeyBatch)
		if err != nil && ctx.Err() == nil {
			e.log.Error("re-keying failed; it is tried again in a second", "error", err)
		}
		rest := tick.C
		if more && err == nil {
			rest = time.After(time.Since(started))
		}
		select {
		case <-ctx.Done():
			return
		case <-rest:
		}
	}
}

// rekeyStep does one batch of one open change, and says whether it did. A change takes
// two passes over the stored effects, in the order of ids: the first gives each its
// claim under the new template beside the earlier one; when it is over begins are
// checked under the new one alone, and the second takes the earlier claims away. Where
// a pass stands is stored in the transaction that does the work: any server goes on
// from there, and two never work on one change at a time.
func (e *Engine) rekeyStep(ctx context.Context, batch int) (more bool, err error) {
	open, err := templates.Open(ctx, e.db)
	if err != nil {
		return false, err
	}
	for _, c := range open {
		if c.Upto == "" {
			// A begin that read the templates before they changed may be on its way. The
			// pass has to meet what it stores.
			if over, err := e.beginsOver(ctx); err != nil || !over {
				return false, err
			}
		}
		did, err := e.rekeySome(ctx, c, batch)
		if did || err != nil {
			return did, err
		}
	}
	return false, nil
}

// beginsOver waits until every transaction is over that had locked a run when it was
// called: those that lock one later read the templates as they are now. False when it
// would take too long.
func (e *Engine) beginsOver(ctx context.Context) (bool, error) {
	first, err := runs.Lockers(ctx, e.db)
	for until := time.Now().Add(beginsPatience); err == nil && len(first) > 0; {
		if time.Now().After(until) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
		var now []string
		now, err = runs.Lockers(ctx, e.db)
		first = slices.DeleteFunc(first, func(t string) bool { return !slices.Contains(now, t) })
	}
	return err == nil, err
}

// rekeySome does one batch of a change; false when another server is at work on it, or
// it has moved on.
func (e *Engine) rekeySome(ctx context.Context, was templates.Change, batch int) (did bool, err error) {
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		did = false
		c, err := templates.Take(ctx, tx, was.ID)
		if err != nil || c == nil || c.RekeyedAt.IsZero() != was.RekeyedAt.IsZero() || c.Upto == "" && was.Upto != "" {
			return err
		}
		if c.Upto == "" {
			if c.Upto, err = store.LastID(ctx, tx); err != nil {
				return err
			}
		}
		var page []store.Stored
		if c.Upto != "" {
			if page, err = store.Page(ctx, tx, c.Tool, c.Scanned, c.Upto, batch); err != nil {
				return err
			}
		}
		if len(page) == 0 {
			did = true
			return e.endPass(ctx, tx, c)
		}
		c.Scanned = page[len(page)-1].ID
		w := e.work(ctx, tx)
		if did, err = w.rekeyPage(ctx, c, page); err != nil || !did {
			return err
		}
		return templates.Advance(ctx, tx, c)
	})
	return did && err == nil, err
}

func (e *Engine) endPass(ctx context.Context, tx *ledger.Tx, c *templates.Change) error {
	if c.RekeyedAt.IsZero() {
		e.log.Info("stored effects are re-keyed; begins are checked under the new business_key alone", "tool", c.Tool)
		return templates.Rekeyed(ctx, tx, c.ID)
	}
	return templates.Settle(ctx, tx, c)
}

// rekeyPage does what the pass is for to the effects of a page. False, with nothing
// done, in a log gap that nobody has acknowledged.
func (w *work) rekeyPage(ctx context.Context, c *templates.Change, page []store.Stored) (bool, error) {
	var ids []string
	arguments := map[string]string{}
	for _, s := range page {
		if s.Mine {
			ids, arguments[s.ID] = append(ids, s.ID), s.Arguments
		}
	}
	if err := w.lock(ctx, nil, ids, nil); err != nil || w.sys.Behind() {
		return false, err
	}
	if err := w.load(ctx, store.Wanted{IDs: ids}); err != nil {
		return false, err
	}
	if !c.RekeyedAt.IsZero() {
		var list []*effect
		for _, id := range ids {
			if x := w.effects[id]; x.ClaimWas != nil {
				list = append(list, x)
			}
		}
		if err := w.forgetEarlier(ctx, list); err != nil {
			return false, err
		}
		return true, w.flush(ctx)
	}
	t, err := parseTemplate(c.Tool, c.Template)
	if err != nil {
		return false, err
	}
	var list []rekeyed
	for _, id := range ids {
		x := w.effects[id]
		args, err := canon.ParseObject([]byte(arguments[id]))
		if err != nil {
			return false, fmt.Errorf("couldn't read the stored arguments of effect %s: %w", id, err)
		}
		now, _, err := claimUnder(t, x.Tool, x.Account, args, canon.Key(x.CallDigest))
		if err != nil { // no business key can be made of them: as with a missing field
			now, _, _ = claimUnder(nil, x.Tool, x.Account, args, canon.Key(x.CallDigest))
		}
		if string(now.digest) != string(x.Claim) {
			list = append(list, rekeyed{x, now})
		}
	}
	return true, w.rekey(ctx, list)
}
