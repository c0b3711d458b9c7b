package effects

import (
	"math/big"

	store "quittance/ledger/effects"
	"quittance/ledger/money"
)

// needsSecond tells whether the verdict has to be confirmed by another person.
func (v *verdict) needsSecond() bool {
	amount, problem := v.x.money()
	return v.tool(v.x).NeedsSecondPerson(amount, problem)
}

// money is the amount at stake, or why it could not be read.
func (x *effect) money() (*money.Amount, string) { return moneyOf(x.Row) }

func moneyOf(x *store.Row) (*money.Amount, string) {
	if x.Amount == "" || x.Decimals == nil {
		return nil, x.AmountProblem
	}
	asset, err := money.NewAsset(x.Currency, *x.Decimals)
	n, ok := new(big.Int).SetString(x.Amount, 10)
	if err != nil || !ok {
		return nil, "the stored amount cannot be read"
	}
	a, err := money.FromMinor(n, asset)
	if err != nil {
		return nil, "the stored amount cannot be read"
	}
	return &a, ""
}

// second finds the waiting verdict that this one confirms. A waiting verdict of the
// same person is only replaced, never confirmed; one that says something else has
// to be sent back first.
func (v *verdict) second() (first *store.Decision, r *Refusal) {
	if v.x.Proposal == "" {
		return nil, nil
	}
	for i := range v.past {
		if v.past[i].ID == v.x.Proposal {
			first = &v.past[i]
		}
	}
	switch {
	case first == nil || first.Person == v.by.ID:
		return nil, nil
	case first.Verdict != string(v.Verdict) || first.SameAs != v.SameAs || v.Reference != "" && v.Reference != first.Reference:
		return nil, &Refusal{Code: CodeSecondWaits, EffectID: v.x.ID, State: string(v.x.State), Version: v.x.Version,
			Decided: &Decided{By: "person", Person: first.PersonName, At: first.At.Time, Verdict: first.Verdict, Note: first.Note},
			Detail:  "Another verdict waits for a second person: confirm it or send it back."}
	}
	return first, nil
}

// propose keeps the first of two verdicts, with its evidence, until another person
// confirms it or sends it back.
func (v *verdict) propose() error {
	d := v.row("propose")
	v.x.Proposal = d.ID
	v.answer.Waits = true
	if err := v.record(v.x, "proposed", map[string]any{"verdict": v.Verdict, "decision": d.ID, "person": v.by.ID}); err != nil {
		return err
	}
	v.hint(v.x.run)
	v.finish(d)
	return nil
}

// sendBack is the second person's no, or the first person's change of mind.
func (v *verdict) sendBack() (*Refusal, error) {
	x := v.x
	switch {
	case x.Proposal == "":
		return x.refusal(CodeNotAllowed, "No verdict waits for a second person."), nil
	case v.Version != x.Version:
		return x.stale(), nil
	case len(v.Note) == 0:
		return noteMissing("/note", "Sending back says why."), nil
	}
	d := v.row("send_back")
	d.Verdict, d.About = "", x.Proposal
	x.Proposal = ""
	if err := v.record(x, "sent_back", map[string]any{"decision": d.ID, "person": v.by.ID}); err != nil {
		return nil, err
	}
	v.hint(x.run)
	v.finish(d)
	return nil, nil
}
