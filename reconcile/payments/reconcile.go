package payments

import (
	"context"
	"errors"
	"time"

	"quittance/ledger"
	"quittance/ledger/payments"
)

const (
	readEvery   = 10 * time.Second // the pause between two readings of a rail
	askEvery    = 15 * time.Second // and between two questions about one transfer
	asksAtATime = 20
	pagesARound = 5
)

// reconcile reads from a rail what arrived, final blocks only and in chunks, and asks
// about transfers that are not final yet, what was asked about longest ago first. It needs
// nobody to post anything.
func (e *Engine) reconcile(ctx context.Context, network string, rail Rail) (errs error) {
	for range pagesARound {
		c, err := payments.TakeCursor(ctx, e.db, network, readEvery, askedFor)
		if err != nil || c == nil {
			errs = errors.Join(errs, err)
			break
		}
		errs = errors.Join(errs, e.readRail(ctx, *c, rail))
	}
	return errors.Join(errs, e.askAgain(ctx, network, rail))
}

// networks are those that somebody can ask.
func (e *Engine) networks() (list []string) {
	for _, r := range e.policy().Rails() {
		if e.rails(r.Network) != nil {
			list = append(list, r.Network)
		}
	}
	return list
}

// readRail reads the next stretch of one asset. What is posted twice is the same: if the
// cursor is not stored, it is read again.
func (e *Engine) readRail(ctx context.Context, c payments.Cursor, rail Rail) error {
	watched, err := payments.Recipients(ctx, e.db, c.Network, c.Asset)
	if err != nil {
		return err
	}
	whose := map[string]int64{}
	var addresses []string
	for _, r := range watched {
		whose[r.Address] = r.Account
		addresses = append(addresses, r.Address)
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	page, err := rail.Incoming(asking, c.Asset, addresses, c.Next)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// An address that is watched since just now may have been paid to in what was read.
	now, more := payments.Recipients(ctx, e.db, c.Network, c.Asset)
	if more != nil {
		return more
	}
	if len(now) != len(watched) {
		page.Next, page.Done = c.Next, true
	}
	problem := ""
	if err != nil { // of the rail: it is shown, and tried again after the pause
		problem, page = cut(err.Error(), 1000), Page{Next: c.Next, Done: true}
	}
	for _, s := range page.List {
		s.KnownBy = "reconcile"
		if err := e.postSeen(ctx, s, whose[s.Recipient]); err != nil {
			return err
		}
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return c.Read(ctx, tx, page.Next, !page.Done, problem) })
}

// postSeen posts what a rail showed, for the account whose payment it names, or else for
// the one that is paid at the address.
func (e *Engine) postSeen(ctx context.Context, s Seen, account int64) error {
	if s.Amount.Sign() == 0 {
		e.log.Warn("a rail shows a transfer of an amount that cannot be kept", "network", s.Network, "tx", s.Tx)
		return nil
	}
	s.Account = account
	if s.Nonce != "" {
		row, err := payments.ByNonce(ctx, e.db, s.Network, s.Asset, s.Sender, s.Nonce)
		if err != nil {
			return err
		}
		if row != nil {
			s.Account = row.Account
		}
	}
	if s.Memo != "" {
		o, err := payments.OrderByMemo(ctx, e.db, s.Network, s.Recipient, s.Memo)
		if err != nil {
			return err
		}
		if o != nil {
			s.Account = o.Account
		}
	}
	known, err := payments.TransferAt(ctx, e.db, s.Network, s.Tx, s.Position)
	if err != nil {
		return err
	}
	if known != nil {
		s.Account = known.Account
	}
	return e.said(e.post(ctx, Posted{Seen: s}))
}

// said leaves out refusals, which say that a rail shows something else than what is on
// record: they are logged, and stop nothing.
func (e *Engine) said(_ *Moved, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		e.log.Warn("a rail shows a transfer that does not fit the record", "problem", r.Detail)
		return nil
	}
	return err
}

// askAgain asks where transfers stand that can still be reorganised away.
func (e *Engine) askAgain(ctx context.Context, network string, rail Rail) (errs error) {
	list, err := payments.TakeNotFinal(ctx, e.db, network, askEvery, asksAtATime)
	if err != nil {
		return err
	}
	for _, t := range list {
		asking, cancel := context.WithTimeout(ctx, patience)
		s, err := rail.Still(asking, t)
		cancel()
		switch {
		case ctx.Err() != nil:
			return errors.Join(errs, ctx.Err())
		case err != nil:
			e.log.Debug("a transfer could not be asked about", "network", network, "error", err)
		case s.There != nil:
			s.There.Account = t.Account
			errs = errors.Join(errs, e.said(e.post(ctx, Posted{Seen: *s.There})))
		case s.Gone && !t.Reverted():
			errs = errors.Join(errs, e.said(e.post(ctx, Posted{Seen: Seen{Moved: t.Moved}, Reverted: true})))
		}
	}
	return errs
}
