package public

import (
	"strings"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
	"quittance/views"
	"quittance/web"
)

// told is a receipt in the payer's words.
type told struct {
	*payments.Receipt
	state   views.State
	lead    string
	next    string
	seller  string
	support string
	rail    string
	asset   *money.Asset // nil: not declared, shown in its smallest unit
}

func (p *public) tell(r *payments.Receipt) told {
	rules := p.policy()
	g := rules.Gateway(r.Gateway)
	t := told{Receipt: r, seller: g.Seller, support: g.Support, rail: r.Network}
	if rail := rules.Rail(r.Network); rail != nil {
		t.rail = rail.Name
	}
	if a := rules.RailAsset(r.Network, r.Asset); a != nil {
		t.asset = &a.Asset
	}
	t.say()
	return t
}

// say puts the state into words. Nothing here says that a payment failed: of what nobody
// knows it says so, and that nothing was taken only where it is proven.
func (t *told) say() {
	ask := "Ask the seller if anything is unclear."
	if t.support != "" {
		ask = "Ask " + t.support + " if anything is unclear."
	}
	switch t.State {
	case payments.ToldPaid:
		t.state, t.lead, t.next = views.State{Kind: "ok", Word: "Paid"}, "Your payment arrived.", "Nothing more is needed from you. "+ask
		if !t.Final {
			t.next = "The network is still confirming it, which takes some minutes. Nothing more is needed from you."
		}
	case payments.ToldChecking:
		t.state, t.lead = views.State{Kind: "info", Word: "We are checking"}, "We do not know yet whether your payment arrived."
		t.next = "We look at the network again and again. Do not pay again: this page says what became of it. " + ask
	case payments.ToldNothing:
		t.state, t.lead, t.next = views.State{Kind: "plain", Word: "Nothing received so far"}, "No money has arrived for this.", "If you paid, it shows here as soon as it arrives. "+ask
	case payments.ToldPart:
		t.state, t.lead, t.next = views.State{Kind: "held", Word: "Partly received"}, "Less than the amount arrived.", "Pay the rest, or ask for it back. "+ask
	case payments.ToldNotCharged:
		t.state, t.lead, t.next = views.State{Kind: "ok", Word: "Not charged"}, "Nothing was taken, and what you signed cannot take anything any more.", "Nothing more happens."
	}
	switch {
	case t.State == payments.ToldRefundDue:
		t.state, t.lead = views.State{Kind: "info", Word: "Refund due"}, "Your money arrived, and goes back to you."
	case t.State == payments.ToldRefundAgain:
		t.state, t.lead = views.State{Kind: "held", Word: "Refund came back and is due again"}, "We sent your money back, it came back to us, and we owe it to you again."
	case t.State == payments.ToldRefunded:
		t.state, t.lead = views.State{Kind: "ok", Word: "Refunded"}, "Your money went back to you."
	case t.State == payments.ToldClosed:
		t.state, t.lead = views.State{Kind: "held", Word: "Closed"}, "Not all of your money could be sent back."
	}
	if t.Refund == "" {
		return
	}
	switch word := t.refundWord(); word {
	case "Refunded":
		t.next = "The refund was sent and has arrived. " + ask
	case "Closed":
		t.next = ask
	default:
		t.next = t.promise(word) + " Nothing is needed from you. " + ask
	}
}

// promise says when the refund comes, and that it is late where the day has passed.
func (t *told) promise(word string) string {
	switch away := word == wordAway; {
	case away && t.late():
		return "The refund is on its way, later than the day that stands above. It counts as refunded when it has arrived."
	case away:
		return "The refund is on its way. It counts as refunded when it has arrived."
	case t.late():
		return "The refund is late: the day that stands above has passed. It is still owed to you."
	}
	return "We send the refund by the day that stands above."
}

// late tells that something is still owed after the day by which it was due.
func (t *told) late() bool { return !t.DueBy.IsZero() && t.Now.After(t.DueBy) }

const wordAway = "Refund on its way"

// refundWord is the refund's state in the payer's words.
func (t *told) refundWord() string {
	for i := range t.Refunds {
		if t.Refunds[i].State == refunds.Returned {
			return "Refund came back and is due again"
		}
	}
	switch t.Refund {
	case refunds.Confirmed:
		return "Refunded"
	case refunds.WrittenOff:
		return "Closed"
	case refunds.Sending, refunds.Sent, refunds.Unknown:
		return wordAway
	}
	return "Refund due"
}

func (t *told) money(x money.Atomic) *views.Money {
	a := money.Of(x, money.Asset{Code: "units"})
	if t.asset != nil {
		a = money.Of(x, *t.asset)
	}
	value, code, _ := strings.Cut(a.Display(), " ")
	if t.asset == nil {
		code = "units of " + t.Asset
	}
	return &views.Money{Value: value, Code: code}
}

func moment(at time.Time) views.Time {
	if at.IsZero() {
		return views.Time{}
	}
	return views.Time{ISO: at.UTC().Format(time.RFC3339), Text: at.UTC().Format("2 January 2006, 15:04 UTC"), UTC: at.UTC().Format("2006-01-02 15:04:05 UTC")}
}

func text(s string) views.Text { return views.Text{{Text: s}} }

func (t *told) page() views.Receipt {
	v := views.Receipt{Assets: web.Assets(), State: t.state, Lead: t.lead, Amount: t.money(t.Amount), Next: t.next, Printed: "As of " + moment(t.Now).Text + "."}
	add := func(list *[]views.ReceiptRow, name, value string) {
		if value != "" {
			*list = append(*list, views.ReceiptRow{Name: name, Value: text(value)})
		}
	}
	add(&v.Rows, "Seller", t.seller)
	if t.support != "" {
		row := views.ReceiptRow{Name: "Support", Value: text(t.support)}
		if strings.Contains(t.support, "@") && !strings.ContainsAny(t.support, " :/?") {
			row.URL = "mailto:" + t.support
		}
		v.Rows = append(v.Rows, row)
	}
	v.Rows = append(v.Rows, views.ReceiptRow{Name: "Asked for", Money: t.money(t.Amount)})
	if t.Received.Cmp(t.Amount) != 0 {
		v.Rows = append(v.Rows, views.ReceiptRow{Name: "Received", Money: t.money(t.Received)})
	}
	name := "Asked for at"
	if t.Tx != "" {
		name = "Received at"
	}
	v.Rows = append(v.Rows, views.ReceiptRow{Name: name, Time: moment(t.At)})
	add(&v.Rows, "Network", t.rail)
	add(&v.Rows, "Paid to", t.PayTo)
	add(&v.Rows, "Network reference", t.Tx)
	if t.Refund == "" {
		return v
	}
	add(&v.Refund, "State", t.refundWord())
	v.Refund = append(v.Refund, views.ReceiptRow{Name: "In all", Money: t.money(t.Owed)}, views.ReceiptRow{Name: "Sent back so far", Money: t.money(t.Refunded)})
	if t.WrittenOff.Sign() > 0 {
		v.Refund = append(v.Refund, views.ReceiptRow{Name: "Not sent back", Money: t.money(t.WrittenOff)})
	}
	if !t.DueBy.IsZero() {
		v.Refund = append(v.Refund, views.ReceiptRow{Name: "Due by", Time: moment(t.DueBy)})
	}
	add(&v.Refund, "Goes to", t.Destination)
	for _, tx := range t.RefundTxs {
		add(&v.Refund, "Reference of the refund", tx)
	}
	return v
}

// jsonAmount is exact for programs, and plain for people where the asset is declared.
type jsonAmount struct {
	Atomic string `json:"atomic"`
	Value  string `json:"value,omitempty"`
	Code   string `json:"code,omitempty"`
}

type jsonRefund struct {
	State       string     `json:"state"`
	Words       string     `json:"words"`
	Amount      jsonAmount `json:"amount"`
	Refunded    jsonAmount `json:"refunded"`
	DueBy       string     `json:"due_by,omitempty"`
	Late        bool       `json:"late,omitempty"` // that day has passed, and something is still owed
	Destination string     `json:"destination,omitempty"`
	References  []string   `json:"references,omitempty"`
}

type jsonReceipt struct {
	State     string      `json:"state"`
	Words     string      `json:"words"`
	Seller    string      `json:"seller,omitempty"`
	Support   string      `json:"support,omitempty"`
	Amount    jsonAmount  `json:"amount"`
	Received  jsonAmount  `json:"received"`
	Network   string      `json:"network"`
	Asset     string      `json:"asset"`
	PaidTo    string      `json:"paid_to"`
	At        string      `json:"at"`
	Reference string      `json:"reference,omitempty"`
	Final     bool        `json:"final"`
	Refund    *jsonRefund `json:"refund,omitempty"`
	Next      string      `json:"next"`
}

func (t *told) json() jsonReceipt {
	exact := func(x money.Atomic) jsonAmount {
		a := jsonAmount{Atomic: x.String()}
		if t.asset != nil {
			a.Value, a.Code = money.Of(x, *t.asset).String(), t.asset.Code
		}
		return a
	}
	out := jsonReceipt{
		State: string(t.State), Words: t.state.Word, Seller: t.seller, Support: t.support, Amount: exact(t.Amount), Received: exact(t.Received), Network: t.Network, Asset: t.Asset,
		PaidTo: t.PayTo, At: t.At.UTC().Format(time.RFC3339), Reference: t.Tx, Final: t.Final, Next: t.next,
	}
	if t.Refund != "" {
		out.Refund = &jsonRefund{State: t.Refund, Words: t.refundWord(), Amount: exact(t.Owed), Refunded: exact(t.Refunded), Destination: t.Destination, References: t.RefundTxs}
		if !t.DueBy.IsZero() {
			out.Refund.DueBy, out.Refund.Late = t.DueBy.UTC().Format(time.RFC3339), t.late()
		}
	}
	return out
}
