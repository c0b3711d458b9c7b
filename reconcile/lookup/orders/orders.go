// Package orders is the look-up among our own orders: an agent paid a gateway that this very
// installation serves, and what became of the payment stands in its tables.
package orders

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy/read"
)

// Kind is this look-up's name in the policy.
const Kind = "order"

// Source says which payment an effect is about, and reads what is brought of it.
type Source struct {
	account, gateway string
	id               *read.Template
	rules            *rules.Rules
}

// Read reads an order look-up.
func Read(b *block.Block) lookup.Source {
	path := b.KindPath(Kind)
	f := b.Own(Kind, "account", "gateway", "payment_id")
	s := &Source{}
	s.account, _ = b.Text(f["account"], path+".account")
	s.gateway, _ = b.Text(f["gateway"], path+".gateway")
	if f != nil && s.gateway == "" {
		b.Mistake(b.Kind, path, "gateway is missing: payment ids are unique within one")
	}
	if f != nil && f["payment_id"] == nil {
		b.Mistake(b.Kind, path, "payment_id is missing: what the payment is found by")
	}
	s.id = b.Template(f["payment_id"], path+".payment_id")
	b.CheckTemplate(f["payment_id"], path+".payment_id", s.id)
	for name, expression := range map[string]string{
		"found": "body.payments", "final": "hit.final", "reference": "hit.order_id", "never": "hit.never", "ours": "true",
		"result": `{"order_id": hit.order_id}`, "state": "hit.state",
	} {
		b.Default(name, expression)
	}
	if b.Tool.HasAmount {
		b.Default("match", `same_amount(hit.amount, "minor") && hit.currency == effect.currency`)
	}
	b.Refuse(Kind, "allow_private", "canary", "not_found", "next", "possible")
	s.rules = b.Rules()
	return s
}

// Named is which payment a call is about. Account is a name, "" for the call's own.
type Named struct{ Account, Gateway, PaymentID string }

// Payment is which one a question is about; the error says what the call lacks.
func (s *Source) Payment(q lookup.Question) (Named, error) {
	id, err := block.Fill(s.id, q, func(v string) (string, error) {
		if strings.ContainsAny(v, " \t\n") {
			return "", errors.New("is no payment id")
		}
		return v, nil
	})
	return Named{s.account, s.gateway, id}, err
}

// Host is "": nobody is asked.
func (s *Source) Host() string { return "" }

// Mask has nothing to do: there are no credentials.
func (s *Source) Mask(text string) string { return text }

// Ask says that what is stored is brought through See.
func (s *Source) Ask(context.Context, lookup.Question) lookup.Seen {
	return lookup.Seen{Problem: lookup.Unanswered, Request: "orders of " + s.gateway}
}

// Record is a payment as it is brought, and as the expressions see it as hit.
type Record struct {
	PaymentID string `json:"payment_id"`
	OrderID   string `json:"order_id"`
	State     string `json:"state"` // of the payment and its order: "settled, paid"
	Amount    string `json:"amount"`
	Asset     string `json:"asset"`
	Currency  string `json:"currency"` // the asset's code, where the policy names it
	Network   string `json:"network"`
	Payer     string `json:"payer"`
	PayTo     string `json:"pay_to"`
	// Final: the order is paid, and everything that paid it is final on its rail.
	Final bool `json:"final"`
	// Never: the order is over without being paid, and nothing that was signed for it can move
	// money any more.
	Never bool `json:"never"`
}

// See reads the payments that were brought, each a [Record]: none, or one. Our own tables are
// read whole, by the very program that writes them.
func (s *Source) See(ctx context.Context, q lookup.Question, brought [][]byte) lookup.Seen {
	list := make([]json.RawMessage, len(brought))
	for i, b := range brought {
		list[i] = b
	}
	raw, err := json.Marshal(map[string]any{"payments": list})
	if err != nil {
		return lookup.Seen{Problem: lookup.Unreadable}
	}
	return s.see(ctx, q, raw)
}

func (s *Source) see(ctx context.Context, q lookup.Question, raw []byte) lookup.Seen {
	seen := lookup.Seen{Request: "orders of " + s.gateway, Canary: true}
	s.rules.For(q).Document(ctx, raw, &seen)
	seen.Canary = true
	return seen
}

// Replay is See with the payments given, as {"payments": [...]}.
func (s *Source) Replay(ctx context.Context, q lookup.Question, pages []fetch.Canned, _ bool) lookup.Seen {
	return s.see(ctx, q, pages[0].Body)
}
