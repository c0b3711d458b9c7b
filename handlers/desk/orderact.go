package desk

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
	"quittance/views"
	"quittance/web"
)

// orderAct is one thing that a person does about a payment: how it is confirmed, and done.
type orderAct struct {
	statement, button string
	note              string
	next              []string
	danger            bool
	money             bool // an amount is shown, and from whom to whom
	run               func(d *Desk, r *request, in payments.Deciding) (done bool, err error)
}

var orderActs = map[string]orderAct{
	"settled": {statement: "It was settled", button: "Record it", note: "Where you looked, and what you saw", money: true,
		next: []string{"Where the network can be asked, it is asked about the reference now, and what it shows is recorded.", "Else another person looks too, and lets it go. Then it pays the order, or is owed back if the order is over."},
		run: func(d *Desk, r *request, in payments.Deciding) (bool, error) {
			in.Verdict = payments.VerdictSettled
			return d.pay.AskDecision(r.ctx(), in)
		}},
	"not-taken": {statement: "Nothing was taken", button: "Record it", note: "Where you looked, and what you saw", danger: true, money: true,
		next: []string{"Where the network can be asked, it is asked now. If it shows otherwise, or cannot tell, nothing is decided.", "Else another person looks too, and lets it go.",
			"The payer is then told that nothing was taken, and may pay again. If the first payment arrives after all, it is owed back."},
		run: func(d *Desk, r *request, in payments.Deciding) (bool, error) {
			in.Verdict = payments.VerdictNotTaken
			return d.pay.AskDecision(r.ctx(), in)
		}},
	"let-go": {statement: "Let it go", button: "Let it go", note: "Where you looked yourself, and what you saw", danger: true, money: true,
		next: []string{"It counts from now on, and cannot be taken back."},
		run:  func(d *Desk, r *request, in payments.Deciding) (bool, error) { return d.pay.LetGo(r.ctx(), in) }},
	"drop": {statement: "Drop the decision", button: "Drop it", note: "Why",
		next: []string{"Nothing comes of it. The payment stays as it is, and can be decided again."},
		run: func(d *Desk, r *request, in payments.Deciding) (bool, error) {
			return false, d.pay.DropDecision(r.ctx(), in)
		}},
	"seen": {statement: "I have seen the alerts", button: "Record it", note: "What they were, and what you did",
		next: []string{"They stay in the history, and are not counted as open any more."},
		run: func(d *Desk, r *request, in payments.Deciding) (bool, error) {
			return false, d.pay.SeeAlerts(r.ctx(), in)
		}},
	"revoke-receipt": {statement: "Revoke the receipt's address", button: "Revoke it", note: "Why", danger: true,
		next: []string{"The address that the payer has answers 404 from now on, for ever, like one that never was.", "The receipt gets a new address, which stands on this page. Nobody sends it to the payer."},
		run: func(d *Desk, r *request, in payments.Deciding) (bool, error) {
			_, err := d.pay.RevokeReceipt(r.ctx(), payments.Revoke{By: in.By, Order: in.Order, Note: in.Note})
			return false, err
		}},
}

// paymentActs are what a person of finance may do about a payment as it stands; the engine
// decides again when it is done.
func (d *Desk) paymentActs(r *request, p *payments.Payment, waiting *rows.Decision, alerts int, version int64) (acts []views.MoneyAct) {
	action := "/orders/" + url.PathEscape(p.OrderID) + "/confirm"
	add := func(do, title, text, button string, first bool, inputs ...views.Input) {
		acts = append(acts, views.MoneyAct{Title: title, Text: text, Action: action, Button: button, First: first, Inputs: inputs,
			Hidden: []views.Option{{Value: "do", Label: do}, {Value: "version", Label: whole(version)}}})
	}
	switch {
	case waiting != nil && waiting.MadeBy != r.session.Person.ID:
		add("let-go", "Let it go", "Look yourself first. It takes two people.", "Let it go…", !r.now.Before(waiting.ReadyAt))
		add("drop", "Drop it", "", "Drop…", false)
	case waiting != nil:
		add("drop", "Take it back", "Another person lets it go.", "Drop…", false)
	case p.State == string(payments.Unknown):
		if d.pay.Undecidable(p, payments.VerdictSettled) == "" {
			add("settled", "It was settled", "You found it on the network, or at the bank.", "Settled…", true, views.Input{Label: "Reference", Name: "tx", Type: "text", Needed: true})
		}
		if d.pay.Undecidable(p, payments.VerdictNotTaken) == "" {
			add("not-taken", "Nothing was taken", "Only when you looked and are sure.", "Not taken…", false)
		}
	}
	if alerts > 0 {
		add("seen", alertsText(alerts), "They stand in the history.", "Seen…", waiting == nil && p.State != string(payments.Unknown))
	}
	if p.Order != nil {
		add("revoke-receipt", "Receipt", "If its address came into wrong hands.", "Revoke its address…", false)
	}
	return acts
}

// decisionText says what waits to be let go.
func decisionText(r *request, x *rows.Decision) string {
	said := "nothing was taken"
	if x.Verdict == string(payments.VerdictSettled) {
		said = "it was settled by " + shortName(x.Tx)
	}
	text := x.Maker + " says that " + said + ": “" + cutText(x.Note, eventShown) + "”"
	if r.now.Before(x.ReadyAt) {
		return text + ". Another person may let it go from " + r.at(x.ReadyAt).Text + " on."
	}
	return text + ". Another person looks too, and lets it go."
}

func (d *Desk) orderConfirm(r *request) error {
	return d.showOrderAct(r, http.StatusOK, r.queryText, "")
}

func (d *Desk) showOrderAct(r *request, status int, get func(string) string, problem string) error {
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	act, ok := orderActs[get("do")]
	if !ok {
		return echo.ErrNotFound
	}
	path := "/orders/" + url.PathEscape(p.OrderID)
	c := views.MoneyConfirm{
		Back: views.Link{Text: "Back to the payment", URL: path}, What: line("Payment of " + p.Payer + " at " + p.Gateway), Statement: act.statement + ".", Next: act.next,
		Action: path + "/act", Token: r.session.FormToken(), NoteLabel: act.note, NoteValue: get("note"), Needed: true, Button: act.button, Danger: act.danger, Problem: problem,
	}
	for _, name := range []string{"do", "version", "tx"} {
		if v := get(name); v != "" {
			c.Hidden = append(c.Hidden, views.Option{Value: name, Label: v})
		}
	}
	if act.money {
		c.Amount, c.To = d.moneyOf(p.Network, p.Asset, p.Amount), line(p.PayTo)
	}
	if tx := get("tx"); tx != "" {
		c.Next = append([]string{"Reference: " + cutText(tx, 256)}, c.Next...)
	}
	if get("do") == "let-go" {
		waiting, err := rows.WaitingDecision(r.ctx(), d.db, p.ID)
		if err != nil {
			return err
		}
		if waiting != nil {
			c.Next = append([]string{decisionText(r, waiting)}, c.Next...)
			if waiting.Verdict == string(payments.VerdictNotTaken) {
				c.Next = append(c.Next, "The payer is told that nothing was taken, and may pay again.")
			}
		}
	}
	if c.Page, err = d.page(r, c.Statement, "/payments"); err != nil {
		return err
	}
	return web.Render(r.Context, status, views.MoneyConfirmPage(c))
}

func (d *Desk) orderDo(r *request) error {
	act, ok := orderActs[r.form.Text("do")]
	if !ok {
		return echo.ErrNotFound
	}
	in := payments.Deciding{By: r.by(), Order: r.Param("id"), Tx: r.form.Text("tx"), Note: r.form.Text("note"), Version: r.form.Whole("version")}
	shown, err := act.run(d, r, in)
	said := "recorded"
	if shown {
		said = "shown"
	}
	return d.acted(r, "/orders/"+url.PathEscape(in.Order), said, paymentDeclined(err), err, d.showOrderAct)
}

func paymentDeclined(err error) (no declined) {
	if refusal, ok := errors.AsType[*payments.Refusal](err); ok {
		no = declined{string(refusal.Code), refusal.Detail, refusal.Code == payments.CodeNotFound}
	}
	return no
}

func (d *Desk) backToOrder(r *request) error {
	return web.Redirect(r.Context, "/orders/"+url.PathEscape(r.Param("id"))+"?done=again")
}
