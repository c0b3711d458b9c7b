package desk

import (
	"errors"
	"net/http"

	"quittance/ledger/money"
	"quittance/reconcile/effects"
	"quittance/views"
)

// tryLookup asks a tool's downstream about a real business key, only to show what it says:
// nothing is stored but that somebody did.
func (d *Desk) tryLookup(r *request) error {
	try := views.TryLookup{Tool: r.form.Text("tool"), Key: r.form.Text("key")}
	if try.Tool == "" || try.Key == "" {
		try.Problem = "Choose a tool and give a business key that exists."
		return d.showTools(r, http.StatusUnprocessableEntity, try)
	}
	got, err := d.engine.TryLookup(r.ctx(), try.Tool, try.Key)
	if refusal, ok := errors.AsType[*effects.Refusal](err); ok {
		d.audit(r, string(refusal.Code))
		try.Problem = refusal.Detail
		return d.showTools(r, http.StatusConflict, try)
	}
	if err != nil {
		return err
	}
	row := r.by().Row(r.route.action, "tool:"+try.Tool)
	row.Note = "business key " + try.Key + ": " + got.Look.Says()
	if err := d.access.Record(r.ctx(), row); err != nil {
		return err
	}
	meant, err := d.meant(r, got)
	if err != nil {
		return err
	}
	try.Result = tried(r, got, meant, try.Key)
	return d.showTools(r, http.StatusOK, try)
}

// meant is the amount of the call that was asked about; nil where there is none.
func (d *Desk) meant(r *request, got effects.Trial) (*money.Amount, error) {
	if got.Effect == "" {
		return nil, nil
	}
	v, err := d.engine.Effect(r.ctx(), 0, got.Effect)
	return v.Amount, err
}

func tried(r *request, got effects.Trial, meant *money.Amount, key string) *views.Tried {
	l := got.Look
	looks := &views.Looks{
		State: lookState(l.Verdict, l.Reason), Asked: r.at(l.AskedAt), Said: note(l.Why), Open: true,
		Intent: views.Intent{Amount: amount(meant), Key: line(key)},
	}
	looks.Records, looks.More = recordViews(r.clock, effects.LooksView{Looks: []effects.LookView{l}}.Records(), meant)
	looks.Conditions, looks.Proven = proofOf(r.clock, &l)
	t := &views.Tried{Looks: looks, Fold: views.Fold{ID: "tried", Facts: lookFacts(l), Excerpt: show(l.Excerpt, 4000, true)}}
	if got.Effect != "" {
		t.Effect = effectURL(got.Effect)
	}
	if len(got.Result) > 0 {
		c := code(got.Result, "")
		t.Result = &c
	}
	return t
}
