package effects

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/system"
)

// Arrive compares the database with the place and the server it was last started
// on. A changed server (system identifier or timeline), or restored set, is a
// database that may have lost its newest events: a log gap, also when an earlier one was
// acknowledged and not ended, since what was said of that one was said of another loss.
// A changed place is a copy: nothing leaves it until a person switches that on.
func (e *Engine) Arrive(ctx context.Context, environment string, restored bool) error {
	var gap, copied string
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		gap, copied = "", ""
		was, err := system.Stored(ctx, tx)
		if err != nil {
			return err
		}
		now, err := system.Live(ctx, tx)
		if err != nil {
			return err
		}
		first := was.SystemIdentifier == ""
		switch {
		case restored:
			gap = "the server was started with --restored"
		case first:
		case was.SystemIdentifier != now.SystemIdentifier:
			gap = "this database runs on another PostgreSQL cluster than before"
		case was.Timeline != now.Timeline:
			gap = fmt.Sprintf("the database's timeline changed from %d to %d", was.Timeline, now.Timeline)
		}
		now.Environment, now.Outward = environment, was.Outward
		if !first && was.Environment != environment {
			copied = was.Environment
			now.Environment, now.Outward = was.Environment, false
		}
		if gap != "" {
			if err := system.LoseMore(ctx, tx, gap, time.Time{}); err != nil {
				return err
			}
		}
		return system.Store(ctx, tx, now)
	})
	if err != nil {
		return err
	}
	e.place.Store(&environment)
	if gap != "" {
		e.log.Error("log gap: nothing is released until a person acknowledges it", "found_by", gap)
	}
	if copied != "" {
		e.log.Error("this database belongs to another place: look-ups, deliveries and payouts stay off", "belongs_to", copied, "started_in", environment)
	}
	return nil
}
