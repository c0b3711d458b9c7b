package rules

import (
	"context"
	"strings"

	"quittance/ledger/money"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/expr"
)

// seenMoney finds the amount and currency of a record, to be shown beside the effect's. They
// are read off the rule that compares them: whoever writes a policy says it once. Nil
// where that rule does not show it.
type seenMoney struct {
	amount, currency *expr.Expr
	minor            bool // the amount counts the smallest unit
}

func moneyIn(hit *expr.Scope, match *expr.Expr) (m seenMoney) {
	if match == nil {
		return m
	}
	source := match.Compares(sameAmountName, "effect.amount")
	if source == "" {
		source, m.minor = match.Compares(sameAmountName, "effect.amount_minor"), true
	}
	if source != "" {
		m.amount = hit.Part(source)
	}
	if source := match.Compares(expr.Equals, "effect.currency"); source != "" {
		m.currency = hit.Part(source)
	}
	return m
}

// read sets what a hit shows of its money. What cannot be read is not shown: it decides
// nothing.
func (m seenMoney) read(ctx context.Context, vars map[string]any, meant *money.Amount, h *lookup.Hit) {
	if m.currency != nil {
		if out, err := m.currency.Eval(ctx, vars); err == nil {
			h.Currency = plain(out)
		}
	}
	if m.amount == nil {
		return
	}
	out, err := m.amount.Eval(ctx, vars)
	if err != nil {
		return
	}
	text, ok := exact(out)
	if !ok {
		h.Amount = plain(out)
		return
	}
	h.Amount = text
	asset, known := assetOf(h.Currency, meant)
	if known {
		h.Currency = asset.Code
	}
	read := money.ParseDecimal
	if m.minor {
		read = money.ParseMinor
	}
	if !known {
		if m.minor {
			h.Amount += " of the smallest unit"
		}
	} else if a, err := read(text, asset); err == nil {
		h.Amount = a.String()
	}
}

// assetOf is the asset that a record's currency names.
func assetOf(code string, meant *money.Amount) (money.Asset, bool) {
	if meant != nil && (code == "" || strings.EqualFold(code, meant.Asset().Code)) {
		return meant.Asset(), true
	}
	asset, err := money.Currency(code)
	return asset, err == nil
}
