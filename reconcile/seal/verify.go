package seal

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"quittance/ledger"
	store "quittance/ledger/seal"
)

// Check is one thing that `quittance verify` looks at. Others are added to a list of
// them: a check reads, calls found for what is wrong in the order of its reading, and
// says how many things it looked at.
type Check struct {
	Name  string // one word, for programs
	About string // what it looks at, for people
	// Beside: what it finds is wrong with what the record says, and no damage of the record
	// itself. It opens no log gap.
	Beside bool
	Run    func(ctx context.Context, found func(store.Damage) error) (looked int64, err error)
}

// Report is what came of the checks.
type Report struct {
	OK     bool          `json:"ok"`
	Block  int64         `json:"block"`  // the head of the chain; 0: nothing is sealed
	Digest string        `json:"digest"` // its digest in hex
	Checks []CheckReport `json:"checks"`
}

// CheckReport is what came of one check.
type CheckReport struct {
	Name     string    `json:"name"`
	About    string    `json:"about"`
	OK       bool      `json:"ok"`
	Looked   int64     `json:"looked_at"`
	Found    int64     `json:"found"`    // how many findings there are
	Findings []Finding `json:"findings"` // the first of them
}

// Finding is one thing that is wrong.
type Finding struct {
	Block int64  `json:"block,omitempty"`
	What  string `json:"what"`
	// Known says that a server or an earlier check found the same.
	Known bool `json:"known"`
}

// findingsKept bounds a report; how many there are is counted.
const findingsKept = 100

// Verify runs checks one after the other. With record each finding that is not known, but
// for those of checks beside the record, opens a log gap: what was found damaged must not be
// built upon.
func Verify(ctx context.Context, db *ledger.DB, record bool, checks ...Check) (Report, error) {
	head, err := store.ReadHead(ctx, db)
	if err != nil {
		return Report{}, err
	}
	rep := Report{OK: true, Block: head.Number, Digest: fmt.Sprintf("%x", []byte(head.Digest)), Checks: []CheckReport{}}
	for _, c := range checks {
		cr := CheckReport{Name: c.Name, About: c.About, Findings: []Finding{}}
		cr.Looked, err = c.Run(ctx, func(d store.Damage) error {
			cr.Found++
			known, err := known(ctx, db, d, record && !c.Beside)
			if len(cr.Findings) < findingsKept {
				cr.Findings = append(cr.Findings, Finding{d.Block, d.What, known})
			}
			return err
		})
		if err != nil {
			return rep, fmt.Errorf("couldn't check %s: %w", c.Name, err)
		}
		cr.OK = cr.Found == 0
		rep.OK = rep.OK && cr.OK
		rep.Checks = append(rep.Checks, cr)
	}
	return rep, nil
}

func known(ctx context.Context, db *ledger.DB, d store.Damage, record bool) (bool, error) {
	if !record {
		return store.Known(ctx, db, d)
	}
	isNew, err := Record(ctx, db, d)
	return !isNew, err
}

// Checks are the checks of the log itself.
func Checks(db *ledger.DB, anchor *Anchor) []Check {
	return []Check{
		{Name: "anchor", About: "the chain holds the block that the anchor outside the database names", Run: func(ctx context.Context, found func(store.Damage) error) (int64, error) {
			return checkAnchor(ctx, db, anchor, found)
		}},
		{Name: "chain", About: "each sealed row is there, is the one that was sealed, and no other came between", Run: func(ctx context.Context, found func(store.Damage) error) (int64, error) {
			return checkChain(ctx, db, found)
		}},
		{Name: "unsealed", About: "rows that are too new to be sealed are whole", Run: func(ctx context.Context, found func(store.Damage) error) (int64, error) {
			return checkUnsealed(ctx, db, found)
		}},
		{Name: "fold", About: "the log of each effect, folded, gives its row", Run: func(ctx context.Context, found func(store.Damage) error) (int64, error) {
			return checkFold(ctx, db, found)
		}},
	}
}

func checkAnchor(ctx context.Context, db *ledger.DB, anchor *Anchor, found func(store.Damage) error) (int64, error) {
	h, err := anchor.Read()
	if err != nil || h.Number == 0 {
		return 0, err
	}
	d, err := anchorDamage(ctx, db, h)
	if err == nil && d != nil {
		err = found(*d)
	}
	return 1, err
}

// checkChain goes through the whole chain. The head is read first: blocks that come
// meanwhile are no concern of it.
func checkChain(ctx context.Context, db *ledger.DB, found func(store.Damage) error) (looked int64, err error) {
	head, err := store.ReadHead(ctx, db)
	if err != nil {
		return 0, err
	}
	for _, s := range store.Streams {
		rows, err := store.Rows(ctx, db, s, -1<<62, 0, blockRows)
		if err != nil {
			return looked, err
		}
		for _, r := range rows {
			if err := foundRow(ctx, db, s, r.ID, "%s was added where no number is ever given out", found); err != nil {
				return looked, err
			}
		}
	}
	w := newWalker(db, 1)
	for done := false; !done; {
		var n int
		if n, done, err = w.step(ctx, patrolBlocks, 10*blockRows, found); err != nil {
			return looked, err
		}
		looked += int64(n)
	}
	if w.next <= head.Number {
		err = found(store.Damage{What: fmt.Sprintf("blocks %d to %d, the end of the chain, are gone", w.next, head.Number)})
	}
	return looked, err
}

// checkUnsealed looks at rows behind the last block: that each carries the digest of what
// it says.
func checkUnsealed(ctx context.Context, db *ledger.DB, found func(store.Damage) error) (looked int64, err error) {
	for _, s := range store.Streams {
		after, err := store.SealedTo(ctx, db, s)
		for err == nil {
			var rows []store.Checked
			if rows, err = store.CheckedRows(ctx, db, s, after, math.MaxInt64, blockRows); err != nil || len(rows) == 0 {
				break
			}
			looked += int64(len(rows))
			after = rows[len(rows)-1].ID
			for _, r := range rows {
				if !bytes.Equal(r.Sum, r.Digest) {
					if err = foundRow(ctx, db, s, r.ID, "%s, not sealed yet, was changed: its digest does not recompute", found); err != nil {
						break
					}
				}
			}
		}
		if err != nil {
			return looked, err
		}
	}
	return looked, nil
}

func foundRow(ctx context.Context, db *ledger.DB, s store.Stream, id int64, what string, found func(store.Damage) error) error {
	text, err := nameRow(ctx, db, s, id, what)
	if err != nil {
		return err
	}
	return found(store.Damage{What: text})
}
