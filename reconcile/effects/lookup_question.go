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
func question(t *policy.Tool, a lookups.Around) (lookup.Question, error) {
	args, err := canon.ParseObject([]byte(a.Arguments))
	if err != nil {
		return lookup.Question{}, fmt.Errorf("couldn't read the arguments of effect %s: %w", a.Effect, err)
	}
	q := lookup.Question{
		Effect: a.Effect, Account: a.AccountName, Run: a.Run, Tool: a.Tool, BusinessKey: a.BusinessKey, Arguments: args,
		VendorKey: canon.VendorKey(accountText(a.Account), a.Run, canon.Key(a.Key).String()),
	}
	q.Amount, _ = moneyOf(&store.Row{Intent: store.Intent{Amount: a.Amount, Currency: a.Currency, Decimals: a.Decimals}})
	surround(&q, t, a)
	return q, nil
}

// surround adds what may change while a downstream answers: it is read once before
// asking, and again under the effect's lock before the answer is judged.
func surround(q *lookup.Question, t *policy.Tool, around lookups.Around) {
	q.Attempts, q.Reference = nil, around.Reference
	for _, a := range around.Attempts {
		q.Attempts = append(q.Attempts, lookup.Attempt(a))
	}
	if around.Gap {
		q.Attempts = append(q.Attempts, lookup.Attempt{Deadline: around.Deadline.Time})
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
	q.Resent = map[string]bool{}
	for ref, at := range around.NotOurs {
		q.Owned[ref] = ""
		for _, a := range q.Attempts {
			q.Resent[ref] = q.Resent[ref] || a.Begun.After(at)
		}
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
