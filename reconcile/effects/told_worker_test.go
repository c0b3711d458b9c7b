package effects_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

const workerPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
    lands_within: 1ms
    lookup:
      worker: {pool: bank}
      canary: CANARY
      absence_is_proof: true
      visible_after: 1ms
      kept_for: 90d
      world: live
`

const nothingFound = `{"hits":[],"complete":true,"canary_seen":true,"world":"live"}`

// bankRecord is what a worker brings of pay(invoice, amount).
func bankRecord(invoice, amount string) string {
	return fmt.Sprintf(`{"hits":[{"business_key":%q,"reference":"P-%s","amount":%q,"currency":"USD","recipient_matches":true,"final":true,
		"result":{"payment_id":"P-%s"}}],"complete":true}`, acme(invoice), invoice, amount, invoice)
}

func (w *world) claim(most int) []effects.LookupQuestion {
	w.t.Helper()
	list, err := w.ClaimLookups(w.t.Context(), effects.ClaimLookups{Account: w.account, Pool: "bank", Max: most})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// A question that no worker ever takes ends as a downstream does that is asked in vain: when
// the rest of its schedule would be over a person has to find out, and not before.
func TestAQuestionThatNobodyTakesIsEscalated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	ended := func(waited time.Duration) bool {
		t.Helper()
		w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() - make_interval(secs => $2) WHERE effect_id = $1::uuid`, b.EffectID, waited.Seconds())
		if err := w.Told(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := w.Looks(t.Context(), b.EffectID)
		if err != nil {
			t.Fatal(err)
		}
		return !v.EndedAt.IsZero() && v.Next.IsZero()
	}
	if ended(8 * 24 * time.Hour) {
		t.Fatal("before a worker's schedule would be over")
	}
	if !ended(9 * 24 * time.Hour) {
		t.Fatal("it waits for ever")
	}
	if page, err := w.Queue(t.Context(), effects.QueueQuery{}); err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if soon, err := w.LookNow(t.Context(), b.EffectID); err != nil || !soon {
		t.Fatal(soon, err)
	}
	w.one() // a worker that is there at last
}

// one claims the only question there is.
func (w *world) one() effects.LookupQuestion {
	w.t.Helper()
	list := w.claim(10)
	if len(list) != 1 {
		w.t.Fatalf("%d questions, want one", len(list))
	}
	return list[0]
}

func (w *world) answer(id, brought string) effects.LookupVerdict {
	w.t.Helper()
	v, err := w.AnswerLookup(w.t.Context(), w.account, id, []byte(brought))
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// told looks after workers and events once.
func (w *world) told() {
	w.t.Helper()
	if err := w.Told(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// passLookup lets the minute of whoever was given a question be over.
func (w *world) passLookup() {
	w.t.Helper()
	w.exec(`UPDATE lookup_schedule SET asked_at = asked_at - interval '61 s', asked_until = asked_until - interval '61 s' WHERE asked_by IS NOT NULL`)
}

// dueNow lets every question be due.
func (w *world) dueNow() {
	w.t.Helper()
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE next_lookup_at IS NOT NULL`)
}

func TestAWorkerProvesTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.look() // nobody asks a worker
	q := w.one()
	if q.Effect != b.EffectID || q.Run != "run" || q.Tool != "send_payment" || q.BusinessKey != acme("INV-1") || q.VendorKey != b.VendorKey ||
		string(q.Arguments) != pay("INV-1", "4200.00") || q.Amount.String() != "4200.00" || q.Canary != "CANARY" || q.World != "live" ||
		len(q.Attempts) != 1 || q.Within <= 50*time.Second || q.Within > time.Minute || q.AskedAt.IsZero() {
		t.Fatalf("%+v", q)
	}
	if v := w.looks(b.EffectID); !v.Asking {
		t.Errorf("the page does not say that a worker has it: %+v", v)
	}
	if again := w.claim(10); len(again) != 0 {
		t.Errorf("it was given to two: %+v", again)
	}
	v := w.answer(q.ID, bankRecord("INV-1", "4200.00"))
	if v.Verdict != "taken" || v.Reason != lookup.Matched || v.EffectID != b.EffectID || v.Why == "" {
		t.Errorf("%+v", v)
	}
	if e := w.wantState(b.EffectID, effects.Taken); e.DecidedBy != "look_up" || e.Reference != "P-INV-1" || string(e.Result) != `{"payment_id":"P-INV-1"}` {
		t.Errorf("%+v", e)
	}
	if l := w.looks(b.EffectID).Looks; len(l) != 1 || l[0].ID != q.ID || l[0].Kind != "worker" || l[0].Cause != "schedule" || l[0].Latency < 0 {
		t.Errorf("%+v", l)
	}
}

func TestAWorkerProvesNotTakenByTheSameRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	if v := w.answer(w.one().ID, nothingFound); v.Verdict != "inconclusive" || v.Reason != lookup.NotYet || v.Earliest.IsZero() {
		t.Fatalf("one look proved %+v", v)
	}
	again := func(ago time.Duration) effects.LookupVerdict {
		w.exec(`ALTER TABLE lookups DISABLE TRIGGER lookups_append_only`)
		w.exec(`UPDATE lookups SET asked_at = asked_at - $1 * interval '1 microsecond',
			read = jsonb_set(read::jsonb, '{asked_at}', to_jsonb((read::jsonb->>'asked_at')::timestamptz - $1 * interval '1 microsecond'))::text`, ago.Microseconds())
		w.dueNow()
		return w.answer(w.one().ID, nothingFound)
	}
	if v := again(20 * time.Second); v.Verdict != "inconclusive" {
		t.Fatalf("two looks at 20 s proved %+v", v)
	}
	if v := again(11 * time.Second); v.Verdict != "not_taken" || v.Reason != lookup.Absent {
		t.Fatalf("%+v", v)
	}
	w.wantState(b.EffectID, effects.Cleared)
}

// Whatever is wrong with an answer, nothing is applied, nothing is lost, and the worker that
// has the question may still answer it.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	var stranger int64
	err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		stranger, err = access.Account(ctx, tx, "other")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := w.ClaimLookups(t.Context(), effects.ClaimLookups{Account: stranger, Pool: "bank", Max: 10}); err != nil || len(list) != 0 {
		t.Errorf("another account is asked: %v %v", list, err)
	}
	q := w.one()
	for name, id := range map[string]string{"another account's": q.ID, "no id": "x", "no question's": "01900000-0000-7000-8000-000000000000"} {
		_, err := w.AnswerLookup(t.Context(), stranger, id, []byte(nothingFound))
		if r := refusalOf(err); r == nil || r.Code != effects.CodeNotFound || strings.Contains(r.Error(), b.EffectID) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.wantState(b.EffectID, effects.Interrupted)
	if n := w.count(`SELECT count(*) FROM lookups`); n != 0 {
		t.Errorf("%d looks are on record", n)
	}
	if v := w.answer(q.ID, `{"hits":[5],"complete":true}`); v.Verdict != "inconclusive" || v.Reason != lookup.CouldNot {
		t.Errorf("an odd record: %+v", v)
	}
	// The answer was lost on its way back, and comes again.
	if v := w.answer(q.ID, `{"hits":[5],"complete":true}`); v.Verdict != "inconclusive" || v.Reason != lookup.CouldNot || v.EffectID != b.EffectID {
		t.Errorf("again: %+v", v)
	}
	_, err = w.AnswerLookup(t.Context(), w.account, q.ID, []byte(bankRecord("INV-1", "4200.00")))
	if r := refusalOf(err); r == nil || r.Code != effects.CodeLookupOver || r.EffectID != b.EffectID {
		t.Errorf("another answer to the same question: %v", err)
	}
	w.wantState(b.EffectID, effects.Interrupted)
	if n := w.count(`SELECT count(*) FROM lookups`); n != 1 {
		t.Errorf("%d looks are on record, want 1", n)
	}
	for _, c := range []effects.ClaimLookups{{Pool: "bnak"}, {Pool: ""}, {Pool: "bank", Max: 101}, {Pool: "bank", Max: -1}} {
		c.Account = w.account
		_, err := w.ClaimLookups(t.Context(), c)
		if r := refusalOf(err); r == nil || r.Code != effects.CodeInvalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A worker dies with a question: that is on record, the question is free again at once, and
// what the dead one still brings is refused. If one after another dies, the schedule goes on.
func TestAWorkerThatDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	dead := w.one()
	w.told()
	if list := w.claim(1); len(list) != 0 {
		t.Fatalf("given on while the worker lives: %+v", list)
	}
	w.passLookup()
	if list := w.claim(1); len(list) != 0 {
		t.Fatalf("given on before it is on record: %+v", list)
	}
	w.told()
	v := w.looks(b.EffectID)
	if len(v.Looks) != 1 || v.Looks[0].Problem != lookup.Unanswered || v.Looks[0].Verdict != "inconclusive" || v.Asking || v.Next.After(time.Now().Add(time.Second)) {
		t.Fatalf("%+v", v)
	}
	_, err := w.AnswerLookup(t.Context(), w.account, dead.ID, []byte(bankRecord("INV-1", "4200.00")))
	if r := refusalOf(err); r == nil || r.Code != effects.CodeLookupOver {
		t.Errorf("after its minute: %v", err)
	}
	w.wantState(b.EffectID, effects.Interrupted)

	second := w.one()
	if second.ID == dead.ID {
		t.Fatal("two workers have the same question id")
	}
	w.passLookup()
	w.told()
	if v := w.looks(b.EffectID); len(v.Looks) != 2 || !v.Next.After(time.Now().Add(3*time.Second)) {
		t.Errorf("after the second: %d looks, next %s", len(v.Looks), v.Next)
	}
	w.dueNow()
	if v := w.answer(w.one().ID, bankRecord("INV-1", "4200.00")); v.Verdict != "taken" {
		t.Errorf("%+v", v)
	}
	w.wantState(b.EffectID, effects.Taken)
	w.told()
	if n := w.count(`SELECT count(*) FROM lookups WHERE verdict = 'taken'`); n != 1 {
		t.Errorf("%d proofs", n)
	}
}

// What was asked about goes on meanwhile: nobody asks about a call that is being made.
func TestAWorkerThatDiedWithAPermissionThatWasUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.answer(w.one().ID, nothingFound)
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	w.dueNow()
	w.answer(w.one().ID, nothingFound)
	w.dueNow()
	w.one() // the schedule of a permission: the worker dies with it
	w.proceed(w.open("run", "pod-2"), "send_payment", pay("INV-1", "4200.00"))
	w.passLookup()
	w.told()
	if list := w.claim(1); len(list) != 0 {
		t.Errorf("asked while it is in flight: %+v", list)
	}
}

// The answer came after the effect was settled otherwise: an agreeing one confirms.
func TestAWorkersAnswerMeetsALateAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	q := w.one()
	w.finish(b, "taken", reference("P-INV-1"), result(`{"payment_id":"P-INV-1"}`))
	w.wantState(b.EffectID, effects.Taken)
	w.answer(q.ID, bankRecord("INV-1", "4200.00"))
	if v := w.wantState(b.EffectID, effects.Taken); v.DecidedBy != "late_agent" || len(v.Contradictions) != 0 {
		t.Errorf("%+v", v)
	}
	w.told()
	if n := len(w.claim(10)); n != 0 {
		t.Errorf("%d questions about what is settled", n)
	}
}

// Thirty questions, two workers at two servers in the same second, and a third that dies
// with three: each is answered once, and none is lost.
func TestBC119_TwoWorkersAtOnceAndOneThatDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	const many = 30
	by := map[string]string{}
	for i := range many {
		invoice := fmt.Sprintf("INV-%d", i)
		by[w.lost(fmt.Sprintf("run-%d", i), pay(invoice, "10.00")).EffectID] = invoice
	}
	if got := len(w.claim(3)); got != 3 {
		t.Fatalf("the third was given %d", got)
	}
	var mu sync.Mutex
	given := map[string]int{}
	work := func(e *effects.Engine) error {
		for {
			list, err := e.ClaimLookups(t.Context(), effects.ClaimLookups{Account: w.account, Pool: "bank", Max: 4})
			if err != nil || len(list) == 0 {
				return err
			}
			for _, q := range list {
				mu.Lock()
				given[q.Effect]++
				mu.Unlock()
				v, err := e.AnswerLookup(t.Context(), w.account, q.ID, []byte(bankRecord(by[q.Effect], "10.00")))
				if err != nil || v.Verdict != "taken" {
					return fmt.Errorf("%+v: %w", v, err)
				}
			}
		}
	}
	both := func() {
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, e := range []*effects.Engine{w.Engine, w.engine(workerPolicy)} {
			wg.Go(func() { errs[i] = work(e) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	both()
	if len(given) != many-3 {
		t.Errorf("%d were given, want %d", len(given), many-3)
	}
	w.passLookup()
	w.told()
	both()
	for id, invoice := range by {
		if given[id] != 1 {
			t.Errorf("%s was given %d times", invoice, given[id])
		}
		w.wantState(id, effects.Taken)
	}
	if n := w.count(`SELECT count(*) FROM lookups WHERE verdict = 'taken'`); n != many {
		t.Errorf("%d proofs on record, want %d", n, many)
	}
	if n := w.count(`SELECT count(*) FROM lookups WHERE problem = 'unanswered'`); n != 3 {
		t.Errorf("%d unanswered on record, want 3", n)
	}
}

// Two answers to one question at the same moment are one.
func TestTheSameAnswerTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	b := w.lost("run", pay("INV-1", "4200.00"))
	q := w.one()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			v, err := w.AnswerLookup(t.Context(), w.account, q.ID, []byte(bankRecord("INV-1", "4200.00")))
			if err == nil && v.Verdict != "taken" {
				err = fmt.Errorf("%+v", v)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if v := w.wantState(b.EffectID, effects.Taken); len(v.Decisions) != 1 || len(v.Contradictions) != 0 {
		t.Errorf("%+v", v)
	}
}

// A worker that goes away while it waits takes no question with it.
func TestAClaimThatIsGivenUpTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workerPolicy)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.ClaimLookups(ctx, effects.ClaimLookups{Account: w.account, Pool: "bank", Max: 1, Wait: time.Minute})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.lost("run", pay("INV-1", "4200.00"))
	if q := w.one(); q.ID == "" {
		t.Error("nothing is due")
	}
}
