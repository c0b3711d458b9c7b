package seal

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"quittance/ledger"
	store "quittance/ledger/seal"
	"quittance/ledger/system"
)

// Status is what a page shows of the sealed record.
type Status struct {
	Head          store.Head
	Passed        time.Time            // when this server last sealed or saw another do it
	Waits         map[string]time.Time // tables that wait for a transaction, since when
	Trouble       string               // what fails now, "" for nothing
	Anchor        string               // where the head is kept, "" for nowhere
	Anchored      int64                // number of the anchored block
	AnchorTrouble string
	Rounds        int64 // how often the patrol has seen all of the chain
}

// Status is how things stand on this server.
func (s *Sealer) Status() Status { return *s.status.Load() }

// since keeps from when on each table waits.
func since(was map[string]time.Time, waits []string) map[string]time.Time {
	now := map[string]time.Time{}
	for _, table := range waits {
		if now[table] = was[table]; now[table].IsZero() {
			now[table] = time.Now()
		}
	}
	return now
}

// Damages is what was found, newest first.
func (s *Sealer) Damages(ctx context.Context, n int) ([]store.Damage, error) {
	return store.Damages(ctx, s.db, n)
}

// found keeps damage and opens a log gap for it, once.
func (s *Sealer) found(ctx context.Context, d store.Damage) error {
	isNew, err := Record(ctx, s.db, d)
	if err != nil || !isNew {
		return err
	}
	s.log.Error("log gap: the sealed record is damaged; nothing is released until a person acknowledges it", "block", d.Block, "found", d.What)
	s.changed()
	return nil
}

// Record keeps damage, opens a log gap for it, and tells whether it was not known.
func Record(ctx context.Context, db *ledger.DB, d store.Damage) (isNew bool, err error) {
	err = db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		if isNew, err = store.Note(ctx, tx, d); err != nil || !isNew {
			return err
		}
		return system.LoseMore(ctx, tx, d.What, d.Before)
	})
	return isNew, err
}

// Watch looks at the end of each sealed table: its last sealed row has to be there, and
// its numbers must not have gone back.
func (s *Sealer) Watch(ctx context.Context) error {
	list, err := store.Ends(ctx, s.db)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !bytes.Equal(e.Have, e.Want) {
			what := "is gone"
			if e.Have != nil {
				what = "was changed"
			}
			if err := s.found(ctx, store.Damage{Block: e.Block, What: fmt.Sprintf("row %d of %s, the last that was sealed, %s", e.Last, e.Stream.Table, what)}); err != nil {
				return err
			}
		}
		if e.Next < e.Last {
			if err := s.found(ctx, store.Damage{Block: e.Block, What: fmt.Sprintf("%s is sealed to row %d, and its numbers went back to %d", e.Stream.Table, e.Last, e.Next)}); err != nil {
				return err
			}
			if err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return store.Skip(ctx, tx, e.Stream, e.Last) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// Compare looks whether the chain holds the anchored block, opens a log gap when it does
// not, and moves the anchor to the head. known is the number that it was moved to last.
// A server does this before it serves anybody, and each second.
func (s *Sealer) Compare(ctx context.Context, known int64) (head store.Head, anchored int64, err error) {
	if head, err = store.ReadHead(ctx, s.db); err != nil {
		return head, known, err
	}
	was, err := s.anchor.Read()
	if err != nil {
		return head, known, err
	}
	if was.Number > 0 {
		d, err := anchorDamage(ctx, s.db, was)
		if err != nil {
			return head, known, err
		}
		if d != nil {
			if err := s.found(ctx, *d); err != nil {
				return head, known, err
			}
			s.anchor.SetAside(was.Number)
		}
	}
	if head.Number == was.Number && bytes.Equal(head.Digest, was.Digest) {
		return head, was.Number, nil
	}
	if err := s.anchor.Write(head); err != nil {
		return head, was.Number, err
	}
	return head, head.Number, nil
}

// anchorDamage says what it means that the chain does not hold the anchored block; nil
// when it does.
func anchorDamage(ctx context.Context, r ledger.Reader, h store.Head) (*store.Damage, error) {
	digest, err := store.DigestAt(ctx, r, h.Number)
	if err != nil || bytes.Equal(digest, h.Digest) {
		return nil, err
	}
	return &store.Damage{What: fmt.Sprintf("the anchor outside the database names block %d (%x), which this database does not hold: it is older, or another", h.Number, h.Digest[:8])}, nil
}

// Arrive compares the anchor before the server serves anybody. An anchor that is there
// and cannot be read, or a place where none can be written, is an error.
func (s *Sealer) Arrive(ctx context.Context) error {
	if err := s.anchor.Prepare(); err != nil {
		return err
	}
	was, err := s.anchor.Read()
	if err != nil {
		return err
	}
	head, anchored, err := s.Compare(ctx, 0)
	if err != nil {
		return err
	}
	switch {
	case s.anchor.Path() == "":
		s.log.Warn("no anchor is kept outside the database: a restore from an older backup may go unnoticed")
	case was.Number == 0 && head.Number > 0:
		s.log.Warn("there was no anchor to compare this database with; it is written now", "anchor", s.anchor.Path(), "block", head.Number)
	}
	s.status.Store(&Status{Head: head, Anchor: s.anchor.Path(), Anchored: anchored})
	return s.Watch(ctx)
}
