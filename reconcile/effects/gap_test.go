package effects_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
)

func TestLogPosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	m := w.open("b", "pod-1")
	at := func(pos string) func(*effects.Begin) { return func(b *effects.Begin) { b.LogPosition = pos } }
	b := w.proceed(l, "refund", `{"n":1}`, at(l.LogPosition))
	if b.LogPosition == "" || b.LogPosition == l.LogPosition {
		t.Fatalf("after the lease %q, after a begin %q", l.LogPosition, b.LogPosition)
	}
	// Every answer's position is good for the next call, also an old one.
	f := w.finish(b, "taken")
	for _, pos := range []string{l.LogPosition, b.LogPosition, f.Finish.LogPosition} {
		if a := w.begin(l, "refund", `{"n":1}`, at(pos)); a.Begin == nil || a.Begin.LogPosition == "" {
			t.Fatalf("%q: %v", pos, a.Refusal)
		}
	}
	// Changed in any bit, cut, or another run's: not ours, and no gap.
	raw, err := base64.RawURLEncoding.DecodeString(b.LogPosition)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := append([]byte(nil), raw...)
		bad[i] ^= 1
		r := w.wantRefusal(w.begin(l, "refund", `{"n":1}`, at(base64.RawURLEncoding.EncodeToString(bad))), effects.CodeInvalid)
		if r.Pointer != "/log_position" {
			t.Fatalf("%+v", r)
		}
	}
	for _, pos := range []string{m.LogPosition, b.LogPosition[:10], "ü", b.LogPosition + "AA"} {
		w.wantRefusal(w.begin(l, "refund", `{"n":1}`, at(pos)), effects.CodeInvalid)
		_, err := w.Heartbeat(t.Context(), w.account, "a", l.Token, pos)
		wantErr(t, err, effects.CodeInvalid)
	}
	if g, err := w.Gap(t.Context()); err != nil || g != nil {
		t.Fatalf("gap: %+v %v", g, err)
	}
}

// restored is the same world on a copy of its database that was made when copy ran:
// what happened since is lost, and agents know more than the log.
type restored struct{ *world }

// backup makes a copy of the database as it is now; restore opens it.
func (w *world) backup(source string) (restore func() restored) {
	w.t.Helper()
	var name string
	if err := w.db.Get(w.t.Context(), &name, `SELECT current_database()`); err != nil {
		w.t.Fatal(err)
	}
	var dump []table
	for _, t := range tables {
		var rows string
		if err := w.db.Get(w.t.Context(), &rows, fmt.Sprintf(`SELECT COALESCE(json_agg(x), '[]')::text FROM %s AS x`, t)); err != nil {
			w.t.Fatal(err)
		}
		dump = append(dump, table{t, rows})
	}
	return func() restored {
		w.t.Helper()
		dsn := ledgertest.URL(w.t)
		db := openDB(w.t, dsn)
		err := db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
			for _, t := range dump {
				if t.name == "installation" {
					if _, err := tx.Exec(ctx, `DELETE FROM installation`); err != nil {
						return err
					}
				}
				if _, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::%s, $1::json)`, t.name, t.name), t.rows); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
			for _, c := range []string{"accounts id", "people id", "runs id", "effect_events id", "refusals id", "kept_finishes id", "log_gaps id", "evidence seq", "decisions seq"} {
				table, id, _ := strings.Cut(c, " ")
				if _, err := tx.Exec(ctx, fmt.Sprintf(`SELECT setval(pg_get_serial_sequence('%s', '%[2]s'), (SELECT COALESCE(max(%[2]s), 0) + 1 FROM %[1]s), false)`, table, id)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.t.Fatalf("couldn't restore: %v", err)
		}
		r := *w
		r.dsn, r.db, r.hub = dsn, db, notify.NewHub()
		r.Engine = r.engine(source)
		return restored{&r}
	}
}

type table struct{ name, rows string }

// tables in the order in which their foreign keys allow them to be filled.
var tables = []string{
	"accounts", "people", "secrets", "installation", "log_gaps", "policies", "runs", "leases", "checkpoints", "refusals",
	"effects", "attempts", "business_claims", "kept_finishes", "effect_events", "evidence", "decisions", "contradictions",
}

func TestLogBehindIsNoticedByEveryCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	restore := w.backup(fastRelease)
	b := w.proceed(l, "send_payment", invoice)
	calls := map[string]func(r restored) error{
		"begin": func(r restored) error {
			return asErr(r.begin(l, "send_payment", invoice, func(x *effects.Begin) { x.LogPosition = b.LogPosition }))
		},
		"finish by call": func(r restored) error {
			return asErr(r.op(effects.Op{Finish: &effects.Finish{Account: r.account, RunID: "a", Tool: "send_payment", Arguments: []byte(invoice), Fence: b.Fence, Outcome: "taken", LogPosition: b.LogPosition}}))
		},
		"finish by id": func(r restored) error {
			return asErr(r.op(effects.Op{Finish: &effects.Finish{Account: r.account, EffectID: b.EffectID, Fence: b.Fence, Outcome: "taken", LogPosition: b.LogPosition}}))
		},
		"heartbeat": func(r restored) error {
			_, err := r.Heartbeat(t.Context(), r.account, "a", l.Token, b.LogPosition)
			return err
		},
		"checkpoint": func(r restored) error {
			_, err := r.SaveCheckpoint(t.Context(), r.account, "a", l.Token, 1, []byte(`{}`), nil, b.LogPosition)
			return err
		},
		"open": func(r restored) error {
			_, err := r.Open(t.Context(), effects.Open{Account: r.account, RunID: "a", Agent: "ap-bot", Worker: "pod-2", AttemptID: "x", LogPosition: b.LogPosition})
			return err
		},
		"close": func(r restored) error {
			_, err := r.Close(t.Context(), r.account, "a", l.Token, "finished", b.LogPosition)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := restore()
			wantErr(t, call(r), effects.CodeLogBehind)
			if g, err := r.Gap(t.Context()); err != nil || g == nil || !strings.Contains(g.FoundBy, `"a"`) && !strings.Contains(g.FoundBy, b.EffectID) || !g.AcknowledgedAt.IsZero() {
				t.Fatalf("gap: %+v %v", g, err)
			}
			// Nobody gets anything now, with a position or without.
			wantErr(t, r.openErr("new", "pod-1", "x"), effects.CodeLogBehind)
			r.wantRefusal(r.begin(l, "refund", `{}`), effects.CodeLogBehind)
			_, err := r.Claim(t.Context(), effects.Claim{Account: r.account, Agents: []string{"ap-bot"}, Worker: "w", AttemptID: "1"})
			wantErr(t, err, effects.CodeLogBehind)
		})
	}
}

func asErr(a effects.Answer) error {
	if a.Refusal != nil {
		return a.Refusal
	}
	return nil
}

// The whole story: an old backup is restored, an agent shows what it lost, a person
// acknowledges, everything open is unknown, nothing of before can pass for new.
func TestLogGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	a, c := w.open("a", "pod-1"), w.open("c", "pod-1")
	flying := w.proceed(a, "send_payment", pay("flying", "1.00"))
	_, cleared := w.interrupted("b", "send_payment", pay("cleared", "1.00"))
	w.passDeadline(cleared.EffectID)
	w.must(w.person, effects.Decide{EffectID: cleared.EffectID, Verdict: effects.VerdictNotTaken})
	held := heldAnswer(w, c, "send_payment", pay("flying", "2.00"))
	done := w.proceed(a, "send_payment", pay("done", "1.00"))
	w.finish(done, "taken", reference("po_done"), result(`{"id":"po_done"}`))
	restore := w.backup(fastRelease)

	lost := w.proceed(w.open("b", "pod-2"), "send_payment", pay("cleared", "1.00")) // attempt 2
	news := w.proceed(w.open("d", "pod-1"), "send_payment", pay("news", "1.00"))    // a run nobody will remember

	r := restore()
	_, err := r.Heartbeat(t.Context(), r.account, "b", "whatever", lost.LogPosition)
	wantErr(t, err, effects.CodeLogBehind)
	// Also a run that this database has never seen notices it.
	_, err = r.Open(t.Context(), effects.Open{Account: r.account, RunID: "d", Agent: "ap-bot", Worker: "pod-9", AttemptID: "x", LogPosition: news.LogPosition})
	wantErr(t, err, effects.CodeLogBehind)
	// Nothing is decided, released or expired meanwhile, by people or by the loops.
	r.passLease("a")
	r.settle()
	if n := r.count(`SELECT count(*) FROM effects WHERE id = $1::uuid AND state = 'in_flight'`, flying.EffectID); n != 1 {
		t.Fatal("a loop moved something while the log is behind")
	}
	r.refused(r.person, effects.Decide{EffectID: held, Verdict: effects.VerdictStop}, effects.CodeLogBehind)

	if err := r.EndGap(t.Context(), r.person, "no"); refusalOf(err) == nil {
		t.Fatalf("ended before it was acknowledged: %v", err)
	}
	if err := r.AcknowledgeGap(t.Context(), r.person, ""); refusalOf(err) == nil {
		t.Fatalf("acknowledged without a note: %v", err)
	}
	if err := r.AcknowledgeGap(t.Context(), r.person, "disk died, restored last night's backup"); err != nil {
		t.Fatal(err)
	}
	if err := r.AcknowledgeGap(t.Context(), r.person, "again"); refusalOf(err) == nil {
		t.Fatalf("acknowledged twice: %v", err)
	}
	for _, id := range []string{flying.EffectID, cleared.EffectID, held} {
		v := r.effect(id)
		if v.State != "interrupted" || v.Why != "log_gap" {
			t.Errorf("%s: %s, %s", v.BusinessKey, v.State, v.Why)
		}
		if v.Moment.Before(v.WaitingSince) {
			t.Errorf("%s: its moment %v is not counted from the acknowledgement", v.BusinessKey, v.Moment)
		}
	}
	r.wantState(done.EffectID, effects.Taken)
	for _, run := range []string{"a", "b", "c"} {
		r.wantRun(run, "paused")
	}
	// The holders of before are gone.
	r.wantRefusal(r.begin(a, "refund", `{}`), effects.CodeRunPaused)

	// A late finish of an attempt that was lost, or whose fence is from before, only
	// becomes evidence.
	for _, b := range []*effects.BeginAnswer{lost, flying} {
		r.wantRefusal(r.finish(b, "taken", reference("po_"+b.EffectID)), effects.CodeStaleFence)
		if v := r.effect(b.EffectID); v.State != "interrupted" || len(v.Evidence) != 1 || v.Evidence[0].Verdict != "taken" {
			t.Errorf("%+v", v)
		}
	}
	// What is new starts as unknown: it may be what was lost.
	l := r.open("d", "pod-3")
	if l.Epoch <= 1_000_000 {
		t.Errorf("epoch %d after the gap", l.Epoch)
	}
	ref := r.wantRefusal(r.begin(l, "send_payment", pay("news", "1.00")), effects.CodeRunPaused)
	v := r.effect(ref.EffectID)
	if v.State != "interrupted" || v.Why != "log_gap" || len(v.Attempts) != 0 || v.Moment.IsZero() {
		t.Fatalf("%+v", v)
	}
	// A person finds out, and the fences are past every lost one.
	r.passDeadline(ref.EffectID)
	r.must(r.person, effects.Decide{EffectID: ref.EffectID, Verdict: effects.VerdictNotTaken})
	b := r.proceed(l, "send_payment", pay("news", "1.00"))
	if b.Fence <= 1_000_000 || b.Attempt != 1 {
		t.Fatalf("%+v", b)
	}
	if b.VendorKey != news.VendorKey || b.Key != news.Key {
		t.Fatal("the vendor key did not survive the restore")
	}
	r.passDeadline(cleared.EffectID)
	r.must(r.person, effects.Decide{EffectID: cleared.EffectID, Verdict: effects.VerdictNotTaken})
	if b = r.proceed(r.open("b", "pod-3"), "send_payment", pay("cleared", "1.00")); b.Fence <= lost.Fence+900_000 {
		t.Fatalf("fence %d", b.Fence)
	}
	if err := r.EndGap(t.Context(), r.person, "all seen"); err != nil {
		t.Fatal(err)
	}
	r.finish(b, "taken")
	m := r.open("e", "pod-1")
	if b = r.proceed(m, "send_payment", pay("later", "1.00")); b.Fence <= 1_000_000 {
		t.Fatalf("an effect first begun after the gap has fence %d", b.Fence)
	}
	// What was closed before the gap is replayed as before.
	r.must(r.person, effects.Decide{EffectID: flying.EffectID, Verdict: effects.VerdictTaken, Reference: "po_flying"})
	if got := r.begin(r.open("a", "pod-4"), "send_payment", pay("done", "1.00")); got.Begin == nil || string(got.Begin.Result) != `{"id":"po_done"}` {
		t.Fatalf("%+v %v", got.Begin, got.Refusal)
	}
}

// A begin that waits for its run while a person acknowledges a gap must see it.
func TestBeginThatWaitedSeesTheAcknowledgement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	l := w.open("a", "pod-1")
	answer := make(chan effects.Answer, 1)
	err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE runs SET refused = refused`); err != nil { // holds the run's lock
			return err
		}
		go func() {
			a, err := w.Apply(context.WithoutCancel(ctx), []effects.Op{{Begin: &effects.Begin{
				Account: w.account, RunID: "a", Lease: l.Token, AttemptID: "x", Tool: "refund", Arguments: []byte(`{}`), Occurrence: 2}}})
			if err != nil {
				t.Error(err)
				a = make([]effects.Answer, 1)
			}
			answer <- a[0]
		}()
		w.waitForLock()
		_, err := tx.Exec(ctx, `INSERT INTO log_gaps (found_by, acknowledged_at, acknowledged_by, note) VALUES ('test', clock_timestamp(), $1, 'x')`, w.person.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.Begin != nil {
		t.Fatalf("began in a log gap: %+v", a.Begin)
	}
}

// waitForLock waits until some session of this database waits for a lock.
func (w *world) waitForLock() {
	w.t.Helper()
	for range 500 {
		if w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
			return
		}
		w.count(`SELECT 1 FROM pg_sleep(0.01)`)
	}
	w.t.Fatal("nobody waits for a lock")
}

// Two servers, one database: what one finds, both obey.
func TestGapIsForAllServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fastRelease)
	other := w.engine(fastRelease)
	if err := w.FindGap(t.Context(), "another cluster"); err != nil {
		t.Fatal(err)
	}
	_, err := other.Open(t.Context(), effects.Open{Account: w.account, RunID: "a", Agent: "ap-bot", Worker: "p", AttemptID: "1"})
	wantErr(t, err, effects.CodeLogBehind)
	if err := other.AcknowledgeGap(t.Context(), w.person, "known"); err != nil {
		t.Fatal(err)
	}
	w.open("a", "p")
}
