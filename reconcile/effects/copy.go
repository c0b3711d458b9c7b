package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/system"
)

// CopyView says that this database was started in a place that is not its own: nothing
// leaves it until a person says that it belongs here now.
type CopyView struct {
	BelongsTo string // the place it was last at home in
	Here      string // this server's place; "" when the server was not told
}

// Copy is the state of being a copy, or nil.
func (e *Engine) Copy(ctx context.Context) (*CopyView, error) {
	i, err := system.Mark(ctx, e.db)
	if err != nil || i.Outward {
		return nil, err
	}
	v := &CopyView{BelongsTo: i.Environment}
	if here := e.arrival.Load(); here != nil {
		v.Here = here.place
	}
	return v, nil
}

// Adopt is a person's word that this database belongs where this server runs, and that
// nobody else works with the one it was copied from: look-ups, deliveries and payouts
// leave it from now on.
func (e *Engine) Adopt(ctx context.Context, p Person, note string) error {
	if strings.TrimSpace(note) == "" {
		return noteMissing("/note", "Say what became of the database that this one was copied from.")
	}
	here := e.arrival.Load()
	if here == nil {
		return &Refusal{Code: CodeNotAllowed, Detail: "This server was not told which place it is in."}
	}
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		was, err := system.Stored(ctx, tx)
		if err != nil {
			return err
		}
		if was.Outward {
			return &Refusal{Code: CodeNotAllowed, Detail: "This database is at home: nothing is switched off."}
		}
		now := was
		now.Environment, now.Outward = here.place, true
		if err := system.Store(ctx, tx, now); err != nil {
			return err
		}
		before, err := json.Marshal(map[string]any{"environment": was.Environment, "outward": false})
		if err != nil {
			return fmt.Errorf("couldn't encode the trail: %w", err)
		}
		after, err := json.Marshal(map[string]any{"environment": here.place, "outward": true})
		if err != nil {
			return fmt.Errorf("couldn't encode the trail: %w", err)
		}
		return audit.Add(ctx, tx, audit.Row{Person: p.ID, Actor: p.Name, Via: "record", Action: "copy.adopt", Outcome: "done",
			Subject: "installation", Before: string(before), After: string(after), Note: e.words(note)})
	})
	if err == nil {
		e.hub.Changed("")
	}
	return err
}
