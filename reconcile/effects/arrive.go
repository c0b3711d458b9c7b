package effects

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/system"
)

// arrival is what this server was told when it started.
type arrival struct {
	place    string
	anchored bool
}

// Arrive compares the database with the place and the server it was last started
// on. Another server, or restored set, is a database that may have lost its newest
// events: a log gap, also when an earlier one was acknowledged and not ended, since what
// was said of that one was said of another loss. A changed place is a copy: nothing leaves
// it until a person switches that on. anchored says that the head of the sealed log is
// kept outside the database.
func (e *Engine) Arrive(ctx context.Context, place string, restored, anchored bool) error {
	e.arrival.Store(&arrival{place, anchored})
	why := ""
	if restored {
		why = "the server was started with --restored"
	}
	return e.attend(ctx, why)
}

// Attend sees while the server runs that the database is another than it was: a standby
// was promoted, or an address leads elsewhere. Before Arrive it does nothing.
func (e *Engine) Attend(ctx context.Context) error {
	if e.arrival.Load() == nil {
		return nil
	}
	was, err := system.Mark(ctx, e.db)
	if err != nil {
		return err
	}
	now, err := system.Live(ctx, e.db)
	if err != nil || was.SystemIdentifier == now.SystemIdentifier && was.Timeline == now.Timeline && was.Synchronous == now.Synchronous {
		return err
	}
	return e.attend(ctx, "")
}

// attend compares the stored identity with the live one and stores the live one. gap is
// why a gap is opened whatever they say.
func (e *Engine) attend(ctx context.Context, why string) error {
	here := e.arrival.Load()
	var gap, promoted, copied string
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		gap, promoted, copied = why, "", ""
		was, err := system.Stored(ctx, tx)
		if err != nil {
			return err
		}
		now, err := system.Live(ctx, tx)
		if err != nil {
			return err
		}
		if gap == "" {
			gap, promoted = moved(was, now, here.anchored)
		}
		now.Environment, now.Outward = here.place, was.Outward
		if was.SystemIdentifier != "" && was.Environment != here.place {
			copied = was.Environment
			now.Environment, now.Outward = was.Environment, false
		}
		if gap != "" {
			if err := system.LoseMore(ctx, tx, gap, time.Time{}); err != nil {
				return err
			}
		}
		if promoted != "" {
			if err := audit.Add(ctx, tx, audit.Row{Actor: "the server", Via: "record", Action: "standby.promoted", Outcome: "done", Subject: "installation", Note: promoted}); err != nil {
				return err
			}
		}
		return system.Store(ctx, tx, now)
	})
	if err != nil {
		return err
	}
	if gap != "" {
		e.log.Error("log gap: nothing is released until a person acknowledges it", "found_by", gap)
		e.hub.Changed("")
	}
	if promoted != "" {
		e.log.Warn("the database failed over", "found", promoted)
	}
	if copied != "" {
		e.log.Error("this database belongs to another place: look-ups, deliveries and payouts stay off", "belongs_to", copied, "started_in", here.place)
	}
	return nil
}

// moved says what it means that a database is found on another server: a gap, or, where
// every commit had waited for the standby that was promoted, only that it was. A standby that
// had fallen behind and was promoted by force looks the same; only the anchor outside the
// database tells then, so without one it is a gap.
func moved(was, now system.Identity, anchored bool) (gap, promoted string) {
	switch {
	case was.SystemIdentifier == "":
		return "", "" // its first start
	case was.SystemIdentifier != now.SystemIdentifier:
		return "this database runs on another PostgreSQL cluster than before", ""
	case was.Timeline == now.Timeline:
		return "", ""
	case was.Synchronous && anchored && now.Timeline > was.Timeline:
		return "", fmt.Sprintf("a standby that every commit had waited for was promoted: timeline %d became %d", was.Timeline, now.Timeline)
	}
	return fmt.Sprintf("the database's timeline changed from %d to %d", was.Timeline, now.Timeline), ""
}
