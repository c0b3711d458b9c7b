package effects

import (
	"encoding/json"
	"fmt"

	store "quittance/ledger/effects"
	"quittance/ledger/lookups"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
)

// question is what is known of an effect when its downstream is asked.
func question(d *store.Detail, t *policy.Tool, around lookups.Around) (lookup.Question, error) {
	args, err := canon.ParseObject([]byte(d.ArgumentText))
	if err != nil {
		return lookup.Question{}, fmt.Errorf("couldn't read the arguments of effect %s: %w", d.ID, err)
	}
	q := lookup.Question{
		Effect: d.ID, Account: d.AccountName, Run: d.RunName, Tool: d.Tool, BusinessKey: d.BusinessKey, Reference: d.Reference, Arguments: args,
		VendorKey: canon.VendorKey(accountText(d.Account), d.RunName, canon.Key(d.Key).String()),
	}
	q.Amount, _ = moneyOf(&d.Row)
	surround(&q, &d.Row, t, around)
	return q, nil
}

// surround adds what may change while a downstream answers: it is read once before
// asking, and again under the effect's lock before the answer is judged.
func surround(q *lookup.Question, x *store.Row, t *policy.Tool, around lookups.Around) {
	q.Attempts = nil
	for _, a := range around.Attempts {
		q.Attempts = append(q.Attempts, lookup.Attempt(a))
	}
	if x.Gap {
		q.Attempts = append(q.Attempts, lookup.Attempt{Deadline: x.Deadline.Time})
	}
	q.LandsWithin = nil
	if lands, declared := t.LandsWithin(); declared {
		q.LandsWithin = &lands
	}
	q.Shared, q.Unreferenced = around.Shared, around.Unreferenced
	q.Owned = map[string]string{}
	for ref, id := range around.Owned {
		q.Owned[ref] = id
	}
	for _, ref := range around.NotOurs {
		q.Owned[ref] = ""
	}
}

// readsOf are the earlier looks that count.
func readsOf(around lookups.Around) ([]lookup.Read, error) {
	list := make([]lookup.Read, 0, len(around.Reads))
	for _, raw := range around.Reads {
		var r lookup.Read
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("couldn't read an earlier look: %w", err)
		}
		list = append(list, r)
	}
	return list, nil
}
