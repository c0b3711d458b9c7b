package main

import (
	"slices"
	"testing"
	"time"

	"quittance/cmd/torture/payer"
	"quittance/ledger/proof"
)

// good is a round in which all went well: two runs pay an invoice each.
func good(k kind) facts {
	effect := func(id, run string, ref string) proof.Effect {
		return proof.Effect{ID: id, Run: run, Tool: tools[k], BusinessKey: payer.Payee + "/" + run + "-i0", State: "taken", Reference: ref, Attempts: 1, DecidedBy: "agent"}
	}
	now := time.Now()
	return facts{
		Kind:    k,
		Runs:    []runs{{Name: "a", Invoices: []string{"a-i0"}}, {Name: "b", Invoices: []string{"b-i0"}}},
		Booked:  map[string][]string{"a-i0": {"pay_1"}, "b-i0": {"pay_2"}},
		Record:  []proof.Run{{ID: "a", State: "finished"}, {ID: "b", State: "finished"}},
		Effects: []proof.Effect{effect("1", "a", "pay_1"), effect("2", "b", "pay_2")},
		Told: []told{
			{"a", 1, payer.Event{Kind: payer.Holds, Epoch: 1, Since: now}},
			{"a", 1, payer.Event{Kind: payer.Begun, Epoch: 1, Since: now.Add(1), Effect: "1", Invoice: "a-i0"}},
			{"a", 2, payer.Event{Kind: payer.Holds, Epoch: 2, Since: now.Add(2)}},
			{"a", 2, payer.Event{Kind: payer.Paid, Recorded: true, Effect: "1", Invoice: "a-i0"}},
		},
		Wrong: map[string]bool{},
	}
}

// Whatever can be wrong is found, and nothing else is.
func TestTheCheckerFindsEachWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind kind
		with func(f *facts)
		want []string
	}{
		"all is well":                           {keeps, func(*facts) {}, nil},
		"a double at the bank that keeps a key": {keeps, func(f *facts) { f.Booked["a-i0"] = []string{"pay_1", "pay_3"} }, []string{double}},
		"a double that lands in time":           {lands, func(f *facts) { f.Booked["a-i0"] = []string{"pay_1", "pay_3"} }, []string{double}},
		"a double that nobody noticed":          {ignores, func(f *facts) { f.Booked["a-i0"] = []string{"pay_1", "pay_3"} }, []string{undetected}},
		"a double that is a contradiction": {ignores, func(f *facts) {
			f.Booked["a-i0"], f.Effects[0].Suspected = []string{"pay_1", "pay_3"}, 1
		}, nil},
		"a payment that the record has not":    {keeps, func(f *facts) { f.Effects, f.Told = f.Effects[1:], nil }, []string{lost}},
		"a payment that the record says no to": {keeps, func(f *facts) { f.Effects[1].State = "failed" }, []string{lost}},
		"a payment under another's name":       {keeps, func(f *facts) { f.Effects[1].Reference = "pay_9" }, []string{lost}},
		"a finished run that paid nothing":     {keeps, func(f *facts) { delete(f.Booked, "b-i0") }, []string{unpaid}},
		"the same, because a person said so":   {keeps, func(f *facts) { delete(f.Booked, "b-i0"); f.Wrong["b-i0"] = true }, nil},
		"a run that waits for nobody":          {keeps, func(f *facts) { f.Record[1].State = "ready" }, []string{stuck}},
		"a paused run with nothing to decide":  {keeps, func(f *facts) { f.Record[1].State = "paused" }, []string{stuck}},
		"a run that waits for a person":        {keeps, func(f *facts) { f.Record[1].State, f.Record[1].Waiting = "paused", 1 }, nil},
		"a run that is not on record":          {keeps, func(f *facts) { f.Record = f.Record[:1] }, []string{stuck}},
		"what an agent was told and is gone":   {keeps, func(f *facts) { f.Told[3].Effect = "7" }, []string{lost}},
		"what an agent was told is open again": {keeps, func(f *facts) { f.Effects[0].State = "interrupted" }, []string{lost}},
		"two holders":                          {keeps, func(f *facts) { f.Told[1].Since = f.Told[2].Since.Add(1) }, []string{holders}},
		"one record for two effects":           {ignores, func(f *facts) { f.Effects[1].Reference = "pay_1"; f.Wrong["b-i0"] = true }, []string{shared}},
		"a late finish that closed another's":  {keeps, func(f *facts) { f.Stale = []string{"1"} }, []string{fences}},
		"a damaged record":                     {keeps, func(f *facts) { f.Damage = []string{"row 7"} }, []string{damage}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := good(c.kind)
			c.with(&f)
			var got []string
			for _, one := range check(f).Findings {
				got = append(got, one.What)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

// A seed makes the same plan again, and another seed another one.
func TestASeedMakesAPlanAgain(t *testing.T) {
	t.Parallel()
	z := size{runs: 12, fates: 8, agents: []string{"go", "python"}, storms: true, kinds: kinds}
	for n := range 6 {
		if a, b, c := asJSON(planOf(7, n, z)), asJSON(planOf(7, n, z)), asJSON(planOf(8, n, z)); a != b || a == c {
			t.Errorf("round %d of one seed is planned as\n%s\nand\n%s", n, a, b)
		}
	}
}
