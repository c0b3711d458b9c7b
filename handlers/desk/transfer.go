package desk

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	rows "quittance/ledger/payments"
	"quittance/reconcile/payments"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) oneTransfer(r *request) (*rows.Transfer, error) {
	id, err := uuid.Parse(r.Param("id"))
	if err != nil {
		return nil, echo.ErrNotFound
	}
	t, err := rows.TransferByID(r.ctx(), d.db, id.String())
	if err == nil && t == nil {
		err = echo.ErrNotFound
	}
	return t, err
}

// transferPage shows one movement on a rail, and lets finance place one that no rule can.
func (d *Desk) transferPage(r *request) error {
	t, err := d.oneTransfer(r)
	if err != nil {
		return err
	}
	page, err := d.page(r, "Transfer", "/money")
	if err != nil {
		return err
	}
	word := views.State{Kind: "info", Word: capital(classText(t.Class))}
	switch {
	case t.Reverted():
		word = views.State{Kind: "stop", Word: "Taken back by its rail"}
	case t.Class == payments.Applied:
		word.Kind = "ok"
	case t.Class == payments.Unmatched:
		word.Kind = "unknown"
	}
	s := views.MoneySheet{
		Page: page, Crumb: views.Link{Text: "Money", URL: "/money"}, Title: line("Money from " + shortName(t.Sender)), State: &word,
		Lead: "Known since " + r.at(t.SeenAt).Text + " from its " + map[string]string{"gateway": "gateway", "reconcile": "rail", "person": "order's page, by two people"}[t.KnownBy] + ".", Amount: d.moneyOf(t.Network, t.Asset, t.Amount),
		Facts: []views.Fact{
			{Name: "Rail", Value: line(d.railName(t.Network))}, {Name: "Reference", Value: line(t.Tx)}, {Name: "From", Value: line(t.Sender)}, {Name: "To", Value: line(t.Recipient)}, {Name: "Asset", Value: line(t.Asset)},
		},
	}
	if t.Position != rows.NoPlace {
		s.Facts = append(s.Facts, views.Fact{Name: "Position in it", Value: line(whole(int64(t.Position)))})
	}
	for _, f := range [][2]string{{"Memo", t.Memo}, {"Authorization", t.Nonce}} {
		if f[1] != "" {
			s.Facts = append(s.Facts, views.Fact{Name: f[0], Value: line(f[1])})
		}
	}
	if !t.Final && !t.Reverted() {
		s.Blocked = "Not final: a reorganisation of its rail could still take it back."
	}
	if err := d.orderFacts(r, &s, t); err != nil {
		return err
	}
	f, err := rows.RefundOf(r.ctx(), d.db, t.ID)
	if err != nil {
		return err
	}
	if f != nil {
		s.Facts = append(s.Facts, views.Fact{Name: "Owed back", Value: line(plainMoney(d.moneyOf(f.Network, f.Asset, f.Amount)) + ", " + refundState(f.State).Word), URL: "/refunds/" + f.ID})
	}
	events, err := rows.HistoryOfTransfer(r.ctx(), d.db, t.ID, 1000)
	if err != nil {
		return err
	}
	s.History = d.moneyHistory(r, events)
	if r.may(finance) && !t.Reverted() && (t.Class == payments.Unmatched || t.Class == payments.Under) {
		action := "/transfers/" + url.PathEscape(t.ID) + "/confirm"
		if t.Class == payments.Unmatched {
			s.Acts = append(s.Acts, views.MoneyAct{Title: "It is for an order", Text: "The rules then say what it is.", Action: action, Button: "Match…", First: true,
				Hidden: []views.Option{{Value: "do", Label: "match"}}, Inputs: []views.Input{{Label: "Order id", Name: "order", Type: "text", Needed: true}}})
		}
		s.Acts = append(s.Acts, views.MoneyAct{Title: "Give it back", Text: "Somebody else approves it.", Action: action, Button: "Give back…", Hidden: []views.Option{{Value: "do", Label: "give-back"}}})
	}
	return showSheet(r, s)
}

func (d *Desk) transferConfirm(r *request) error {
	return d.showTransferAct(r, http.StatusOK, r.queryText, "")
}

func (d *Desk) showTransferAct(r *request, status int, get func(string) string, problem string) error {
	t, err := d.oneTransfer(r)
	if err != nil {
		return err
	}
	path := "/transfers/" + url.PathEscape(t.ID)
	c := views.MoneyConfirm{
		Back: views.Link{Text: "Back to the transfer", URL: path}, What: line("From " + t.Sender), Amount: d.moneyOf(t.Network, t.Asset, t.Amount), Action: path + "/act",
		Token: r.session.FormToken(), NoteLabel: "Why, and how you know", NoteValue: get("note"), Needed: true, Problem: problem,
		Hidden: []views.Option{{Value: "do", Label: get("do")}, {Value: "order", Label: get("order")}},
	}
	switch get("do") {
	case "match":
		c.Statement, c.Button = "It is for this order.", "Match it"
		c.Next = []string{"Order " + cutText(get("order"), 64) + ".", "It pays the order, or is owed back if the order is paid or over. It stays with this order for ever."}
	case "give-back":
		c.Statement, c.Button, c.To = "Give this money back.", "Give it back", line(t.Sender)
		c.Next = []string{"All of it is owed back to whoever sent it. Somebody else than you approves it."}
	default:
		return echo.ErrNotFound
	}
	if c.Page, err = d.page(r, c.Statement, "/money"); err != nil {
		return err
	}
	return web.Render(r.Context, status, views.MoneyConfirmPage(c))
}

func (d *Desk) transferDo(r *request) error {
	in := payments.ByHand{By: r.by(), Transfer: r.Param("id"), Note: r.form.Text("note"), Order: r.form.Text("order")}
	var err error
	switch r.form.Text("do") {
	case "match":
		_, err = d.pay.Match(r.ctx(), in)
	case "give-back":
		in.Order = ""
		_, err = d.pay.GiveBack(r.ctx(), in)
	default:
		return echo.ErrNotFound
	}
	return d.acted(r, "/transfers/"+url.PathEscape(in.Transfer), "recorded", paymentDeclined(err), err, d.showTransferAct)
}

func (d *Desk) backToTransfer(r *request) error {
	return web.Redirect(r.Context, "/transfers/"+url.PathEscape(r.Param("id"))+"?done=again")
}
