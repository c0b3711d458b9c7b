package recoveries_test

import (
	"context"
	"errors"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/recoveries"
)

// Every event in every state: what is closed stays closed, but for a dismissal that was
// wrong, and nothing is recovered that was never confirmed.
func TestEveryEventInEveryState(t *testing.T) {
	t.Parallel()
	allowed := 0
	for _, s := range recoveries.States {
		for _, e := range recoveries.Events {
			to, ok := recoveries.Next(s, e)
			if !ok {
				if to != "" {
					t.Errorf("%s, event %d: refused, to %s", s, e, to)
				}
				continue
			}
			allowed++
			switch {
			case (s == recoveries.Recovered || s == recoveries.WrittenOff):
				t.Errorf("%s is not the end: event %d", s, e)
			case s == recoveries.Dismissed && e != recoveries.Confirm:
				t.Errorf("dismissed, event %d", e)
			case (to == recoveries.Recovered || to == recoveries.WrittenOff || to == recoveries.Claimed) && s == recoveries.Suspected:
				t.Errorf("%s is reached without being confirmed", to)
			}
		}
	}
	if allowed != 15 {
		t.Errorf("%d rows", allowed)
	}
}

// A recovery of an unknown amount from suspicion to the last cent.
func TestARecoveryInParts(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	e := recoveries.New(db)
	id, by := suspected(t, db)
	act := recoveries.Act{By: by, Recovery: id, Note: "looked"}
	refused := func(err error) {
		t.Helper()
		if _, ok := errors.AsType[*recoveries.Refusal](err); !ok {
			t.Errorf("%v, want a refusal", err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	refused(e.Claim(ctx, act, "ticket 1"))
	refused(e.Confirm(ctx, act, recoveries.Terms{}))
	refused(e.Confirm(ctx, act, recoveries.Terms{Amount: "10.001", Currency: "USD"}))
	refused(e.Confirm(ctx, act, recoveries.Terms{Amount: "10.00", Currency: "USDCC"}))
	must(e.Confirm(ctx, act, recoveries.Terms{Amount: "10", Currency: "usd"}))
	refused(e.Receive(ctx, act, recoveries.Return{Amount: "10.01", How: "cash", Reference: "w"}))
	refused(e.Receive(ctx, act, recoveries.Return{Amount: "1.00", How: "goods", Reference: "w"}))
	must(e.Receive(ctx, act, recoveries.Return{Amount: "3.30", How: "cash", Reference: "wire 1"}))
	refused(e.Dismiss(ctx, act)) // some of it came back
	must(e.Claim(ctx, act, "ticket 1"))
	stale := act
	stale.Version = 1
	refused(e.WriteOff(ctx, stale))
	must(e.Receive(ctx, act, recoveries.Return{How: "credit_note", Reference: "CN 7"}))
	var got struct{ State, How, Recovered string }
	must(db.Get(ctx, &got, `SELECT state, how, recovered::text AS recovered FROM recoveries`))
	if got.State != "recovered" || got.How != "credit_note" || got.Recovered != "1000" {
		t.Errorf("%+v", got)
	}
	refused(e.WriteOff(ctx, act))
	// The log has one line a version, and nobody changes it.
	var versions, lines int
	must(db.Get(ctx, &versions, `SELECT version FROM recoveries`))
	must(db.Get(ctx, &lines, `SELECT count(*) FROM recovery_events`))
	if versions != lines {
		t.Errorf("version %d, %d lines", versions, lines)
	}
	for _, s := range []string{`DELETE FROM recovery_events`, `UPDATE recovery_events SET kind = 'x'`, `TRUNCATE recovery_events`, `DELETE FROM recoveries`, `UPDATE recoveries SET origin = 'double', version = version + 1`} {
		err := db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
			_, err := tx.Exec(ctx, s)
			return err
		})
		if err == nil {
			t.Errorf("%s is done", s)
		}
	}
}

// suspected is a recovery of an effect whose amount nobody knows, and a person.
func suspected(t *testing.T, db *ledger.DB) (id string, by access.MadeBy) {
	t.Helper()
	person, err := access.New(db).AddPerson(t.Context(), "Ada", "", []string{"finance"})
	if err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		// Past the guard that wants an effect or a payout: neither is what this is about.
		if _, err := tx.Exec(ctx, `ALTER TABLE recoveries DROP CONSTRAINT recoveries_subject`); err != nil {
			return err
		}
		if err := tx.Get(ctx, &id, `INSERT INTO recoveries (id, origin, counterparty, state, opened_at, changed_at)
			VALUES (gen_random_uuid(), 'contradiction', 'Birch Supply', 'suspected', now(), now()) RETURNING id`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO recovery_events (recovery_id, at, kind, data) VALUES ($1::uuid, now(), 'opened', '{}')`, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id, access.MadeBy{Person: &access.Person{ID: person, Name: "Ada"}}
}
