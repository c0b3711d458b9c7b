package effects_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/reconcile/effects"
)

// worldWithEverything has at least one row in each table of the record.
func worldWithEverything(t *testing.T) (w *world, effect string) {
	t.Helper()
	w = newWorld(t, fastRelease)
	l, b := w.interrupted("a", "send_payment", invoice)
	if err := w.openErr("a", "pod-2", "x"); err == nil {
		t.Fatal("a paused run was given away")
	}
	w.must(w.person, effects.Decide{EffectID: b.EffectID, Verdict: effects.VerdictTaken, Reference: "po_1", Evidence: "the bank's statement"})
	l = w.open(l.RunID, "pod-3")
	if again := w.begin(l, "send_payment", invoice); again.Begin == nil || again.Begin.Do != "replay" {
		t.Fatalf("begin: %+v", again)
	}
	w.finish(b, "failed") // against a used outcome
	kept := effects.Finish{Account: w.account, RunID: l.RunID, Tool: "send_payment", Arguments: []byte(pay("INV-1", "1.00")), Outcome: "taken"}
	if a := w.op(effects.Op{Finish: &kept}); a.Finish == nil || a.Finish.State != "kept" {
		t.Fatalf("a finish without an intent: %+v", a)
	}
	if err := w.FindGap(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
	return w, b.EffectID
}

// try executes one statement in a transaction of its own.
func (w *world) try(query string, args ...any) (rows int64, err error) {
	err = w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		rows, err = tx.Exec(ctx, query, args...)
		return err
	})
	return rows, err
}

// wantRefused checks that the database itself refuses a statement, with words in its
// message.
func (w *world) wantRefused(words, query string, args ...any) {
	w.t.Helper()
	rows, err := w.try(query, args...)
	if err == nil {
		w.t.Errorf("%s: accepted, %d rows", query, rows)
	} else if !strings.Contains(err.Error(), words) {
		w.t.Errorf("%s: %v, want %q", query, err, words)
	}
}

func TestTheRecordIsAppendOnly(t *testing.T) {
	t.Parallel()
	w, _ := worldWithEverything(t)
	columns := map[string]string{
		"effect_events": "data", "attempts": "attempt_id", "evidence": "seen", "decisions": "note", "refusals": "reason", "kept_finishes": "body",
	}
	for table, column := range columns {
		if n := w.count(`SELECT count(*) FROM ` + table); n == 0 {
			t.Errorf("%s is empty: nothing is proved about it", table)
		}
		w.wantRefused("append-only", fmt.Sprintf(`UPDATE %s SET %s = 'x'`, table, column))
		w.wantRefused("append-only", fmt.Sprintf(`UPDATE %s SET %[2]s = %[2]s`, table, column))
		w.wantRefused("append-only", `DELETE FROM `+table)
		w.wantRefused(table+": TRUNCATE is refused", `TRUNCATE `+table+` CASCADE`)
	}
}

func TestWhatIsKeptForEver(t *testing.T) {
	t.Parallel()
	w, _ := worldWithEverything(t)
	for _, table := range []string{"effects", "runs", "leases", "contradictions", "log_gaps"} {
		if n := w.count(`SELECT count(*) FROM ` + table); n == 0 {
			t.Errorf("%s is empty: nothing is proved about it", table)
		}
		w.wantRefused("kept for ever", `DELETE FROM `+table)
		w.wantRefused(table+": TRUNCATE is refused", `TRUNCATE `+table+` CASCADE`)
	}
	// A TRUNCATE that reaches them from what they refer to.
	for _, table := range []string{"accounts", "people", "policies"} {
		w.wantRefused("TRUNCATE is refused", `TRUNCATE `+table+` CASCADE`)
	}
	if n := w.count(`SELECT count(*) FROM effects`); n != 1 {
		t.Errorf("%d effects are left", n)
	}
}

func TestWhatWasAskedForNeverChanges(t *testing.T) {
	t.Parallel()
	w, id := worldWithEverything(t)
	for column, value := range map[string]string{
		"id": `gen_random_uuid()`, "account_id": `account_id + 1`, "run_id": `run_id + 1`, "key": `sha256('other')`,
		"client_key": `'k'`, "tool": `'refund'`, "occurrence": `2`, "arguments": `'{}'`, "call_digest": `sha256('other')`,
		"summary": `'Pay nothing'`, "amount": `1`, "currency": `'EUR'`, "decimals": `0`, "amount_problem": `'none'`, "call_id": `'c'`,
		"client_time": `'now'`, "context": `'{}'`, "repeat_of": `gen_random_uuid()`, "opened_at": `now()`,
	} {
		w.wantRefused("what was asked for never changes",
			fmt.Sprintf(`UPDATE effects SET %s = %s, version = version + 1 WHERE id = $1::uuid`, column, value), id)
	}
}

// Every change of what an effect is has a version of its own, and so a row in the log.
func TestEveryChangeRaisesTheVersion(t *testing.T) {
	t.Parallel()
	w, id := worldWithEverything(t)
	for column, value := range map[string]string{
		"state": `'interrupted'`, "why": `'undone'`, "attempts": `7`, "fence": `7`, "gap": `true`, "decided_by": `'look_up'`,
		"decided_from": `'held'`, "decision": `NULL`, "proposal": `gen_random_uuid()`, "early": `true`, "released": `false`,
		"used_at": `NULL`, "reference": `'po_2'`, "same_as": `gen_random_uuid()`, "result": `'{}'`, "result_size": `1`,
		"result_digest": `sha256('')`, "error": `'{}'`, "contradictions": `0`, "version": `version - 1`,
	} {
		w.wantRefused("every change raises the version", fmt.Sprintf(`UPDATE effects SET %s = %s WHERE id = $1::uuid`, column, value), id)
	}
	if rows, err := w.try(`UPDATE effects SET contradictions = 0, version = version + 1 WHERE id = $1::uuid`, id); rows != 1 {
		t.Errorf("with a higher version: %d rows, %v", rows, err)
	}
	w.wantRefused("effect_events_one_a_version", `
		INSERT INTO effect_events (at, run_id, effect_id, version, kind, data, digest)
		SELECT at, run_id, effect_id, version, kind, data, digest FROM effect_events WHERE effect_id = $1::uuid LIMIT 1`, id)
}

// copyEffect stores the only effect once more, with some columns of its own.
const copyEffect = `
	INSERT INTO effects (id, account_id, run_id, key, tool, occurrence, arguments, call_digest, claim, call_claim, summary,
		opened_at, state, attempts, fence, deadline, decided_by, release_at, released, used_at, reference, changed_at)
	SELECT gen_random_uuid(), account_id, run_id, %s, %s, occurrence, arguments, call_digest, claim, call_claim, summary,
		opened_at, state, attempts, fence, deadline, decided_by, release_at, released, used_at, %s, changed_at
	FROM effects WHERE id = $1::uuid`

func TestIdentitiesAndReferencesAreUnique(t *testing.T) {
	t.Parallel()
	w, id := worldWithEverything(t)
	const other = `sha256(uuid_send(gen_random_uuid()))`
	for _, c := range []struct {
		name, key, tool, reference string
		constraint                 string // "" where it is accepted
	}{
		{"the same key in the same run", `key`, `tool`, `NULL`, "effects_identity"},
		{"another key, the same reference", other, `tool`, `reference`, "effects_reference"},
		{"another tool's record", other, `'refund'`, `reference`, ""},
		{"a reference in other letters is another", other, `tool`, `upper(reference)`, ""},
		{"no reference proves nothing, and is not unique", other, `tool`, `NULL`, ""},
		{"no reference again", other, `tool`, `NULL`, ""},
	} {
		_, err := w.try(fmt.Sprintf(copyEffect, c.key, c.tool, c.reference), id)
		if got := ledger.Constraint(err); got != c.constraint || (err == nil) != (c.constraint == "") {
			t.Errorf("%s: %v, want %q", c.name, err, c.constraint)
		}
	}
}

// Two holders of one run never overlap, whatever the program does.
func TestOneLeaseHolder(t *testing.T) {
	t.Parallel()
	w, _ := worldWithEverything(t)
	const another = `
		INSERT INTO leases (run_id, epoch, worker, attempt_id, taken_at)
		SELECT run_id, max(epoch) + 1, 'pod-9', 'x', clock_timestamp() FROM leases GROUP BY run_id`
	if n := w.count(`SELECT count(*) FROM leases WHERE ended_at IS NULL`); n != 1 {
		t.Fatalf("%d leases hold, want 1", n)
	}
	if _, err := w.try(another); ledger.Constraint(err) != "leases_one_holder" {
		t.Errorf("a second holder: %v", err)
	}
	w.exec(`UPDATE leases SET ended_at = clock_timestamp(), ended_by = 'expired' WHERE ended_at IS NULL`)
	if _, err := w.try(another); err != nil {
		t.Errorf("the next holder: %v", err)
	}
	w.wantRefused("leases_pkey", `INSERT INTO leases (run_id, epoch, worker, attempt_id, taken_at, ended_at, ended_by)
		SELECT run_id, max(epoch), 'pod-9', 'x', now(), now(), 'released' FROM leases GROUP BY run_id`)
}

// One business key, one effect that may act for it.
func TestOneClaimOneEffect(t *testing.T) {
	t.Parallel()
	w, _ := worldWithEverything(t)
	_, err := w.try(`INSERT INTO business_claims (digest, account_id, tool, effect_id, taken_at) SELECT digest, account_id, tool, effect_id, taken_at FROM business_claims LIMIT 1`)
	if ledger.Constraint(err) != "business_claims_pkey" {
		t.Errorf("a second claim: %v", err)
	}
}

// The states a run may be in are tied to its lease and to its end.
func TestRunStatesAreTiedToTheirColumns(t *testing.T) {
	t.Parallel()
	w, _ := worldWithEverything(t)
	states := []string{"running", "paused", "ready", "finished", "failed", "cancelled", "unheard_of"}
	for _, state := range states {
		for _, leased := range []bool{false, true} {
			for _, closed := range []bool{false, true} {
				isClosed := state == "finished" || state == "failed" || state == "cancelled"
				want := state != "unheard_of" && closed == isClosed && (state == "paused" || leased == (state == "running"))
				set := `state = '` + state + `'`
				if !leased {
					set += `, lease_hash = NULL, lease_until = NULL, lease_worker = NULL, lease_attempt = NULL, lease_seconds = NULL`
				}
				if closed {
					set += `, closed_at = now()`
				}
				err := w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
					if _, err := tx.Exec(ctx, `UPDATE runs SET lease_hash = sha256(''), lease_until = now(), lease_worker = 'w', lease_attempt = 'x', lease_seconds = 60`); err != nil {
						return err
					}
					if _, err := tx.Exec(ctx, `UPDATE runs SET `+set); err != nil {
						return err
					}
					return errUndone
				})
				if accepted := errors.Is(err, errUndone); accepted != want {
					t.Errorf("%s, leased %v, closed %v: %v, want it accepted: %v", state, leased, closed, err, want)
				} else if !accepted && ledger.Constraint(err) == "" {
					t.Errorf("%s, leased %v, closed %v: %v", state, leased, closed, err)
				}
			}
		}
	}
	w.wantRefused("runs_lease_whole", `UPDATE runs SET lease_worker = NULL`)
}

var errUndone = errors.New("undone by the test")
