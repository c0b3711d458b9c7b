package bulk_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/desk"
	"quittance/ledger/jobs"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/bulk"
	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
)

// world is an engine, a person who decides, and effects that wait.
type world struct {
	db      *ledger.DB
	engine  *effects.Engine
	service *bulk.Service
	by      access.MadeBy
	rows    []desk.Frozen
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	w := &world{db: ledgertest.New(t)}
	var err error
	if w.engine, err = effects.New(t.Context(), w.db, policy.Default(), nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	w.service = bulk.New(w.db, w.engine)
	var account int64
	err = w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		if account, err = store.Account(ctx, tx, "acme"); err != nil {
			return err
		}
		p := access.Person{Name: "Petra", Roles: []string{"operator"}}
		p.ID, err = store.AddPerson(ctx, tx, p.Name, "", p.Roles)
		w.by.Person = &p
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		run := fmt.Sprint("run-", i)
		l, err := w.engine.Open(t.Context(), effects.Open{Account: account, RunID: run, Agent: "bot", Worker: "w", AttemptID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.engine.Apply(t.Context(), []effects.Op{{Begin: &effects.Begin{Account: account, RunID: run, Lease: l.Token, AttemptID: "a", Tool: "send_email", Arguments: fmt.Appendf(nil, `{"n":%d}`, i)}}})
		if err != nil || a[0].Begin == nil {
			t.Fatal(err, a[0].Refusal)
		}
		if _, err := w.engine.Release(t.Context(), account, run, l.Token, ""); err != nil {
			t.Fatal(err)
		}
		v, err := w.engine.Effect(t.Context(), 0, a[0].Begin.EffectID)
		if err != nil {
			t.Fatal(err)
		}
		w.rows = append(w.rows, desk.Frozen{Effect: v.EffectID, Version: v.Version})
	}
	return w
}

// order freezes and orders all rows; no job runs yet.
func (w *world) order(t *testing.T) string {
	t.Helper()
	j, err := jobs.New(w.db, slog.New(slog.DiscardHandler), w.service.Funcs())
	if err != nil {
		t.Fatal(err)
	}
	w.service.Use(j)
	set, err := w.service.Freeze(t.Context(), w.by, "tool=send_email", w.rows)
	if err != nil {
		t.Fatal(err)
	}
	err = w.service.Order(t.Context(), w.by, bulk.Order{Set: set, Name: "mail down", Verdict: effects.VerdictStop, Note: "provider log", Typed: fmt.Sprint(len(w.rows))})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (w *world) decisions(t *testing.T) (n int) {
	t.Helper()
	if err := w.db.Get(t.Context(), &n, `SELECT count(*) FROM decisions WHERE act = 'decide'`); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestACutOffOrderIsFinishedOnce: the server dies in the middle, also between a verdict
// and its note, and another takes the work up; each row is decided exactly once.
func TestACutOffOrderIsFinishedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 60)
	set := w.order(t)
	decide := w.service.Funcs()[bulk.JobDecide]
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- decide(ctx, set) }()
	for w.decisions(t) < 10 {
		time.Sleep(time.Millisecond)
	}
	kill()
	if err := <-done; err == nil {
		t.Fatal("the work was through before it was cut off")
	}
	// The worst moment: decided, and what became of it not noted.
	if _, err := w.db.Pool().ExecContext(t.Context(), `UPDATE bulk_rows SET outcome = NULL, done_at = NULL`); err != nil {
		t.Fatal(err)
	}
	if err := decide(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	counts, err := desk.BulkCounts(t.Context(), w.db, set)
	if err != nil || len(counts) != 1 || counts[0].Outcome != bulk.Done || counts[0].Rows != 60 {
		t.Errorf("%+v, %v", counts, err)
	}
	if n := w.decisions(t); n != 60 {
		t.Errorf("%d decisions for 60 effects", n)
	}
	if err := decide(t.Context(), set); err != nil || w.decisions(t) != 60 {
		t.Errorf("once more: %d decisions, %v", w.decisions(t), err)
	}
}

func TestAnOrderEndsWithTheRightToDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	set := w.order(t)
	if _, err := w.db.Pool().ExecContext(t.Context(), `UPDATE people SET roles = '{viewer}'`); err != nil {
		t.Fatal(err)
	}
	if err := w.service.Funcs()[bulk.JobDecide](t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if n := w.decisions(t); n != 0 {
		t.Errorf("%d decisions by somebody who may not decide any more", n)
	}
}

// TestAnUndoneOrderLeavesWhatOthersDecided: only what still stands as it was ordered is
// taken back.
func TestAnUndoneOrderLeavesWhatOthersDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	set := w.order(t)
	if err := w.service.Funcs()[bulk.JobDecide](t.Context(), set); err != nil {
		t.Fatal(err)
	}
	petra, other := effects.Person{ID: w.by.Person.ID, Name: "Petra"}, w.rows[0].Effect
	if _, err := w.engine.Undo(t.Context(), petra, effects.Undo{EffectID: other, Note: "it was sent after all"}); err != nil {
		t.Fatal(err)
	}
	v, err := w.engine.Effect(t.Context(), 0, other)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.engine.Decide(t.Context(), petra, []effects.Decide{{EffectID: other, Version: v.Version, Verdict: effects.VerdictTaken, Note: "provider log, line 7"}})
	if err != nil || r[0].Refusal != nil {
		t.Fatal(err, r[0].Refusal)
	}
	if err := w.service.Undo(t.Context(), w.by, set, "wrong set"); err != nil {
		t.Fatal(err)
	}
	if err := w.service.Funcs()[bulk.JobUndo](t.Context(), set); err != nil {
		t.Fatal(err)
	}
	for i, row := range w.rows {
		v, err := w.engine.Effect(t.Context(), 0, row.Effect)
		want := "interrupted"
		if row.Effect == other {
			want = "taken"
		}
		if err != nil || v.State != want {
			t.Errorf("effect %d is %s, want %s, %v", i, v.State, want, err)
		}
	}
}

// TestATakingBackEndsWithTheRightToDecide: it says so on each row, and is not tried for
// ever.
func TestATakingBackEndsWithTheRightToDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	set := w.order(t)
	if err := w.service.Funcs()[bulk.JobDecide](t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := w.service.Undo(t.Context(), w.by, set, "wrong set"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Pool().ExecContext(t.Context(), `UPDATE people SET roles = '{viewer}'`); err != nil {
		t.Fatal(err)
	}
	if err := w.service.Funcs()[bulk.JobUndo](t.Context(), set); err != nil {
		t.Fatal(err)
	}
	b, err := desk.BulkByID(t.Context(), w.db, set)
	if err != nil || b.FinishedAt.IsZero() {
		t.Errorf("it is not finished: %v", err)
	}
	rows, err := desk.BulkRows(t.Context(), w.db, set, false, -1, 10)
	if err != nil || len(rows) != 2 {
		t.Fatal(len(rows), err)
	}
	for _, r := range rows {
		if r.State != "cancelled" || !strings.Contains(r.Undone, "may not decide any more") {
			t.Errorf("%s: %q", r.State, r.Undone)
		}
	}
}

func TestRiverDoesTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	set := w.order(t)
	j, err := jobs.New(w.db, slog.New(slog.DiscardHandler), w.service.Funcs())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- j.Run(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); w.decisions(t) < 5; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody did the job")
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if b, err := desk.BulkByID(t.Context(), w.db, set); err != nil || b.Verdict != "stop" {
		t.Errorf("%+v %v", b, err)
	}
}

func TestLimitsOfASet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	if _, err := w.service.Freeze(t.Context(), w.by, "", nil); err != bulk.ErrEmpty {
		t.Errorf("an empty set: %v", err)
	}
	if _, err := w.service.Freeze(t.Context(), w.by, "", make([]desk.Frozen, bulk.Limit+1)); err != bulk.ErrTooMany {
		t.Errorf("too many: %v", err)
	}
	if _, err := w.service.Freeze(t.Context(), w.by, "", []desk.Frozen{{Effect: "01234567-89ab-cdef-0123-456789abcdef"}, {Effect: "nonsense"}}); err != bulk.ErrEmpty {
		t.Errorf("effects that do not exist: %v", err)
	}
}
