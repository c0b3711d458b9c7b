package desk

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	store "quittance/ledger/recoveries"
	"quittance/reconcile/recoveries"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) oneRecovery(r *request) (*store.Recovery, error) {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return nil, echo.ErrNotFound
	}
	v, err := store.ByID(r.ctx(), d.db, id.String())
	if err == nil && v == nil {
		err = echo.ErrNotFound
	}
	return v, err
}

func (d *Desk) recoveryPage(r *request) error {
	v, err := d.oneRecovery(r)
	if err != nil {
		return err
	}
	page, err := d.page(r, "Recovery", "/recoveries")
	if err != nil {
		return err
	}
	s := views.MoneySheet{
		Page: page, Crumb: views.Link{Text: "Recoveries", URL: "/recoveries"}, Title: line(v.Counterparty), State: recoveryState(v),
		Lead:   "Open since " + r.at(v.OpenedAt).Text + ", for " + span(r.now.Sub(v.OpenedAt)) + ".",
		Amount: recoveryMoney(v, v.Amount.V.Minus(v.Recovered)),
		Facts:  []views.Fact{{Name: "Owner", Value: line(orElse(v.Owner, "nobody"))}},
	}
	if !v.Amount.Valid {
		s.Blocked = "How much left twice is not said yet."
	} else {
		s.Figures = []views.Figure{{Label: "Left twice", Money: recoveryMoney(v, v.Amount.V)}, {Label: "Came back", Money: recoveryMoney(v, v.Recovered)}, {Label: "To come back", Money: s.Amount}}
	}
	switch {
	case v.Effect != "":
		s.Facts = append(s.Facts, views.Fact{Name: "The call", Value: line(v.Summary), URL: effectURL(v.Effect)})
	case v.Refund != "":
		s.Facts = append(s.Facts, views.Fact{Name: "The refund", Value: line("paid twice"), URL: "/refunds/" + v.Refund})
	}
	for _, f := range [][2]string{{"Claim", v.Claim}, {"Came back as", map[string]string{"cash": "cash", "credit_note": "a credit note"}[v.How]}, {"Reference", v.Reference}} {
		if f[1] != "" {
			s.Facts = append(s.Facts, views.Fact{Name: f[0], Value: line(f[1])})
		}
	}
	events, err := store.History(r.ctx(), d.db, v.ID)
	if err != nil {
		return err
	}
	for i, e := range events {
		known := moneyEvents[e.Kind]
		x := views.Event{At: r.short(e.At), Kind: orElse(known[0], "plain"), Title: note(orElse(known[1], e.Kind)), Detail: show(eventDetail(e.Person, e.Data), eventShown, true)}
		if i == 0 || !r.sameDay(events[i-1].At, e.At) {
			x.Day = r.day(e.At)
		}
		s.History = append(s.History, x)
	}
	if r.may(finance) {
		s.Acts = recoveryForms(r, v)
	}
	return showSheet(r, s)
}

func recoveryForms(r *request, v *store.Recovery) (acts []views.MoneyAct) {
	action := "/recoveries/" + url.PathEscape(v.ID) + "/confirm"
	text := func(label, name, value, hint string, needed bool) views.Input {
		return views.Input{Label: label, Name: name, Value: value, Type: "text", Hint: hint, Needed: needed}
	}
	add := func(do, title, button string, inputs ...views.Input) *views.MoneyAct {
		acts = append(acts, views.MoneyAct{Title: title, Action: action, Button: button, Inputs: inputs, First: len(acts) == 0,
			Hidden: []views.Option{{Value: "do", Label: do}, {Value: "version", Label: whole(v.Version)}}})
		return &acts[len(acts)-1]
	}
	known := ""
	if m := recoveryMoney(v, v.Amount.V); m != nil {
		known = "Empty: " + plainMoney(m) + "."
	}
	open := v.State == recoveries.Confirmed || v.State == recoveries.Claimed
	if v.State == recoveries.Suspected || v.State == recoveries.Dismissed {
		add("confirm", "It left twice", "Confirm…", text("Amount that left twice", "amount", "", known, known == ""), text("Currency", "currency", v.Currency, "", false), text("Who holds it", "counterparty", v.Counterparty, "", false))
	}
	if open {
		a := add("receive", "Something came back", "Record…", text("Amount", "amount", "", "Empty: all that is left.", false), text("Reference", "reference", "", "", true))
		a.Selects = []views.Selector{{Label: "As", Name: "how", Options: options("", "cash", "Cash", "credit_note", "A credit note")}}
		add("claim", "Claim it", "Record the claim…", text("How they know the claim", "reference", v.Claim, "", true))
		add("write-off", "Write off", "Write off…")
	}
	if v.State == recoveries.Suspected || v.State == recoveries.Confirmed {
		add("dismiss", "Nothing left twice", "Dismiss…")
	}
	if recoveries.Open(v.State) && v.OwnerID != r.session.Person.ID {
		add("assign", "Look after it", "It is mine…")
	}
	return acts
}

// recoveryActs are what a person does to a recovery: how it is confirmed, and done.
var recoveryActs = map[string]struct {
	statement, button string
	next              []string
	needed, danger    bool
	run               func(d *Desk, r *request, a recoveries.Act, get func(string) string) error
}{
	"confirm": {statement: "Money left twice", button: "Confirm it", next: []string{"It is to be claimed back from then on."},
		run: func(d *Desk, r *request, a recoveries.Act, get func(string) string) error {
			return d.recovery.Confirm(r.ctx(), a, recoveries.Terms{Amount: get("amount"), Currency: get("currency"), Counterparty: get("counterparty")})
		}},
	"dismiss": {statement: "Nothing left twice", button: "Dismiss it", next: []string{"It leaves the open list. It can be confirmed later after all."}, needed: true,
		run: func(d *Desk, r *request, a recoveries.Act, _ func(string) string) error {
			return d.recovery.Dismiss(r.ctx(), a)
		}},
	"claim": {statement: "It was claimed", button: "Record the claim", next: []string{"It counts as claimed until something comes back."},
		run: func(d *Desk, r *request, a recoveries.Act, get func(string) string) error {
			return d.recovery.Claim(r.ctx(), a, get("reference"))
		}},
	"receive": {statement: "Something came back", button: "Record it", next: []string{"When all of it is back, it is recovered."},
		run: func(d *Desk, r *request, a recoveries.Act, get func(string) string) error {
			return d.recovery.Receive(r.ctx(), a, recoveries.Return{Amount: get("amount"), How: get("how"), Reference: get("reference")})
		}},
	"write-off": {statement: "Write off what is left", button: "Write it off", next: []string{"Nobody claims it any more."}, needed: true, danger: true,
		run: func(d *Desk, r *request, a recoveries.Act, _ func(string) string) error {
			return d.recovery.WriteOff(r.ctx(), a)
		}},
	"assign": {statement: "Look after it yourself", button: "It is mine", next: []string{"Others see that you look after it."},
		run: func(d *Desk, r *request, a recoveries.Act, _ func(string) string) error {
			return d.recovery.Assign(r.ctx(), a, r.session.Person.ID)
		}},
}

var recoveryFields = []string{"do", "version", "amount", "currency", "counterparty", "reference", "how"}

func (d *Desk) recoveryConfirm(r *request) error {
	return d.showRecoveryAct(r, http.StatusOK, r.queryText, "")
}

func (d *Desk) showRecoveryAct(r *request, status int, get func(string) string, problem string) error {
	v, err := d.oneRecovery(r)
	if err != nil {
		return err
	}
	act, ok := recoveryActs[get("do")]
	if !ok {
		return echo.ErrNotFound
	}
	page, err := d.page(r, act.statement, "/recoveries")
	if err != nil {
		return err
	}
	path := "/recoveries/" + url.PathEscape(v.ID)
	c := views.MoneyConfirm{
		Page: page, Back: views.Link{Text: "Back to the recovery", URL: path}, What: line(v.Counterparty), Statement: act.statement + ".", Next: act.next,
		Action: path + "/act", Token: r.session.FormToken(), NoteLabel: "Note", NoteValue: get("note"), Needed: act.needed, Button: act.button, Danger: act.danger, Problem: problem,
	}
	for _, name := range recoveryFields {
		if x := get(name); x != "" {
			c.Hidden = append(c.Hidden, views.Option{Value: name, Label: x})
		}
	}
	switch do := get("do"); {
	case do == "confirm" || do == "receive":
		if a, err := recoveries.Amount(v, get("amount"), get("currency"), do == "receive"); err == nil {
			c.Amount = amount(&a)
		} else if problem == "" {
			c.Problem, status = err.Error(), http.StatusUnprocessableEntity
		}
	}
	if ref := get("reference"); ref != "" {
		c.Next = append([]string{"Reference: " + cutText(ref, 512)}, c.Next...)
	}
	return web.Render(r.Context, status, views.MoneyConfirmPage(c))
}

func (d *Desk) recoveryDo(r *request) error {
	act, ok := recoveryActs[r.form.Text("do")]
	if !ok {
		return echo.ErrNotFound
	}
	a := recoveries.Act{By: r.by(), Recovery: r.Param("id"), Version: r.form.Whole("version"), Note: r.form.Text("note")}
	err := act.run(d, r, a, r.form.Text)
	var no declined
	if refusal, ok := errors.AsType[*recoveries.Refusal](err); ok {
		no = declined{refusal.Detail, refusal.Detail, refusal.NotFound}
	}
	return d.acted(r, "/recoveries/"+url.PathEscape(a.Recovery), "recorded", no, err, d.showRecoveryAct)
}

func (d *Desk) backToRecovery(r *request) error {
	return web.Redirect(r.Context, "/recoveries/"+url.PathEscape(r.Param("id"))+"?done=again")
}
