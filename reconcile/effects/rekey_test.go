package effects_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"quittance/ledger"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
)

// keyed is a policy whose one tool has this business key; "" for none. Repeats are
// held in either case, so that only the key makes a difference.
func keyed(key string) string {
	p := "release: {hold: 0s, not_taken_hold: 0s}\ntools:\n  pay: {repeat: hold, deadline: 60s"
	if key != "" {
		p += fmt.Sprintf(", business_key: %q", key)
	}
	return p + "}\n"
}

func bill(vendor, invoice string) string {
	return fmt.Sprintf(`{"vendor":%q,"invoice":%q}`, vendor, invoice)
}

func (w *world) setPolicy(e *effects.Engine, source string) {
	w.t.Helper()
	w.rekeyed = true
	p, mistakes := policy.Load("quittance.yaml", []byte(source))
	if p == nil {
		w.t.Fatal(mistakes)
	}
	if err := e.SetPolicy(w.t.Context(), p); err != nil {
		w.t.Fatalf("set policy: %v", err)
	}
}

// steps does n batches of re-keying, and fails when there is less to do.
func (w *world) steps(n, batch int) {
	w.t.Helper()
	for range n {
		if more, err := w.RekeyStep(w.t.Context(), batch); err != nil || !more {
			w.t.Fatalf("re-key: %v %v", more, err)
		}
	}
}

// rekeyAll goes on until nothing is left to re-key.
func (w *world) rekeyAll(batch int) {
	w.t.Helper()
	for range 10_000 {
		more, err := w.RekeyStep(w.t.Context(), batch)
		if err != nil {
			w.t.Fatalf("re-key: %v", err)
		}
		if !more {
			return
		}
	}
	w.t.Fatal("re-keying does not end")
}

// checkKeys: nobody holds a digest that it does not claim, and what stands between two
// templates has the same rights under both.
func (w *world) checkKeys() {
	w.t.Helper()
	if n := w.count(`
		SELECT count(*) FROM business_claims c JOIN effects e ON e.id = c.effect_id
		WHERE c.digest <> e.claim AND c.digest IS DISTINCT FROM e.claim_was`); n != 0 {
		w.t.Errorf("%d claims are held by effects that do not claim them", n)
	}
	var rows []struct {
		ID      string       `db:"id"`
		Account int64        `db:"account_id"`
		Tool    string       `db:"tool"`
		Was     ledger.Bytes `db:"claim_was"`
		Call    ledger.Bytes `db:"call_digest"`
		Owner   string       `db:"owner"`
		State   string       `db:"state"`
		Free    bool         `db:"free"`
	}
	err := w.db.Select(w.t.Context(), &rows, `
		SELECT e.id, e.account_id, e.tool, e.claim_was, e.call_digest, COALESCE(c.effect_id::text, '') AS owner, e.state,
			e.state = 'failed' OR (e.state = 'cancelled' AND e.released) AS free
		FROM effects e LEFT JOIN business_claims c ON c.digest = e.claim_was WHERE e.claim_was IS NOT NULL`)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		call := canon.CallClaim(fmt.Sprint(r.Account), r.Tool, canon.Key(r.Call))
		free := r.Free || r.State == "taken" && string(call[:]) == string(r.Was)
		if !free && r.Owner == "" {
			w.t.Errorf("the earlier claim is free under %s, which is %s", r.ID, r.State)
		} else if free && r.Owner == r.ID {
			w.t.Errorf("%s is %s and still holds its earlier claim", r.ID, r.State)
		}
	}
	w.check()
}

// open1 is a fresh run for one begin.
func (w *world) open1() effects.Lease {
	w.t.Helper()
	return w.open(fmt.Sprint("run-", nextRun.Add(1)), "pod")
}

var nextRun atomic.Int64

// attempt is an effect's last attempt as its begin was answered.
func (w *world) attempt(id string) *effects.BeginAnswer {
	w.t.Helper()
	return &effects.BeginAnswer{EffectID: id, Fence: int64(w.count(`SELECT fence FROM effects WHERE id = $1::uuid`, id))}
}

func (w *world) claimText(id string) string {
	w.t.Helper()
	var key string
	if err := w.db.Get(w.t.Context(), &key, `SELECT COALESCE(business_key, '-') FROM effects WHERE id = $1::uuid`, id); err != nil {
		w.t.Fatal(err)
	}
	return key
}

// wantBegin begins a call in a run of its own, and says which effect was held or may
// proceed.
func (w *world) wantBegin(args string, held bool) string {
	w.t.Helper()
	a := w.begin(w.open1(), "pay", args)
	switch {
	case held && a.Refusal != nil && a.Refusal.Code == effects.CodeRunPaused:
		w.wantState(a.Refusal.EffectID, effects.Held)
		return a.Refusal.EffectID
	case !held && a.Begin != nil && a.Begin.Do == "proceed":
		return a.Begin.EffectID
	}
	w.t.Fatalf("begin %s: %+v %v, want held: %v", args, a.Begin, a.Refusal, held)
	return ""
}

// cleared is an effect that may be tried again.
func (w *world) cleared(args string) (effects.Lease, *effects.BeginAnswer) {
	w.t.Helper()
	l := w.open1()
	b := w.proceed(l, "pay", args)
	w.finish(b, "unknown")
	w.passDeadline(b.EffectID) // a decision is then visible at once
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictNotTaken})
	w.wantState(b.EffectID, effects.Cleared)
	return l, b
}

// stored are effects of one call each, in every state that a stored one can have.
// protects tells whether another run may not make the same call.
var stored = []struct {
	state    string
	protects bool
	make     func(w *world, args string) string
}{
	{"in flight", true, func(w *world, args string) string { return w.proceed(w.open1(), "pay", args).EffectID }},
	{"interrupted", true, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		w.finish(b, "unknown")
		return b.EffectID
	}},
	{"taken", true, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		w.finish(b, "taken")
		return b.EffectID
	}},
	{"cleared", true, func(w *world, args string) string {
		_, b := w.cleared(args)
		return b.EffectID
	}},
	{"failed", false, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		w.finish(b, "failed")
		return b.EffectID
	}},
	{"stopped, not released", true, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		w.finish(b, "unknown")
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictStop})
		return b.EffectID
	}},
	{"stopped", false, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		w.finish(b, "unknown")
		w.passDeadline(b.EffectID)
		w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictStop})
		return b.EffectID
	}},
	{"held", true, func(w *world, args string) string {
		b := w.proceed(w.open1(), "pay", args)
		id := w.wantBegin(args, true)
		w.finish(b, "failed")
		return id
	}},
}

// What was stored under one key is found under it until everything is re-keyed, and
// under the next key from then on, whatever state it is in and at whichever batch the
// look comes.
func TestRekeyKeepsEveryStateProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}/{invoice}"))
	ids := make([]string, len(stored))
	for i, s := range stored {
		ids[i] = s.make(w, bill("acme", s.state))
	}
	w.setPolicy(w.Engine, keyed("{invoice}"))
	w.checkKeys()
	look := func(vendor string) {
		t.Helper()
		for i, s := range stored {
			if !s.protects {
				continue
			}
			version := w.effect(ids[i]).Version
			w.wantBegin(bill(vendor, s.state), true)
			if v := w.effect(ids[i]); v.Version != version {
				t.Errorf("%s: the version went from %d to %d", s.state, version, v.Version)
			}
		}
	}
	look("acme")
	for range 3 { // a batch holds two effects: the pass is under way
		w.steps(1, 2)
		w.checkKeys()
		look("acme")
	}
	w.rekeyAll(2)
	look("acme")
	look("another")
	for i, s := range stored {
		if got := w.claimText(ids[i]); got != s.state {
			t.Errorf("%s: the business key is %q", s.state, got)
		}
		if !s.protects {
			w.wantBegin(bill("another", s.state), false)
		}
	}
	if n := w.count(`SELECT count(*) FROM effects WHERE claim_was IS NOT NULL`); n != 0 {
		t.Errorf("%d effects still have an earlier claim", n)
	}
	w.checkKeys()
}

// Two calls that only the earlier key calls the same stay apart until all is re-keyed.
func TestRekeyLetsTheEarlierEqualityGo(t *testing.T) {
	t.Parallel()
	for _, s := range stored {
		if !s.protects {
			continue
		}
		t.Run(s.state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, keyed("{invoice}"))
			s.make(w, bill("acme", "INV-1"))
			w.setPolicy(w.Engine, keyed("{vendor}/{invoice}"))
			held := w.wantBegin(bill("other", "INV-1"), true)
			w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictStop})
			w.settle()
			w.steps(1, 100)
			w.wantBegin(bill("third", "INV-1"), true) // its claim under the earlier key is still checked
			w.steps(1, 100)                           // the end of the first pass
			w.wantBegin(bill("fourth", "INV-1"), false)
			w.wantBegin(bill("acme", "INV-1"), true)
			w.rekeyAll(100)
			w.wantBegin(bill("fifth", "INV-1"), false)
			w.wantBegin(bill("acme", "INV-1"), true)
			w.checkKeys()
		})
	}
}

// A begin between the two templates protects under both, from the moment it is there.
func TestRekeyBeginsClaimUnderBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	w.wantBegin(bill("old", "INV-0"), false)
	w.setPolicy(w.Engine, keyed("{invoice}"))
	id := w.wantBegin(bill("acme", "INV-1"), false)
	w.wantBegin(bill("acme", "INV-2"), true)
	w.wantBegin(bill("other", "INV-1"), true)
	w.wantBegin(bill("other", "INV-2"), true) // the held one has its own claim, under the new key
	w.checkKeys()
	w.finish(w.attempt(id), "failed")
	w.checkKeys() // each claim fell back to who was held for it
	if n := w.count(`SELECT count(*) FROM business_claims WHERE effect_id = $1::uuid`, id); n != 0 {
		t.Errorf("a failed effect still holds %d claims", n)
	}
	w.rekeyAll(2)
	w.checkKeys()
}

// In one batch, a begin that is refused leaves neither of its claims behind, and who
// comes after it gets them.
func TestRekeyBatchOfBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	w.wantBegin(bill("old", "INV-0"), false)
	w.setPolicy(w.Engine, keyed("{invoice}"))
	paused := w.open("paused", "pod")
	l := w.open1()
	op := func(l effects.Lease, args string) effects.Op {
		return effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "a", Tool: "pay", Arguments: []byte(args)}}
	}
	answers, err := w.Apply(t.Context(), []effects.Op{
		op(paused, bill("old", "INV-1")),  // held: the vendor is taken
		op(paused, bill("acme", "INV-2")), // refused: the run has just been paused
		op(l, bill("acme", "INV-2")),
		op(l, bill("acme", "INV-3")), // held: the vendor is taken by the one before
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"paused", "paused", "proceed", "paused"} {
		got := "paused"
		if answers[i].Begin != nil {
			got = answers[i].Begin.Do
		}
		if got != want {
			t.Errorf("begin %d: %+v %v, want %s", i, answers[i].Begin, answers[i].Refusal, want)
		}
	}
	w.checkKeys()
	if n := w.count(`SELECT count(*) FROM business_claims WHERE effect_id = $1::uuid`, answers[2].Begin.EffectID); n != 2 {
		t.Errorf("the begin after a refused one holds %d of its 2 claims", n)
	}
	w.rekeyAll(1)
	w.checkKeys()
}

// Where two stored effects come to share a key, it belongs to the one that may have
// had its effect before one that may not, then to the latest; and to the next one when
// that lets go.
func TestRekeySharedKey(t *testing.T) {
	t.Parallel()
	order := map[string]int{"held": 0, "cleared": 1, "interrupted": 2, "taken": 2, "in flight": 2, "stopped, not released": 2}
	for _, batch := range []int{1, 5, 1000} {
		t.Run(fmt.Sprint("by ", batch), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, keyed("{vendor}"))
			var firsts, seconds []string
			for i, a := range stored {
				for k, b := range stored {
					invoice := fmt.Sprint("INV-", i, "-", k)
					firsts = append(firsts, a.make(w, bill("one-"+invoice, invoice)))
					seconds = append(seconds, b.make(w, bill("two-"+invoice, invoice)))
				}
			}
			w.setPolicy(w.Engine, keyed("{invoice}"))
			w.rekeyAll(batch)
			w.checkKeys()
			for i, a := range stored {
				for k, b := range stored {
					n, want := i*len(stored)+k, ""
					switch {
					case a.protects && (!b.protects || order[a.state] > order[b.state]):
						want = firsts[n]
					case b.protects:
						want = seconds[n]
					}
					if got := w.owner(firsts[n]); got != want {
						t.Errorf("%s and %s: %q of %s and %s has the key", a.state, b.state, got, firsts[n], seconds[n])
					}
					w.wantBegin(bill("three", fmt.Sprint("INV-", i, "-", k)), want != "")
				}
			}
		})
	}
}

func TestRekeyFromAndToNoKey(t *testing.T) {
	t.Parallel()
	t.Run("to a key", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, keyed(""))
		taken := stored[2].make(w, bill("acme", "INV-1"))
		flying := stored[0].make(w, bill("acme", "INV-2"))
		w.wantBegin(bill("acme", "INV-1"), false) // no key: taken frees the call
		w.setPolicy(w.Engine, keyed("{invoice}"))
		w.wantBegin(bill("acme", "INV-2"), true)
		stored[2].make(w, bill("acme", "INV-3")) // between: taken frees the call, and keeps the key
		w.checkKeys()
		w.wantBegin(bill("other", "INV-3"), true)
		w.rekeyAll(1)
		w.wantBegin(bill("other", "INV-1"), true)
		w.wantBegin(bill("other", "INV-2"), true)
		if w.claimText(taken) != "INV-1" || w.claimText(flying) != "INV-2" {
			t.Error("the stored effects have no business key")
		}
		w.finish(w.attempt(flying), "taken")
		w.checkKeys()
		w.wantBegin(bill("third", "INV-2"), true)
	})
	t.Run("to no key", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, keyed("{invoice}"))
		taken := stored[2].make(w, bill("acme", "INV-1"))
		stored[0].make(w, bill("acme", "INV-2"))
		w.setPolicy(w.Engine, "release: {hold: 0s}\n") // the tool is not even named
		w.wantBegin(bill("other", "INV-1"), true)
		w.steps(1, 100)
		w.wantBegin(bill("other2", "INV-1"), true)
		w.rekeyAll(100)
		w.wantBegin(bill("acme", "INV-1"), false) // the same call: taken has freed it
		w.wantBegin(bill("acme", "INV-2"), true)  // the same call, in flight
		w.wantBegin(bill("other", "INV-2"), false)
		if got := w.claimText(taken); got != "-" {
			t.Errorf("the business key is %q", got)
		}
		w.checkKeys()
	})
}

// What has no such field, or makes a key that is too long, claims the call itself.
func TestRekeyWithoutTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{invoice}"))
	flying := w.wantBegin(bill("acme", "INV-1"), false)
	long := w.wantBegin(fmt.Sprintf(`{"invoice":"INV-2","po":%q}`, strings.Repeat("x", 1100)), false)
	w.setPolicy(w.Engine, keyed("{po}"))
	w.rekeyAll(1)
	for _, id := range []string{flying, long} {
		if got := w.claimText(id); got != "-" {
			t.Errorf("the business key is %q", got)
		}
		w.wantOwner(id, id)
	}
	id := w.wantBegin(bill("acme", "INV-1"), true) // and what is new lacks its key
	if why := w.effect(id).Why; why != "no_business_key" {
		t.Errorf("held for %s", why)
	}
	w.checkKeys()
}

// A server that dies between two batches loses nothing: another goes on.
func TestRekeyGoesOnAfterADeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}/{invoice}"))
	const n = 7
	for i := range n {
		w.wantBegin(bill("acme", fmt.Sprint("INV-", i)), false)
	}
	w.setPolicy(w.Engine, keyed("{invoice}"))
	for round := 0; ; round++ {
		more, err := w.RekeyStep(t.Context(), 2)
		if err != nil || round > 50 {
			t.Fatal(round, err)
		}
		if !more {
			if round < 2*n/2 {
				t.Fatalf("done after %d batches of 2", round)
			}
			break
		}
		w.Engine = w.engine(keyed("{invoice}")) // started again with the same file
		w.checkKeys()
		w.wantBegin(bill("acme", fmt.Sprint("INV-", round%n)), true)
	}
	for i := range n {
		w.wantBegin(bill("other", fmt.Sprint("INV-", i)), true)
	}
	if n := w.count(`SELECT count(*) FROM business_templates WHERE settled_at IS NULL`); n != 0 {
		t.Errorf("%d changes are not settled", n)
	}
}

// A batch that does not commit leaves neither claims nor progress.
func TestRekeyBatchIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	for i := range 4 {
		w.wantBegin(bill(fmt.Sprint("v", i), fmt.Sprint("INV-", i)), false)
	}
	w.setPolicy(w.Engine, keyed("{invoice}"))
	w.exec(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'dead'; END $$`)
	w.exec(`CREATE TRIGGER die BEFORE UPDATE OF scanned ON business_templates FOR EACH ROW WHEN (NEW.scanned IS NOT NULL) EXECUTE FUNCTION die()`)
	if more, err := w.RekeyStep(t.Context(), 2); err == nil || more {
		t.Fatalf("re-keyed: %v %v", more, err)
	}
	if n := w.count(`SELECT count(*) FROM effects WHERE claim_was IS NOT NULL`); n != 0 {
		t.Errorf("%d effects were re-keyed by a batch that failed", n)
	}
	w.exec(`DROP TRIGGER die ON business_templates`)
	w.rekeyAll(2)
	for i := range 4 {
		w.wantBegin(bill("other", fmt.Sprint("INV-", i)), true)
	}
}

// A server that still holds the earlier file begins under what is in force for all.
func TestRekeyReachesAServerWithTheEarlierFile(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, keyed("{vendor}"))
	stale := servers[1]
	w.wantBegin(bill("zero", "INV-0"), false)
	begin := func(args string, held bool) {
		t.Helper()
		l := w.open1()
		a := applyTo(t, stale, effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "a", Tool: "pay", Arguments: []byte(args)}})
		if got := a.Begin == nil; got != held {
			t.Fatalf("begin %s: %+v %v, want held: %v", args, a.Begin, a.Refusal, held)
		}
	}
	begin(bill("one", "INV-1"), false) // it has used what it knows
	w.setPolicy(servers[0], keyed("{invoice}"))
	begin(bill("two", "INV-2"), false)
	w.wantBegin(bill("other", "INV-2"), true)
	w.rekeyAll(2)
	begin(bill("three", "INV-3"), false)
	w.wantBegin(bill("other", "INV-3"), true)
	begin(bill("four", "INV-1"), true)
	begin(bill("one", "INV-4"), false)
	w.checkKeys()
}

// A begin that may not know of the change holds the pass back: it would store an effect
// that the pass has gone by.
func TestRekeyWaitsForBeginsOfBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	w.wantBegin(bill("zero", "INV-0"), false)
	l := w.open1()
	w.setPolicy(w.Engine, keyed("{invoice}"))
	err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := runs.Lock(ctx, tx, []int64{w.account}, []string{l.RunID}, nil, nil); err != nil {
			return err
		}
		if more, err := w.RekeyStep(ctx, 10); more || err != nil {
			t.Errorf("the pass began beside a begin: %v %v", more, err)
		}
		// Others begin meanwhile.
		w.wantBegin(bill("one", "INV-1"), false)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.steps(1, 10)
	w.rekeyAll(10)
	w.checkKeys()
}

// One change at a time: a further one waits, is replaced by another, and is dropped
// when the file goes back.
func TestRekeyChangesFollowOneAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	id := w.wantBegin(bill("acme", "INV-1"), false)
	changes := func() string {
		t.Helper()
		var s string
		if err := w.db.Get(t.Context(), &s, `
			SELECT string_agg(earlier || '>' || template || CASE WHEN in_force_at IS NULL THEN ' waits' WHEN rekeyed_at IS NULL THEN ' runs'
				WHEN settled_at IS NULL THEN ' settles' ELSE '' END, ', ' ORDER BY id) FROM business_templates`); err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := func(s string) {
		t.Helper()
		if got := changes(); got != s {
			t.Fatalf("changes are %q, want %q", got, s)
		}
	}
	want(">{vendor}")
	w.setPolicy(w.Engine, keyed("{vendor}"))
	want(">{vendor}")
	w.setPolicy(w.Engine, keyed("{invoice}"))
	want(">{vendor}, {vendor}>{invoice} runs")
	w.setPolicy(w.Engine, keyed("{invoice}/{vendor}"))
	want(">{vendor}, {vendor}>{invoice} runs, {invoice}>{invoice}/{vendor} waits")
	w.wantBegin(bill("acme", "INV-2"), true)
	w.setPolicy(w.Engine, keyed(""))
	want(">{vendor}, {vendor}>{invoice} runs, {invoice}> waits")
	w.setPolicy(w.Engine, keyed("{invoice}"))
	want(">{vendor}, {vendor}>{invoice} runs")
	w.setPolicy(w.Engine, keyed("{vendor}"))
	want(">{vendor}, {vendor}>{invoice} runs, {invoice}>{vendor} waits")
	w.steps(2, 10)
	want(">{vendor}, {vendor}>{invoice} settles, {invoice}>{vendor} waits")
	if got := w.claimText(id); got != "INV-1" {
		t.Errorf("the business key is %q between", got)
	}
	w.wantBegin(bill("beta", "INV-1"), true)
	w.steps(2, 10) // what waited comes into force, and at once begins claim under both
	want(">{vendor}, {vendor}>{invoice}, {invoice}>{vendor} runs")
	w.wantBegin(bill("gamma", "INV-7"), false)
	w.wantBegin(bill("gamma", "INV-8"), true)
	w.wantBegin(bill("delta", "INV-7"), true)
	w.checkKeys()
	w.rekeyAll(10)
	want(">{vendor}, {vendor}>{invoice}, {invoice}>{vendor}")
	if got := w.claimText(id); got != "acme" {
		t.Errorf("the business key is %q at the end", got)
	}
	w.wantBegin(bill("acme", "INV-3"), true)
}

// A permission given before the change does not begin over what holds the new key.
func TestRekeyPermissionMeetsTheNewKey(t *testing.T) {
	t.Parallel()
	for _, pass := range []bool{false, true} {
		t.Run(fmt.Sprint("re-keyed ", pass), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, keyed("{vendor}"))
			l, b := w.cleared(bill("one", "INV-1"))
			w.setPolicy(w.Engine, keyed("{invoice}"))
			other := w.wantBegin(bill("two", "INV-1"), false)
			if pass {
				w.steps(1, 10)
			}
			a := w.begin(l, "pay", bill("one", "INV-1"))
			if a.Begin != nil {
				t.Fatalf("it began beside %s: %+v", other, a.Begin)
			}
			w.wantState(b.EffectID, effects.Held)
			w.checkKeys()
			w.rekeyAll(10)
			w.wantOwner(b.EffectID, other)
			w.checkKeys()
		})
	}
}

// A permission that nobody stands against begins, and protects under both keys at once.
func TestRekeyPermissionTakesTheNewKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	l, b := w.cleared(bill("one", "INV-1"))
	w.setPolicy(w.Engine, keyed("{invoice}"))
	if again := w.proceed(l, "pay", bill("one", "INV-1")); again.EffectID != b.EffectID || again.Attempt != 2 {
		t.Fatalf("%+v", again)
	}
	w.wantBegin(bill("two", "INV-1"), true)
	w.wantBegin(bill("one", "INV-2"), true)
	w.rekeyAll(10)
	w.checkKeys()
}

// A verdict between the two templates moves both claims.
func TestRekeyAllowAndUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, keyed("{vendor}"))
	w.wantBegin(bill("zero", "INV-0"), false)
	w.setPolicy(w.Engine, keyed("{invoice}"))
	taken := stored[2].make(w, bill("acme", "INV-1"))
	held := w.wantBegin(bill("acme", "INV-1"), true)
	w.must(w.person, effects.Decide{EffectID: held, Verdict: effects.VerdictAllow})
	w.checkKeys()
	owns := func(id string, want int) {
		t.Helper()
		if n := w.count(`SELECT count(*) FROM business_claims WHERE effect_id = $1::uuid`, id); n != want {
			t.Fatalf("%s holds %d claims, want %d", id, n, want)
		}
	}
	owns(held, 2)
	owns(taken, 0)
	if _, err := w.Undo(t.Context(), w.person, effects.Undo{EffectID: held, Note: "wrong one"}); err != nil {
		t.Fatal(err)
	}
	owns(held, 0)
	owns(taken, 2)
	w.checkKeys()
	if v := w.effect(held); len(v.Overlaps) != 1 || !v.Overlaps[0].Owner {
		t.Errorf("overlaps: %+v", v.Overlaps)
	}
	w.rekeyAll(1)
	w.checkKeys()
}

// Servers re-key at once while others begin, finish and decide: one effect for one
// business key, and every rule is kept.
func TestRekeyByTwoServersUnderLoad(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, keyed("{vendor}/{invoice}"))
	const invoices, workers = 12, 6
	for i := range invoices {
		stored[i%4].make(w, bill("acme", fmt.Sprint("INV-", i)))
	}
	w.setPolicy(servers[0], keyed("{invoice}"))
	leases := make([][]effects.Lease, workers)
	for k := range workers {
		for range invoices {
			leases[k] = append(leases[k], w.open1())
		}
	}
	var begun [invoices]atomic.Int64
	together(workers+2, func(k int) {
		if k >= workers {
			for range 200 {
				more, err := servers[k-workers].RekeyStep(context.WithoutCancel(t.Context()), 3)
				if err != nil {
					t.Errorf("re-key: %v", err)
					return
				}
				if !more && w.count(`SELECT count(*) FROM business_templates WHERE settled_at IS NULL`) == 0 {
					return
				}
			}
			return
		}
		for i, l := range leases[k] {
			// The stored ones are taken under the earlier key, the new ones under the new.
			vendor, name := "acme", fmt.Sprint("INV-", i)
			if i%2 == 1 {
				vendor, name = fmt.Sprint("v", k), fmt.Sprint("NEW-", i)
			}
			a := applyTo(t, servers[k%2], effects.Op{Begin: &effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "a", Tool: "pay", Arguments: []byte(bill(vendor, name))}})
			if a.Begin != nil {
				begun[i].Add(1)
			}
		}
	})
	for i := range begun {
		if n, want := begun[i].Load(), int64(i%2); n != want {
			t.Errorf("call %d began %d times, want %d", i, n, want)
		}
	}
	w.rekeyAll(3)
	w.checkKeys()
	if n := w.count(`SELECT count(*) FROM effects WHERE tool = 'pay' AND business_key LIKE '%/%'`); n != 0 {
		t.Errorf("%d effects have their earlier key", n)
	}
}

// Templates change at any moment of any order of calls.
func TestRekeyInAnyOrder(t *testing.T) {
	t.Parallel()
	texts := []string{"{invoice}", "{vendor}", "{vendor}/{invoice}", ""}
	steps := 700
	if testing.Short() {
		steps = 200
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w, servers := twoServers(t, keyed(texts[0]))
			rnd := rand.New(rand.NewPCG(seed, 7))
			p := &player{world: w, servers: servers, rnd: rnd, leases: map[string]effects.Lease{}, done: map[string]int{}}
			settled := 0
			for p.steps = range steps {
				switch n := rnd.IntN(100); {
				case n < 4:
					w.setPolicy(p.server(), keyed(texts[rnd.IntN(len(texts))]))
				case n < 20:
					more, err := p.server().RekeyStep(t.Context(), 1+rnd.IntN(5))
					if err != nil {
						t.Fatalf("re-key: %v", err)
					}
					if more {
						settled++
					}
				case n < 50:
					run := p.run()
					b := &effects.Begin{Account: w.account, RunID: run, Lease: p.leases[run].Token, AttemptID: fmt.Sprint("a", rnd.IntN(3)), Tool: "pay",
						Arguments: []byte(bill(fmt.Sprint("v", rnd.IntN(4)), fmt.Sprint("INV-", p.steps/80+rnd.IntN(4))))}
					a := applyTo(t, p.server(), effects.Op{Begin: b})
					if a.Begin != nil {
						p.know(a.Begin.EffectID)
						if a.Begin.Do == "proceed" {
							p.began = append(p.began, a.Begin)
						}
					} else if a.Refusal != nil {
						p.know(a.Refusal.EffectID)
					}
				case n < 60:
					applyTo(t, p.server(), p.word())
				default:
					for _, f := range []func(){p.open, p.judge, p.judge, p.judge, p.undoOne, p.clock, p.end} {
						if rnd.IntN(5) == 0 {
							f()
						}
					}
				}
				if p.steps%20 == 0 {
					p.checkKeys()
				}
			}
			p.rekeyAll(3)
			p.checkKeys()
			if settled < 20 {
				t.Errorf("only %d batches were re-keyed", settled)
			}
		})
	}
}
