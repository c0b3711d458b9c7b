package policy

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/policy/read"
)

// HealingAge is the age from which a payment in flight may be taken over, or healed from
// its order. Every time-out of a gateway is shorter, or somebody could still be at work
// when another takes over.
const HealingAge = 180 * time.Second

// Gateway is what is declared about a gateway that sells paid calls.
type Gateway struct {
	Name    string
	Seller  string // on receipts
	Support string // whom a payer asks
	// Poll is how the gateway's own clients ask for an order, in the place of our URL.
	Poll string
	// MoneyFirst: the payment is sent before the work is done. Otherwise after it, and a
	// recorded broadcast means that the work was done.
	MoneyFirst bool
	// PaymentTimeout is how long an order waits for its payment.
	PaymentTimeout time.Duration
	// RefundWithin is when a refund is due by, from the day on that it is owed.
	RefundWithin time.Duration
}

// Defaults of a gateway.
const (
	defaultClientTimeout      = 30 * time.Second
	defaultFacilitatorTimeout = 60 * time.Second
	defaultPaymentTimeout     = 120 * time.Second
	defaultRefundWithin       = 14 * 24 * time.Hour
	defaultPaymentsKept       = 30 * 24 * time.Hour
)

// Gateway is what is declared about a gateway, or the defaults: never nil.
func (p *Policy) Gateway(name string) *Gateway {
	if g, ok := p.gateways[name]; ok {
		return g
	}
	return &Gateway{Name: name, PaymentTimeout: defaultPaymentTimeout, RefundWithin: defaultRefundWithin}
}

// PaymentsKept is how long what was asked and answered under a payment id is kept; its
// tombstone is kept for ever.
func (p *Policy) PaymentsKept() time.Duration { return p.paymentsKept }

func (r *reader) gateways(n ast.Node, path string) map[string]*Gateway {
	list := map[string]*Gateway{}
	for _, e := range r.Entries(n, path) {
		if e.Name == "" || len(e.Name) > 128 {
			r.Mistake(e.Key, path, "a gateway's name has 1 to 128 bytes")
			continue
		}
		list[e.Name] = r.gateway(e, read.Join(path, e.Name))
	}
	return list
}

func (r *reader) gateway(e read.Entry, path string) *Gateway {
	f := r.Fields(e.Value, path, "seller", "support", "poll", "settles", "timeouts", "refund_within")
	g := &Gateway{Name: e.Name}
	g.Seller, _ = r.Text(f["seller"], path+".seller")
	g.Support, _ = r.Text(f["support"], path+".support")
	g.Poll, _ = r.Text(f["poll"], path+".poll")
	g.MoneyFirst = r.Choice(f["settles"], path+".settles", "after_work", "after_work", "before_work") == "before_work"
	g.RefundWithin = r.Duration(f["refund_within"], path+".refund_within", defaultRefundWithin, time.Hour)

	t := r.Fields(f["timeouts"], path+".timeouts", "client", "facilitator", "payment")
	before := r.Count()
	client := r.Duration(t["client"], path+".timeouts.client", defaultClientTimeout, time.Second)
	facilitator := r.Duration(t["facilitator"], path+".timeouts.facilitator", defaultFacilitatorTimeout, time.Second)
	g.PaymentTimeout = r.Duration(t["payment"], path+".timeouts.payment", defaultPaymentTimeout, time.Second)
	if r.Count() == before && (client >= facilitator || facilitator >= g.PaymentTimeout || g.PaymentTimeout >= HealingAge) {
		r.Mistake(f["timeouts"], path+".timeouts", "must rise: client (%s) < facilitator (%s) < payment (%s) < %s, from which on a payment may be taken over",
			client, facilitator, g.PaymentTimeout, HealingAge)
	}
	return g
}
