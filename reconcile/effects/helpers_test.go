package effects_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/reconcile/effects"
)

// slow keeps every hold and permission long, so that nothing moves by itself.
const slowRelease = `
release: {hold: 1h, not_taken_hold: 1h}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
`

// count reads one number.
func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), &n, query, args...); err != nil {
		w.t.Fatalf("count: %v", err)
	}
	return n
}

// exec changes a row behind the engine's back.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if !w.tampered {
		w.tampered = true
	}
	err := w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		w.t.Fatalf("exec: %v", err)
	}
}

// passLease lets the run's lease run out now.
func (w *world) passLease(run string) {
	w.t.Helper()
	w.exec(`UPDATE runs SET lease_until = clock_timestamp() - interval '1 millisecond' WHERE account_id = $1 AND run_id = $2 AND lease_until IS NOT NULL`, w.account, run)
}

// passDeadline lets the deadline and the moment of an effect pass now.
func (w *world) passDeadline(effect string) {
	w.t.Helper()
	w.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '1 millisecond', moment = clock_timestamp() - interval '1 millisecond'
		WHERE id = $1::uuid AND deadline IS NOT NULL`, effect)
}

// passHold lets the hold of a decision pass now.
func (w *world) passHold(effect string) {
	w.t.Helper()
	w.exec(`UPDATE effects SET release_at = clock_timestamp() - interval '1 millisecond' WHERE id = $1::uuid AND NOT released`, effect)
}

// agePermission lets a run have been resumable, and a decision released, for d.
func (w *world) agePermission(effect string, d time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE runs r SET resumable_since = clock_timestamp() - $2 * interval '1 microsecond' FROM effects e WHERE e.id = $1::uuid AND r.id = e.run_id`, effect, d.Microseconds())
	w.exec(`UPDATE effects SET release_at = clock_timestamp() - $2 * interval '1 microsecond' WHERE id = $1::uuid AND release_at IS NOT NULL`, effect, d.Microseconds())
}

// settle runs every loop once.
func (w *world) settle() {
	w.t.Helper()
	if err := w.Tick(w.t.Context()); err != nil {
		w.t.Fatalf("loops: %v", err)
	}
}

// interrupted is a run with one effect whose worker died.
func (w *world) interrupted(run, tool, args string) (effects.Lease, *effects.BeginAnswer) {
	w.t.Helper()
	l := w.open(run, "pod-1")
	b := w.proceed(l, tool, args)
	w.die(l)
	w.wantState(b.EffectID, effects.Interrupted)
	return l, b
}

// die lets the worker of a lease disappear and its lease run out.
func (w *world) die(l effects.Lease) {
	w.t.Helper()
	w.passLease(l.RunID)
	w.settle()
}

func (w *world) must(p effects.Person, d effects.Decide) *effects.DecideAnswer {
	w.t.Helper()
	a, r := w.decide(p, d)
	if r != nil {
		w.t.Fatalf("%s: %v", d.Verdict, r)
	}
	return a
}

func (w *world) refused(p effects.Person, d effects.Decide, code effects.Code) *effects.Refusal {
	w.t.Helper()
	a, r := w.decide(p, d)
	if r == nil || r.Code != code {
		w.t.Fatalf("%s: got %+v %v, want %s", d.Verdict, a, r, code)
	}
	return r
}

func (w *world) wantRun(run, state string) {
	w.t.Helper()
	if got := w.run(run).State; got != state {
		w.t.Fatalf("run %s is %s, want %s", run, got, state)
	}
}

// owner is who holds the claim of an effect; "" when it is free.
func (w *world) owner(effect string) string {
	w.t.Helper()
	var id string
	err := w.db.Get(w.t.Context(), &id, `
		SELECT COALESCE((SELECT c.effect_id::text FROM business_claims c WHERE c.digest = e.claim), '') FROM effects e WHERE e.id = $1::uuid`, effect)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) wantOwner(effect, owner string) {
	w.t.Helper()
	if got := w.owner(effect); got != owner {
		w.t.Fatalf("the claim of %s is held by %q, want %q", effect, got, owner)
	}
}

func (w *world) openErr(run, worker, attempt string) error {
	_, err := w.Open(w.t.Context(), effects.Open{Account: w.account, RunID: run, Agent: "ap-bot", Worker: worker, AttemptID: attempt})
	return err
}

func wantErr(t *testing.T, err error, code effects.Code) *effects.Refusal {
	t.Helper()
	r := refusalOf(err)
	if r == nil || r.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return r
}

func pay(invoice, amount string) string {
	return fmt.Sprintf(`{"vendor":"ACME Tools","invoice":%q,"amount":%q,"currency":"USD"}`, invoice, amount)
}

func occurrence(n int) func(*effects.Begin) { return func(b *effects.Begin) { b.Occurrence = n } }

func result(text string) func(*effects.Finish) {
	return func(f *effects.Finish) { f.Result = []byte(text) }
}

func reference(text string) func(*effects.Finish) {
	return func(f *effects.Finish) { f.Reference = text }
}

func heldAnswer(w *world, l effects.Lease, tool, args string, edit ...func(*effects.Begin)) string {
	w.t.Helper()
	r := w.wantRefusal(w.begin(l, tool, args, edit...), effects.CodeRunPaused)
	if r.EffectID == "" {
		w.t.Fatalf("held without an effect: %+v", r)
	}
	w.wantState(r.EffectID, effects.Held)
	return r.EffectID
}
