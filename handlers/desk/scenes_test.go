package desk_test

import (
	"fmt"
	"time"

	"quittance/ledger/desk"
	"quittance/reconcile/effects"
)

// decide records a verdict as the engine's own callers do.
func (w *world) decide(p effects.Person, d effects.Decide) *effects.DecideAnswer {
	w.t.Helper()
	if d.Version == 0 {
		d.Version = w.effect(d.EffectID).Version
	}
	if d.Note == "" {
		d.Note = "Looked at the bank portal"
	}
	r, err := w.engine.Decide(w.t.Context(), p, []effects.Decide{d})
	if err != nil {
		w.t.Fatal(err)
	}
	if r[0].Refusal != nil {
		w.t.Fatalf("decide %s: %v", d.Verdict, r[0].Refusal)
	}
	return r[0].Answer
}

// exec runs a statement that only a test may.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Pool().ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// aged lets an effect have waited for a while already.
func (w *world) aged(id string, d time.Duration) string {
	w.t.Helper()
	w.exec(`UPDATE effects SET waiting_since = waiting_since - make_interval(secs => $2) WHERE id = $1::uuid`, id, d.Seconds())
	return id
}

// contradicted makes an effect that was stopped, and then turned out to have happened.
func (w *world) contradicted(run, args string) string {
	w.t.Helper()
	l, id := w.begun(run, "send_payment", args)
	if _, err := w.engine.Release(w.t.Context(), w.account, run, l.Token, ""); err != nil {
		w.t.Fatal(err)
	}
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken, Reference: "po_" + run})
	w.finish(id, "taken", "po_8812")
	if v := w.effect(id); len(v.Contradictions) == 0 {
		w.t.Fatalf("no contradiction: %s %s", v.State, v.Why)
	}
	return id
}

// finish reports an outcome as the worker of the last attempt.
func (w *world) finish(id, outcome, reference string) {
	w.t.Helper()
	v := w.effect(id)
	_, err := w.engine.Apply(w.t.Context(), []effects.Op{{Finish: &effects.Finish{
		Account: w.account, EffectID: id, Fence: v.Attempts[len(v.Attempts)-1].Fence, Outcome: outcome, Reference: reference,
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// scene fills the desk with something of every kind.
func (w *world) scene() map[string]string {
	w.t.Helper()
	m := map[string]string{}
	m["contradicted"] = w.aged(w.contradicted("run-ap-771", pay("ACME Tools", "INV-9", "4200.00", "USD")), 12*time.Minute)
	m["payment"] = w.aged(w.interrupted("run-ap-802", "send_payment", pay("Birch Supply", "INV-2041", "38900.00", "USD")), 72*time.Minute)
	m["euro"] = w.aged(w.interrupted("run-ap-803", "send_payment", pay("Lindholm Paper", "R-77", "31.50", "EUR")), 26*time.Minute)
	first := w.interrupted("run-ap-640", "send_payment", pay("Keystone Ltd", "INV-118", "1118.00", "USD"))
	w.decide(w.petra, effects.Decide{EffectID: first, Verdict: effects.VerdictTaken, Reference: "po_640"})
	_, m["held"] = w.begun("run-ap-811", "send_payment", pay("Keystone Ltd", "INV-118", "1118.01", "USD"))
	m["second"] = w.aged(w.interrupted("run-ap-820", "send_payment", pay("Northwind Freight", "NF-3381", "52000.00", "USD")), 41*time.Minute)
	w.decide(w.petra, effects.Decide{EffectID: m["second"], Verdict: effects.VerdictNotTaken, Note: "Not in the portal, not in the batch of 14:00, bank desk confirms by phone (Mr Adeyemi)."})
	m["email"] = w.aged(w.interrupted("run-mail-12", "send_email", `{"to":"ledger@vendor.example","subject":"remittance advice 2041"}`), 58*time.Minute)
	m["yen"] = w.aged(w.interrupted("run-ap-830", "send_payment", pay("東京運輸株式会社", "T-9921", "1204000", "JPY")), 5*time.Minute)
	m["hebrew"] = w.interrupted("run-ap-831", "send_payment", pay("דפוס העמק בע״מ", "2201", "870.00", "ILS"))
	m["odd"] = w.interrupted("run-ap-832", "send_payment", pay("pay\u200bpal", "INV-3", "12.00", "USD"))
	m["decided"] = w.interrupted("run-ap-790", "send_payment", pay("Harbor Print", "HP-12", "640.00", "USD"))
	w.decide(w.quentin, effects.Decide{EffectID: m["decided"], Verdict: effects.VerdictNotTaken, Note: "Portal search by HP-12 and by amount: nothing, and the day is closed."})
	return m
}

// many makes n open payments in one go.
func (w *world) many(n int) {
	w.t.Helper()
	for i := range n {
		w.interrupted(fmt.Sprintf("run-bulk-%04d", i), "send_email", fmt.Sprintf(`{"to":"user%d@example.com","subject":"notice"}`, i))
	}
}

// runOf is the number of an effect's run, as the addresses of runs have it.
func (w *world) runOf(id string) string {
	w.t.Helper()
	n, err := desk.RunOfEffect(w.t.Context(), w.db, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(n)
}
