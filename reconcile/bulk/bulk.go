// Package bulk gives one verdict on many effects. A set is frozen first, with what is
// left out and why; then a person orders a verdict on exactly that set; then a job
// records the verdicts one by one by the same engine as any other, so that every rule
// (versions, second person, holds, undo) holds for each row.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
	"quittance/ledger/desk"
	"quittance/ledger/jobs"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
)

// Limits of a set. Above TypedAbove rows the number has to be typed before it is
// ordered; a verdict that lets calls be made again needs it always.
const (
	Limit      = 10_000
	TypedAbove = 20
	batch      = 25
)

// Names of the jobs.
const (
	JobDecide = "bulk_decide"
	JobUndo   = "bulk_undo"
)

var (
	// ErrEmpty refuses a set without effects, as an empty filter would be.
	ErrEmpty = errors.New("nothing was chosen: choose rows, or filter first")
	// ErrTooMany refuses a set above [Limit].
	ErrTooMany = fmt.Errorf("a set holds at most %d effects: filter closer", Limit)
	// ErrOrdered: the set has its verdict already.
	ErrOrdered = errors.New("this set was ordered already")
	// ErrNotYours: only who froze a set orders it.
	ErrNotYours = errors.New("somebody else made this set")
)

// Invalid says what is missing in an order.
type Invalid struct{ Text string }

func (e *Invalid) Error() string { return e.Text }

// Service freezes sets and orders them. Safe for concurrent use.
type Service struct {
	db     *ledger.DB
	engine *effects.Engine
	jobs   *jobs.Jobs // set once by Work
}

// New makes a service; nothing can be ordered before [Service.Use].
func New(db *ledger.DB, engine *effects.Engine) *Service { return &Service{db: db, engine: engine} }

// Funcs are the jobs of this package.
func (s *Service) Funcs() map[string]jobs.Func {
	return map[string]jobs.Func{JobDecide: s.decideAll, JobUndo: s.undoAll}
}

// Use tells by what jobs are handed out.
func (s *Service) Use(j *jobs.Jobs) { s.jobs = j }

// Freeze makes a set of what a page showed. The version of each row is the one the
// person looked at: a row that has changed since is left out, with that reason.
func (s *Service) Freeze(ctx context.Context, by access.MadeBy, filter string, rows []desk.Frozen) (id string, err error) {
	switch {
	case len(rows) == 0:
		return "", ErrEmpty
	case len(rows) > Limit:
		return "", ErrTooMany
	}
	ids := make([]string, 0, len(rows))
	kept := make([]desk.BulkRow, 0, len(rows))
	seen := make(map[uuid.UUID]bool, len(rows))
	for _, r := range rows {
		if key, err := uuid.Parse(r.Effect); err == nil && !seen[key] {
			seen[key] = true
			ids = append(ids, key.String())
			kept = append(kept, desk.BulkRow{Effect: key.String(), Version: r.Version})
		}
	}
	now, err := desk.Standing(ctx, s.db, ids)
	if err != nil {
		return "", err
	}
	kept = slices.DeleteFunc(kept, func(r desk.BulkRow) bool { _, ok := now[r.Effect]; return !ok })
	if len(kept) == 0 {
		return "", ErrEmpty
	}
	for i := range kept {
		kept[i].Excluded = leftOut(kept[i].Version, now[kept[i].Effect])
	}
	id = uuid.NewString()
	b := desk.Bulk{ID: id, Person: by.Person.ID, Name: "unnamed", Filter: filter}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := desk.AddBulk(ctx, tx, b, kept); err != nil {
			return err
		}
		r := by.Row("bulk.freeze", "bulk:"+id)
		r.After = fmt.Sprintf(`{"effects":%d}`, len(kept))
		return audit.Add(ctx, tx, r)
	})
	return id, err
}

// leftOut says why an effect is no part of a set, "" when it is.
func leftOut(version int64, x desk.BulkRow) string {
	switch {
	case x.Contra:
		return "a contradiction is looked at by itself"
	case x.State == string(effects.Held):
		return "it is held: whether it may run is decided by itself"
	case x.Proposed:
		return "a verdict waits for a second person"
	case x.State != string(effects.Interrupted):
		return "it does not wait any more"
	case version != x.VersionIs:
		return "it has changed since it was listed"
	}
	return ""
}

// Order is a person's verdict on a set.
type Order struct {
	Set     string
	Name    string
	Verdict effects.Verdict // taken, stop or not_taken
	Note    string
	Typed   string // the number of effects, where it has to be typed
}

// Order records the verdict and hands the work out, in one transaction with its line in
// the audit trail.
func (s *Service) Order(ctx context.Context, by access.MadeBy, o Order) error {
	b, err := desk.BulkByID(ctx, s.db, o.Set)
	if err != nil {
		return err
	}
	if b.Person != by.Person.ID {
		return ErrNotYours
	}
	counts, err := desk.BulkCounts(ctx, s.db, o.Set)
	if err != nil {
		return err
	}
	n := 0
	for _, c := range counts {
		if c.Excluded == "" {
			n += c.Rows
		}
	}
	if err := o.check(n); err != nil {
		return err
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := desk.OrderBulk(ctx, tx, o.Set, o.Name, string(o.Verdict), o.Note)
		if err != nil {
			return err
		}
		if !ok {
			return ErrOrdered
		}
		r := by.Row("bulk.order", "bulk:"+o.Set)
		r.After, r.Note = fmt.Sprintf(`{"verdict":%q,"effects":%d}`, o.Verdict, n), o.Name+": "+o.Note
		if err := audit.Add(ctx, tx, r); err != nil {
			return err
		}
		return s.jobs.Later(ctx, tx, JobDecide, o.Set)
	})
}

func (o Order) check(n int) error {
	switch {
	case n == 0:
		return &Invalid{"Every effect of this set is left out: there is nothing to decide."}
	case strings.TrimSpace(o.Name) == "" || len(o.Name) > 256:
		return &Invalid{"Give it a name, to find it again."}
	case o.Verdict != effects.VerdictTaken && o.Verdict != effects.VerdictStop && o.Verdict != effects.VerdictNotTaken:
		return &Invalid{"Choose what happened."}
	case strings.TrimSpace(o.Note) == "":
		return &Invalid{"Say what you saw, and where: it stands with each of them."}
	case o.Typed != fmt.Sprint(n) && NeedsTyping(n, o.Verdict):
		return &Invalid{fmt.Sprintf("Type the number of effects, %d, to say that you mean all of them.", n)}
	}
	return nil
}

// NeedsTyping tells whether the number has to be typed.
func NeedsTyping(n int, v effects.Verdict) bool {
	return n > TypedAbove || v == effects.VerdictNotTaken
}

// Undo asks for everything of a set that no agent has used yet to be taken back.
func (s *Service) Undo(ctx context.Context, by access.MadeBy, set, note string) error {
	if strings.TrimSpace(note) == "" {
		return &Invalid{"Say why it is taken back."}
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := desk.UndoBulk(ctx, tx, set, by.Person.ID, note)
		if err != nil {
			return err
		}
		if !ok {
			return ErrOrdered
		}
		r := by.Row("bulk.undo", "bulk:"+set)
		r.Note = note
		if err := audit.Add(ctx, tx, r); err != nil {
			return err
		}
		return s.jobs.Later(ctx, tx, JobUndo, set)
	})
}

// actor is who a job acts for, as long as they may still decide.
func (s *Service) actor(ctx context.Context, id int64) (effects.Person, error) {
	p, err := store.PersonByID(ctx, s.db, id)
	if err != nil {
		return effects.Person{}, err
	}
	person := access.Person{ID: p.ID, Name: p.Name, Roles: p.Roles}
	if !p.DisabledAt.IsZero() || !person.Is(access.Deciders...) {
		return effects.Person{}, errNoRight
	}
	return effects.Person{ID: p.ID, Name: p.Name}, nil
}

var errNoRight = errors.New("who ordered this may not decide any more")
