package desk

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"quittance/ledger/money"
	"quittance/reconcile/refunds"
	"quittance/views"
	"quittance/web"
)

// refundAct is one thing that a person does to a refund: how it is confirmed, and done.
type refundAct struct {
	statement, button string
	next              []string
	note              string // label of the note
	needed            bool
	danger            bool
	moves             bool // an amount is shown, and where it goes
	run               func(d *Desk, r *request, a refunds.Act, f refundFields) error
}

// refundFields are what the forms carry besides the note.
type refundFields struct{ amount, tx, to, payout string }

var refundActs = map[string]refundAct{
	"approve": {statement: "Approve this refund", button: "Approve it", note: "Note", moves: true,
		next: []string{"Somebody else than you may send it.", "The receipt says that a refund is due, as before."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Approve(r.ctx(), a) }},
	"withdraw": {statement: "Withdraw the approval", button: "Withdraw it", note: "Note",
		next: []string{"Nobody may send it until it is approved again."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Withdraw(r.ctx(), a) }},
	"hold": {statement: "Hold this refund", button: "Hold it", note: "Why, and what has to happen first", needed: true,
		next: []string{"Nobody may approve or send it until somebody releases it."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Hold(r.ctx(), a) }},
	"release": {statement: "Release this refund", button: "Release it", note: "Why it is safe now", needed: true,
		next: []string{"It is owed again and has to be approved."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Release(r.ctx(), a) }},
	"redirect": {statement: "Send this refund somewhere else", button: "Change where it goes", note: "Why, and how you know that it is the payer's", needed: true, danger: true, moves: true,
		next: []string{"An approval of before does not hold any more.", "Another person has to approve the new destination."},
		run: func(d *Desk, r *request, a refunds.Act, f refundFields) error {
			return d.refund.Redirect(r.ctx(), a, f.to)
		}},
	"start": {statement: "Start to send", button: "I am sending it now", note: "Note", moves: true,
		next: []string{"The amount is reserved for you: nobody else can send it.", "Record the reference as soon as you have it."},
		run: func(d *Desk, r *request, a refunds.Act, f refundFields) error {
			return d.refund.Start(r.ctx(), a, f.amount)
		}},
	"send": {statement: "Record that it was sent", button: "Record it", note: "Note", moves: true,
		next: []string{"It counts as refunded when it was seen to arrive, not before.", "The reference can be used for no other refund."},
		run: func(d *Desk, r *request, a refunds.Act, f refundFields) error {
			return d.refund.Send(r.ctx(), a, refunds.Reference{Tx: f.tx, Amount: f.amount})
		}},
	"doubt": {statement: "Nobody knows whether it was sent", button: "Record that", note: "What happened", needed: true,
		next: []string{"The amount stays reserved: it is not sent again.", "It takes a reference, or another person who looked, to go on."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Doubt(r.ctx(), a) }},
	"give-up": {statement: "It did not arrive", button: "Confirm: it may be sent again", note: "Where you looked, and what you saw", needed: true, danger: true, moves: true,
		next: []string{"It may be sent again. If the first payment arrives after all, it was paid twice."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.GiveUp(r.ctx(), a) }},
	"saw": {statement: "It arrived", button: "Record that it arrived", note: "Where you looked, and what you saw", needed: true, moves: true,
		next: []string{"The payer's receipt says that it was refunded."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.Saw(r.ctx(), a) }},
	"came-back": {statement: "It came back", button: "Record the return", note: "Where you saw it", needed: true, moves: true,
		next: []string{"It is owed again, and has to be approved again.", "The payer's receipt says that the refund came back and is due again."},
		run: func(d *Desk, r *request, a refunds.Act, f refundFields) error {
			return d.refund.CameBack(r.ctx(), a, refunds.Back{Payout: f.payout, Amount: f.amount, Tx: f.tx})
		}},
	"ask-write-off": {statement: "Ask to write off", button: "Ask for it", note: "Why it cannot be given back", needed: true, moves: true,
		next: []string{"Another person decides. Until then nothing is sent."},
		run: func(d *Desk, r *request, a refunds.Act, f refundFields) error {
			return d.refund.AskWriteOff(r.ctx(), a, f.amount)
		}},
	"drop-write-off": {statement: "Do not write off", button: "Keep it owed", note: "Note",
		next: []string{"All of it stays owed."},
		run: func(d *Desk, r *request, a refunds.Act, _ refundFields) error {
			return d.refund.DropWriteOff(r.ctx(), a)
		}},
	"write-off": {statement: "Write off", button: "Write it off", note: "Note", danger: true, moves: true,
		next: []string{"The payer does not get this amount. It stays in the books as written off."},
		run:  func(d *Desk, r *request, a refunds.Act, _ refundFields) error { return d.refund.WriteOff(r.ctx(), a) }},
}

// refundConfirm shows an act once more, with the amount as it was read. Its address changes
// nothing.
func (d *Desk) refundConfirm(r *request) error {
	return d.showRefundAct(r, http.StatusOK, r.queryText, "")
}

func (d *Desk) showRefundAct(r *request, status int, get func(string) string, problem string) error {
	o, err := d.owed(r)
	if err != nil {
		return err
	}
	act, ok := refundActs[get("do")]
	if !ok {
		return echo.ErrNotFound
	}
	page, err := d.page(r, act.statement, "/refunds")
	if err != nil {
		return err
	}
	path := "/refunds/" + url.PathEscape(o.ID)
	c := views.MoneyConfirm{
		Page: page, Back: views.Link{Text: "Back to the refund", URL: path}, What: line("Refund to " + shortName(o.Payer) + ", " + reasonText(o.Reason)),
		Statement: act.statement + ".", Next: act.next, Action: path + "/act", Token: r.session.FormToken(), NoteLabel: act.note, NoteValue: get("note"),
		Needed: act.needed, Button: act.button, Danger: act.danger, Problem: problem,
	}
	for _, name := range []string{"do", "version", "amount", "tx", "to", "payout"} {
		if v := get(name); v != "" {
			c.Hidden = append(c.Hidden, views.Option{Value: name, Label: v})
		}
	}
	if act.moves {
		x, err := d.actAmount(o, get("do"), get("amount"))
		refusal, refused := errors.AsType[*refunds.Refusal](err)
		switch {
		case refused && problem == "":
			c.Problem, status = refusal.Detail, http.StatusUnprocessableEntity
		case !refused && err != nil:
			return err
		case !refused:
			c.Amount = d.moneyOf(o.Network, o.Asset, x)
		}
		c.To = line(o.To())
		if to := get("to"); get("do") == "redirect" {
			c.To = line(orElse(to, o.Payer))
		}
	}
	if tx := get("tx"); tx != "" {
		c.Next = append([]string{"Reference: " + cutText(tx, 256)}, c.Next...)
	}
	return web.Render(r.Context, status, views.MoneyConfirmPage(c))
}

// actAmount is the amount that an act is about, as the engine reads it.
func (d *Desk) actAmount(o owed, do, typed string) (money.Atomic, error) {
	all := o.Rest()
	switch {
	case do == "write-off":
		return o.WriteOff, nil
	case do == "redirect" || do == "approve":
		return all, nil
	case o.live != nil:
		return o.live.Amount, nil
	case do == "came-back":
		for _, p := range o.payouts {
			if p.State == "confirmed" {
				all = p.Amount
			}
		}
	case do == "start" || do == "send":
		all = o.Approved.Minus(o.Paid)
	}
	return d.refund.Amount(o.Refund, typed, all)
}

func (d *Desk) refundDo(r *request) error {
	act, ok := refundActs[r.form.Text("do")]
	if !ok {
		return echo.ErrNotFound
	}
	a := refunds.Act{By: r.by(), Refund: r.Param("id"), Version: r.form.Whole("version"), Note: r.form.Text("note")}
	err := act.run(d, r, a, refundFields{amount: r.form.Text("amount"), tx: r.form.Text("tx"), to: r.form.Text("to"), payout: r.form.Text("payout")})
	var no declined
	if refusal, ok := errors.AsType[*refunds.Refusal](err); ok {
		no = declined{string(refusal.Code), refusal.Detail, refusal.Code == refunds.CodeNotFound}
	}
	return d.acted(r, "/refunds/"+url.PathEscape(a.Refund), "recorded", no, err, d.showRefundAct)
}

func (d *Desk) backToRefund(r *request) error {
	return web.Redirect(r.Context, "/refunds/"+url.PathEscape(r.Param("id"))+"?done=again")
}
