package seal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/ledger/ledgertest"
	store "quittance/ledger/seal"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
	"quittance/reconcile/seal"
)

const rules = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{invoice}"
    deadline: 60s
`

// world is an engine and a sealer on a database of its own.
type world struct {
	*effects.Engine
	t       *testing.T
	db      *ledger.DB
	dsn     string
	sealer  *seal.Sealer
	anchor  *seal.Anchor
	account int64
	person  effects.Person
	n       int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dsn: ledgertest.URL(t)}
	w.db = w.open()
	p, mistakes := policy.Load("quittance.yaml", []byte(rules))
	if p == nil {
		t.Fatal(mistakes)
	}
	var err error
	if w.Engine, err = effects.New(t.Context(), w.db, p, notify.NewHub(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	w.anchor = seal.NewAnchor(filepath.Join(t.TempDir(), "anchor.json"))
	w.sealer = w.newSealer()
	err = w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		if w.account, err = access.Account(ctx, tx, "acme"); err != nil {
			return err
		}
		w.person.Name = "Petra"
		w.person.ID, err = access.AddPerson(ctx, tx, "Petra", "", []string{"operator", "admin"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) open() *ledger.DB {
	w.t.Helper()
	db, err := ledger.Open(w.t.Context(), w.dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (w *world) newSealer() *seal.Sealer {
	return seal.New(w.db, w.anchor, func() {}, slog.New(slog.DiscardHandler))
}

// effect begins and finishes one in a run of its own, with some evidence from a person.
func (w *world) effect() {
	w.t.Helper()
	w.n++
	run := fmt.Sprintf("run-%d", w.n)
	l, err := w.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "bot", Worker: "pod", AttemptID: "1"})
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.apply(effects.Op{Begin: &effects.Begin{Account: w.account, RunID: run, Lease: l.Token, AttemptID: "1", Tool: "send_payment",
		Arguments: fmt.Appendf(nil, `{"invoice":"INV-%d"}`, w.n), Occurrence: 1}})
	if a.Begin == nil {
		w.t.Fatal(a.Refusal)
	}
	f := w.apply(effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: a.Begin.EffectID, Fence: a.Begin.Fence, Outcome: "taken",
		Reference: fmt.Sprintf("po_%d", w.n), Result: []byte(`{"ok":true}`)}})
	if f.Finish == nil {
		w.t.Fatal(f.Refusal)
	}
}

// judged is an effect that a person decided.
func (w *world) judged() {
	w.t.Helper()
	w.n++
	run := fmt.Sprintf("run-%d", w.n)
	l, err := w.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "bot", Worker: "pod", AttemptID: "1"})
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.apply(effects.Op{Begin: &effects.Begin{Account: w.account, RunID: run, Lease: l.Token, AttemptID: "1", Tool: "send_payment",
		Arguments: fmt.Appendf(nil, `{"invoice":"INV-%d"}`, w.n), Occurrence: 1}})
	w.apply(effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: a.Begin.EffectID, Fence: a.Begin.Fence, Outcome: "no idea"}})
	if _, err := w.Decide(w.t.Context(), w.person, []effects.Decide{{EffectID: a.Begin.EffectID, Verdict: effects.VerdictTaken, Note: "seen in the portal", Reference: fmt.Sprintf("po_%d", w.n), Version: 2}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) apply(op effects.Op) effects.Answer {
	w.t.Helper()
	list, err := w.Apply(w.t.Context(), []effects.Op{op})
	if err != nil {
		w.t.Fatal(err)
	}
	return list[0]
}

// seal seals until nothing is left and says how many blocks there are then.
func (w *world) seal() int64 {
	w.t.Helper()
	for {
		more, waits, err := w.sealer.Seal(w.t.Context())
		if err != nil || len(waits) > 0 {
			w.t.Fatalf("sealed: waits for %v, %v", waits, err)
		}
		if !more {
			break
		}
	}
	h, err := store.ReadHead(w.t.Context(), w.db)
	if err != nil {
		w.t.Fatal(err)
	}
	return h.Number
}

// verify runs the checks; with record they open a gap for what they find.
func (w *world) verify(record bool) seal.Report {
	w.t.Helper()
	r, err := seal.Verify(w.t.Context(), w.db, record, seal.Checks(w.db, w.anchor)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// clean fails the test when the checks find anything.
func (w *world) clean() {
	w.t.Helper()
	if r := w.verify(false); !r.OK {
		w.t.Fatalf("found: %s", strings.Join(findings(r), "\n"))
	}
}

func findings(r seal.Report) (list []string) {
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			list = append(list, c.Name+": "+f.What)
		}
	}
	return list
}

// exec runs statements as the owner of the tables.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool().ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

func (w *world) get(dest any, query string, args ...any) {
	w.t.Helper()
	if err := w.db.Pool().QueryRowContext(w.t.Context(), query, args...).Scan(dest); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
}

// behind fails the test unless nothing is released now.
func (w *world) behind() {
	w.t.Helper()
	g, err := w.Gap(w.t.Context())
	if err != nil || g == nil || !g.AcknowledgedAt.IsZero() {
		w.t.Fatalf("there is no unacknowledged gap: %+v, %v", g, err)
	}
	w.n++
	_, err = w.Open(w.t.Context(), effects.Open{Account: w.account, RunID: fmt.Sprint("behind-", w.n), Agent: "bot", Worker: "pod", AttemptID: "1"})
	if r, ok := errors.AsType[*effects.Refusal](err); !ok || r.Code != effects.CodeLogBehind {
		w.t.Fatalf("a run was opened: %v", err)
	}
}

// acknowledge has a person acknowledge the gap, and fails unless both are audited.
func (w *world) acknowledge() {
	w.t.Helper()
	if err := w.AcknowledgeGap(w.t.Context(), w.person, "I know"); err != nil {
		w.t.Fatal(err)
	}
	var n int
	w.get(&n, `SELECT count(*) FROM audit WHERE action = 'gap.acknowledge' AND person_id = $1`, w.person.ID)
	if n == 0 {
		w.t.Error("the acknowledgement is not audited")
	}
	w.get(&n, `SELECT count(*) FROM audit WHERE action = 'gap.found'`)
	if n == 0 {
		w.t.Error("that it was found is not audited")
	}
}
