package effects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/reconcile/effects"
)

const fastPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
redact: [/everywhere]
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    volatile: [request_time]
    deadline: 60s
    lands_within: 10m
  refund:
    deadline: 60s
  apart:
    business_key: "{invoice}"
    redact: [/iban]
`

// newFastWorld is a world whose engine has begun something: before that it does not know
// which templates begins are checked under, and takes nothing the fast way.
func newFastWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, fastPolicy)
	l := w.open("warm", "pod-0")
	w.proceed(l, "refund", `{"warm":true}`)
	return w
}

func (w *world) beginOp(l effects.Lease, tool, args string, edit ...func(*effects.Begin)) effects.Op {
	b := effects.Begin{Account: w.account, RunID: l.RunID, Lease: l.Token, AttemptID: "try-1", Tool: tool, Arguments: []byte(args)}
	for _, f := range edit {
		f(&b)
	}
	return effects.Op{Begin: &b}
}

func (w *world) finishOp(b *effects.BeginAnswer, edit ...func(*effects.Finish)) effects.Op {
	f := effects.Finish{Account: w.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "taken"}
	for _, e := range edit {
		e(&f)
	}
	return effects.Op{Finish: &f}
}

// fast tries one call the fast way; false when it was left to the general way.
func (w *world) fast(op effects.Op) (effects.Answer, bool) {
	w.t.Helper()
	a, left, err := w.Fast(w.t.Context(), op)
	if err != nil {
		w.t.Fatalf("the fast way: %v", err)
	}
	return a[0], len(left) == 0
}

// recorded is everything that is stored of a run's effects, without what differs from
// one run to the next: ids, digests of what holds them, and times, of which only the
// distance from the begin or the finish is kept.
func (w *world) recorded(run string) string {
	w.t.Helper()
	var rows []string
	err := w.db.Select(w.t.Context(), &rows, `
		SELECT to_jsonb(e) - '{id,run_id,key,call_digest,claim,opened_at,changed_at,release_at,used_at,deadline,moment}'::text[]
			|| jsonb_build_object('deadline', e.deadline - e.opened_at, 'moment', e.moment - e.opened_at, 'release', e.release_at - e.changed_at,
				'used', e.used_at - e.changed_at,
				'claim', (SELECT to_jsonb(c) - '{digest,effect_id,taken_at}'::text[] || jsonb_build_object('ours', c.effect_id = e.id, 'at', c.taken_at - e.opened_at)
					FROM business_claims c WHERE c.digest = e.claim),
				'attempts', (SELECT jsonb_agg(to_jsonb(t) - '{effect_id,begun_at,deadline}'::text[] || jsonb_build_object('begun', t.begun_at - e.opened_at,
					'deadline', t.deadline - e.opened_at)) FROM attempts t WHERE t.effect_id = e.id),
				'events', (SELECT jsonb_agg(jsonb_build_object('kind', v.kind, 'version', v.version, 'run', v.run_id = e.run_id, 'data', v.data,
					'at', CASE v.version WHEN 1 THEN v.at - e.opened_at ELSE v.at - e.changed_at END) ORDER BY v.version) FROM effect_events v WHERE v.effect_id = e.id))
		FROM effects e JOIN runs r ON r.id = e.run_id WHERE r.run_id = $1 ORDER BY e.opened_at, e.id`, run)
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(rows, "\n"), run, "RUN")
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(text, "DIGEST")
}

// What the fast way writes is what the general way writes, to the letter of its log.
func TestTheFastWayWritesWhatTheGeneralWayWrites(t *testing.T) {
	t.Parallel()
	w := newFastWorld(t)
	text := func(f func(b *effects.Begin)) func(*effects.Begin) { return f }
	for name, c := range map[string]struct {
		tool, args string
		begin      []func(*effects.Begin)
		finish     []func(*effects.Finish)
	}{
		"plain": {tool: "send_payment", args: pay("$", "12.50")},
		"everything": {
			tool: "send_payment", args: `{"vendor":"Ä \"quoted\" \\ {,}","invoice":"$","amount":"1e2","currency":"JPY","everywhere":"secret","card":"4111 1111 1111 1111","request_time":7}`,
			begin: []func(*effects.Begin){text(func(b *effects.Begin) {
				b.Key, b.CallID, b.ClientTime, b.Context = "minted-$", "call \"7\"", "noon", []byte(`{"labels":{"a":"NULL"},"why":"\u0000"}`)
			})},
			finish: []func(*effects.Finish){result(`{"payment_id":"po_1","token":"secret","text":"a\\b\"c"}`), reference(`po "$" \ NULL`), func(f *effects.Finish) {
				f.Outcome, f.Error = "completed", []byte(`{"code":"none"}`)
			}},
		},
		"no amount that can be read": {tool: "send_payment", args: `{"vendor":"NULL","invoice":"$","amount":"much","currency":"USD"}`, finish: []func(*effects.Finish){result(`{}`)}},
		"a cut result":               {tool: "send_payment", args: pay("$", "1.00"), finish: []func(*effects.Finish){result(`"` + strings.Repeat("x", effects.ResultLimit) + `"`)}},
		"an omitted result": {tool: "send_payment", args: pay("$", "1.00"), finish: []func(*effects.Finish){func(f *effects.Finish) {
			f.ResultOmitted, f.ResultSize, f.ResultDigest = true, 7, strings.Repeat("ab", 32)
		}}},
		"without the fence": {tool: "send_payment", args: pay("$", "1.00"), finish: []func(*effects.Finish){func(f *effects.Finish) { f.Fence = 0 }}},
		"no business key":   {tool: "refund", args: `{"invoice":"$"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var rows [2]string
			for i, way := range []string{"fast", "slow"} {
				run := fmt.Sprintf("%s-%x", way, name)
				l := w.open(run, "pod-1")
				one := func(op effects.Op) effects.Answer {
					if way == "fast" {
						a, ok := w.fast(op)
						if !ok && !(op.Finish != nil && c.tool == "refund") {
							t.Fatalf("left to the general way: %+v", op)
						}
						if ok {
							return a
						}
					}
					return w.slowly(op)
				}
				b := one(w.beginOp(l, c.tool, strings.ReplaceAll(c.args, "$", run), append(c.begin, func(b *effects.Begin) {
					b.Key, b.LogPosition = strings.ReplaceAll(b.Key, "$", run), l.LogPosition
				})...))
				if b.Refusal != nil || b.Begin.Do != "proceed" || b.Begin.Attempt != 1 || b.Begin.Fence != 1 || b.Begin.PerformWithin != b.Begin.PerformWithin.Round(time.Second) {
					t.Fatalf("%s: %+v %v", way, b.Begin, b.Refusal)
				}
				f := one(w.finishOp(b.Begin, append(c.finish, func(f *effects.Finish) {
					f.Reference, f.LogPosition = strings.ReplaceAll(f.Reference, "$", run), b.Begin.LogPosition
				})...))
				if f.Refusal != nil || f.Finish.State != "taken" || f.Finish.Version != 2 || f.Finish.EffectID != b.Begin.EffectID {
					t.Fatalf("%s: %+v %v", way, f.Finish, f.Refusal)
				}
				// Its position is one that any later call of the run may return.
				if _, ok := w.fast(w.beginOp(l, "refund", `{"next":"`+run+`"}`, func(b *effects.Begin) { b.LogPosition, b.AttemptID = f.Finish.LogPosition, "next" })); !ok {
					t.Fatalf("%s: the position of a finish was not accepted", way)
				}
				rows[i] = strings.ReplaceAll(w.recorded(run), b.Begin.EffectID, "EFFECT")
			}
			if rows[0] != rows[1] {
				t.Errorf("the fast way wrote\n%s\nthe general way\n%s", rows[0], rows[1])
			}
		})
	}
	w.check()
}

// slowly applies one call the general way: a call of several operations is never fast.
func (w *world) slowly(op effects.Op) effects.Answer {
	w.t.Helper()
	idle := effects.Op{Finish: &effects.Finish{Account: w.account, EffectID: "00000000-0000-4000-8000-000000000000", Outcome: "taken"}}
	return w.apply(op, idle)[0]
}

// Whatever stands against a begin or a finish leaves it to the general way, and nothing
// is written.
func TestTheFastWayLeavesWhatAnythingStandsAgainst(t *testing.T) {
	t.Parallel()
	type scene struct {
		*world
		l  effects.Lease
		op effects.Op
		b  *effects.BeginAnswer
	}
	begins := map[string]func(s *scene){
		"another's lease":     func(s *scene) { s.op.Begin.Lease = "nobody's" },
		"an unknown run":      func(s *scene) { s.op.Begin.RunID = "unknown" },
		"another account":     func(s *scene) { s.op.Begin.Account = s.account + 1 },
		"a lease that passed": func(s *scene) { s.passLease(s.l.RunID) },
		"a paused run":        func(s *scene) { s.exec(`UPDATE runs SET state = 'paused' WHERE run_id = 'a'`) },
		"a kept finish":       func(s *scene) { s.exec(`UPDATE runs SET kept = 1 WHERE run_id = 'a'`) },
		"an older policy": func(s *scene) {
			s.exec(`INSERT INTO policies VALUES (sha256('old'), 'old')`)
			s.exec(`UPDATE runs SET policy = sha256('old')`)
		},
		"a repeat":               func(s *scene) { s.op.Begin.Occurrence = 2 },
		"no business key":        func(s *scene) { s.op.Begin.Arguments = []byte(`{"vendor":"ACME"}`) },
		"begun before":           func(s *scene) { s.proceed(s.l, "send_payment", invoice) },
		"a business key in use":  func(s *scene) { s.proceed(s.open("other", "pod-2"), "send_payment", invoice) },
		"an open log gap":        func(s *scene) { s.exec(`INSERT INTO log_gaps (found_by) VALUES ('a test')`) },
		"templates of elsewhere": func(s *scene) { s.exec(`UPDATE installation SET keying = keying + 1`) },
		"a position not on record": func(s *scene) {
			s.op.Begin.LogPosition = s.proceed(s.l, "refund", `{}`).LogPosition
			s.forget()
		},
	}
	taken := func(s *scene) *effects.BeginAnswer {
		return s.proceed(s.open("other", "pod-2"), "send_payment", pay("INV-2", "2.00"))
	}
	finishes := map[string]func(s *scene){
		"failed":             func(s *scene) { s.op.Finish.Outcome = "failed" },
		"unknown":            func(s *scene) { s.op.Finish.Outcome = "no idea" },
		"by its key":         func(s *scene) { s.op.Finish.EffectID, s.op.Finish.RunID, s.op.Finish.Key = "", s.l.RunID, s.b.Key },
		"of a named tool":    func(s *scene) { s.op.Finish.Tool = "send_payment" },
		"an unknown effect":  func(s *scene) { s.op.Finish.EffectID = "00000000-0000-4000-8000-000000000000" },
		"another account":    func(s *scene) { s.op.Finish.Account = s.account + 1 },
		"another fence":      func(s *scene) { s.op.Finish.Fence++ },
		"after the deadline": func(s *scene) { s.passDeadline(s.b.EffectID) },
		"after the lease":    func(s *scene) { s.passLease(s.l.RunID) },
		"in a paused run":    func(s *scene) { s.exec(`UPDATE runs SET state = 'paused' WHERE run_id = 'a'`) },
		"finished before":    func(s *scene) { s.finish(s.b, "taken", reference("po_1")) },
		"a second attempt": func(s *scene) {
			s.exec(`UPDATE effects SET attempts = 2, version = 2 WHERE id = $1::uuid`, s.b.EffectID)
		},
		"a log gap hides attempts": func(s *scene) { s.exec(`UPDATE effects SET gap = true, version = 2`) },
		"begun before a log gap":   func(s *scene) { s.exec(`UPDATE installation SET fence_base = 1000000`) },
		"contradicted":             func(s *scene) { s.exec(`UPDATE effects SET contradictions = 1, version = 2`) },
		"re-keyed":                 func(s *scene) { s.exec(`UPDATE effects SET claim_was = sha256('was')`) },
		"another holds its claim": func(s *scene) {
			s.exec(`UPDATE business_claims SET effect_id = $1::uuid WHERE effect_id = $2::uuid`, taken(s).EffectID, s.b.EffectID)
		},
		"a reference in use":        func(s *scene) { s.op.Finish.Reference = "po_1"; s.finish(taken(s), "taken", reference("po_1")) },
		"an open log gap":           func(s *scene) { s.exec(`INSERT INTO log_gaps (found_by) VALUES ('a test')`) },
		"a position not on record":  func(s *scene) { s.op.Finish.LogPosition = s.proceed(s.l, "refund", `{}`).LogPosition; s.forget() },
		"a tool without a key":      func(s *scene) { s.op.Finish.EffectID = s.proceed(s.l, "refund", `{}`).EffectID },
		"a tool redacted by itself": func(s *scene) { s.op.Finish.EffectID = s.proceed(s.l, "apart", `{"invoice":"1"}`).EffectID },
	}
	leaves := func(kind string, list map[string]func(*scene)) {
		for name, against := range list {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newFastWorld(t)
				s := &scene{world: w, l: w.open("a", "pod-1")}
				if kind == "finish" {
					s.b = w.proceed(s.l, "send_payment", invoice)
					s.op = w.finishOp(s.b)
				} else {
					s.op = w.beginOp(s.l, "send_payment", invoice)
				}
				against(s)
				before := w.everything()
				if a, ok := w.fast(s.op); ok {
					t.Fatalf("the fast way answered %+v", a)
				}
				if after := w.everything(); after != before {
					t.Fatalf("it wrote: before\n%s\nafter\n%s", before, after)
				}
			})
		}
	}
	leaves("begin", begins)
	leaves("finish", finishes)
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		w := newFastWorld(t)
		l := w.open("a", "pod-1")
		b, ok := w.fast(w.beginOp(l, "send_payment", invoice))
		if !ok {
			t.Fatal("a begin was left that nothing stands against")
		}
		if f, ok := w.fast(w.finishOp(b.Begin)); !ok || f.Finish.State != "taken" {
			t.Fatalf("a finish was left that nothing stands against: %+v", f)
		}
	})
}

// forget loses the log of everything, as a restored backup does.
func (w *world) forget() {
	w.t.Helper()
	w.exec(`ALTER TABLE effect_events DISABLE TRIGGER USER`)
	w.exec(`DELETE FROM effect_events`)
	w.exec(`ALTER TABLE effect_events ENABLE TRIGGER USER`)
}

// everything is what is stored of effects and runs.
func (w *world) everything() string {
	w.t.Helper()
	var out []string
	for _, table := range []string{"runs", "effects", "attempts", "business_claims", "effect_events", "evidence", "refusals", "log_gaps"} {
		var rows []string
		if err := w.db.Select(w.t.Context(), &rows, `SELECT to_jsonb(x)::text FROM `+table+` x ORDER BY 1`); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, rows...)
	}
	return strings.Join(out, "\n")
}

// Of a batch, only what something stands against is left, and what two of its calls
// ask for is given to one.
func TestTheFastWayTakesTheRestOfABatch(t *testing.T) {
	t.Parallel()
	w := newFastWorld(t)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	taken := w.proceed(w.open("c", "pod-3"), "send_payment", invoice)
	one, two := w.proceed(a, "send_payment", pay("INV-10", "1.00")), w.proceed(b, "send_payment", pay("INV-11", "1.00"))
	answers, left, err := w.Fast(t.Context(),
		w.beginOp(b, "send_payment", pay("INV-1", "1.00")),
		w.beginOp(a, "send_payment", pay("INV-2", "1.00")),
		w.beginOp(a, "send_payment", invoice),              // 2: another's
		w.beginOp(b, "send_payment", pay("INV-2", "2.00")), // 3: the same business key
		w.beginOp(a, "send_payment", pay("INV-2", "1.00")), // 4: the same call
		w.finishOp(one, reference("po_10")),
		w.finishOp(two, func(f *effects.Finish) { f.Fence = 9 }), // 6
		w.finishOp(taken, reference("po_12")),
		w.finishOp(taken, reference("po_13")), // 8: the same effect
		w.beginOp(b, "refund", `{}`),
	)
	slices.Sort(left)
	if err != nil || fmt.Sprint(left) != "[2 3 4 6 8]" {
		t.Fatalf("left %v, %v", left, err)
	}
	for i, a := range answers {
		switch {
		case slices.Contains(left, i):
		case a.Begin != nil && i != 5 && i != 7:
			w.wantState(a.Begin.EffectID, effects.InFlight)
		case a.Finish != nil && (i == 5 || i == 7):
			w.wantState(a.Finish.EffectID, effects.Taken)
		default:
			t.Errorf("answer %d: %s", i, must(json.Marshal(a)))
		}
	}
	if v := w.effect(taken.EffectID); v.Reference != "po_12" {
		t.Errorf("the reference is %q", v.Reference)
	}
	w.check()
}

func must[T any](v T, _ error) T { return v }

// A reference that another finish of the same batch proves is refused by the database;
// the batch then goes the general way, which finds out what is wrong with which.
func TestTwoFinishesOfABatchProveOneReference(t *testing.T) {
	t.Parallel()
	w := newFastWorld(t)
	a, b := w.open("a", "pod-1"), w.open("b", "pod-2")
	one, two := w.proceed(a, "send_payment", pay("INV-1", "1.00")), w.proceed(b, "send_payment", pay("INV-2", "1.00"))
	before := w.everything()
	_, left, err := w.Fast(t.Context(), w.finishOp(one, reference("po_1")), w.finishOp(two, reference("po_1")))
	if err != nil || len(left) != 2 {
		t.Fatalf("left %v, %v", left, err)
	}
	if w.everything() != before {
		t.Fatal("something of it was written")
	}
	w.finish(one, "taken", reference("po_1"))
	w.finish(two, "taken", reference("po_1"))
	w.wantState(one.EffectID, effects.Taken)
	w.wantState(two.EffectID, effects.Interrupted)
}

// A begin that waited for its run's lock sees what the holder of the lock did.
func TestTheFastWayWaitsForTheRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		query string
		left  bool
	}{
		"paused":         {`UPDATE runs SET state = 'paused'`, true},
		"lease passed":   {`UPDATE runs SET lease_until = clock_timestamp()`, true},
		"only looked at": {`SELECT`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFastWorld(t)
			l := w.open("a", "pod-1")
			begun := w.proceed(l, "send_payment", invoice)
			type outcome struct {
				left []int
				err  error
			}
			done := make(chan outcome, 1)
			err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
				if _, err := tx.Exec(ctx, `SELECT 1 FROM runs FOR NO KEY UPDATE`); err != nil {
					return err
				}
				go func() {
					_, left, err := w.Fast(context.WithoutCancel(ctx), w.beginOp(l, "send_payment", pay("INV-7", "1.00")), w.finishOp(begun))
					done <- outcome{left, err}
				}()
				for w.count(`SELECT count(*) FROM pg_locks WHERE NOT granted`) == 0 {
					time.Sleep(5 * time.Millisecond)
				}
				_, err := tx.Exec(ctx, change.query)
				return err
			})
			got := <-done
			if err != nil || got.err != nil || (len(got.left) == 2) != change.left || (len(got.left) == 0) == change.left {
				t.Fatalf("left %v, %v %v", got.left, got.err, err)
			}
		})
	}
}
