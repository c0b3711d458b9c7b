package httpapi_test

import (
	"testing"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
)

// A person compares a record's money with the intent's: it is read off the rule that
// compares them.
func TestARecordShowsItsMoney(t *testing.T) {
	t.Parallel()
	const match = `same_amount(hit.amount, "minor") && hit.currency == effect.currency`
	for name, c := range map[string]struct {
		match, currency  string
		amount           int64
		shown, shownCode string
	}{
		"short":               {match, "USD", 418000, "4180.00", "USD"},
		"another currency":    {match, "JPY", 420000, "420000", "JPY"},
		"small letters":       {`same_amount(hit.amount, "minor") && hit.currency.upperAscii() == effect.currency`, "usd", 1, "0.01", "USD"},
		"no known currency":   {match, "shells", 420000, "420000 of the smallest unit", "shells"},
		"in whole units":      {`same_amount(hit.amount, "major") && effect.currency == hit.currency`, "USD", 4200, "4200.00", "USD"},
		"behind a condition":  {`has(hit.amount) && (hit.status == "x" || same_amount(hit.amount, "minor")) && effect.currency == hit.currency`, "USD", 5, "0.05", "USD"},
		"several, the first":  {match + ` && same_amount(hit.amount + 1, "minor")`, "USD", 100, "1.00", "USD"},
		"currency not theirs": {`same_amount(hit.amount, "minor") && "USD" == effect.currency`, "EUR", 100, "1.00", "USD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, match, c.match)
			w.bank.Put(simulator.Payment{ID: "tr_1", Reference: "INV-9", Amount: c.amount, Currency: c.currency, To: "DE02", Status: "booked"})
			_, seen := w.ask()
			if len(seen.Hits) != 1 || seen.Hits[0].Amount != c.shown || seen.Hits[0].Currency != c.shownCode {
				t.Errorf("%+v", seen.Hits)
			}
		})
	}
}

// Where no call is on record a key finds its records, and matches none.
func TestAKeyAloneFindsAndNeverMatches(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bank.Put(simulator.Payment{ID: "tr_1", Reference: "INV-9", Amount: 420000, Currency: "USD", To: "DE02", Status: "booked"})
	q := lookup.Question{KeyOnly: true, Tool: "pay", Attempts: w.question().Attempts, AskedAt: w.clock.now()}.As("INV-9")
	a, seen := w.askAbout(q)
	want(t, a, lookup.Inconclusive, lookup.NoCall)
	if len(seen.Hits) != 1 || seen.Hits[0].Reference != "tr_1" || seen.Hits[0].Match || seen.Hits[0].Amount != "4200.00" {
		t.Errorf("%+v", seen.Hits)
	}
}
